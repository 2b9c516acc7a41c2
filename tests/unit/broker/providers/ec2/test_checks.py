"""`spz check` of AWS: each line says that it is right, or what to do."""

from typing import Any

import pytest

from broker.providers.ec2.checks import Checks, Line, Wish
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.naming import Site
from broker.providers.ec2.settings import Ec2Settings
from tests.contract.cloud import StubEc2

WISH = Wish(regions=("us-east-1",), images=(("ec2-", "x86_64", False),))
REACHED = Ec2Settings(ssh_from=("203.0.113.7/32",))


def lines(
    ec2: StubEc2, *, settings: Ec2Settings = REACHED, wish: Wish = WISH, ahead: int = 0
) -> dict[str, Line]:
    site = Site("0123456789ab", "skypurza")
    checks = Checks(ec2, site, settings, wish, now=lambda: ec2.now() + ahead)
    return {line.name: line for line in checks.lines()}


@pytest.fixture
def ec2() -> StubEc2:
    return StubEc2(lambda: 1_800_000_000)


def test_what_is_right_says_so_and_changes_nothing(ec2: StubEc2) -> None:
    found = lines(ec2)
    assert [line for line in found.values() if not line.good] == []
    assert list(found) == [
        "aws credentials",
        "aws clock",
        "us-east-1 network",
        "us-east-1 images",
        "us-east-1 permissions",
        "us-east-1 quotas",
    ]
    assert "123456789012" in found["aws credentials"].text
    assert found["us-east-1 quotas"].text == "vCPUs: Standard on-demand 32 (L-1216C47A)"
    assert (ec2.instances, ec2.groups, ec2.templates) == ([], {}, {})


def test_without_regions_all_of_the_account_are_looked_at(ec2: StubEc2) -> None:
    found = lines(ec2, wish=Wish(regions=(), images=WISH.images))
    assert {"us-east-1 network", "eu-west-1 network"} <= set(found)


@pytest.mark.parametrize(
    ("ahead", "good", "text"),
    [
        (0, True, "as AWS's"),
        (5, True, "5 s ahead of AWS's"),
        (240, False, "240 s ahead of AWS's"),
        (-7, False, "7 s behind AWS's"),
    ],
)
def test_a_clock_that_is_wrong_is_told(ec2: StubEc2, ahead: int, good: bool, text: str) -> None:
    found = lines(ec2, ahead=ahead)
    line = found["aws clock"]
    assert (line.good, line.text, "us-east-1 network" in found) == (good, text, True)
    assert good or "chrony" in line.hint


def test_a_missing_permission_is_named(ec2: StubEc2) -> None:
    ec2.denied = {"terminate_instances"}
    line = lines(ec2)["us-east-1 permissions"]
    assert (line.good, line.text) == (False, "denied: terminate_instances")
    assert "ec2:TerminateInstances" in line.hint
    assert "aws-policy.json" in line.hint


def test_a_quota_of_nothing_is_no_good_and_gpus_are_told_where_they_may_be_wanted(
    ec2: StubEc2,
) -> None:
    ec2.quotas = {"L-1216C47A": 0.0, "L-417A185B": 0.0}
    gpus = (("ec2-", "x86_64", False), ("ec2-", "x86_64", True))
    line = lines(ec2, wish=Wish(regions=("us-east-1",), images=gpus, spot=True))["us-east-1 quotas"]
    assert not line.good
    assert "P on-demand 0 (L-417A185B)" in line.text
    assert "G and VT spot 32 (L-3819A6DF)" in line.text


def test_public_machines_that_nobody_may_reach_are_told(ec2: StubEc2) -> None:
    line = lines(ec2, settings=Ec2Settings())["aws ssh"]
    assert not line.good
    assert "aws.ssh_from" in line.hint
    assert "aws ssh" not in lines(ec2, settings=Ec2Settings(public=False))


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (AwsError("NoCredentials", "none found"), "aws configure"),
        (AwsError("ExpiredToken", "over"), "renew"),
        (NoAnswerError("timed out"), "network"),
    ],
)
def test_without_credentials_nothing_else_is_asked(
    ec2: StubEc2, monkeypatch: pytest.MonkeyPatch, error: Exception, hint: str
) -> None:
    def fails(region: str, params: dict[str, Any]) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(ec2, "_get_caller_identity", fails)
    (line,) = lines(ec2).values()
    assert not line.good
    assert hint in line.hint
