"""For whom a machine is bought."""

from dataclasses import dataclass

from broker.model.build import USUAL, Build


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """Goes on the machine as tags; `seconds` after its launch it ends whatever happens."""

    job: str = ""
    """Attempt of a job, such as `4711/1`."""
    user: str = ""
    account: str = ""
    seconds: int
    build: Build = USUAL
    beside: str = ""
    """The provider's id of a machine that it joins: its job's others were bought before it."""
