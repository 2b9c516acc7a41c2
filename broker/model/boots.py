"""Machines that were bought and never came up: of which kind, how many in a row; words for it."""

from dataclasses import dataclass

from broker.model.facts import RecordGone, RecordSet
from broker.model.job import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBoots:
    """Of one kind of machine, since the last one that came up; instants in seconds UTC."""

    name: str
    """Of the kind: `ec2:us-east-1,m7i.large`, or `ec2:ami-1` where that is a job's own image."""
    failed: int
    since: int
    until: int | None = None
    """Until when none is bought; None: they are."""
    why: str = ""
    """What was said of the last one."""


# --- asked


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyAgain:
    """Ends protected mode of a kind, or of all. Reply: which. Raises Denied, Unknown."""

    by: Owner
    name: str | None


# --- facts


@dataclass(frozen=True, slots=True, kw_only=True)
class BootsSet(RecordSet):
    """One more did not come up, or the time of not buying is over."""

    record: FailedBoots


@dataclass(frozen=True, slots=True, kw_only=True)
class BootsGone(RecordGone):
    """One came up, or an operator trusts in it."""


BootsEvent = BootsSet | BootsGone
