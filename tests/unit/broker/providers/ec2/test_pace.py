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

    def run(self, region: str = "r1", action: str = "run_instances", service: str = "ec2") -> None:
        self.paced.call(service, region, action)


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
