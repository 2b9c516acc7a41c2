"""Priority of jobs. In this version: the order of submission, whatever else a job is."""

from accounting.ids import JobId
from broker.model.job import Job

TOP = 4_294_901_759
"""Where Slurm's priority/basic starts to count down from (25.11)."""


def initial(job: JobId, *, held: bool, asked: int | None = None) -> int:
    """Priority at submission; 0 while held, never below 1 otherwise."""
    if held:
        return 0
    return TOP - job if asked is None else max(1, asked)


def order(job: Job) -> tuple[int, int]:
    """Sort key: highest priority first, then the lowest id."""
    return -job.priority, job.array.base if job.array else job.id
