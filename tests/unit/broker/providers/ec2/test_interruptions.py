"""Notices of interruption out of a queue: which are told, which are dropped."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.interruptions import AT_ONCE, WARNING, Interruptions, Notice

URL = "https://sqs/skypurza-test"


def event(instance: str, kind: str = WARNING) -> str:
    detail = {"instance-id": instance, "instance-action": "terminate"}
    return json.dumps({"detail-type": kind, "time": "2026-11-29T21:00:00Z", "detail": detail})


@dataclass
class Queue:
    bodies: dict[str, str] = field(default_factory=dict)
    shut: bool = False

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        assert (service, region, params["QueueUrl"]) == ("sqs", "us-east-1", URL)
        if self.shut:
            raise AwsError("AccessDenied", "no", 403)
        if operation == "delete_message":
            del self.bodies[params["ReceiptHandle"]]
            return {}
        some = list(self.bodies.items())[: params["MaxNumberOfMessages"]]
        return {"Messages": [{"ReceiptHandle": r, "Body": body} for r, body in some]}


@pytest.mark.parametrize(
    "body",
    [
        event("i-9", "EC2 Instance Rebalance Recommendation"),
        "no json",
        "[]",
        '{"detail-type": 7}',
        json.dumps({"detail-type": WARNING, "detail": {}}),
    ],
)
def test_what_tells_of_something_else_is_dropped(body: str) -> None:
    queue = Queue({"r1": body, "r2": event("i-1")})
    read = list(Interruptions(queue, {"us-east-1": URL}).read())
    assert read == [Notice("i-1", "2026-11-29T21:00:00Z", "us-east-1", "r2")]
    assert list(queue.bodies) == ["r2"]  # it stays until something was done about it


def test_a_long_queue_is_read_to_its_end_as_messages_are_done_with() -> None:
    queue = Queue({f"r{n}": event(f"i-{n}") for n in range(2 * AT_ONCE + 3)})
    known = Interruptions(queue, {"us-east-1": URL})
    for notice in known.read():
        known.done(notice)
    assert queue.bodies == {}


def test_a_queue_that_may_not_be_read_says_whose_it_is() -> None:
    known = Interruptions(Queue(shut=True), {"us-east-1": URL})
    with pytest.raises(NoAnswerError, match="interruption queue of us-east-1: AccessDenied"):
        list(known.read())
