"""Whether notices of interruption come: a queue, its policy, the rule that fills it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from broker.model.finding import Finding
from broker.providers.ec2.clients import Api
from broker.providers.ec2.interruptions import WARNING

SENDER = "events.amazonaws.com"
PATTERN = json.dumps({"source": ["aws.ec2"], "detail-type": [WARNING]})


def arn_of(url: str, region: str, *, partition: str) -> str:
    """Of a queue by its URL, which ends with account and name."""
    account, name = url.rstrip("/").split("/")[-2:]
    return f"arn:{partition}:sqs:{region}:{account}:{name}"


def queue_line(api: Api, region: str, url: str) -> Iterator[Finding]:
    """Raises AwsError, NoAnswerError. What is read here comes again at once."""
    told = api.call(
        "sqs", region, "get_queue_attributes", QueueUrl=url, AttributeNames=["QueueArn", "Policy"]
    )
    found = told.get("Attributes", {})
    arn = str(found.get("QueueArn", ""))
    api.call(
        "sqs",
        region,
        "receive_message",
        QueueUrl=url,
        MaxNumberOfMessages=1,
        VisibilityTimeout=0,
    )
    name = f"{region} interruptions"
    if not takes_events(str(found.get("Policy") or "{}")):
        hint = f"let {SENDER} do sqs:SendMessage on {arn} in the queue's policy"
        yield Finding(name, False, f"{arn} takes no events: its policy does not let {SENDER}", hint)
        return
    rules = list(_rules(api, region, arn))
    good = [rule["Name"] for rule in rules if fills(rule)]
    hint = f"`aws events put-rule` with the pattern {PATTERN}, and put-targets with {arn}"
    listed = ", ".join(str(rule["Name"]) for rule in rules)
    lacking = f"no rule that is on tells {arn} of interruptions" + (listed and f" (not {listed})")
    if good:
        yield Finding(name, True, f"{arn}, filled by rule {', '.join(good)}")
    else:
        yield Finding(name, False, lacking, hint)


def _rules(api: Api, region: str, arn: str) -> Iterator[dict[str, Any]]:
    listed = api.call("events", region, "list_rule_names_by_target", TargetArn=arn)
    for name in listed.get("RuleNames", ()):
        yield api.call("events", region, "describe_rule", Name=name)


def fills(rule: Mapping[str, Any]) -> bool:
    """Whether it is on, and lets warnings of interruptions through."""
    try:
        pattern = json.loads(rule.get("EventPattern") or "{}")
    except ValueError:
        return False
    kinds, sources = pattern.get("detail-type", [WARNING]), pattern.get("source", ["aws.ec2"])
    return rule.get("State") == "ENABLED" and WARNING in kinds and "aws.ec2" in sources


def takes_events(policy: str) -> bool:
    """Whether a queue's policy lets EventBridge send."""
    statements = json.loads(policy).get("Statement", ())
    listed = [statements] if isinstance(statements, dict) else statements
    return any(_lets(one) for one in listed)


def _lets(statement: Mapping[str, Any]) -> bool:
    who = statement.get("Principal", {})
    services = (who.get("Service") or who.get("AWS") or ()) if isinstance(who, dict) else who
    actions = {one.lower() for one in _listed(statement.get("Action", ()))}
    may = not actions.isdisjoint({"sqs:sendmessage", "sqs:*", "*"})
    named = not {*_listed(services)}.isdisjoint({SENDER, "*"})
    return statement.get("Effect") == "Allow" and may and named


def _listed(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value
