"""The limits, one row each, in the order in which Slurm comes to them (25.11)."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from broker.model.spec import UNLIMITED, Limit
from broker.model.tally import FOREVER, WALL, Party, Used

MINUTE = 60


class When(Enum):
    """When a limit is looked at, in this order; all but the first let a job wait."""

    SUBMIT = auto()
    """Refuses."""
    ACCRUE = auto()
    """Others that wait have used it up: it waits too, without growing older."""
    START = auto()
    """Before nodes are looked for."""
    NODES = auto()
    """When it is known how many they may be."""
    HELD = auto()
    """When it is known what the job would hold of them."""


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
    names: tuple[str, ...] = ()
    """Those nodes, as far as it is known which."""
    factor: float = 1.0
    """What its time limit is multiplied by where a QOS has UsageFactorSafe (22.05)."""

    @property
    def seconds(self) -> int:
        return int((FOREVER if self.time_limit == UNLIMITED else self.time_limit) * self.factor)


@dataclass(frozen=True, slots=True)
class Past:
    """What is in use, and what was used, as of an instant."""

    used: Used
    charged: Mapping[str, float]
    """TRES-seconds so far, also of the running ones."""
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
    """Reason where a QOS sets it; empty: none can."""
    assoc: str = ""
    tres: str | None = None
    least: bool = False
    """It is a minimum."""
    past: bool = False
    """Whether what was used before counts."""
    alone: bool = False
    """Whether what others use does not count."""
    denied: bool = False
    """Refuses only where a QOS has DenyOnLimit."""
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
    if tres == NODE:
        return _nodes_in_all(past, ask)
    return past.used.held.get(tres, 0) + ask.want.get(tres, 0)


def _nodes_in_all(past: Past, ask: Asking) -> int:
    """A node that several jobs share counts once (22.05); until it has nodes: those at least."""
    there = past.used.nodes
    return len(there.keys() | ask.names) if ask.names else max(len(there), ask.want.get(NODE, 0))


def counts_nodes(row: "Row") -> bool:
    """Whether it matters which nodes a job would get."""
    return row.measure is _sum and row.tres == NODE


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
        return so_far + past.used.ahead(tres, past.now) + ask.want.get(tres, 0) * ask.seconds
    return so_far + 1 if ask.want.get(tres, 0) else 0


def _so_far(past: Past, _: Asking, tres: str) -> int:
    return round(past.charged.get(tres, 0.0))


def _wall_so_far(past: Past, ask: Asking, _: str) -> int:
    return _so_far(past, ask, WALL)


def _spent_wall(past: Past, ask: Asking, _: str) -> int:
    return _spent(past, ask, WALL)


USER, ACCOUNT, GROUP = Whose
SUBMIT, ACCRUE, START, NODES, HELD = When
GPUS, NODE = "gres/gpu", "node"
TRES = ("cpu", "mem", NODE, "billing", GPUS)
"""In Slurm's order."""

# limit, whose, reasons where a QOS and where an association sets it; `*` in the order of TRES
# fmt: off
REASONS: Mapping[str, tuple[Whose, str, str]] = {
    "max_submit_jobs":             (USER,    "QOSMaxSubmitJobPerUserLimit", "AssocMaxSubmitJobLimit"),
    "max_submit_jobs_per_account": (ACCOUNT, "MaxSubmitJobsPerAccount", ""),
    "grp_submit_jobs":             (GROUP,   "QOSGrpSubmitJobsLimit", "AssocGrpSubmitJobsLimit"),
    "max_jobs_accrue":             (USER,    "MaxJobsAccrue", "MaxJobsAccrue"),
    "grp_jobs_accrue":             (GROUP,   "GrpJobsAccrue", "GrpJobsAccrue"),
    "grp_jobs":                    (GROUP,   "QOSGrpJobsLimit", "AssocGrpJobsLimit"),
    "grp_wall":                    (GROUP,   "QOSGrpWallLimit", "AssocGrpWallLimit"),
    "max_jobs_per_account":        (ACCOUNT, "MaxJobsPerAccount", ""),
    "max_jobs":                    (USER,    "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit"),
    "max_wall":                    (USER,    "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
    "grp_tres_mins": (GROUP,
        "QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpNodeMinutes QOSGrpBillingMinutes QOSGrpGRESMinutes",
        "AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes AssocGrpBillingMinutes AssocGrpGRESMinutes"),
    "grp_tres": (GROUP,
        "QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpBilling QOSGrpGRES",
        "AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpBilling AssocGrpGRES"),
    "grp_tres_run_mins": (GROUP,
        "QOSGrpCPURunMinutesLimit QOSGrpMemoryRunMinutes QOSGrpNodeRunMinutes QOSGrpBillingRunMinutes QOSGrpGRESRunMinutes",
        "AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes AssocGrpBillingRunMinutes AssocGrpGRESRunMinutes"),
    "max_tres_mins_per_job": (USER,
        "QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob QOSMaxBillingMinutesPerJob QOSMaxGRESMinutesPerJob",
        "AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob AssocMaxBillingMinutesPerJob AssocMaxGRESMinutesPerJob"),
    "max_tres_per_job": (USER,
        "QOSMaxCpuPerJobLimit QOSMaxMemoryPerJob QOSMaxNodePerJobLimit QOSMaxBillingPerJob QOSMaxGRESPerJob",
        "AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxNodePerJobLimit AssocMaxBillingPerJob AssocMaxGRESPerJob"),
    "max_tres_per_node": (USER,
        "QOSMaxCpuPerNode QOSMaxMemoryPerNode - QOSMaxBillingPerNode QOSMaxGRESPerNode",
        "AssocMaxCpuPerNode AssocMaxMemPerNode - AssocMaxBillingPerNode AssocMaxGRESPerNode"),
    "min_tres_per_job": (USER,
        "QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinBilling QOSMinGRES", ""),
    "max_tres_per_account": (ACCOUNT,
        "MaxCpuPerAccount MaxMemoryPerAccount MaxNodePerAccount MaxBillingPerAccount MaxGRESPerAccount", ""),
    "max_tres_per_user": (USER,
        "QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxNodePerUserLimit QOSMaxBillingPerUser QOSMaxGRESPerUser", ""),
    "max_tres_run_mins_per_account": (ACCOUNT,
        "MaxCpuRunMinsPerAccount MaxMemoryRunMinsPerAccount MaxNodeRunMinsPerAccount MaxBillingRunMinsPerAccount MaxGRESRunMinsPerAccount", ""),
    "max_tres_run_mins_per_user": (USER,
        "QOSMaxCpuRunMinsPerUser QOSMaxMemoryRunMinsPerUser QOSMaxNodeRunMinsPerUser QOSMaxBillingRunMinsPerUser QOSMaxGRESRunMinsPerUser", ""),
}
# fmt: on


def may_set(limit: str, *, qos: bool) -> bool:
    """Whether a QOS, or else an association, can have the limit."""
    _, of_qos, of_assoc = REASONS[limit]
    return bool(of_qos if qos else of_assoc)


def _rows(
    limit: str, when: When, measure: Measure, *, of: str = "both", **more: Any
) -> Iterator[Row]:
    """The limit's row; where it is one of TRES, one for each."""
    whose, qos, assoc = REASONS[limit]
    qos, assoc = "" if of == "assoc" else qos, "" if of == "qos" else assoc
    alone = measure in ALONE
    if "tres" not in limit:
        yield Row(limit, when, whose, measure, qos, assoc, alone=alone, **more)
        return
    none = ["-"] * len(TRES)
    for tres, of_qos, of_assoc in zip(
        TRES, qos.split() or none, assoc.split() or none, strict=True
    ):
        yield Row(
            limit,
            when,
            whose,
            measure,
            of_qos.strip("-"),
            of_assoc.strip("-"),
            tres=tres,
            least=limit.startswith("min_"),
            per=MINUTE if "mins" in limit else 1,
            alone=alone,
            **more,
        )


def _nodes(limit: str) -> Iterator[Row]:
    """Of the TRES that are limited its nodes: the job's own have to be within, whoever else runs."""
    return (row for row in _rows(limit, NODES, _one) if row.tres == NODE)


ALONE = frozenset({_one, _per_node, _seconds, _wall})
"""Measures of the job by itself."""
ROWS: tuple[Row, ...] = (
    *_rows("max_tres_per_account", SUBMIT, _one, denied=True),
    *_rows("max_tres_per_user", SUBMIT, _one, denied=True),
    *_rows("grp_tres", SUBMIT, _one, denied=True),
    *_rows("grp_submit_jobs", SUBMIT, _queued),
    *_rows("max_tres_mins_per_job", SUBMIT, _seconds, of="qos", denied=True),
    *_rows("grp_tres_mins", SUBMIT, _seconds, denied=True),
    *_rows("grp_tres_run_mins", SUBMIT, _seconds, denied=True),
    *_rows("max_wall", SUBMIT, _wall, of="qos", denied=True),
    *_rows("grp_wall", SUBMIT, _wall, denied=True),
    *_rows("max_tres_per_job", SUBMIT, _one, denied=True),
    *_rows("max_tres_per_node", SUBMIT, _per_node, denied=True),
    *_rows("max_submit_jobs_per_account", SUBMIT, _queued),
    *_rows("max_submit_jobs", SUBMIT, _queued),
    *_rows("max_tres_mins_per_job", SUBMIT, _seconds, of="assoc", denied=True),
    *_rows("max_wall", SUBMIT, _wall, of="assoc", denied=True),
    *_rows("min_tres_per_job", SUBMIT, _one, denied=True),
    *_rows("max_jobs_accrue", ACCRUE, _accruing),
    *_rows("grp_jobs_accrue", ACCRUE, _accruing),
    *_rows("grp_jobs", START, _running),
    *_rows("grp_wall", START, _spent_wall, past=True, running=_wall_so_far),
    *_rows("max_jobs_per_account", START, _running),
    *_rows("max_jobs", START, _running),
    *_rows("max_wall", START, _wall),
    *_nodes("max_tres_per_account"),
    *_nodes("max_tres_per_job"),
    *_nodes("max_tres_per_user"),
    *_nodes("grp_tres"),
    *_rows("grp_tres_mins", HELD, _spent, past=True, running=_so_far),
    *_rows("grp_tres", HELD, _sum),
    *_rows("grp_tres_run_mins", HELD, _ahead),
    *_rows("max_tres_mins_per_job", HELD, _seconds, running=_seconds),
    *_rows("max_tres_per_job", HELD, _one),
    *_rows("max_tres_per_node", HELD, _per_node),
    *_rows("min_tres_per_job", HELD, _one),
    *_rows("max_tres_per_account", HELD, _sum),
    *_rows("max_tres_per_user", HELD, _sum),
    *_rows("max_tres_run_mins_per_account", HELD, _ahead),
    *_rows("max_tres_run_mins_per_user", HELD, _ahead),
)
"""In the order in which Slurm comes to them, tried out level by level on 22.05."""
