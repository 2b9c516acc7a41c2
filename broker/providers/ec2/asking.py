"""Calls that change something in EC2, made until it is known what came of them."""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from broker.model.errors import Refusal
from broker.providers.ec2 import denials, errors, naming
from broker.providers.ec2.clients import Api
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.requests import Call

ASKED = 4
"""How often a call whose outcome is not known is made again, with the same client token."""
THROTTLED = 6
"""How often one that was throttled is."""
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 8.0


class Asking:
    """May be asked from any thread; `pause` waits so many seconds."""

    def __init__(self, api: Api, site: naming.Site, pause: Callable[[float], None]) -> None:
        self._api = api
        self._site = site
        self._pause = pause

    def made(self, call: Call) -> Iterator[dict[str, Any]]:
        """The instances that the call gave, as far as they are described."""
        if call.group:
            tags = naming.tag_list(naming.common(self._site, "gang", call.group))
            self._quietly(
                call.region,
                "create_placement_group",
                "InvalidPlacementGroup.Duplicate",
                GroupName=call.group,
                Strategy="cluster",
                TagSpecifications=[{"ResourceType": "placement-group", "Tags": tags}],
            )
        if call.template is None:
            yield from self.ask(call.region, call.operation, call.params)["Instances"]
            return
        taken = "InvalidLaunchTemplateName.AlreadyExistsException"
        self._quietly(call.region, "create_launch_template", taken, **call.template)
        try:
            reply = self.ask(call.region, call.operation, call.params)
        except AwsError:
            self._drop_template(call)
            raise
        self._drop_template(call)
        yield from self._of_fleet(reply, call)

    def _drop_template(self, call: Call) -> None:
        """One that stays for want of an answer is found by the sweep."""
        if call.template is None:
            return
        with contextlib.suppress(AwsError, NoAnswerError):
            name = call.template["LaunchTemplateName"]
            self._api.call("ec2", call.region, "delete_launch_template", LaunchTemplateName=name)

    def _of_fleet(self, reply: dict[str, Any], call: Call) -> Iterator[dict[str, Any]]:
        """A fleet tells ids alone, or why there are none."""
        ids = [id for one in reply.get("Instances") or () for id in one["InstanceIds"]]
        if not ids:
            raise denials.plain(self._api, call.region, _of_pools(reply.get("Errors") or ()))
        try:
            found = self._api.call("ec2", call.region, "describe_instances", InstanceIds=ids)
        except (AwsError, NoAnswerError):  # not visible yet: what is known must do
            found = {"Reservations": []}
        seen = [one for group in found["Reservations"] for one in group["Instances"]]
        yield from seen
        known = {one["InstanceId"] for one in seen}
        yield from ({"InstanceId": id} for id in ids if id not in known)

    def ask(self, region: str, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """The same again while throttled, or while nobody knows: EC2 knows it by its token.

        Raises AwsError; NoAnswerError too where one try may have worked and those after it were not
        let in.
        """
        tries, pause, open_question = 0, FIRST_PAUSE, False
        while True:
            tries += 1
            try:
                return self._api.call("ec2", region, operation, **params)
            except AwsError as error:
                again = error.code in errors.THROTTLES and tries < THROTTLED
                if not again and open_question and error.code in errors.NOT_LET_IN:
                    raise NoAnswerError(f"{operation} in {region}: {error}") from error
                if not again:
                    raise denials.plain(self._api, region, error) from error
            except NoAnswerError:
                open_question = True
                if tries >= ASKED:
                    raise
            self._pause(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _quietly(self, region: str, operation: str, fine: str, **params: Any) -> None:
        try:
            self.ask(region, operation, params)
        except AwsError as error:
            if error.code != fine:
                raise


def _of_pools(told: Sequence[dict[str, Any]]) -> AwsError:
    """Why a fleet gave nothing: of several reasons the one that rules out most."""
    found = [AwsError(str(one.get("ErrorCode")), str(one.get("ErrorMessage", ""))) for one in told]
    kinds = list(Refusal)
    worst = max(found, key=lambda e: kinds.index(errors.meaning(e.code)[0]), default=None)
    return worst or AwsError("UnfulfillableCapacity", "the fleet gave nothing, and told no reason")
