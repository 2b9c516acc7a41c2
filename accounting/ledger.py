"""The ledger's entries, and the rules that turn a machine's running time into them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction

from accounting.ids import OVERHEAD, AccountName, JobId, MicroUsd, UserName
from accounting.rates import FREE, Price, Terms, bill, cumulative, share
from accounting.tres import NO_TRES, Tres

UNIT = 1_000_000


class Kind(StrEnum):
    """What an entry does: counts use, charges money, gives money back, sets something right."""

    USAGE = "usage"
    STEP = "step"
    """The part of an attempt's use that a step of it had: no sum counts it again."""
    DOWN = "down"
    """Time of a node of the site's own in which it took no work: nobody's."""
    CHARGE = "charge"
    CREDIT = "credit"
    CORRECTION = "correction"


class Why(StrEnum):
    """What an entry is for."""

    USAGE = "usage"
    DOWN = "down"
    BOOT = "boot"
    """A machine that runs and cannot take work yet."""
    RUN = "run"
    IDLE = "idle"
    MINIMUM = "minimum"
    """The unmet part of the provider's shortest billed time."""
    INTERRUPTED = "interrupted"
    """What was charged for a machine that the provider took back without billing it."""
    OVERRUN = "overrun"
    """What was charged beyond an end that became known late."""
    DATA = "data"
    """What a job's data costs on its way to the region where the job runs."""
    RECONCILED = "reconciled"
    """What the provider's bill has otherwise; without money: the hour agrees with it."""
    LATE_PRICE = "late_price"
    """The difference that a price makes which became known after its time was charged."""


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays: an attempt of a job, or an account alone."""

    account: AccountName
    user: UserName
    job: JobId | None = None
    attempt: int = 0
    qos: str = field(default="", compare=False)
    partition: str = field(default="", compare=False)
    wckey: str = field(default="", compare=False)
    reservation: str = field(default="", compare=False)
    """As the job names it, or several with commas between."""

    @property
    def label(self) -> str:
        """`4711/1` for an attempt, else the account's name."""
        return self.account if self.job is None else f"{self.job}/{self.attempt}"


NOBODY = Payer(OVERHEAD, UserName(""))
"""Pays what no job is to pay."""
SPENT = frozenset({Why.BOOT, Why.RUN, Why.IDLE})
"""What time costs, as it passes."""
POSTINGS_KEPT = 4
"""An end is learned some seconds late: so far back goes who paid for them."""


Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was measured, by Slurm's names of TRES: cpu in ms, memory and disk in bytes."""

    read: Counts = ()
    """All that was used but for what was written."""
    written: Counts = ()


NOT_SAMPLED = Sampled()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger, added and never changed; instants in whole seconds UTC."""

    key: str
    """Such as `4711/1/run/ec2-17.3/1700000000`: posting it twice is posting it once."""
    at: int
    since: int
    """Begin of the time that is counted; it ends at `at`."""
    kind: Kind
    why: Why
    job: JobId | None
    attempt: int
    """0 where there is no job."""
    step: str = ""
    """`batch` or a number, where the entry is of one step."""
    account: AccountName
    user: UserName
    machine: str | None = None
    """Node name and launch number, `ec2-17.3`, and what of it (`ec2-17.3/volume`); None for use."""
    qos: str = ""
    partition: str = ""
    wckey: str = ""
    reservation: str = ""
    instance_type: str = ""
    region: str = ""
    market: str = ""
    tres_seconds: Tres = NO_TRES
    billing_seconds: int = 0
    sampled: Sampled = NOT_SAMPLED
    """What was measured of a step, as far as somebody looked."""
    waited: int = 0
    """Seconds before `since` for which the attempt could have had what it then used."""
    factor_millionths: int = UNIT
    """The QOS's UsageFactor, by which use counts for shares and limits."""
    cost: MicroUsd = FREE


@dataclass(frozen=True, slots=True)
class StepPart:
    """What a step has of its attempt: TRES and billing units at a time, what was measured."""

    step: str
    tres: Tres
    billing: int
    sampled: Sampled


@dataclass(frozen=True, slots=True)
class Holder:
    """An attempt and what it holds of a machine."""

    payer: Payer
    tres: Tres


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """How far the cost of one start of a machine has been posted; instants in whole seconds UTC."""

    node: str
    launch: int
    part: str = ""
    """What of it is billed by itself, such as its `volume`; empty for the machine."""
    whole: Tres
    """What attempts share."""
    terms: Terms
    prices: tuple[Price, ...]
    running_at: int
    """When the provider's billing begins."""
    booted_at: int | None = None
    cause: Payer = NOBODY
    """The attempt for which the machine was launched; it pays boot and the unmet minimum."""
    posted_until: int | None = None
    """None while nothing was posted."""
    posted: MicroUsd = FREE
    refundable: tuple[tuple[Payer, int], ...] = ()
    """What each payer has paid, as long as an interruption would make it free."""
    latest: tuple[tuple[tuple[Payer, int], ...], ...] = ()
    """What each paid in the last postings: an end that is learned late gives it back."""
    closed: bool = False
    instance_type: str = ""
    region: str = ""
    market: str = ""

    @property
    def since(self) -> int:
        """Begin of the time that is not posted yet."""
        return self.running_at if self.posted_until is None else self.posted_until

    @property
    def machine(self) -> str:
        name = f"{self.node}.{self.launch}"
        return f"{name}/{self.part}" if self.part else name

    def cost_until(self, instant: int) -> int:
        """What running until then costs; differences of it are what is posted."""
        return cumulative(self.prices, self.running_at, max(instant, self.running_at))


@dataclass(frozen=True, slots=True)
class _Due:
    """A part of a machine's cost with its payer, before it is an entry."""

    payer: Payer
    why: Why
    since: int
    cost: int


def settle(meter: Meter, holders: Iterable[Holder], now: int) -> tuple[Meter, tuple[Entry, ...]]:
    """Posts the time up to `now`, during all of which `holders` held the machine.

    To be called just before the holders change. Nothing is posted if no time has passed.
    """
    if meter.closed or now <= meter.since:
        return meter, ()
    return _post(meter, [*_late_price(meter), *_accrued(meter, holders, now)], now)


def close(
    meter: Meter, holders: Iterable[Holder], ended_at: int, *, interrupted_by_provider: bool = False
) -> tuple[Meter, tuple[Entry, ...]]:
    """Posts what makes the machine's sum equal to the provider's bill; a second time nothing.

    `ended_at` is when billing ended, which may be before the last instant that was posted.
    """
    if meter.closed:
        return meter, ()
    holding = tuple(holders)
    dues = [*_late_price(meter), *_accrued(meter, holding, ended_at)]
    meter, entries = _post(meter, dues, ended_at)
    meter, last = _post(meter, _settlement(meter, holding, interrupted_by_provider), ended_at)
    return replace(meter, closed=True), entries + last


def usage(payer: Payer, tres: Tres, *, billing: int, started: int, ended: int) -> tuple[Entry, ...]:
    """TRES-seconds and billing-seconds of an attempt from `started` to `ended`, if any passed."""
    seconds = ended - started
    if seconds <= 0:
        return ()
    entry = _entry_of(payer, Why.USAGE, Kind.USAGE, since=started, at=ended)
    used = tres.times(seconds)
    return (replace(entry, tres_seconds=used, billing_seconds=billing * seconds),)


def step_use(payer: Payer, part: StepPart, *, started: int, ended: int) -> Entry:
    """What a step could use of its attempt, and what was measured of it, however short it was."""
    entry = _entry_of(payer, Why.USAGE, Kind.STEP, since=started, at=max(started, ended))
    return replace(
        entry,
        key=f"{payer.label}.{part.step}/{Why.USAGE}/{started}",
        step=part.step,
        tres_seconds=part.tres.times(entry.at - started),
        billing_seconds=part.billing * (entry.at - started),
        sampled=part.sampled,
    )


def down(machine: str, whole: Tres, *, since: int, until: int) -> tuple[Entry, ...]:
    """TRES-seconds in which a node of the site's own took no work, if any passed."""
    if until <= since:
        return ()
    entry = _entry_of(NOBODY, Why.DOWN, Kind.DOWN, since=since, at=until)
    key = f"{Why.DOWN}/{machine}/{since}"
    lost = whole.times(until - since)
    return (replace(entry, key=key, machine=machine, tres_seconds=lost),)


def moved(payer: Payer, cost: int, *, region: str, at: int) -> Entry:
    """What it cost to bring an attempt's data to the region."""
    entry = _entry_of(payer, Why.DATA, Kind.CHARGE, since=at, at=at)
    return replace(entry, region=region, cost=MicroUsd(cost))


def _late_price(meter: Meter) -> list[_Due]:
    """What the time that is posted costs otherwise, to those who paid last for it.

    None of them gets back, or pays again, more than he paid then: what is left is nobody's.
    """
    drift = meter.cost_until(meter.since) - meter.posted
    return _to_the_last(meter, drift, why=Why.LATE_PRICE, since=meter.since) if drift else []


def _accrued(meter: Meter, holders: Iterable[Holder], until: int) -> list[_Due]:
    since = meter.since
    if until < since:
        return _given_back(meter, meter.cost_until(since) - meter.cost_until(until), until)
    ready = until if meter.booted_at is None else min(max(meter.booted_at, since), until)
    boot = meter.cost_until(ready) - meter.cost_until(since)
    run = meter.cost_until(until) - meter.cost_until(ready)
    return [
        _Due(meter.cause, Why.BOOT, since, boot),
        *_shared(meter, holders, _Due(NOBODY, Why.RUN, ready, run)),
    ]


def _given_back(meter: Meter, over: int, ended_at: int) -> list[_Due]:
    """What was charged beyond the end, to those who paid last; what is left is nobody's."""
    return _to_the_last(meter, -over, why=Why.OVERRUN, since=ended_at)


def _to_the_last(meter: Meter, amount: int, *, why: Why, since: int) -> list[_Due]:
    sign, rest = (1, amount) if amount > 0 else (-1, -amount)
    theirs: dict[Payer, int] = {}
    for paid in reversed(meter.latest):
        most = min(rest, sum(cost for _, cost in paid))
        rest -= most
        for (payer, _), part in zip(paid, share(most, [c for _, c in paid]), strict=True):
            theirs[payer] = theirs.get(payer, 0) + part
    theirs[NOBODY] = theirs.get(NOBODY, 0) + rest
    return [_Due(payer, why, since, sign * part) for payer, part in theirs.items()]


def _shared(meter: Meter, holders: Iterable[Holder], due: _Due) -> list[_Due]:
    """The due, split among the holders by dominant share; nobody's if there are none."""
    if not due.cost:
        return []
    weights: dict[Payer, Fraction] = {}
    for holder in sorted(holders, key=lambda holder: holder.payer.label):
        part = holder.tres.dominant_share(meter.whole)
        weights[holder.payer] = weights.get(holder.payer, Fraction(0)) + part
    if not weights:
        return [replace(due, why=Why.IDLE if due.why is Why.RUN else due.why)]
    costs = share(due.cost, list(weights.values())) if len(weights) > 1 else [due.cost]
    return [
        _Due(payer, due.why, due.since, cost) for payer, cost in zip(weights, costs, strict=True)
    ]


def _settlement(meter: Meter, holders: Sequence[Holder], interrupted: bool) -> list[_Due]:
    """What still separates the posted sum from the bill, once all time is posted."""
    ended_at = meter.since
    final = bill(
        meter.prices, meter.terms, start=meter.running_at, end=ended_at, interrupted=interrupted
    )
    rest = final - meter.posted
    if rest >= 0:
        return [_Due(meter.cause, Why.MINIMUM, ended_at, rest)]
    # What was paid is incomplete if the end lies in the free window and was learned after it.
    if sum(paid for _, paid in meter.refundable) != meter.posted:
        return _shared(meter, holders, _Due(NOBODY, Why.INTERRUPTED, ended_at, rest))
    return [_Due(payer, Why.INTERRUPTED, ended_at, -paid) for payer, paid in meter.refundable]


def _post(meter: Meter, dues: Sequence[_Due], now: int) -> tuple[Meter, tuple[Entry, ...]]:
    paid = [due for due in dues if due.cost]
    after = replace(
        meter,
        posted_until=now,
        posted=MicroUsd(meter.posted + sum(due.cost for due in paid)),
        refundable=_refundable(meter, paid, now),
        latest=_latest(meter, paid),
    )
    return after, tuple(_entry(meter, due, now) for due in paid)


def _refundable(meter: Meter, dues: Sequence[_Due], now: int) -> tuple[tuple[Payer, int], ...]:
    if now - meter.running_at >= meter.terms.free_if_interrupted_within:
        return ()
    paid = dict(meter.refundable)
    for due in dues:
        paid[due.payer] = paid.get(due.payer, 0) + due.cost
    return tuple(sorted(paid.items(), key=lambda item: item[0].label))


def _latest(meter: Meter, dues: Sequence[_Due]) -> tuple[tuple[tuple[Payer, int], ...], ...]:
    paid: dict[Payer, int] = {}
    for due in dues:
        if due.why in SPENT:
            paid[due.payer] = paid.get(due.payer, 0) + due.cost
    return (*meter.latest, tuple(paid.items()))[-POSTINGS_KEPT:] if paid else meter.latest


def _entry(meter: Meter, due: _Due, now: int) -> Entry:
    return replace(
        _entry_of(due.payer, due.why, _kind(due), since=due.since, at=now),
        key=f"{due.payer.label}/{due.why}/{meter.machine}/{due.since}",
        machine=meter.machine,
        instance_type=meter.instance_type,
        region=meter.region,
        market=meter.market,
        cost=MicroUsd(due.cost),
    )


def _entry_of(payer: Payer, why: Why, kind: Kind, *, since: int, at: int) -> Entry:
    return Entry(
        key=f"{payer.label}/{why}/{since}",
        at=at,
        since=since,
        kind=kind,
        why=why,
        job=payer.job,
        attempt=payer.attempt,
        account=payer.account,
        user=payer.user,
        qos=payer.qos,
        partition=payer.partition,
        wckey=payer.wckey,
        reservation=payer.reservation,
    )


def _kind(due: _Due) -> Kind:
    if due.why is Why.LATE_PRICE:
        return Kind.CORRECTION
    return Kind.CHARGE if due.cost > 0 else Kind.CREDIT
