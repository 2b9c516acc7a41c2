"""Money adds up over drawn histories of many machines, against a reckoning second by second."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import NOBODY, Entry, Holder, Meter, Payer, Why, close, moved, settle
from accounting.rates import ON_DEMAND, OWNED, SPOT, Price
from accounting.tres import Tres

START = 1_700_000_000
WHOLE = Tres(cpu=8, mem_mib=32_000)
FREE_SECONDS, LEAST_SECONDS = 3600, 60


def payer(job: int, attempt: int) -> Payer:
    return Payer(AccountName(f"a{job % 3}"), UserName(f"u{job % 2}"), JobId(job), attempt)


@dataclass(frozen=True)
class Life:
    """A machine from start to end: who held it for how long; where else it is settled."""

    meters: tuple[Meter, ...]
    """Its own, and those of its volume and address."""
    spans: tuple[tuple[int, tuple[Holder, ...]], ...]
    interrupted: bool
    late: int
    """Seconds by which the end is learned late."""
    stops: frozenset[int]
    learnt: int
    """Seconds after the start at which all but its first price become known."""

    @property
    def ended_at(self) -> int:
        return START + sum(seconds for seconds, _ in self.spans)

    def entries(self) -> Iterator[Entry]:
        for whole in self.meters:
            meter = replace(whole, prices=whole.prices[:1])
            now = START
            holders: tuple[Holder, ...] = ()
            for seconds, holders in self.spans:
                between = sorted(START + at for at in self.stops if now < START + at)
                for at in [*(at for at in between if at < now + seconds), now + seconds]:
                    if at >= START + self.learnt:
                        meter = replace(meter, prices=whole.prices)
                    meter, more = settle(meter, holders, at)
                    yield from more
                now += seconds
            meter, more = settle(meter, holders, now + self.late)
            yield from more
            meter = replace(meter, prices=whole.prices)
            _, more = close(meter, holders, now, interrupted_by_provider=self.interrupted)
            yield from more

    def bill(self) -> int:
        """Price by price, second by second, cut once for each line of the bill."""
        return sum(self._billed(meter) for meter in self.meters)

    def _billed(self, meter: Meter) -> int:
        seconds = self.ended_at - START
        free = meter.terms.free_if_interrupted_within
        if self.interrupted and free and seconds < FREE_SECONDS:
            return 0
        if meter.terms is not OWNED:
            seconds = max(seconds, LEAST_SECONDS)
        return sum(price_at(meter, START + second) for second in range(seconds)) // 3600


def price_at(meter: Meter, instant: int) -> int:
    known = [price for price in meter.prices if price.since <= instant]
    return (known[-1] if known else meter.prices[0]).micro_usd_per_hour


HOLDERS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3)),
    max_size=4,
    unique_by=lambda one: one[0],
).map(
    lambda rows: tuple(
        Holder(payer(job, attempt), Tres(cpu=cpus, mem_mib=cpus * 1000, node=1))
        for job, attempt, cpus in rows
    )
)
PRICES = st.dictionaries(st.integers(0, 4000), st.integers(0, 90_000_000), min_size=1, max_size=3)


@st.composite
def lives(draw: st.DrawFn, number: int) -> Life:
    booted = draw(st.none() | st.integers(0, 300))
    own = Meter(
        node=f"ec2-{number}",
        launch=1,
        whole=WHOLE,
        terms=draw(st.sampled_from([ON_DEMAND, SPOT, OWNED])),
        prices=tuple(Price(START + at, usd) for at, usd in sorted(draw(PRICES).items())),
        running_at=START,
        booted_at=None if booted is None else START + booted,
        cause=draw(st.sampled_from([payer(1, 1), payer(2, 2), NOBODY])),
    )
    sides = tuple(
        replace(own, part=part, terms=ON_DEMAND, prices=(Price(START, price),))
        for part, price in (("volume", 3287), ("address", 5000))
    )
    return Life(
        meters=(own, *draw(st.sampled_from([(), sides]))),
        spans=tuple(draw(st.lists(st.tuples(st.integers(0, 1500), HOLDERS), max_size=4))),
        interrupted=draw(st.booleans()),
        late=draw(st.sampled_from([0, 0, 1, 45])),
        stops=draw(st.frozensets(st.integers(0, 5000), max_size=4)),
        learnt=draw(st.sampled_from([0, 0, 1000, 9999])),
    )


HISTORIES = st.integers(1, 3).flatmap(lambda most: st.tuples(*map(lives, range(most))))


@settings(max_examples=60, deadline=None)
@given(HISTORIES, st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9_000_000)), max_size=3))
def test_jobs_and_overhead_together_pay_the_bill(
    history: tuple[Life, ...], data: list[tuple[int, int]]
) -> None:
    brought = [
        moved(payer(job, number), cost, region="us-east-1", at=START)
        for number, (job, cost) in enumerate(data)
    ]
    entries = [*brought, *(entry for life in history for entry in life.entries())]
    jobs = sum(entry.cost for entry in entries if entry.job is not None)
    overhead = sum(entry.cost for entry in entries if entry.job is None)
    assert jobs + overhead == sum(life.bill() for life in history) + sum(cost for _, cost in data)


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_the_same_history_posted_again_adds_nothing(history: tuple[Life, ...]) -> None:
    once, again = ([e for life in history for e in life.entries()] for _ in range(2))
    book = {entry.key: entry for entry in once}
    assert len(book) == len(once)
    assert book | {entry.key: entry for entry in again} == book


@settings(max_examples=60, deadline=None)
@given(lives(1).filter(lambda life: not life.interrupted and not life.learnt))
def test_each_attempt_pays_its_part_of_each_second_that_it_held(life: Life) -> None:
    paid: Counter[Payer] = Counter()
    for entry in life.entries():
        if entry.why is not Why.MINIMUM and entry.machine == life.meters[0].machine:
            paid[Payer(entry.account, entry.user, entry.job, entry.attempt)] += entry.cost
    due = by_the_second(life, life.meters[0])
    postings = 2 * (len(life.spans) + len(life.stops) + 3)
    for one in paid.keys() | due.keys():
        assert abs(paid[one] - due.get(one, Fraction(0))) <= postings


def by_the_second(life: Life, meter: Meter) -> dict[Payer, Fraction]:
    due: dict[Payer, Fraction] = {}
    now = START
    for seconds, holders in life.spans:
        for instant in range(now, now + seconds):
            price = Fraction(price_at(meter, instant), 3600)
            for one, part in parts_at(meter, holders, instant):
                due[one] = due.get(one, Fraction(0)) + price * part
        now += seconds
    return due


def parts_at(
    meter: Meter, holders: tuple[Holder, ...], instant: int
) -> list[tuple[Payer, Fraction]]:
    """Who pays for a second: the cause until it is booted, then holders by cpus, else nobody."""
    if meter.booted_at is None or instant < meter.booted_at:
        return [(meter.cause, Fraction(1))]
    cpus = sum(one.tres.cpu for one in holders)
    return [(one.payer, Fraction(one.tres.cpu, cpus)) for one in holders] or [(NOBODY, Fraction(1))]


def test_an_end_that_is_learned_late_is_given_back_by_those_who_paid_beyond_it() -> None:
    meter = Meter(
        node="ec2-1", launch=1, whole=WHOLE, terms=SPOT, running_at=START, booted_at=START,
        prices=(Price(START, 3_600_000),),
    )  # fmt: skip
    first, second = (Holder(payer(job, 1), Tres(cpu=1)) for job in (1, 2))
    for holders, until in (((first,), 200), ((second,), 210)):
        meter, _ = settle(meter, holders, START + until)
    _, entries = close(meter, (), START + 195)
    assert {entry.job: entry.cost for entry in entries} == {
        2: MicroUsd(-10_000),
        1: MicroUsd(-5_000),
    }
