"""The shape of a row of the column table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.model.job import Job, Step
from gateway.query.context import Context
from gateway.query.kinds import Kind, plain

JobGetter = Callable[[Job, Context], Any]
"""A value of a job, None where it is not set. Pure."""
StepGetter = Callable[[Job, Step, Context], Any]
Text = Callable[[Job, Context], str]
"""A value of a job as one command writes it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A value of a job, and under which names squeue, scontrol and slurmrestd show it."""

    key: str
    letter: str
    """squeue -o; empty where there is none."""
    long: str
    """squeue -O."""
    header: str
    scontrol: str
    """Its key in `scontrol show job`."""
    rest: str
    """Its key in slurmrestd's job record."""
    kind: Kind
    get: JobGetter
    help: bool = True
    """Whether squeue's lists of columns name it; older names still work."""
    timed: bool = False
    """Whether it changes with time alone."""

    def squeue(self) -> Text:
        return _writer(self.get, self.kind.squeue, self.kind.squeue_none)

    def shown(self) -> Text:
        """As `scontrol show job` writes it."""
        return _writer(self.get, self.kind.scontrol, self.kind.scontrol_none)


@dataclass(frozen=True, slots=True)
class Account:
    """A column of sacct, in the row of a job and in those of its steps (None: blank there)."""

    name: str
    width: int
    """Negative: to the left."""
    kind: Kind
    get: JobGetter | None
    step_kind: Kind
    step: StepGetter | None
    timed: bool = False
    help: bool = True

    def of_job(self) -> Text:
        if self.get is None:
            return lambda _job, _ctx: ""
        return _writer(self.get, self.kind.sacct, self.kind.sacct_none)

    def of_step(self) -> Callable[[Job, Step, Context], str]:
        get, write, none = self.step, self.step_kind.sacct, self.step_kind.sacct_none
        if get is None:
            return lambda _job, _step, _ctx: ""

        def text(job: Job, step: Step, ctx: Context) -> str:
            value = get(job, step, ctx)
            return none if value is None else write(value, ctx)

        return text


def _writer(get: JobGetter, write: Callable[[Any, Context], str], none: str) -> Text:
    """Most columns are plain: those save a call, which a listing makes for each of its cells."""

    def plain_text(job: Job, ctx: Context) -> str:
        value = get(job, ctx)
        return none if value is None else str(value)

    def text(job: Job, ctx: Context) -> str:
        value = get(job, ctx)
        return none if value is None else write(value, ctx)

    return plain_text if write is plain else text
