"""What machines leave behind: volumes, addresses, cards, templates, groups of our own site."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from broker.model.leftover import Leftover
from broker.providers.ec2 import naming
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError

PATIENCE = 900.0
"""Seconds for which a thing has to be seen unused before it is let go."""


@dataclass(frozen=True, slots=True)
class Users:
    """The call that lists who uses a thing, its key, the filter by the thing's id, and others."""

    call: str
    key: str
    by: str
    more: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def filters(self, id: str) -> list[dict[str, object]]:
        asked = {self.by: [id], **self.more}
        return [{"Name": name, "Values": [*values]} for name, values in asked.items()]


@dataclass(frozen=True, slots=True)
class Kind:
    """How things of a kind are listed, told to be unused, and let go."""

    name: str
    list: str
    key: str
    id: str
    delete: str
    argument: str
    unused: Callable[[Mapping[str, Any]], bool] = lambda _thing: True
    users: Users | None = None
    """Where the thing does not tell itself."""


NOT_OVER = {
    "instance-state-name": ("pending", "running", "shutting-down", "stopping", "stopped"),
}
"""States of machines that use things still."""
KINDS = (
    Kind(
        "volume",
        "describe_volumes",
        "Volumes",
        "VolumeId",
        "delete_volume",
        "VolumeId",
        lambda volume: (
            volume.get("State") == "available" and naming.VOLUME not in naming.tags_of(volume)
        ),
    ),
    Kind(
        "address",
        "describe_addresses",
        "Addresses",
        "AllocationId",
        "release_address",
        "AllocationId",
        lambda address: not address.get("AssociationId") and not address.get("InstanceId"),
    ),
    Kind(
        "network interface",
        "describe_network_interfaces",
        "NetworkInterfaces",
        "NetworkInterfaceId",
        "delete_network_interface",
        "NetworkInterfaceId",
        lambda card: card.get("Status") == "available",
    ),
    Kind(
        "launch template",
        "describe_launch_templates",
        "LaunchTemplates",
        "LaunchTemplateName",
        "delete_launch_template",
        "LaunchTemplateName",
    ),
    Kind(
        "placement group",
        "describe_placement_groups",
        "PlacementGroups",
        "GroupName",
        "delete_placement_group",
        "GroupName",
        lambda group: group.get("State", "available") == "available",
        users=Users("describe_instances", "Reservations", "placement-group-name", NOT_OVER),
    ),
    Kind(
        "security group",
        "describe_security_groups",
        "SecurityGroups",
        "GroupId",
        "delete_security_group",
        "GroupId",
        lambda group: f"-{naming.PORTS}-" in group.get("GroupName", ""),
        users=Users("describe_network_interfaces", "NetworkInterfaces", "group-id"),
    ),
)


BY_NAME = {kind.name: kind for kind in KINDS}


@dataclass(slots=True)
class Leftovers:
    """Found region by region; only things that bear our own site's id are looked at."""

    api: Api
    site: naming.Site
    clock: Callable[[], float]
    _since: dict[Leftover, float] = field(default_factory=dict)

    def found(self, regions: Iterable[str]) -> list[Leftover]:
        """All that is unused now. Raises NoAnswerError."""
        return [one for region in regions for one in self._in(region)]

    def any_in(self, region: str) -> bool:
        """Whether anything is unused there; False where we may not look."""
        try:
            return any(True for _ in self._in(region))
        except NoAnswerError:
            return False

    def tidy(self, regions: Iterable[str]) -> list[Leftover]:
        """Lets go of what has been unused for a while; those that went.

        A region that does not answer is left for later, and does not keep others waiting.
        """
        now = self.clock()
        for region in regions:
            with suppress(NoAnswerError):
                found = self.found([region])
                others = {one: at for one, at in self._since.items() if one.region != region}
                self._since = others | {one: self._since.get(one, now) for one in found}
        return self.let_go([one for one, at in self._since.items() if now - at >= PATIENCE])

    def let_go(self, things: Iterable[Leftover]) -> list[Leftover]:
        """Those that are gone; one that is used after all stays."""
        return [one for one in things if self._let_go(one)]

    def _in(self, region: str) -> Iterator[Leftover]:
        return chain.from_iterable(self._of(region, kind) for kind in KINDS)

    def _of(self, region: str, kind: Kind) -> Iterator[Leftover]:
        mine = [{"Name": f"tag:{naming.SITE}", "Values": [self.site.id]}]
        try:
            listed = list(pages(self.api, region, kind.list, key=kind.key, Filters=mine))
        except AwsError as error:
            raise NoAnswerError(f"{kind.name}s in {region}: {error}") from error
        for thing in listed:
            if kind.unused(thing) and thing.get(kind.id) and not self._used(region, kind, thing):
                yield Leftover(kind.name, str(thing[kind.id]), region)

    def _used(self, region: str, kind: Kind, thing: Mapping[str, Any]) -> bool:
        if kind.users is None:
            return False
        users, which = kind.users, kind.users.filters(str(thing[kind.id]))
        found = pages(self.api, region, users.call, key=users.key, Filters=which)
        try:
            return any(True for _ in found)
        except AwsError as error:
            raise NoAnswerError(f"users of {thing[kind.id]} in {region}: {error}") from error

    def _let_go(self, one: Leftover) -> bool:
        kind = BY_NAME[one.kind]
        try:
            self.api.call("ec2", one.region, kind.delete, **{kind.argument: one.id})
        except AwsError as error:
            if not error.code.endswith((".NotFound", ".Unknown", "NotFoundException")):
                return False
        except NoAnswerError:
            return False
        self._since.pop(one, None)
        return True
