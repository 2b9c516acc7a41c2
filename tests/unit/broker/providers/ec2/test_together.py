"""Single launches of one moment that are one call, and what becomes of each of them."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import Machine, Offer
from broker.providers.ec2 import naming
from broker.providers.ec2.together import WINDOW, Together, Want
from tests.contract.cloud import StubEc2
from tests.contract.made import FOR, ec2_provider
from tests.unit.broker.providers.ec2.test_provider import OFFER, tags_of

NODES = [(NodeName(f"ec2-{n}"), 70 + n) for n in range(4)]
OTHER = replace(OFFER, instance_type="c7i.large", family="c7i")


@dataclass
class Gate:
    """A pause that ends once so many wait for each other, or for a call of their own."""

    expected: int
    together: Together | None = None
    all_here: bool = False

    def __call__(self, seconds: float) -> None:
        if seconds == WINDOW:
            end = time.monotonic() + 20
            while not (self.all_here or self.waiting() >= self.expected):
                assert time.monotonic() < end, "the others have not come"
                threading.Event().wait(0.002)
            self.all_here = True

    def waiting(self) -> int:
        assert self.together is not None
        with self.together._lock:
            return sum(len(batch.wants) for batch in self.together._open.values())


@dataclass
class Shop:
    """Gives the first `room` of those who ask."""

    room: int = 10
    error: Exception | None = None
    calls: list[list[str]] = field(default_factory=list)

    def buy(self, wants: Sequence[Want]) -> Mapping[naming.Identity, Machine]:
        self.calls.append(sorted(want.node[0] for want in wants))
        if self.error:
            raise self.error
        return {want.node: want.node for want in wants[: self.room]}  # type: ignore[misc]


def at_once(asks: Sequence[Callable[[], object]]) -> list[tuple[object, BaseException | None]]:
    """What each of them got, or raised."""
    with ThreadPoolExecutor(len(asks)) as pool:
        futures = [pool.submit(ask) for ask in asks]
    return [(None if f.exception() else f.result(), f.exception()) for f in futures]


def wants(*offers: Offer) -> list[Want]:
    return [Want(offer, NODES[n], f"{n}/1", FOR) for n, offer in enumerate(offers)]


def launched(shop: Shop, asked: Sequence[Want]) -> list[tuple[object, BaseException | None]]:
    gate = Gate(len(asked))
    gate.together = together = Together(shop.buy, gate)
    return at_once([lambda want=want: together.launch(want) for want in asked])  # type: ignore[misc]


def test_those_who_want_the_same_are_served_by_one_call() -> None:
    shop = Shop()
    got = launched(shop, wants(OFFER, OFFER, OFFER))
    assert shop.calls == [["ec2-0", "ec2-1", "ec2-2"]]
    assert [one for one, _ in got] == NODES[:3]


@pytest.mark.parametrize(
    "other",
    [
        Want(OTHER, NODES[1], "1/1", FOR),
        Want(OFFER, (NodeName("gpu-1"), 1), "1/1", FOR),
        Want(OFFER, NODES[1], "1/1", replace(FOR, user="bob")),
        Want(OFFER, NODES[1], "1/1", replace(FOR, account="lab")),
    ],
)
def test_who_wants_something_else_or_for_somebody_else_is_alone(other: Want) -> None:
    shop = Shop()
    assert launched(shop, [*wants(OFFER), other]) == [(None, None)] * 2
    assert shop.calls == []


def test_who_is_left_over_is_told_so() -> None:
    got = launched(Shop(room=2), wants(OFFER, OFFER, OFFER))
    assert sorted(one is None for one, _ in got) == [False, False, True]


def test_what_is_raised_is_raised_for_all() -> None:
    error = ProviderError(Refusal.AUTH, Width.REGION, "no")
    got = launched(Shop(error=error), wants(OFFER, OFFER))
    assert [raised for _, raised in got] == [error, error]


# --- through the provider


@dataclass
class Bench:
    folder: Path
    time: int = 1_800_000_000
    ec2: StubEc2 = field(init=False)

    def __post_init__(self) -> None:
        self.ec2 = StubEc2(lambda: self.time)

    def launch(self, count: int) -> list[tuple[object, BaseException | None]]:
        """As many single machines at once, by a provider that was just started."""
        gate = Gate(count)
        self.provider = ec2_provider(self.folder, self.ec2, lambda: self.time, [OFFER], pause=gate)
        gate.together = self.provider._together

        def one(number: int) -> Machine:
            (machine,) = self.provider.launch(OFFER, [NODES[number]], token=f"{number}/1")
            return machine

        return at_once([lambda n=n: one(n) for n in range(count)])  # type: ignore[misc]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_several_single_machines_are_one_call_and_each_is_its_own(bench: Bench) -> None:
    got = [machine for machine, _ in bench.launch(3)]
    assert (bench.ec2.count("run_instances"), bench.ec2.count("create_fleet")) == (1, 0)
    (params,) = (params for name, params in bench.ec2.calls if name == "run_instances")
    assert (params["MinCount"], params["MaxCount"]) == (1, 3)
    assert "Placement" not in params
    tags = tags_of(params)
    assert {name for name, _ in naming.nodes_of(tags)} == {"ec2-0", "ec2-1", "ec2-2"}
    assert (tags[naming.USER], len(tags[naming.JOB].split(","))) == ("alice", 3)
    assert [machine.node for machine in got if isinstance(machine, Machine)] == [
        name for name, _ in NODES[:3]
    ]
    fresh = ec2_provider(bench.folder, bench.ec2, lambda: bench.time)
    seen = {machine.node: machine.id for machine in fresh.machines()}
    assert seen == {one.node: one.id for one in got if isinstance(one, Machine)}
    assert {bench.provider.host_key(one) in params["UserData"] for one in fresh.machines()} == {
        True
    }


def test_where_there_is_room_for_some_the_others_are_refused_one_by_one(bench: Bench) -> None:
    bench.ec2.rooms["m7i.large"] = 2
    got = bench.launch(4)
    assert sum(isinstance(machine, Machine) for machine, _ in got) == 2
    refused = [error for _, error in got if error is not None]
    assert [one.refusal for one in refused if isinstance(one, ProviderError)] == [
        Refusal.CAPACITY
    ] * 2
    assert bench.ec2.count("create_fleet") == 2


def test_a_call_of_which_nobody_knows_is_found_out_by_each_of_them(bench: Bench) -> None:
    bench.ec2.lost_replies = 1
    real = bench.ec2.tokens
    got = bench.launch(3)  # asked again with the same token
    assert len(real) == 1 and all(isinstance(machine, Machine) for machine, _ in got)
    assert len(bench.ec2.instances) == 3
    assert bench.launch(3) == got
    assert len(bench.ec2.instances) == 3
