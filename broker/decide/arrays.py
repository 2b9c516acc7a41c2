"""Elements leave the array's record when something happens to one of them alone."""

from collections.abc import Iterator
from dataclasses import replace

from accounting.ids import JobId
from broker.model import events as ev
from broker.model.job import Job
from broker.model.lifecycle import of_task


def split(
    base: Job, task: int, ids: Iterator[JobId], *, now: int
) -> tuple[list[ev.JobEvent], JobId]:
    """Facts that make `task` a record of its own, and that record's id.

    The last element keeps the array's id, the others get fresh ones (Slurm 25.11).
    """
    if base.array is None:
        return [], base.id
    if base.array.waiting == (task,):
        return [ev.BecameElement(job=base.id, at=now, task=task)], base.id
    element = next(ids)
    place = replace(base.array, task=task, waiting=())
    after = of_task(base.after, task)
    reason = base.hold.value if base.hold else "None"
    record = replace(base, id=element, array=place, after=after, reason=reason, detail="")
    return [
        ev.Split(job=base.id, at=now, task=task, element=element),
        ev.Queued(job=element, at=now, record=record),
    ], element


def without(base: Job, task: int) -> Job:
    """The array's record as it stands once `task` was split off."""
    if base.array is None:
        return base
    if base.array.waiting == (task,):
        return replace(base, array=replace(base.array, task=task, waiting=()))
    left = tuple(one for one in base.array.waiting if one != task)
    return replace(base, array=replace(base.array, waiting=left))
