"""`scontrol show step` and `show licenses`: as text, and as records where that is asked for."""

from broker.model.ids import BATCH
from gateway.api.programs.reading import fail
from gateway.api.programs.scontrol_show import Asked, Keywords, jobs_of
from gateway.api.wire import Answer
from gateway.query.documents import document, values
from gateway.query.refs import read_ref
from gateway.query.reststep import STEP_KIND
from gateway.query.shape import number
from gateway.query.showstep import show_step
from gateway.query.steps import JobStep, live_steps

UNKNOWN = (
    "scontrol: error: scontrol_print_step: slurm_get_job_steps({}) failed: "
    "Invalid job id specified\n"
)
NONE_RUN = "No job steps in the system\n"
NO_LICENSES = "No licenses configured in Slurm.\n"


async def steps(asked: Asked) -> Answer:
    """`show step [JOB[.STEP]]`: those that run, the batch step of each job first."""
    every = sorted(live_steps(asked.seen.jobs.values()), key=_batch_first)
    word = asked.words[0] if asked.words else None
    found = every if word is None else _named(asked, word, every)
    unknown = word is not None and not found
    if asked.by is not None:
        more = {"last_update": number(asked.snap.at)}
        out = document(STEP_KIND, found, asked.ctx, asker=asked.by, more=more)
        return Answer(out=out, code=int(unknown))
    if unknown:
        raise fail(UNKNOWN.format(word))
    text = "".join(show_step(*pair, asked.ctx, oneliner=asked.oneliner) for pair in found)
    return Answer(out=text or NONE_RUN)


def _named(asked: Asked, word: str, every: list[JobStep]) -> list[JobStep]:
    refs = read_ref(word)
    jobs = {job.id for ref in refs or () for job in jobs_of(ref, asked.seen)}
    step = refs[0].step if refs else None
    return [pair for pair in every if pair[0].id in jobs and step in {None, pair[1].id}]


def _batch_first(pair: JobStep) -> tuple[int, bool]:
    return pair[0].id, pair[1].id != BATCH


async def licenses(asked: Asked) -> Answer:
    """`show licenses`: there are none."""
    if asked.by is None:
        return Answer(out=NO_LICENSES)
    content = {"licenses": [], "last_update": number(asked.snap.at)}
    return Answer(out=values(content, asked.ctx, asker=asked.by))


SHOWN: Keywords = {"steps": (2, steps), "licenses": (2, licenses)}
