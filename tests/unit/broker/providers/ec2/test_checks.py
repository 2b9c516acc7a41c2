"""`spz check` of AWS: each line says that it is right, or what to do."""

import re
from dataclasses import replace
from typing import Any

import pytest

from broker.model.finding import Finding
from broker.providers.ec2.checks import Checks, Wish
from broker.providers.ec2.errors import GPUS, STANDARD, AwsError, NoAnswerError
from broker.providers.ec2.naming import Site
from broker.providers.ec2.permissions import (
    DELETES,
    DONE_TO_OURS,
    LOOKS,
    UNTRIED,
    action,
    made,
    principal,
)
from broker.providers.ec2.settings import Ec2Settings
from tests.contract.cloud import StubEc2
from tests.unit.broker.providers.ec2.test_policy import allowed

WISH = Wish(regions=("us-east-1",), images=(("ec2-", "x86_64", False),))
REACHED = Ec2Settings(ssh_from=("203.0.113.7/32",))


def lines(
    ec2: StubEc2, *, settings: Ec2Settings = REACHED, wish: Wish = WISH, ahead: int = 0
) -> dict[str, Finding]:
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
        "aws permissions",
        "aws prices",
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


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("describe_spot_price_history", "ec2:DescribeSpotPriceHistory"),
        ("run_instances", "ec2:RunInstances"),
        ("create_volume", "ec2:CreateVolume"),
        ("create_placement_group", "ec2:CreatePlacementGroup"),
    ],
)
def test_a_missing_permission_is_named(ec2: StubEc2, operation: str, action: str) -> None:
    ec2.denied = {operation}
    line = lines(ec2)["us-east-1 permissions"]
    assert (line.good, line.text) == (False, f"denied: {action}")
    assert action in line.hint
    assert "aws-policy.json" in line.hint


@pytest.mark.parametrize(
    ("forbidden", "asked", "good", "text"),
    [
        ({"ec2:TerminateInstances"}, True, False, "denied: ec2:TerminateInstances"),
        (set(), True, True, "all calls are allowed"),
        (
            set(),
            False,
            True,
            "all calls are allowed; for things of ours EC2 does not say: ec2:TerminateInstances",
        ),
    ],
)
def test_what_is_refused_for_a_thing_that_is_not_there_is_asked_of_iam(
    ec2: StubEc2, forbidden: set[str], asked: bool, good: bool, text: str
) -> None:
    """The policy allows it for what bears our tag: EC2 cannot tell of a machine without any."""
    ec2.forbidden = forbidden
    ec2.denied = {"terminate_instances"} | (set() if asked else {"simulate_principal_policy"})
    line = lines(ec2)["us-east-1 permissions"]
    assert (line.good, line.text) == (good, text)


@pytest.mark.parametrize(
    ("denied", "forbidden", "good", "text"),
    [
        (
            set(),
            set(),
            True,
            "allowed: ce:GetCostAndUsage, ce:GetCostAndUsageWithResources, sts:DecodeAuth",
        ),
        (set(), {"iam:CreateServiceLinkedRole"}, False, "denied: iam:CreateServiceLinkedRole; all"),
        ({"simulate_principal_policy"}, set(), True, "cannot be tried: ce:GetCost"),
    ],
)
def test_what_has_no_dry_run_is_asked_of_iam(
    ec2: StubEc2, denied: set[str], forbidden: set[str], good: bool, text: str
) -> None:
    ec2.denied, ec2.forbidden = denied, forbidden
    line = lines(ec2)["aws permissions"]
    assert (line.good, line.text.startswith(text)) == (good, True), line


@pytest.mark.parametrize(
    ("arn", "whose"),
    [
        ("arn:aws:iam::1:user/x/gateway", "arn:aws:iam::1:user/x/gateway"),
        ("arn:aws:sts::1:assumed-role/gateway/i-0", "arn:aws:iam::1:role/gateway"),
        ("arn:aws-cn:sts::1:assumed-role/gateway/me", "arn:aws-cn:iam::1:role/gateway"),
    ],
)
def test_of_a_session_the_roles_policies_count(arn: str, whose: str) -> None:
    assert principal(arn) == whose


def test_every_action_of_the_policy_is_tried() -> None:
    """Those in which a call of its own is the try are the exception."""
    by_call = {
        "ec2:CreateTags",
        "events:DescribeRule",
        "events:ListRuleNamesByTarget",
        "iam:SimulatePrincipalPolicy",
        "pricing:GetProducts",
        "servicequotas:ListServiceQuotas",
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "ssm:GetParameter",
        "sts:GetCallerIdentity",
    }
    asks = {**LOOKS, **made(Site("0123456789ab", "skypurza"), "us-east-1a"), **DONE_TO_OURS}
    assert {action(one) for one in asks} | {*UNTRIED, DELETES} | by_call == set(allowed())


@pytest.mark.parametrize(
    ("groups", "spot", "quotas", "none", "told"),
    [
        ((STANDARD,), False, {}, [], "Standard on-demand 32 (L-1216C47A)"),
        ((STANDARD,), False, {"L-417A185B": 0, "L-34B43A08": 0}, [], "Standard on-demand 32"),
        ((STANDARD,), True, {"L-34B43A08": 0}, ["L-34B43A08"], "Standard spot 0 (L-34B43A08)"),
        (
            (STANDARD, *GPUS),
            False,
            {"L-417A185B": 0, "L-DB2E81BA": 0},
            ["L-DB2E81BA", "L-417A185B"],
            "G and VT on-demand 0 (L-DB2E81BA), P on-demand 0 (L-417A185B)",
        ),
        (GPUS, True, {"L-C4BD4855": 0}, ["L-C4BD4855"], "P5 spot 0 (L-C4BD4855)"),
        (("HPC",), True, {"L-1216C47A": 0}, [], "HPC on-demand 32 (L-F7808C92)"),
    ],
)
def test_a_quota_of_nothing_is_no_good_where_it_may_be_wanted(
    ec2: StubEc2,
    groups: tuple[str, ...],
    spot: bool,
    *,
    quotas: dict[str, float],
    none: list[str],
    told: str,
) -> None:
    ec2.quotas = quotas
    wish = Wish(regions=("us-east-1",), images=WISH.images, spot=spot, groups=groups)
    line = lines(ec2, wish=wish)["us-east-1 quotas"]
    assert (line.good, told in line.text) == (not none, True), line
    asked = [f"--region us-east-1 --quota-code {code}" for code in none]
    assert all(one in line.hint for one in asked)
    assert line.hint.count("--quota-code") == len(none)


IMAGES = (("ec2-", "x86_64", False), ("ec2-", "arm64", False), ("ec2-", "x86_64", True))


def test_an_image_of_each_architecture_and_of_gpus_is_found(ec2: StubEc2) -> None:
    line = lines(ec2, wish=Wish(regions=("us-east-1",), images=IMAGES))["us-east-1 images"]
    assert line.good
    assert re.fullmatch(r"x86_64 ami-\S+, arm64 ami-\S+, x86_64 with GPUs ami-\S+", line.text)


@pytest.mark.parametrize(
    ("images", "text"),
    [
        ({"gpu": "ami-gone"}, "x86_64 with GPUs: ami-gone is no image here, x86_64 ami-"),
        ({"x86_64": "ami-arm"}, "x86_64: ami-arm is for arm64, arm64 ami-"),
        ({"arm64": "/none"}, "arm64: /none: ParameterNotFound, x86_64 ami-"),
        (
            {"x86_64": "/none", "gpu": "/none"},
            "x86_64: /none: ParameterNotFound, x86_64 with GPUs: /none: ParameterNotFound, arm64 ",
        ),
    ],
)
def test_an_image_that_is_missing_is_named_and_the_others_are_told(
    ec2: StubEc2, images: dict[str, str], text: str
) -> None:
    ec2.images = {"ami-gone": None, "ami-arm": {"Architecture": "arm64"}}
    settings = replace(REACHED, images=images)
    wish = Wish(regions=("us-east-1",), images=IMAGES)
    line = lines(ec2, settings=settings, wish=wish)["us-east-1 images"]
    assert (line.good, line.text.startswith(text)) == (False, True), line
    assert "aws.images" in line.hint


def test_where_regions_may_not_be_listed_and_none_is_named_nothing_else_is_looked_at(
    ec2: StubEc2,
) -> None:
    ec2.denied = {"describe_regions"}
    found = lines(ec2, wish=replace(WISH, regions=()))
    assert list(found) == ["aws credentials"]
    assert not found["aws credentials"].good
    assert "aws-policy.json" in found["aws credentials"].hint


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
        (AwsError("SignatureDoesNotMatch", "Signature expired: 1501 is now earlier"), "clock"),
        (AwsError("AuthFailure", "not able to validate"), "clock"),
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
