"""scontrol: notify, top and wait_job, which leave a job what it is."""

from collections.abc import Mapping

from accounting.ids import JobId
from broker.model.commands import Notify, ToTop
from broker.model.errors import SpzError
from broker.model.job import Job
from gateway.api.programs.scontrol import NO_JOB, TOO_FEW, Asked, Verb, find_jobs, told
from gateway.api.wire import Answer

SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two looks at a job that is waited for."""
WAITING = "scontrol: Waiting for nodes to boot\n"
READY = "scontrol: Nodes are ready for job {}\n"
PROBLEM = "scontrol: Problem running job {}\n"


async def notify(asked: Asked) -> Answer:
    """The words become one line of the batch script's standard error."""
    if len(asked.words) < 2:
        return Answer(err=TOO_FEW.format(asked.keyword), code=1)
    named, wrong = find_jobs(asked, asked.words[:1])
    if wrong:
        return Answer(err=f"job notify failure: {NO_JOB}\n", code=1)
    for one in named:
        text = " ".join(asked.words[1:])
        try:
            await asked.desk.ask_once(asked.call, Notify(target=one.target, by=asked.by, text=text))
        except SpzError as error:
            return Answer(err=f"job notify failure: {told(asked, error, one.target)}\n", code=1)
    return Answer()


async def top(asked: Asked) -> Answer:
    """Users may do so with their own jobs, as where Slurm has enable_user_top."""
    if not asked.words:
        return Answer(err=TOO_FEW.format(asked.keyword), code=1)
    words = asked.words[0]
    named, wrong = find_jobs(asked, (words,))
    if wrong:
        return Answer(err=wrong, code=1)
    try:
        jobs = tuple(one.target.job for one in named)
        await asked.desk.ask_once(asked.call, ToTop(jobs=jobs, by=asked.by))
    except SpzError as error:
        return Answer(err=f"{told(asked, error, named[0].target)} for job {words}\n", code=1)
    return Answer()


async def wait_job(asked: Asked) -> Answer:
    """Ends when the job's nodes are up, 0 then; 1 if it is over without (texts are 22.05's)."""
    if len(asked.words) != 1:
        return Answer(err=TOO_FEW.format(asked.keyword), code=1)
    if not asked.words[0][:1].isdigit():
        return Answer(err=f"Invalid job_id {asked.words[0]}", code=1)
    named, wrong = find_jobs(asked, asked.words)
    job = asked.job(named[0].target) if named else None
    if wrong or job is None:
        return Answer(err=PROBLEM.format(asked.words[0]), code=1)
    if _settled(job):
        return _ready(job, job.id)
    return Answer(err=WAITING, rest=_until_ready(asked, job.id))


async def _until_ready(asked: Asked, job_id: JobId) -> Answer:
    pause = SHORTEST_PAUSE
    job = asked.desk.snapshot().jobs.get(job_id)
    while job is not None and not _settled(job):
        await asked.desk.pause(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
        job = asked.desk.snapshot().jobs.get(job_id)
    return _ready(job, job_id)


def _settled(job: Job) -> bool:
    """Whether its nodes are up, or it will never get any."""
    return job.state.final or (job.state.holds_nodes and not job.configuring)


def _ready(job: Job | None, job_id: JobId) -> Answer:
    if job is None or job.state.final:
        return Answer(err=PROBLEM.format(job_id), code=1)
    return Answer(err=READY.format(job_id))


VERBS: Mapping[str, Verb] = {"notify": notify, "top": top, "wait_job": wait_job}
