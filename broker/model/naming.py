"""What the patterns in names of a job's files and folders stand for."""

from broker.model.ids import BATCH, StepId
from broker.model.job import Job
from broker.model.spec import Checkpoint
from sbatch_shim.grammar.filenames import FileJob, fill


def file_job(job: Job, node: str, step: StepId = BATCH) -> FileJob:
    """What the patterns of the job's file names are filled from."""
    array = job.array
    return FileJob(
        id=job.id,
        array_id=array.base if array else None,
        task=array.task if array else None,
        user=job.owner.user,
        name=job.spec.name,
        node=node,
        restarts=job.restarts,
        sluid=job.sluid,
        step=step,
        place=_place(job, node, step),
    )


def _place(job: Job, node: str, step: StepId) -> int:
    """Of the node among those of the step: its rank there, and 0 of the batch step's."""
    found = job.step(step)
    names = [str(share.node) for share in found.shares] if found is not None else []
    return names.index(node) if node in names else 0


def checkpoint_folder(job: Job, asked: Checkpoint) -> str:
    """The job's own; a job's name with `/`, or of dots alone, leads to no other place.

    Components of a heterogeneous job have folders of their own in the one that they share.
    """
    facts = file_job(job, "")
    name = facts.name.replace("/", "_")
    folder = fill(asked.folder, facts._replace(name=name if name.strip(".") else "_"))
    return folder if job.het is None else f"{folder.rstrip('/')}/het-{job.het.offset}"
