"""sattach: looks on while a step runs, and types for it."""

from collections.abc import Sequence

from accounting.ids import JobId
from broker.model.ids import StepId, step_key
from broker.model.job import Job, JobState, Step
from broker.schedule.ranks import ranks
from gateway.api.desk import Desk
from gateway.api.programs.early import early
from gateway.api.programs.notes import notes
from gateway.api.programs.srun import place_in
from gateway.api.programs.stepping import Manners, Watch, passed_on
from gateway.api.relay import Shown
from gateway.api.stream import Line
from gateway.api.wire import Call
from sbatch_shim.grammar.errors import failed, fatal
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.parse import Query, parse_query
from sbatch_shim.grammar.values import read_digits

PROGRAM = "sattach"
NO_STEP = "Could not get job step info: {}"
UNKNOWN = "Invalid job id specified"
WAITING = "Job is pending execution"
ENDED = "Job/step already completing or completed"
NOT_ONE = "too many parameters"
NO_NUMBERS = "Failed to parse stepid from command line options"
BAD_STEP = "Bad step specified: {}"
NAMED_STEPS = ("batch", "extern", "interactive")
USAGE = "Usage: sattach [options] <jobid.stepid>\n"
LAYOUT = "Job step layout:\n\t{t} tasks, {k} nodes ({n})\n\n"
LAYOUT_NODE = "\tNode {p} ({n}), {t} task(s): {r}\n"


async def run(desk: Desk, call: Call, line: Line) -> int:
    """Raises GrammarError with Slurm's text and exit status, Gone."""
    query = parse_query(PROGRAM, call.argv, call.environ)
    for asked in ("help", "usage", "version"):
        if any(one.opt.long == asked for one in query.said):
            answer = early(PROGRAM, asked, version=desk.site.version)
            await line.out(answer.out)
            return answer.code
    if desk.warn_ignored and (said := notes(PROGRAM, call)):
        await line.err(said)
    owner = await desk.owner(call.peer.uid)
    wrong = _unreadable(query.operands)
    if wrong:
        await line.out(USAGE)
        raise failed(PROGRAM, wrong)
    job, step = _find(desk, query.operands[0], owner.uid)
    if "layout" in query.given:
        await line.out(_layout(step))
        return 0
    key = step_key(job.id, job.attempt, step.id)
    offsets = place_in(line.hello.place)[1] or tuple(
        desk.relayed.get(passed_on(key, share.node), 0) for share in step.shares
    )
    watch = Watch(desk, line, owner, job, step.id, _manners(query, step), offsets=offsets)
    code, _ = await watch.finish(await watch.run(_at_once()))
    return code


async def _at_once() -> None:
    """It runs already."""


def _unreadable(operands: Sequence[str]) -> str:
    """What is wrong with the words that name the step; empty if they may name one (22.05)."""
    if len(operands) != 1:
        return NOT_ONE
    job, dot, step = operands[0].partition(".")
    return "" if read_digits(job) is not None and dot and step else NO_NUMBERS


def _find(desk: Desk, text: str, uid: int) -> tuple[Job, Step]:
    """A step that runs and is the caller's. Raises GrammarError."""
    number, _, name = text.partition(".")
    if not (name.isdigit() or name in NAMED_STEPS):
        raise fatal(PROGRAM, BAD_STEP.format(number))
    job = desk.snapshot().jobs.get(JobId(int(number)))
    if job is None or not _may_see(desk, job, uid):
        raise failed(PROGRAM, NO_STEP.format(UNKNOWN))
    step = job.step(StepId(name))
    if step is None or step.state.final or step.spec is None or not job.shares:
        raise failed(PROGRAM, NO_STEP.format(_why_none(job)))
    if not step.spec.interactive:
        raise failed(PROGRAM, NO_STEP.format(UNKNOWN))
    return job, step


def _why_none(job: Job) -> str:
    """Why there is no such step to look at (22.05)."""
    if job.over or job.completing:
        return ENDED
    return WAITING if job.state is JobState.PENDING else UNKNOWN


def _may_see(desk: Desk, job: Job, uid: int) -> bool:
    return uid in (0, job.owner.uid, *desk.site.admins)


def _manners(query: Query, step: Step) -> Manners:
    tasks = step.spec.tasks if step.spec is not None else 1
    return Manners(
        program=PROGRAM,
        shown=Shown(
            label=len(str(tasks - 1)) if "label" in query.given else 0,
            out=_task(query, "output-filter"),
            err=_task(query, "error-filter"),
        ),
        reads=True,
        raw="pty" in query.given,
        quiet="quiet" in query.given,
        owns=False,
    )


def _task(query: Query, long: str) -> int | None:
    given = query.given.get(long)
    text = given.text if given is not None else None
    return read_digits(text) if text else None


def _layout(step: Step) -> str:
    tasks = step.spec.tasks if step.spec is not None else 1
    nodes = [share.node for share in step.shares]
    rows = enumerate(zip(nodes, ranks(step), strict=True))
    return LAYOUT.format(t=tasks, k=len(nodes), n=fold(nodes)) + "".join(
        LAYOUT_NODE.format(p=place, n=node, t=len(own), r=", ".join(map(str, own)))
        for place, (node, own) in rows
    )
