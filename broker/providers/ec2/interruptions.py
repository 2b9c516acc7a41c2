"""Notices of interruption by EventBridge and SQS, for machines whose agent does not tell them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.providers.ec2.clients import Api, Reply
from broker.providers.ec2.errors import AwsError, NoAnswerError

WARNING = "EC2 Spot Instance Interruption Warning"
AT_ONCE = 10
"""Messages that SQS gives at a time, at most."""
MOST_ROUNDS = 100
"""What is left then is read the next time."""


@dataclass(frozen=True, slots=True)
class Notice:
    """An instance that EC2 is about to take back; `receipt` lets the message be deleted."""

    instance: str
    when: str
    """When it was told, ISO 8601."""
    region: str
    receipt: str


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Queues by region. Messages about other things are deleted; those read come again."""

    api: Api
    queues: Mapping[str, str]

    def read(self) -> Iterator[Notice]:
        """What is there now. Raises NoAnswerError where a queue cannot be read."""
        for region, url in self.queues.items():
            for _ in range(MOST_ROUNDS):
                found = self._received(region, url)
                yield from (one for one in found if one.instance)
                for other in (one for one in found if not one.instance):
                    self.done(other)
                if len(found) < AT_ONCE:
                    break

    def done(self, notice: Notice) -> None:
        """Nothing is left to be done about it. Raises NoAnswerError."""
        url = self.queues[notice.region]
        self._call(notice.region, "delete_message", QueueUrl=url, ReceiptHandle=notice.receipt)

    def _received(self, region: str, url: str) -> list[Notice]:
        reply = self._call(region, "receive_message", QueueUrl=url, MaxNumberOfMessages=AT_ONCE)
        return [_read(told, region) for told in reply.get("Messages", ())]

    def _call(self, region: str, operation: str, **params: object) -> Reply:
        try:
            return self.api.call("sqs", region, operation, **params)
        except AwsError as error:
            raise NoAnswerError(f"interruption queue of {region}: {error}") from error


def _read(message: Mapping[str, str], region: str) -> Notice:
    """With no instance where it tells something else."""
    receipt = message["ReceiptHandle"]
    try:
        event = json.loads(message["Body"])
        warned = event["detail-type"] == WARNING
        instance = str(event["detail"]["instance-id"]) if warned else ""
        return Notice(instance, str(event.get("time", "")), region, receipt)
    except (ValueError, KeyError, TypeError):
        return Notice("", "", region, receipt)
