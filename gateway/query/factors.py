"""The factors of a job's priority, each between 0 and 1, and what they weigh (multifactor)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from accounting.order import Factors
from broker.model.job import Job, JobState
from broker.schedule.priority import Ranks, is_set
from gateway.config.accounts import PrioritySettings
from gateway.query.context import Context
from gateway.query.layout import Cell, Layout, by_letters
from gateway.query.resources import wanted_tres


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row of sprio."""

    job: Job
    partition: str
    factors: Factors
    total: int
    """The priority in that partition."""
    settings: PrioritySettings
    weights: Mapping[str, float]
    """Of TRES, by name, as configured."""


NOT_YET = frozenset({"BeginTime", "JobArrayTaskLimit"})
"""Reasons of jobs that wait for more than room."""


def is_ranked(job: Job) -> bool:
    """Whether the job has a priority now: it waits for nothing but room."""
    waits = job.state is JobState.PENDING and not job.completing
    return waits and job.hold is None and not job.after and job.reason not in NOT_YET


def ranked(
    job: Job, partition: str, *, ranks: Ranks, settings: PrioritySettings, ctx: Context
) -> Ranked:
    """The job's row for one of its partitions."""
    asked, _ = wanted_tres(job, ctx) or (job.want, None)
    seen = replace(job, want=asked)
    found = ranks.factors(seen, partition)
    computed = ranks.site.ranking.counts and not is_set(job)
    return Ranked(
        job,
        partition,
        found,
        ranks.in_partition(seen, partition) if computed else job.priority,
        settings,
        ranks.site.ranking.tres,
    )


# ---------------------------------------------------------------- columns


def _weighted(factor: float, weight: int) -> str:
    return f"{factor * weight:.0f}"


def _tres(row: Ranked, _: Context) -> str:
    """`cpu=25,mem=100`: what it asks for, each weighed."""
    parts = row.factors.tres
    shown = {name: round(part * row.weights[name]) for name, part in parts.items() if part}
    return ",".join(f"{name}={count}" for name, count in shown.items())


def _tres_factors(row: Ranked, _: Context) -> str:
    return ",".join(f"{name}={part:.2f}" for name, part in row.factors.tres.items() if part)


def _seven(value: float) -> str:
    return f"{value:.7f}"


def _of(name: str, weight: str) -> tuple[Any, Any]:
    """A factor as it is, and weighed."""

    def plain(row: Ranked, _: Context) -> str:
        return _seven(getattr(row.factors, name))

    def weighed(row: Ranked, _: Context) -> str:
        return _weighted(getattr(row.factors, name), getattr(row.settings.weights, weight))

    return plain, weighed


AGE, FAIRSHARE, SIZE = _of("age", "age"), _of("fairshare", "fairshare"), _of("size", "job_size")
PARTITION, GRADE = _of("partition", "partition"), _of("qos", "qos")
ASSOC = _of("assoc", "assoc")
TOP = 2**32

# fmt: off
COLUMNS: tuple[tuple[str, str, Any, str], ...] = (
    # letter, headline, value, weight
    ("a", "AGE",       AGE[0],                                  "age"),
    ("A", "AGE",       AGE[1],                                  "age"),
    ("b", "ASSOC",     ASSOC[0],                                "assoc"),
    ("B", "ASSOC",     ASSOC[1],                                "assoc"),
    ("c", "CLUSTER",   lambda _row, ctx: ctx.site.cluster,      ""),
    ("f", "FAIRSHARE", FAIRSHARE[0],                            "fairshare"),
    ("F", "FAIRSHARE", FAIRSHARE[1],                            "fairshare"),
    ("i", "JOBID",     lambda row, _ctx: str(row.job.id),       "Weights"),
    ("j", "JOBSIZE",   SIZE[0],                                 "job_size"),
    ("J", "JOBSIZE",   SIZE[1],                                 "job_size"),
    ("n", "QOSNAME",   lambda row, _ctx: row.job.qos,           ""),
    ("N", "NICE",      lambda row, _ctx: str(row.job.spec.nice), ""),
    ("o", "ACCOUNT",   lambda row, _ctx: row.job.account,       ""),
    ("p", "PARTITION", PARTITION[0],                            "partition"),
    ("P", "PARTITION", PARTITION[1],                            "partition"),
    ("r", "PARTITION", lambda row, _ctx: row.partition,         ""),
    ("S", "SITE",      lambda _row, _ctx: "0",                  "1"),
    ("q", "QOS",       GRADE[0],                                "qos"),
    ("Q", "QOS",       GRADE[1],                                "qos"),
    ("u", "USER",      lambda row, _ctx: row.job.owner.user,    ""),
    ("y", "PRIORITY",  lambda row, _ctx: f"{row.total / TOP:.14f}", ""),
    ("Y", "PRIORITY",  lambda row, _ctx: str(row.total), ""),
    ("t", "TRES",      _tres_factors,                           ""),
    ("T", "TRES",      _tres,                                   "tres"),
)
# fmt: on
CELLS = {letter: Cell(header, value, True) for letter, header, value, _ in COLUMNS}
KEYS = {letter: value for letter, _, value, _ in COLUMNS}


def _weight_of(name: str) -> Any:
    def value(settings: PrioritySettings, _: Context) -> str:
        found = getattr(settings.weights, name, None)
        return name if found is None else str(found)

    return value


WEIGHT_CELLS = {letter: Cell(header, _weight_of(w), True) for letter, header, _, w in COLUMNS}


@lru_cache(maxsize=64)
def sprio_letters(text: str) -> Layout[Ranked]:
    """`sprio -o`, compiled."""
    return by_letters(text, CELLS)


@lru_cache(maxsize=64)
def weight_letters(text: str) -> Layout[PrioritySettings]:
    """`sprio -w -o`, compiled."""
    return by_letters(text, WEIGHT_CELLS)


def _parts(settings: PrioritySettings) -> list[tuple[str, int]]:
    """Letters of the factors with their weights."""
    weights = settings.weights
    return [
        ("a", weights.age), ("b", weights.assoc), ("f", weights.fairshare),
        ("j", weights.job_size), ("p", weights.partition), ("q", weights.qos),
    ]  # fmt: skip


def _usual_norm(settings: PrioritySettings, *, users: bool, long: bool) -> str:
    """Of factors as they are: aligned to the left, without SITE and NICE (22.05)."""
    shown = [f"%10{letter}" for letter, weight in _parts(settings) if weight or long]
    tres = ["%20t"] if settings.weights.tres or long else []
    return " ".join(["%.15i", "%9r", *(["%.8u"] if users else []), "%10y", *shown, *tres])


def usual(settings: PrioritySettings, *, users: bool, long: bool, norm: bool) -> str:
    """The columns unless others are asked for: factors that weigh nothing are left out."""
    weights = settings.weights
    if norm:
        return _usual_norm(settings, users=users or long, long=long)
    head = ["%.15i", "%9r", *(["%.8u"] if users or long else []), "%.10Y"]
    parts = _parts(settings)
    shown = [f"%.10{k.upper()}" for k, weight in parts if weight or long]
    nice = ["%.11N"] if long else []
    tres = ["%.20T"] if weights.tres or long else []
    return " ".join([*head, "%.10S", *shown, *nice, *tres])
