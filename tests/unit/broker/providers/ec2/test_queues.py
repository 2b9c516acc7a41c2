"""`spz check` of queues of interruptions: they are there, take events, and a rule fills them."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.interruptions import WARNING
from broker.providers.ec2.lines import guarded
from broker.providers.ec2.queues import PATTERN, arn_of, fills, queue_line, takes_events

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/skypurza-prod"
ARN = "arn:aws:sqs:us-east-1:123456789012:skypurza-prod"
LETS = {
    "Effect": "Allow",
    "Principal": {"Service": "events.amazonaws.com"},
    "Action": "sqs:SendMessage",
}
RULE = {"Name": "warnings", "State": "ENABLED", "EventPattern": PATTERN}


@dataclass
class Aws:
    policy: dict[str, Any] | None = field(default_factory=lambda: {"Statement": [LETS]})
    rules: list[dict[str, Any]] = field(default_factory=lambda: [RULE])
    says_no: dict[str, str] = field(default_factory=dict)

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        if operation in self.says_no:
            raise AwsError(self.says_no[operation], "no")
        if operation == "get_queue_attributes":
            policy = {} if self.policy is None else {"Policy": json.dumps(self.policy)}
            return {"Attributes": {"QueueArn": ARN, **policy}}
        if operation == "receive_message":
            assert params["VisibilityTimeout"] == 0, "who waits for it gets it nevertheless"
            return {}
        if operation == "list_rule_names_by_target":
            assert params["TargetArn"] == ARN
            return {"RuleNames": [rule["Name"] for rule in self.rules]}
        return next(rule for rule in self.rules if rule["Name"] == params["Name"])


@pytest.mark.parametrize(
    ("aws", "good", "text", "hint"),
    [
        (Aws(), True, f"{ARN}, filled by rule warnings", ""),
        (Aws(policy=None), False, "takes no events", f"sqs:SendMessage on {ARN}"),
        (Aws(rules=[]), False, "no rule that is on", "put-rule"),
        (Aws(rules=[{**RULE, "State": "DISABLED"}]), False, "(not warnings)", "put-targets"),
        (
            Aws(says_no={"get_queue_attributes": "AWS.SimpleQueueService.NonExistentQueue"}),
            False,
            "NonExistentQueue",
            "make the queue",
        ),
        (Aws(says_no={"receive_message": "AccessDenied"}), False, "AccessDenied", "aws-policy"),
        (
            Aws(says_no={"describe_rule": "AccessDeniedException"}),
            False,
            "AccessDeniedException",
            "aws-policy",
        ),
    ],
)
def test_what_keeps_notices_from_coming_is_told(
    aws: Aws, good: bool, text: str, *, hint: str
) -> None:
    name = "us-east-1 interruptions"
    (line,) = guarded(name, lambda: queue_line(aws, "us-east-1", URL))
    assert (line.name, line.good, text in line.text) == (name, good, True), line
    assert hint in line.hint
    assert bool(line.hint) is not good


@pytest.mark.parametrize(
    ("change", "so"),
    [
        ({}, True),
        ({"Effect": "Deny"}, False),
        ({"Principal": "*"}, True),
        ({"Principal": {"AWS": "*"}}, True),
        ({"Principal": {"Service": ["sns.amazonaws.com", "events.amazonaws.com"]}}, True),
        ({"Principal": {"Service": "sns.amazonaws.com"}}, False),
        ({"Action": ["sqs:ReceiveMessage", "SQS:SendMessage"]}, True),
        ({"Action": "sqs:*"}, True),
        ({"Action": "sqs:ReceiveMessage"}, False),
    ],
)
def test_a_policy_lets_events_in_or_not(change: dict[str, Any], so: bool) -> None:
    statement = LETS | change
    assert takes_events(json.dumps({"Statement": [statement]})) is so
    assert takes_events(json.dumps({"Statement": statement})) is so


@pytest.mark.parametrize(
    ("pattern", "so"),
    [
        (PATTERN, True),
        (json.dumps({"source": ["aws.ec2"]}), True),
        (json.dumps({"detail-type": [WARNING]}), True),
        (json.dumps({"detail-type": ["EC2 Instance State-change Notification"]}), False),
        (json.dumps({"source": ["aws.s3"]}), False),
        ("no json", False),
    ],
)
def test_a_rule_lets_warnings_through_or_not(pattern: str, so: bool) -> None:
    assert fills({**RULE, "EventPattern": pattern}) is so


def test_a_queues_name_in_policies_follows_from_its_url() -> None:
    assert arn_of(URL, "us-east-1", partition="aws") == ARN
    assert arn_of(URL, "us-east-1", partition="aws-us-gov") == ARN.replace("aws", "aws-us-gov", 1)
