"""The IAM policy in the docs allows what is asked of AWS, and nothing else."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import boto3

import broker.providers.ec2

SOURCES = Path(broker.providers.ec2.__file__).parent
POLICY = Path(__file__).parents[5] / "docs" / "aws-policy.json"
SERVICES = ("ec2", "ssm", "sts", "pricing", "service-quotas", "sqs", "ce", "iam", "events")
IMPLIED = {"ec2:CreateTags", "iam:CreateServiceLinkedRole"}
"""Tags in the call that makes a thing; roles that the first fleet and spot of an account make."""
HARMS = tuple(f"ec2:{verb}" for verb in ("Delete", "Terminate", "Stop", "Start", "Release"))


def operations() -> dict[str, str]:
    """IAM's names of what boto3 calls by these."""
    found = {}
    for service in SERVICES:
        client = boto3.client(service, "us-east-1")  # type: ignore[call-overload]
        prefix = service.replace("-", "")
        for method, action in client.meta.method_to_api_mapping.items():
            found[method] = f"{prefix}:{action}"
    return found


def asked() -> set[str]:
    """Every operation that the provider's sources name."""
    known = operations()
    trees = (ast.parse(path.read_text("utf-8")) for path in SOURCES.glob("*.py"))
    words = (
        node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    )
    return {known[word] for word in words if isinstance(word, str) and word in known}


def allowed() -> Iterator[str]:
    for statement in json.loads(POLICY.read_text("utf-8"))["Statement"]:
        assert statement["Effect"] == "Allow"
        actions = statement["Action"]
        yield from [actions] if isinstance(actions, str) else actions


def test_the_policy_allows_every_call_that_is_made_and_no_other() -> None:
    assert len(asked()) > 30
    assert asked() | IMPLIED == set(allowed())


def test_what_ends_or_changes_things_is_allowed_for_ours_alone() -> None:
    for statement in json.loads(POLICY.read_text("utf-8"))["Statement"]:
        actions = statement["Action"]
        listed = [actions] if isinstance(actions, str) else actions
        if any(one.startswith(HARMS) for one in listed):
            condition = statement["Condition"]["StringEquals"]
            assert condition == {"aws:ResourceTag/ManagedBy": "skypurza"}, listed
