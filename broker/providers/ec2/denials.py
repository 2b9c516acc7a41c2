"""What EC2 forbids it tells in code; read where that is allowed, else left out."""

import json
from collections.abc import Mapping
from typing import Any

from broker.providers.ec2.clients import Api
from broker.providers.ec2.errors import AwsError, NoAnswerError

CODED = "Encoded authorization failure message:"


def plain(api: Api, region: str, error: AwsError) -> AwsError:
    """The error with what was forbidden in words; as it is where it bears nothing in code."""
    said, coded, secret = error.message.partition(CODED)
    if not coded:
        return error
    try:
        reply = api.call(
            "sts", region, "decode_authorization_message", EncodedMessage=secret.strip()
        )
        told = _told(json.loads(reply["DecodedMessage"]))
    except (AwsError, NoAnswerError, KeyError, ValueError):
        told = said.strip()
    return AwsError(error.code, told, error.status)


def _told(found: Mapping[str, Any]) -> str:
    """Raises KeyError where AWS tells it in another way."""
    asked = found["context"]
    how = "a policy denies" if found["explicitDeny"] else "no policy allows"
    return f"{how} {asked['action']} on {asked['resource']} to {asked['principal']['arn']}"
