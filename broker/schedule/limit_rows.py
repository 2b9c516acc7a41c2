"""The limits, one row each, in the order in which Slurm comes to them (25.11)."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

from broker.model.spec import UNLIMITED, Limit
from broker.model.tally import FOREVER, WALL, Party, Used

MINUTE = 60


class When(Enum):
    """When a limit is looked at, and what it does."""

    SUBMIT = auto()
    """Refuses."""
    JOB = auto()
    """The job itself is too large: it waits, or is refused where a QOS has DenyOnLimit."""
    START = auto()
    """Others use it up: it waits."""
    NODES = auto()
    """The same, of what it would hold: looked at once nodes could be given."""
    ACCRUE = auto()
    """Others that wait have used it up: it waits too, without growing older."""


class Whose(Enum):
    """Whose jobs are held against the limit."""

    USER = auto()
    ACCOUNT = auto()
    GROUP = auto()


@dataclass(frozen=True, slots=True)
class Asking:
    """A job as limits see it."""

    party: Party
    want: Mapping[str, int]
    time_limit: Limit
    tasks: int = 1
    """Jobs that it makes in all: the tasks of an array."""
    nodes: tuple[Mapping[str, int], ...] = ()
    """What it would hold of each of its nodes, once they are found."""

    @property
    def seconds(self) -> int:
        return FOREVER if self.time_limit == UNLIMITED else int(self.time_limit)


@dataclass(frozen=True, slots=True)
class Past:
    """What is in use, and what was used, as of an instant."""

    used: Used
    charged: Mapping[str, float]
    """TRES-seconds of jobs that are over."""
    now: int
    safe: bool = False
    """Whether a job starts only if all that may be used still fits (AccountingStorageEnforce)."""


Measure = Callable[[Past, Asking, str], int]
"""What would be in use with this job, in the limit's unit; the text names a TRES."""


@dataclass(frozen=True, slots=True)
class Row:
    """One limit: its field, when it is looked at, whose use counts, its reasons."""

    limit: str
    when: When
    whose: Whose
    measure: Measure
    qos: str = ""
    """Reason where a QOS sets it; empty: it does not there."""
    assoc: str = ""
    tres: str | None = None
    least: bool = False
    """It is a minimum."""
    past: bool = False
    """Whether what was used before counts."""
    per: int = 1
    """How much of the measure's unit makes one of the limit's: 60 for minutes."""
    running: Measure | None = None
    """What ends a running job where it has come to the limit."""


def _queued(past: Past, ask: Asking, _: str) -> int:
    return past.used.queued + ask.tasks


def _running(past: Past, _: Asking, __: str) -> int:
    return past.used.running + 1


def _accruing(past: Past, _: Asking, __: str) -> int:
    return past.used.accruing + 1


def _wall(_: Past, ask: Asking, __: str) -> int:
    return ask.seconds


def _one(_: Past, ask: Asking, tres: str) -> int:
    return ask.want.get(tres, 0)


def _per_node(_: Past, ask: Asking, tres: str) -> int:
    if ask.nodes:
        return max(one.get(tres, 0) for one in ask.nodes)
    return -(-ask.want.get(tres, 0) // max(1, ask.want.get("node", 1)))


def _sum(past: Past, ask: Asking, tres: str) -> int:
    return past.used.held.get(tres, 0) + ask.want.get(tres, 0)


def _seconds(_: Past, ask: Asking, tres: str) -> int:
    return ask.want.get(tres, 0) * ask.seconds


def _ahead(past: Past, ask: Asking, tres: str) -> int:
    return past.used.ahead(tres, past.now) + ask.want.get(tres, 0) * ask.seconds


def _spent(past: Past, ask: Asking, tres: str) -> int:
    """What was used and is being used; where it has to be safe, with all that may be used still.

    Without `safe` a job starts as long as something is left: one second more is asked for.
    """
    so_far = _so_far(past, ask, tres)
    if past.safe:
        more = past.used.ahead(tres, past.now) + ask.want.get(tres, 0) * ask.seconds
        return so_far + more
    return so_far + 1 if ask.want.get(tres, 0) else 0


def _so_far(past: Past, _: Asking, tres: str) -> int:
    return int(past.charged.get(tres, 0.0)) + past.used.seconds(tres, past.now)


def _wall_so_far(past: Past, ask: Asking, _: str) -> int:
    return _so_far(past, ask, WALL)


def _spent_wall(past: Past, ask: Asking, _: str) -> int:
    return _spent(past, ask, WALL)


USER, ACCOUNT, GROUP = Whose
SUBMIT, JOB, START, NODES, ACCRUE = When
TRES = ("cpu", "mem", "node", "gres/gpu", "billing")


def _each(row: Row, *, qos: str = "", assoc: str = "") -> Iterator[Row]:
    """A row for each TRES; the reasons' words stand in the order of TRES, `-` for none."""
    none = ["-"] * len(TRES)
    minutes = MINUTE if "mins" in row.limit else 1
    for tres, of_qos, of_assoc in zip(
        TRES, qos.split() or none, assoc.split() or none, strict=True
    ):
        yield replace(
            row,
            qos=of_qos.strip("-"),
            assoc=of_assoc.strip("-"),
            tres=tres,
            least=row.limit.startswith("min_"),
            past=row.limit == "grp_tres_mins",
            per=minutes,
        )


# fmt: off
ROWS: tuple[Row, ...] = (
    Row("max_submit_jobs",             SUBMIT, USER,    _queued,  "QOSMaxSubmitJobPerUserLimit", "AssocMaxSubmitJobLimit"),
    Row("max_submit_jobs_per_account", SUBMIT, ACCOUNT, _queued,  "MaxSubmitJobsPerAccount"),
    Row("grp_submit_jobs",             SUBMIT, GROUP,   _queued,  "QOSGrpSubmitJobsLimit", "AssocGrpSubmitJobsLimit"),
    Row("max_wall",                    JOB,    USER,    _wall,    "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
    *_each(Row("max_tres_per_job",         JOB,    USER,    _one),
           qos="QOSMaxCpuPerJobLimit QOSMaxMemoryPerJob QOSMaxNodePerJobLimit QOSMaxGRESPerJob QOSMaxBillingPerJob",
           assoc="AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxNodePerJobLimit AssocMaxGRESPerJob AssocMaxBillingPerJob"),
    *_each(Row("max_tres_per_node",        JOB,    USER,    _per_node),
           qos="QOSMaxCpuPerNode QOSMaxMemoryPerNode - QOSMaxGRESPerNode QOSMaxBillingPerNode",
           assoc="AssocMaxCpuPerNode AssocMaxMemPerNode - AssocMaxGRESPerNode AssocMaxBillingPerNode"),
    *_each(Row("max_tres_mins_per_job",    JOB,    USER,    _seconds, running=_seconds),
           qos="QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob QOSMaxGRESMinutesPerJob QOSMaxBillingMinutesPerJob",
           assoc="AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob AssocMaxGRESMinutesPerJob AssocMaxBillingMinutesPerJob"),
    *_each(Row("min_tres_per_job",         JOB,    USER,    _one),
           qos="QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinGRES QOSMinBilling"),
    Row("max_jobs_accrue",             ACCRUE, USER,    _accruing, "MaxJobsAccrue", "MaxJobsAccrue"),
    Row("grp_jobs_accrue",             ACCRUE, GROUP,   _accruing, "GrpJobsAccrue", "GrpJobsAccrue"),
    Row("max_jobs",                    START,  USER,    _running, "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit"),
    Row("max_jobs_per_account",        START,  ACCOUNT, _running, "MaxJobsPerAccount"),
    Row("grp_jobs",                    START,  GROUP,   _running, "QOSGrpJobsLimit", "AssocGrpJobsLimit"),
    Row("grp_wall",                    START,  GROUP,   _spent_wall, "QOSGrpWallLimit", "AssocGrpWallLimit", past=True, running=_wall_so_far),
    *_each(Row("grp_tres_mins",            NODES,  GROUP,   _spent, running=_so_far),
           qos="QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpNodeMinutes QOSGrpGRESMinutes QOSGrpBillingMinutes",
           assoc="AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes AssocGrpGRESMinutes AssocGrpBillingMinutes"),
    *_each(Row("grp_tres",                 NODES,  GROUP,   _sum),
           qos="QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpGRES QOSGrpBilling",
           assoc="AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpGRES AssocGrpBilling"),
    *_each(Row("grp_tres_run_mins",        NODES,  GROUP,   _ahead),
           qos="QOSGrpCPURunMinutesLimit QOSGrpMemoryRunMinutes QOSGrpNodeRunMinutes QOSGrpGRESRunMinutes QOSGrpBillingRunMinutes",
           assoc="AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes AssocGrpGRESRunMinutes AssocGrpBillingRunMinutes"),
    *_each(Row("max_tres_per_account",     NODES,  ACCOUNT, _sum),
           qos="MaxCpuPerAccount MaxMemoryPerAccount MaxNodePerAccount MaxGRESPerAccount MaxBillingPerAccount"),
    *_each(Row("max_tres_run_mins_per_account", NODES, ACCOUNT, _ahead),
           qos="MaxCpuRunMinsPerAccount MaxMemoryRunMinsPerAccount MaxNodeRunMinsPerAccount MaxGRESRunMinsPerAccount MaxBillingRunMinsPerAccount"),
    *_each(Row("max_tres_per_user",        NODES,  USER,    _sum),
           qos="QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxNodePerUserLimit QOSMaxGRESPerUser QOSMaxBillingPerUser"),
    *_each(Row("max_tres_run_mins_per_user", NODES, USER,   _ahead),
           qos="QOSMaxCpuRunMinsPerUser QOSMaxMemoryRunMinsPerUser QOSMaxNodeRunMinsPerUser QOSMaxGRESRunMinsPerUser QOSMaxBillingRunMinsPerUser"),
)
# fmt: on
