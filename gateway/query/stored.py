"""What accounting keeps of jobs beside what it counts (AccountingStoreFlags)."""

from collections.abc import Collection
from dataclasses import replace

from broker.model.job import Job

COMMENT, ENVIRONMENT, EXTRA, SCRIPT = "job_comment", "job_env", "job_extra", "job_script"
ALL = (COMMENT, ENVIRONMENT, EXTRA, SCRIPT)


def as_stored(job: Job, flags: Collection[str]) -> Job:
    """The record without texts that the site does not keep; the same one where all are kept."""
    if job.comment is not None and COMMENT not in flags:
        job = replace(job, comment=None)
    if EXTRA not in flags and job.spec.option("extra") is not None:
        options = tuple(pair for pair in job.spec.options if pair[0] != "extra")
        job = replace(job, spec=job.spec.model_copy(update={"options": options}))
    return job
