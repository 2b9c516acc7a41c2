"""Limits of QOS and associations: which of them a job breaks, in Slurm's words (25.11).

One row per limit. A level that sets it rules as `accounting.assoc.Standing` orders them.
"""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import islice

from accounting.assoc import Book, InvalidAccount, InvalidQos, Level, LevelKind, Standing, standing
from accounting.ids import AccountName, UserName
from accounting.tres import Tres
from broker.model.job import Job
from broker.model.spec import UNLIMITED, Limit
from broker.model.tally import Party, Tally, Used, party_of

DENY_ON_LIMIT = "DenyOnLimit"


class When(Enum):
    """When a limit is looked at, and what it does."""

    SUBMIT = auto()
    """Refuses."""
    JOB = auto()
    """The job itself is too large: it waits, or is refused where its QOS has DenyOnLimit."""
    START = auto()
    """Others use it up: it waits."""


class Whose(Enum):
    """Whose jobs are held against the limit."""

    USER = auto()
    ACCOUNT = auto()
    GROUP = auto()


@dataclass(frozen=True, slots=True)
class Asking:
    """A job as limits see it."""

    party: Party
    want: Tres
    time_limit: Limit
    tasks: int = 1
    """Jobs that it makes in all: the tasks of an array."""


Measure = Callable[[Used, Asking, str | None], int]
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


def _queued(used: Used, ask: Asking, _: str | None) -> int:
    return used.queued + ask.tasks


def _running(used: Used, _: Asking, __: str | None) -> int:
    return used.running + 1


def _wall(_: Used, ask: Asking, __: str | None) -> int:
    return FOREVER if ask.time_limit == UNLIMITED else int(ask.time_limit)


def _one(_: Used, ask: Asking, tres: str | None) -> int:
    return amount(ask.want, tres or "")


def _sum(used: Used, ask: Asking, tres: str | None) -> int:
    return amount(used.tres, tres or "") + amount(ask.want, tres or "")


FOREVER = 10**12
USER, ACCOUNT, GROUP = Whose
SUBMIT, JOB, START = When
# fmt: off
ROWS: tuple[Row, ...] = (
    Row("max_submit_jobs",             SUBMIT, USER,    _queued,  "QOSMaxSubmitJobPerUserLimit", "AssocMaxSubmitJobLimit"),
    Row("max_submit_jobs_per_account", SUBMIT, ACCOUNT, _queued,  "MaxSubmitJobsPerAccount"),
    Row("grp_submit_jobs",             SUBMIT, GROUP,   _queued,  "QOSGrpSubmitJobsLimit", "AssocGrpSubmitJobsLimit"),
    Row("max_wall",                    JOB,    USER,    _wall,    "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
    Row("max_tres_per_job",            JOB,    USER,    _one,     "QOSMaxCpuPerJobLimit", "AssocMaxCpuPerJobLimit", "cpu"),
    Row("max_tres_per_job",            JOB,    USER,    _one,     "QOSMaxMemoryPerJob", "AssocMaxMemPerJob", "mem"),
    Row("max_tres_per_job",            JOB,    USER,    _one,     "QOSMaxNodePerJobLimit", "AssocMaxNodePerJobLimit", "node"),
    Row("max_tres_per_job",            JOB,    USER,    _one,     "QOSMaxGRESPerJob", "AssocMaxGRESPerJob", "gres/gpu"),
    Row("min_tres_per_job",            JOB,    USER,    _one,     "QOSMinCpuNotSatisfied", "", "cpu", least=True),
    Row("min_tres_per_job",            JOB,    USER,    _one,     "QOSMinGRES", "", "gres/gpu", least=True),
    Row("max_jobs",                    START,  USER,    _running, "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit"),
    Row("max_jobs_per_account",        START,  ACCOUNT, _running, "MaxJobsPerAccount"),
    Row("grp_jobs",                    START,  GROUP,   _running, "QOSGrpJobsLimit", "AssocGrpJobsLimit"),
    Row("max_tres_per_user",           START,  USER,    _sum,     "QOSMaxCpuPerUserLimit", "", "cpu"),
    Row("max_tres_per_user",           START,  USER,    _sum,     "QOSMaxGRESPerUser", "", "gres/gpu"),
    Row("max_tres_per_account",        START,  ACCOUNT, _sum,     "MaxCpuPerAccount", "", "cpu"),
    Row("max_tres_per_account",        START,  ACCOUNT, _sum,     "MaxGRESPerAccount", "", "gres/gpu"),
    Row("grp_tres",                    START,  GROUP,   _sum,     "QOSGrpCpuLimit", "AssocGrpCpuLimit", "cpu"),
    Row("grp_tres",                    START,  GROUP,   _sum,     "QOSGrpMemLimit", "AssocGrpMemLimit", "mem"),
    Row("grp_tres",                    START,  GROUP,   _sum,     "QOSGrpNodeLimit", "AssocGrpNodeLimit", "node"),
    Row("grp_tres",                    START,  GROUP,   _sum,     "QOSGrpGRES", "AssocGrpGRES", "gres/gpu"),
)
"""Limits in the order in which Slurm comes to them."""
# fmt: on


def amount(tres: Tres, name: str) -> int:
    """How much of the TRES named as limits name it: `cpu`, `mem` (MiB), `node`, `gres/gpu`."""
    plain = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node}
    if name in plain:
        return plain[name]
    return dict(tres.gres).get(name.removeprefix("gres/"), 0)


@dataclass(frozen=True, slots=True)
class Broken:
    """A limit that a job breaks."""

    reason: str
    limit: int
    asked: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit that somebody's jobs are under, and where it was set."""

    row: Row
    level: Level
    most: int

    @property
    def reason(self) -> str:
        return _reason(self.row, self.level)


def bounds(stands: Standing) -> tuple[Bound, ...]:
    """Every limit that such jobs are under; none unless limits are enforced."""
    if not stands.levels:
        return ()
    return tuple(bound for row in ROWS for bound in _bounds(row, stands))


def _bounds(row: Row, stands: Standing) -> Iterator[Bound]:
    """A group's limit holds at every level that sets one, others at the first alone."""
    found = (Bound(row, *pair) for pair in stands.each(row.limit, row.tres))
    named = (bound for bound in found if bound.reason)
    return named if row.whose is GROUP else islice(named, 1)


def _reason(row: Row, level: Level) -> str:
    return row.qos if level.kind is LevelKind.QOS else row.assoc


def at_submit(book: Book, stands: Standing, *, ask: Asking, tally: Tally) -> Broken | None:
    """The limit for which a job is refused when it is submitted, None if it may come in."""
    strict = DENY_ON_LIMIT in stands.qos.flags
    found = (b for b in bounds(stands) if b.row.when is SUBMIT or (strict and b.row.when is JOB))
    return next(_broken(found, book, ask=ask, tally=tally), None)


class Keeper:
    """Limits in one pass: what is in use, with what the pass itself has started."""

    def __init__(self, book: Book, tally: Tally) -> None:
        self._book = book
        self._tally = {party: replace(used) for party, used in tally.items()}
        self._known: dict[tuple[Party, str], tuple[Bound, ...] | str] = {}

    def reason(self, job: Job, partition: str) -> str | None:
        """Slurm's reason why a limit keeps the job waiting, None if none does."""
        key = party_of(job), partition
        if key not in self._known:
            self._known[key] = self._bounds(job, partition)
        found = self._known[key]
        if isinstance(found, str):
            return found
        if not found:
            return None
        ask = Asking(key[0], job.want, job.time_limit)
        broken = next(_broken(found, self._book, ask=ask, tally=self._tally), None)
        return broken.reason if broken else None

    def _bounds(self, job: Job, partition: str) -> tuple[Bound, ...] | str:
        user = UserName(job.owner.user)
        try:
            stands = standing(
                self._book, user, account=job.account, partition=partition, qos=job.qos
            )
        except InvalidAccount:
            return "InvalidAccount"
        except InvalidQos:
            return "InvalidQOS"
        return tuple(bound for bound in bounds(stands) if bound.row.when is not SUBMIT)

    def started(self, job: Job, tres: Tres, *, sign: int = 1) -> None:
        """The job, or one task of it, runs from now; with a sign of -1 it does not after all."""
        self._tally.setdefault(party_of(job), Used()).add(Used(running=1, tres=tres), sign)


def _broken(found: Iterable[Bound], book: Book, *, ask: Asking, tally: Tally) -> Iterator[Broken]:
    for bound in found:
        row = bound.row
        used = _used(bound, book, party=ask.party, tally=tally)
        asked = row.measure(used, ask, row.tres)
        if asked < bound.most if row.least else asked > bound.most:
            yield Broken(bound.reason, bound.most, asked)


def _used(bound: Bound, book: Book, *, party: Party, tally: Tally) -> Used:
    total = Used()
    if bound.row.when is not JOB:
        for one, used in tally.items():
            if _counts(bound, book, party=party, one=one):
                total.add(used)
    return total


def _counts(bound: Bound, book: Book, *, party: Party, one: Party) -> bool:
    """Whether the jobs of `one` are held against a limit that `party` meets there."""
    whose, level = bound.row.whose, bound.level
    if level.kind is LevelKind.QOS:
        same_user = whose is not USER or one.user == party.user
        same_account = whose is not ACCOUNT or one.account == party.account
        return one.qos == level.name and same_user and same_account
    if whose is not GROUP or level.kind is LevelKind.USER:
        return (one.user, one.account) == (party.user, party.account)
    return any(above.name == level.name for above in book.lineage(AccountName(one.account)))
