"""What EC2 forbids is told in words where we may read them, and never in code."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from broker.providers.ec2.asking import Asking
from broker.providers.ec2.denials import CODED
from broker.providers.ec2.errors import AwsError
from broker.providers.ec2.naming import Site
from broker.providers.ec2.requests import FLEET, Call

SAID = "You are not authorized to perform this operation."
DENIED = {
    "explicitDeny": False,
    "context": {
        "action": "ec2:RunInstances",
        "resource": "arn:aws:ec2:us-east-1::image/ami-1",
        "principal": {"arn": "arn:aws:iam::1:role/spz"},
    },
}
TOLD = "allows ec2:RunInstances on arn:aws:ec2:us-east-1::image/ami-1 to arn:aws:iam::1:role/spz"

FEW: dict[str, Any] = {"region": "us-east-1", "zones": (), "params": {}}
CALLS = (
    Call(operation="run_instances", **FEW),
    Call(operation=FLEET, template={"LaunchTemplateName": "t"}, **FEW),
)
"""A fleet tells its refusals in an answer that is none."""


@dataclass
class Forbidding:
    """Says no in code; `decoded` is what the code means, None where we may not read it."""

    decoded: dict[str, Any] | None

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        said = f"{SAID} {CODED} kI2-secret"
        if operation == "run_instances":
            raise AwsError("UnauthorizedOperation", said, 403)
        if operation == FLEET:
            return {"Errors": [{"ErrorCode": "UnauthorizedOperation", "ErrorMessage": said}]}
        if operation.endswith("_launch_template"):
            return {}
        if self.decoded is None or params != {"EncodedMessage": "kI2-secret"}:
            raise AwsError("AccessDenied", "nor that", 403)
        return {"DecodedMessage": json.dumps(self.decoded)}


@pytest.mark.parametrize(
    ("decoded", "told"),
    [
        (DENIED, f"no policy {TOLD}"),
        ({**DENIED, "explicitDeny": True}, f"a policy {TOLD.replace('allows', 'denies')}"),
        ({"other": 1}, SAID),
        (None, SAID),
    ],
)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_forbidden_is_told_in_words(
    decoded: dict[str, Any] | None, told: str, call: Call
) -> None:
    asking = Asking(Forbidding(decoded), Site("id", "skypurza", "test"), lambda _seconds: None)
    with pytest.raises(AwsError) as caught:
        list(asking.made(call))
    assert (caught.value.code, caught.value.message) == ("UnauthorizedOperation", told)
