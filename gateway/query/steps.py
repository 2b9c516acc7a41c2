"""Steps of live jobs as `squeue -s` lists them."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from accounting.tres import Tres
from broker.model.ids import BATCH
from broker.model.job import Job, Step, StepState
from broker.model.measured import held_by
from broker.model.spec import Gres
from gateway.query import job as of
from gateway.query import resources as res
from gateway.query.context import Context
from gateway.query.kinds import HELD, MOMENT, SPAN, TEXT, Kind
from gateway.query.layout import Cell, Layout, by_letters, by_names
from gateway.query.texts import step_file
from sbatch_shim.grammar.values import UNLIMITED

STEP_DEFAULT = "%.15i %.8j %.9P %.8u %.9M %N"

JobStep = tuple[Job, Step]
StepText = Callable[[JobStep, Context], str]


def live_steps(jobs: Iterable[Job]) -> list[JobStep]:
    """Steps that run, by job; numbered ones before the batch step, as Slurm numbers them."""
    found = [
        (job, step)
        for job in jobs
        for step in job.steps
        if step.state is StepState.RUNNING and is_shown(job, step)
    ]
    return sorted(found, key=lambda pair: (pair[0].id, _rank(pair[1])))


def is_shown(job: Job, step: Step) -> bool:
    """Not the batch step that only keeps an allocation open: Slurm has none there."""
    return step.id != BATCH or job.runs_batch


def _rank(step: Step) -> tuple[bool, int, str]:
    numbered = step.id.isdigit()
    return not numbered, int(step.id) if numbered else 0, step.id


def step_name(job: Job, step: Step, _: Context) -> str:
    return step.name


def step_id(job: Job, step: Step, ctx: Context) -> str:
    """`12.0`, `12_3.batch`."""
    return f"{of.shown_id(job, ctx)}.{step.id}"


def step_elapsed(_job: Job, step: Step, ctx: Context) -> int:
    if step.started is None:
        return 0
    return max((ctx.now if step.ended is None else step.ended) - step.started, 0)


def step_tres(job: Job, step: Step, _: Context) -> tuple[Tres, None]:
    """What the step can use: the batch step its node's part, others theirs, or all of the job."""
    return held_by(job, step), None


def step_cpus(job: Job, step: Step, _: Context) -> int:
    return held_by(job, step).cpu


def step_nodes(job: Job, step: Step, _: Context) -> tuple[str, ...] | None:
    if step.id != BATCH and step.share is not None:
        return tuple(share.node for share in step.shares)
    names = job.last_node_names[:1] if step.id == BATCH else job.last_node_names
    return names or None


def step_tasks(_job: Job, step: Step, _: Context) -> int:
    return 1 if step.spec is None else step.spec.tasks


def step_limit(_job: Job, step: Step, _: Context) -> int | None:
    """Seconds; None where it has no limit of its own."""
    return None if step.spec is None else step.spec.time_limit


def step_gres(_job: Job, step: Step, _: Context) -> str | None:
    """What it asked for on each node."""
    return None if step.spec is None else res.gres_text(step.spec.gres or ())


def step_gres_of_tasks(_job: Job, step: Step, _: Context) -> str | None:
    """What it asked for each task."""
    if step.spec is None:
        return None
    gpus = (Gres(name="gpu", count=step.spec.gpus_per_task),) if step.spec.gpus_per_task else ()
    return res.gres_text((*gpus, *step.spec.gres_per_task), mark="=")


def step_asked_tres(job: Job, step: Step, ctx: Context) -> str | None:
    """Its cpus and generic resources, where it asked for such (22.05)."""
    each = step_gres(job, step, ctx) or step_gres_of_tasks(job, step, ctx)
    return None if each is None else f"cpu:{step_cpus(job, step, ctx)},{each}"


def step_frequency(_job: Job, step: Step, _: Context) -> str:
    """No step asks for one that could be set (22.05)."""
    return "Unknown-Unknown:Unknown" if step.numbered else "0-0:0"


def _nothing(_job: Job, _step: Step, _: Context) -> None:
    """What no step here has."""


def _of_job(get: Callable[[Job, Context], Any]) -> Callable[[Job, Step, Context], Any]:
    return lambda job, _step, ctx: get(job, ctx)


def _text(kind: Kind, get: Callable[[Job, Step, Context], Any]) -> StepText:
    def text(pair: JobStep, ctx: Context) -> str:
        value = get(*pair, ctx)
        return kind.squeue_none if value is None else kind.squeue(value, ctx)

    return text


def _limit_or_none(job: Job, step: Step, ctx: Context) -> int | str:
    limit = step_limit(job, step, ctx)
    return UNLIMITED if limit is None else limit


# fmt: off
STEP_COLUMNS = (
    # letter, -O name,       header,         kind,   value
    ("i", "StepId",         "STEPID",        TEXT,   step_id),
    ("j", "StepName",       "NAME",          TEXT,   step_name),
    ("P", "Partition",      "PARTITION",     TEXT,   _of_job(of.partition)),
    ("u", "UserName",       "USER",          TEXT,   _of_job(of.user)),
    ("U", "UserId",         "UID",           TEXT,   _of_job(of.uid)),
    ("M", "TimeUsed",       "TIME",          SPAN,   step_elapsed),
    ("l", "TimeLimit",      "TIME_LIMIT",    SPAN,   _limit_or_none),
    ("N", "Nodes",          "NODELIST",      HELD,   step_nodes),
    ("S", "StartTime",      "START_TIME",    MOMENT, lambda _job, step, _ctx: step.started),
    ("A", "NumTasks",       "TASKS",         TEXT,   step_tasks),
    ("",  "NumCPUs",        "NUM_CPUS",      TEXT,   step_cpus),
    ("b", "tres-per-node",  "TRES_PER_JOB",  TEXT,   step_gres),
    ("",  "Gres",           "TRES_PER_JOB",  TEXT,   step_gres),
    ("",  "tres-per-job",   "TRES_PER_STEP", TEXT,   step_asked_tres),
    ("",  "tres-per-step",  "TRES_PER_STEP", TEXT,   step_asked_tres),
    ("",  "tres-per-task",  "TRES_PER_TASK", TEXT,   step_gres_of_tasks),
    ("",  "tres-per-socket", "TRES_PER_SOCKET", TEXT, _nothing),
    ("",  "tres-bind",      "TRES_BIND",     TEXT,   _nothing),
    ("",  "tres-freq",      "TRES_FREQ",     TEXT,   _nothing),
    ("",  "cpus-per-tres",  "CPUS_PER_TRES", TEXT,   _nothing),
    ("",  "mem-per-tres",   "MEM_PER_TRES",  TEXT,   _nothing),
    ("",  "Container",      "CONTAINER",     TEXT,   _nothing),
    ("",  "ContainerId",    "CONTAINERID",   TEXT,   _nothing),
    ("",  "CPUFreq",        "CPU_FREQ",      TEXT,   step_frequency),
    ("",  "Network",        "NETWORK",       TEXT,   _nothing),
    ("",  "ResvPorts",      "RESERVED_PORTS", TEXT,  _nothing),
    ("",  "StdErr",         "STDERR",        TEXT,   step_file("stderr")),
    ("",  "StdIn",          "STDIN",         TEXT,   step_file("stdin")),
    ("",  "StdOut",         "STDOUT",        TEXT,   step_file("stdout")),
    ("",  "ArrayJobId",     "ARRAY_JOB_ID",  TEXT,   _of_job(of.array_base)),
    ("",  "ArrayTaskId",    "ARRAY_TASK_ID", TEXT,   _of_job(of.array_tasks)),
    ("",  "Cluster",        "CLUSTER",       TEXT,   _of_job(of.cluster)),
    ("",  "JobId",          "JOB_ID",        TEXT,   _of_job(of.job_id)),
    ("",  "StepState",      "STATE",         TEXT,   lambda _job, step, _ctx: step.state),
)
# fmt: on

EVERY = tuple(f"{letter}|" for letter in "bijluAMNPSU")
"""`%all`: the letters of columns, the small ones first (22.05)."""
LETTER_CELLS = {row[0]: Cell(row[2], _text(row[3], row[4]), True) for row in STEP_COLUMNS if row[0]}
NAME_CELLS = {row[1].lower(): Cell(row[2], _text(row[3], row[4]), True) for row in STEP_COLUMNS}


def step_words(*, letters: bool) -> list[str]:
    """The letters or names of columns in order, without those of old (24.05)."""
    shown = [letter if letters else name for letter, name, *_ in STEP_COLUMNS if name not in OF_OLD]
    return sorted(filter(None, shown), key=lambda word: (word.lower(), word.isupper()))


OF_OLD = ("Gres", "tres-per-node")


@lru_cache(maxsize=64)
def step_letters(text: str) -> Layout[JobStep]:
    """`squeue -s -o`, compiled."""
    return by_letters(text, LETTER_CELLS, every=EVERY)


@lru_cache(maxsize=64)
def step_names(text: str) -> Layout[JobStep]:
    """`squeue -s -O`, compiled."""
    return by_names(text, NAME_CELLS)
