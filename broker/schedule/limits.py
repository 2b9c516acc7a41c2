"""Limits of QOS and associations: which of them a job breaks, in Slurm's words (25.11).

`broker.schedule.limit_rows` has one row per limit. A level that sets it rules as
`accounting.assoc.Standing` orders them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from accounting.assoc import (
    Account,
    Association,
    Book,
    Enforce,
    InvalidAccount,
    InvalidQos,
    Level,
    LevelKind,
    Qos,
    Standing,
    in_partition,
    standing,
)
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import NO_LIMITS, OF_TRES, Limits
from accounting.tres import GRES, Tres, sum_of
from broker.model.job import Job
from broker.model.site import Site, units
from broker.model.tally import Charges, Counts, Party, Tally, Used, counts_of, party_of, starting
from broker.schedule.budgets import REASON, Outlay, Purse
from broker.schedule.limit_rows import (
    GPUS,
    ROWS,
    Asking,
    Past,
    Row,
    When,
    Whose,
    counts_nodes,
    may_set,
)
from broker.schedule.priority import Ranks
from broker.schedule.sums import Family, Key, Known, association_key, known_of


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
    """Every limit that such jobs are under, in Slurm's order; none unless limits are enforced.

    What is looked at earlier comes first, then the level, then the order of the rows.
    """
    if all(level.limits == NO_LIMITS for level in stands.levels):
        return ()
    levels = [o for o in stands.levels if o.limits != NO_LIMITS or o.kind is LevelKind.USER]
    further = sorted({name for one in levels for name in _gres_of(one.limits)} - {GPUS})
    by_time = [list(_with_gres(rows, further)) for rows in BY_TIME] if further else BY_TIME
    every = (_bound(row, level, stands) for rows in by_time for level in levels for row in rows)
    return tuple(bound for bound in every if bound is not None)


BY_TIME = [[row for row in ROWS if row.when is when] for when in When]


def _gres_of(limits: Limits) -> Iterator[str]:
    """Generic resources that are limited, those of one type too: `gres/gpu:a10g`."""
    return (tres for name in OF_TRES for tres in getattr(limits, name) if tres.startswith(GRES))


def _with_gres(rows: Iterable[Row], further: Sequence[str]) -> Iterator[Row]:
    """The rows of GPUs stand for all generic resources: Slurm's reasons do not tell which."""
    for row in rows:
        yield row
        if row.tres == GPUS:
            yield from (replace(row, tres=name) for name in further)


def _bound(row: Row, level: Level, stands: Standing) -> Bound | None:
    """A group's limit holds at every level that sets one, others at the first alone.

    What an account sets for each of its users is theirs.
    """
    holder = level if row.whose is Whose.GROUP else _ruling(row, level, stands)
    most = holder.limits.value(row.limit, row.tres) if holder is not None else None
    if holder is None or most is None or not _reason(row, holder):
        return None
    return Bound(row, holder, most)


def _ruling(row: Row, level: Level, stands: Standing) -> Level | None:
    """The first that sets the limit, where it is looked at when the level is."""
    setting = (one for one, _ in stands.each(row.limit, row.tres))
    first = next((o for o in setting if may_set(row.limit, qos=o.kind in OF_QOS)), None)
    if first is None or first.kind is not LevelKind.ACCOUNT:
        return first if first is level else None
    return first if level.kind is LevelKind.USER else None


def _reason(row: Row, level: Level) -> str:
    return row.qos if level.kind in OF_QOS else row.assoc


OF_QOS = frozenset({LevelKind.QOS, LevelKind.PARTITION})


def at_submit(stands: Standing) -> tuple[Bound, ...]:
    """The limits for which such a job may be refused when it is submitted."""
    return tuple(
        bound
        for bound in bounds(stands)
        if bound.row.when is When.SUBMIT and (stands.denies or not bound.row.denied)
    )


def used_up(known: Known, stands: Standing, *, ask: Asking) -> Bound | None:
    """The limit to which a running job has come; `ask` is what it holds, for how long so far."""
    for bound in bounds(stands):
        row = bound.row
        if row.running is not None:
            so_far = row.running(_past(bound, known, ask.party), ask, row.tres or "")
            if so_far >= bound.most * row.per:
                return bound
    return None


def stands_in(
    site: Site, user: str, *, partition: str, account: str | None, qos: str | None
) -> Standing:
    """How a user's job stands in a partition. Raises InvalidAccount, InvalidQos."""
    part = site.partition(partition)
    found = standing(site.book, UserName(user), account=account, partition=partition, qos=qos)
    return in_partition(site.book, found, part.qos if part else None)


def first_broken(found: Iterable[Bound], known: Known, *, ask: Asking) -> Broken | None:
    """The first of the limits that the job breaks."""
    return next(_broken(found, known, ask=ask), None)


def is_set(book: Book, names: Collection[str]) -> bool:
    """Whether anybody has a limit of one of these names."""
    found = [one.limits for one in book.qos.values()]
    found += [one.limits for one in book.accounts.values()]
    found += [own.limits for owned in book.associations.values() for own in owned]
    return any(getattr(limits, name) not in (None, {}) for limits in found for name in names)


@dataclass(frozen=True, slots=True)
class Place:
    """What a job would hold of each of its nodes, and which they are, as far as that is known."""

    each: Sequence[Tres] = ()
    """More than it asks for where it takes them whole."""
    names: Sequence[str] = ()


NOT_FOUND = Place()
"""As long as no nodes were looked for."""
KEEPS_WAITING = frozenset({When.START, When.NODES, When.HELD})
ENFORCED_SHARE = "EnforceUsageThreshold"


class Keeper:
    """Limits in one pass: what is in use, with what the pass itself has started."""

    purse: Purse | None = None
    """Budgets, where there are some: they are looked at when no limit is in the way."""

    ranks: Ranks | None = None
    """How jobs are ranked, for limits that look at shares and priorities."""

    def __init__(
        self, site: Site, tally: Tally, charges: Charges | None = None, *, now: int = 0
    ) -> None:
        self._site = site
        self._about = known_of(site, tally, charges or {}, now=now)
        self._known: dict[tuple[Party, str], tuple[Bound, ...] | str] = {}
        self._begun: list[tuple[_Begun, int]] = []
        self._started: dict[JobId, list[_Begun]] = {}
        """Where the pass has started jobs, what they hold, and what that costs."""

    def reason(
        self, job: Job, partition: str, place: Place = NOT_FOUND, *, outlay: Outlay | None = None
    ) -> str | None:
        """Slurm's reason why a limit keeps the job waiting, or a budget's; None if none does.

        `outlay` is what the place costs, once there is one.
        """
        limit = self._limit(job, partition, place) or self._below_share(job)
        return self.purse.reason(job, partition, outlay) if limit is None and self.purse else limit

    def named(self, job: Job, reason: str) -> str:
        """Which budget it is, where one keeps the job waiting."""
        key = self.purse.short.get(job.id) if self.purse and reason == REASON else None
        return f"the budget of {key} does not pay for it" if key else ""

    def pays(self, job: Job, partition: str) -> bool:
        """Whether a budget has to pay for all that the job may cost."""
        return self.purse is not None and self.purse.binds(job, partition)

    def may_reserve(self, job: Job, partition: str) -> bool:
        """Whether nodes may be kept for it, so that nobody overtakes it (backfill, 25.11)."""
        grade = self._site.book.qos.get(job.qos)
        if grade is not None and "NoReserve" in grade.flags:
            return False
        if self.ranks is None or not any(
            one.limits.min_prio_threshold for one in self._holders(job)
        ):
            return True
        stands = stands_in(
            self._site, job.owner.user, partition=partition, account=job.account, qos=job.qos
        )
        found = stands.limit("min_prio_threshold")
        return found is None or self.ranks.priority(job) >= found[1]

    def _holders(self, job: Job) -> Iterator[Qos | Account | Association]:
        """Whoever may set a threshold for the job."""
        book = self._site.book
        yield from (one for one in (book.qos.get(job.qos),) if one is not None)
        yield from book.lineage(AccountName(job.account))
        yield from book.associations.get(UserName(job.owner.user), ())

    def _below_share(self, job: Job) -> str | None:
        """A QOS may ask for a fair share (EnforceUsageThreshold)."""
        grade = self._site.book.qos.get(job.qos)
        if grade is None or grade.usage_threshold is None or ENFORCED_SHARE not in grade.flags:
            return None
        shares = self.ranks.shares if self.ranks is not None else {}
        low = shares.get((job.account, job.owner.user), 1.0) < grade.usage_threshold
        return "QOSUsageThreshold" if low else None

    def counts_nodes(self, job: Job, partition: str) -> bool:
        """Whether a limit makes a difference between nodes that others of its have already."""
        found = self._ruling(job, partition)
        return not isinstance(found, str) and any(counts_nodes(one.row) for one in found)

    def _limit(self, job: Job, partition: str, place: Place) -> str | None:
        found = self._ruling(job, partition)
        if isinstance(found, str):
            return found
        if not found:
            return None
        self._count()
        ask = asking(self._site, job, partition, place=place)
        broken = first_broken(found, self._about, ask=ask)
        return broken.reason if broken else None

    def _ruling(self, job: Job, partition: str) -> tuple[Bound, ...] | str:
        key = party_of(job), partition
        if key not in self._known:
            self._known[key] = self._bounds(job, partition)
        return self._known[key]

    def _bounds(self, job: Job, partition: str) -> tuple[Bound, ...] | str:
        try:
            stands = stands_in(
                self._site, job.owner.user, partition=partition, account=job.account, qos=job.qos
            )
        except InvalidAccount:
            return "InvalidAccount"
        except InvalidQos:
            return "InvalidQOS"
        return tuple(bound for bound in bounds(stands) if bound.row.when in KEEPS_WAITING)

    def started(
        self, job: Job, partition: str, place: Place = NOT_FOUND, *, outlay: Outlay | None = None
    ) -> None:
        """The job, or one task of it, runs there from now; whose node is not known has its own."""
        tres = sum_of(place.each) if place.each else job.want
        begun = self._started.setdefault(job.id, [])
        names = place.names or [f"{job.id} {len(begun)} {number}" for number in range(tres.node)]
        begun.append(_Begun(job, partition, tres, tuple(names), outlay))
        self._note(begun[-1], sign=1)

    def taken_back(self, job: Job, partition: str | None = None) -> None:
        """It does not run there after all, or where it was last said to."""
        begun = self._started[job.id]
        last = next(one for one in reversed(begun) if partition in {None, one.partition})
        begun.remove(last)
        self._note(last, sign=-1)

    def _note(self, begun: "_Begun", *, sign: int) -> None:
        if self.purse is not None:
            self.purse.started(begun.job, begun.partition, outlay=begun.outlay, sign=sign)
        self._begun.append((begun, sign))

    def _count(self) -> None:
        """Adds what was started: only where a limit is looked at, for most sites have none."""
        for one, sign in self._begun:
            party = party_of(one.job)._replace(partition=one.partition)
            billing = units(self._site, one.tres, one.partition)
            more = starting(one.job, one.tres, billing=billing, names=one.names)
            self._about.add(party, more, sign)
        self._begun.clear()


@dataclass(frozen=True, slots=True)
class _Begun:
    """A job that the pass has started: where, what it holds, and what that costs."""

    job: Job
    partition: str
    tres: Tres
    names: tuple[str, ...]
    outlay: Outlay | None


def asking(
    site: Site, job: Job, partition: str, *, tasks: int = 1, place: Place = NOT_FOUND
) -> Asking:
    """The job as limits see it in one of its partitions."""

    def counts(tres: Tres) -> Counts:
        return counts_of(tres, units(site, tres, partition))

    grade = site.book.qos.get(job.qos)
    weighed = grade is not None and "UsageFactorSafe" in grade.flags
    return Asking(
        party=party_of(job)._replace(partition=partition),
        factor=grade.usage_factor if grade is not None and weighed else 1.0,
        want=counts(sum_of(place.each) if place.each else job.want),
        time_limit=job.time_limit,
        tasks=tasks,
        nodes=tuple(map(counts, place.each)),
        names=tuple(place.names),
    )


def _broken(found: Iterable[Bound], known: Known, *, ask: Asking) -> Iterator[Broken]:
    for bound in found:
        row = bound.row
        past = _past(bound, known, ask.party)
        asked = row.measure(past, ask, row.tres or "")
        most = bound.most * row.per
        if asked < most if row.least else asked > most:
            yield Broken(bound.reason, bound.most, asked // row.per)


def _past(bound: Bound, known: Known, party: Party) -> Past:
    """What those use, and have used, who are held against the limit."""
    if bound.row.alone:
        return Past(Used(), {}, known.now)
    family, key = _held_against(bound, known, party)
    return Past(
        known.used(family, key),
        known.charged(family, key) if bound.row.past else {},
        known.now,
        safe=Enforce.SAFE in known.book.enforce,
    )


def _held_against(bound: Bound, known: Known, party: Party) -> tuple[Family, Key]:
    """Whose use is held against a limit that a party meets."""
    whose, level = bound.row.whose, bound.level
    if level.kind in OF_QOS:
        family = OF_A_QOS[whose]
        whose_of = {Whose.GROUP: (), Whose.USER: (party.user,), Whose.ACCOUNT: (party.account,)}
        return family, (level.name, *whose_of[whose])
    if whose is not Whose.GROUP or level.kind is LevelKind.USER:
        return Family.ASSOCIATION, association_key(known, party)
    return Family.ACCOUNT, (level.name,)


OF_A_QOS = {
    Whose.GROUP: Family.QOS,
    Whose.USER: Family.QOS_USER,
    Whose.ACCOUNT: Family.QOS_ACCOUNT,
}
