"""Where machines stand: found or made at the first launch in a region, in few rounds."""

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from broker.model.errors import ProviderError
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.settings import Ec2Settings
from tests.contract.cloud import StubEc2
from tests.contract.made import ec2_provider
from tests.unit.broker.providers.ec2.test_provider import OFFER, A, B, Bench

ROUNDS = (
    {"describe_vpcs", "describe_security_groups", "get_parameter"},
    {"create_security_group", "describe_subnets", "describe_images"},
    {"authorize_security_group_ingress"},
)
"""What is asked at the same time at a first visit; each round needs answers of the one before."""
PATIENCE = 30


@dataclass
class InRounds(StubEc2):
    """Nobody of a round is answered before all of it have asked."""

    gates: dict[str, threading.Barrier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for names in ROUNDS:
            self.gates |= dict.fromkeys(names, threading.Barrier(len(names), timeout=PATIENCE))

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation in self.gates:
            self.gates[operation].wait()
        return super().call(service, region, operation, **params)


def test_a_first_visit_to_a_region_asks_in_three_rounds_and_a_second_one_asks_nothing(
    tmp_path: Path,
) -> None:
    ec2 = InRounds(lambda: 1_800_000_000)
    provider = ec2_provider(tmp_path, ec2, ec2.now, [OFFER])
    provider.launch(OFFER, [A], token="4711/1/1")
    asked = [name for name, _ in ec2.calls]
    before = asked.index("create_launch_template")
    assert sorted(asked[:before]) == sorted(name for names in ROUNDS for name in names)
    provider.launch(OFFER, [B], token="4712/1/1")
    assert (
        {name for name, _ in ec2.calls[len(asked) :]}
        <= {
            *("describe_instances", "describe_availability_zones"),  # what there is
            *asked[before:],
        }
    )


def test_a_group_that_lets_in_a_part_gets_the_rest(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.provider.launch(OFFER, [A], token="4711/1/1")
    (group,) = bench.ec2.groups.values()
    before = list(bench.ec2.allowed[group])
    assert [rule["IpProtocol"] for rule in before] == ["tcp", "-1"]
    bench.settings = Ec2Settings(ssh_from=("10.9.0.0/16",))
    bench.restart()
    bench.provider.launch(OFFER, [B], token="4712/1/1")
    ranges = {"IpRanges": [{"CidrIp": "10.9.0.0/16"}]}
    assert bench.ec2.allowed[group] == [*before, {**before[0], **ranges}]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ("describe_vpcs", AwsError),
        ("describe_subnets", AwsError),
        ("describe_security_groups", AwsError),
        ("get_parameter", AwsError),
        ("describe_vpcs", NoAnswerError),
        ("describe_images", NoAnswerError),
    ],
)
def test_whatever_is_not_answered_nothing_is_bought_and_later_it_is(
    tmp_path: Path, wrong: str, error: type[Exception]
) -> None:
    bench = Bench(tmp_path)
    lacking = bench.ec2.denied if error is AwsError else bench.ec2.silent
    lacking.add(wrong)
    with pytest.raises(ProviderError if error is AwsError else NoAnswerError):
        bench.provider.launch(OFFER, [A], token="4711/1/1")
    assert not bench.ec2.instances
    lacking.clear()
    assert bench.provider.launch(OFFER, [A], token="4711/1/2")


def test_a_region_that_does_not_answer_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    here, silent = threading.Event(), threading.Event()

    class Slow(StubEc2):
        def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
            if region == "eu-west-1" and operation == "describe_vpcs":
                silent.set()
                assert here.wait(PATIENCE)
            return super().call(service, region, operation, **params)

    ec2 = Slow(lambda: 1_800_000_000)
    provider = ec2_provider(tmp_path, ec2, ec2.now, [OFFER])
    there = replace(OFFER, region="eu-west-1", zones=("euw1-az1",))
    other = threading.Thread(target=lambda: provider.launch(there, [B], token="4712/1/1"))
    other.start()
    assert silent.wait(PATIENCE)
    assert provider.launch(OFFER, [A], token="4711/1/1")
    here.set()
    other.join()
    assert [one.region for one in ec2.instances] == ["us-east-1", "eu-west-1"]
