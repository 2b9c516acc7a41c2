"""EC2 is asked as often as it admits, whoever asks."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.pace import MOST_SECONDS, Paced, rate_of


@dataclass
class Bench:
    now: float = 0.0
    throttled: int = 0
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.paced = Paced(self, lambda: self.now, self._pause)

    def _pause(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        if self.throttled:
            self.throttled -= 1
            raise AwsError("RequestLimitExceeded", "no", 503)
        return {"made": True}

    def run(
        self,
        region: str = "r1",
        action: str = "run_instances",
        service: str = "ec2",
        count: int = 1,
    ) -> None:
        ids = [f"i-{number}" for number in range(count)]
        self.paced.call(service, region, action, MaxCount=count, InstanceIds=ids)


@pytest.mark.parametrize(
    ("action", "burst", "per_second"),
    [
        ("run_instances", 5, 2),
        ("create_fleet", 50, 5),
        ("terminate_instances", 100, 5),
        ("describe_instances", 100, 20),
        ("create_placement_group", 50, 5),
    ],
)
def test_each_action_has_its_rate(action: str, burst: float, per_second: float) -> None:
    rate = rate_of(action)
    assert (rate.burst, rate.per_second) == (burst, per_second)


def test_after_a_burst_calls_wait_their_turn_by_region_and_action() -> None:
    bench = Bench()
    for _ in range(7):
        bench.run()
    assert bench.waits == [pytest.approx(0.5), pytest.approx(0.5)]
    bench.run("r2")
    bench.run(action="describe_instances")
    bench.run(service="ssm")
    assert len(bench.waits) == 2


def test_who_would_wait_long_is_sent_away_without_asking() -> None:
    bench = Bench()
    bench.paced.pause = bench.waits.append  # many at once: time does not pass
    sent_away = 0
    for _ in range(20):
        try:
            bench.run()
        except NoAnswerError as error:
            sent_away += 1
            assert "run_instances in r1: 2.5 s until EC2 admits it" in str(error)
    assert len(bench.waits) == 4 and max(bench.waits) == MOST_SECONDS
    assert sent_away == 11
    bench.now += 10
    bench.run()


def test_a_throttled_call_slows_those_after_it_and_they_recover() -> None:
    bench = Bench(throttled=1)
    with pytest.raises(AwsError):
        bench.run()
    bench.run()
    assert bench.waits == [pytest.approx(1.0)]  # half of the rate, and nothing saved
    for _ in range(20):
        bench.run()
    assert bench.waits[-1] == pytest.approx(0.5)


def test_what_is_always_throttled_is_still_asked_now_and_then() -> None:
    bench = Bench(throttled=100)
    for _ in range(30):
        with pytest.raises((AwsError, NoAnswerError)):
            bench.run()
        bench.now += 1
    assert 85 < bench.throttled < 97


@pytest.mark.parametrize(
    ("action", "counts", "waits"),
    [
        ("run_instances", (500, 500, 4), [2.0]),
        ("run_instances", (990, 10, 1, 1), [0.5, 0.5]),
        ("run_instances", (2000,), []),
        ("terminate_instances", (500, 500, 20), [1.0]),
        ("stop_instances", (500, 500, 500), []),
    ],
)
def test_machines_are_counted_beside_calls(
    action: str, counts: tuple[int, ...], waits: list[float]
) -> None:
    bench = Bench()
    for count in counts:
        bench.run(action=action, count=count)
    assert bench.waits == pytest.approx(waits)


def test_more_machines_than_are_admitted_soon_are_sent_away_and_count_for_nothing() -> None:
    bench = Bench()
    bench.run(count=1000)
    for _ in range(9):
        with pytest.raises(NoAnswerError, match=r"run_instances in r1: 4.0 s until EC2 admits it"):
            bench.run(count=8)
    bench.run("r2", count=8)
    bench.now += 4
    bench.run(count=8)
    assert bench.waits == []


def test_of_two_buckets_the_emptier_one_gives_way_to_a_throttled_call() -> None:
    bench = Bench()
    bench.run(count=996)
    bench.throttled = 1
    with pytest.raises(AwsError):
        bench.run(count=2)
    bench.run(count=1)
    assert bench.waits == [pytest.approx(1.0)]
