"""Where machines stand in a region: its VPC, a subnet in each zone, the group that lets SSH in."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

from broker.providers.ec2 import naming
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.settings import Ec2Settings

WORLD = "0.0.0.0/0"
LONGEST_DESCRIPTION = 255
Rule = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Subnet:
    """One subnet; zones by their ids, which mean the same place in every account."""

    id: str
    zone: str


@dataclass(frozen=True, slots=True)
class Network:
    """What a launch in a region needs to know."""

    vpc: str
    groups: tuple[str, ...]
    subnets: tuple[Subnet, ...]

    def in_zones(self, zones: tuple[str, ...]) -> tuple[Subnet, ...]:
        """One for each of these zones that has any, in their order; of all zones if none is named.

        Raises AwsError where there is none.
        """
        by_zone = {subnet.zone: subnet for subnet in reversed(self.subnets)}
        found = tuple(by_zone[zone] for zone in zones or sorted(by_zone) if zone in by_zone)
        if not found:
            where = ", ".join(zones) or "any zone"
            raise AwsError("Unsupported", f"{self.vpc} has no subnet in {where}")
        return found


class Zones:
    """Ids of zones by their names, which differ from account to account; each region asked once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._ids: dict[str, dict[str, str]] = {}

    def id(self, region: str, zone: str) -> str:
        """Of a name or an id. Raises NoAnswerError."""
        if "-az" in zone or not zone:
            return zone
        if region not in self._ids:
            try:
                reply = self._api.call("ec2", region, "describe_availability_zones")
            except AwsError as error:
                raise NoAnswerError(f"zones of {region}: {error}") from error
            listed = reply["AvailabilityZones"]
            self._ids[region] = {one["ZoneName"]: one["ZoneId"] for one in listed}
        return self._ids[region].get(zone, zone)


class Vpcs:
    """What the account has in a region, nothing being made; may be asked from any thread."""

    def __init__(self, api: Api, settings: Ec2Settings) -> None:
        self._api = api
        self._settings = settings

    def vpc(self, region: str) -> Mapping[str, Any]:
        """The one that is named, else the default one. Raises AwsError, NoAnswerError."""
        named = self._settings.vpcs.get(region)
        which: dict[str, Any] = (
            {"VpcIds": [named]}
            if named
            else {"Filters": [{"Name": "is-default", "Values": ["true"]}]}
        )
        found = list(pages(self._api, region, "describe_vpcs", key="Vpcs", **which))
        if not found:
            raise AwsError(
                "InsufficientSetup",
                f"{region} has no default VPC: set aws.vpcs, or `aws ec2 create-default-vpc`",
            )
        vpc: Mapping[str, Any] = found[0]
        return vpc

    def subnets(self, region: str, vpc: str) -> tuple[Subnet, ...]:
        """Those that are named, else all of the VPC. Raises AwsError, NoAnswerError."""
        named = self._settings.subnets.get(region)
        which: dict[str, Any] = (
            {"SubnetIds": list(named)}
            if named
            else {"Filters": [{"Name": "vpc-id", "Values": [vpc]}]}
        )
        found = list(pages(self._api, region, "describe_subnets", key="Subnets", **which))
        # Of several in a zone the one with the most free addresses goes first.
        found.sort(key=lambda subnet: -int(subnet.get("AvailableIpAddressCount", 0)))
        return tuple(Subnet(subnet["SubnetId"], subnet["AvailabilityZoneId"]) for subnet in found)


class Networks:
    """Found or made at the first launch in a region; may be asked from any thread.

    What does not depend on each other is asked in `beside`, where nothing waits for another task.
    """

    def __init__(
        self, api: Api, site: naming.Site, settings: Ec2Settings, *, beside: Executor
    ) -> None:
        self._api = api
        self._site = site
        self._settings = settings
        self._vpcs = Vpcs(api, settings)
        self._beside = beside
        self._kept: dict[str, Network] = {}
        self._locks: dict[str, threading.Lock] = {}

    def find(self, region: str) -> Network:
        """Raises AwsError, NoAnswerError."""
        with self._lock(region):
            if region not in self._kept:
                self._kept[region] = self._look_up(region)
            return self._kept[region]

    def opened(self, region: str, ports: tuple[str, ...]) -> Network:
        """With these ports open to the world beside. Raises AwsError, NoAnswerError."""
        found = self.find(region)
        if not ports:
            return found
        with self._lock(region):
            group = self._ports_group(region, found.vpc, ports)
        return replace(found, groups=(*found.groups, group))

    def open(self, region: str, machine: str, ports: tuple[str, ...]) -> None:
        """A machine that is there has these ports open, and no others. Raises AwsError,
        NoAnswerError."""
        groups = list(self.opened(region, ports).groups)
        self._api.call(
            "ec2", region, "modify_instance_attribute", InstanceId=machine, Groups=groups
        )

    def forget(self, region: str) -> None:
        """What was known of it is stale."""
        with self._lock(region):
            self._kept.pop(region, None)

    def _lock(self, region: str) -> threading.Lock:
        """One that does not answer keeps no other waiting."""
        return self._locks.setdefault(region, threading.Lock())

    def _look_up(self, region: str) -> Network:
        own = self._settings.security_groups.get(region)
        known = None if own else self._beside.submit(self._known_groups, region, self._ssh_group)
        vpc = self._vpcs.vpc(region)
        id = str(vpc["VpcId"])
        subnets = self._beside.submit(self._vpcs.subnets, region, id)
        groups = own or (self._group(region, vpc, known.result() if known else {}),)
        return Network(id, tuple(groups), subnets.result())

    # --- the security group

    @property
    def _ssh_group(self) -> str:
        return naming.name(self._site, "node", f"ssh-{self._site.id}")

    def _group(self, region: str, vpc: Mapping[str, Any], known: Mapping[str, str]) -> str:
        """SSH from the gateway alone, and everything between machines of the site."""
        id, tags = str(vpc["VpcId"]), naming.common(self._site, "node", "ssh")
        about = "SSH from the gateway; everything between its nodes"
        group = known.get(id) or self._made_group(
            region, id, self._ssh_group, tags=tags, about=about
        )
        sources = self._settings.ssh_from or (str(vpc["CidrBlock"]),)
        port = self._settings.ssh_port
        ssh = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}
        within = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
        self._allow(
            region, group, [{**ssh, "IpRanges": [{"CidrIp": one} for one in sources]}, within]
        )
        return group

    def _ports_group(self, region: str, vpc: str, ports: tuple[str, ...]) -> str:
        """These ports from anywhere; looked for each time, for what nothing uses is let go."""
        name = naming.ports_group(self._site, ports)
        tags = {**naming.common(self._site, naming.PORTS, "open"), "Name": name}
        about = f"Ports {', '.join(ports)}"[:LONGEST_DESCRIPTION]
        group = self._known_groups(region, name).get(vpc) or self._made_group(
            region, vpc, name, tags=tags, about=about
        )
        self._allow(region, group, list(map(_open_port, ports)))
        return group

    def _made_group(
        self, region: str, vpc: str, name: str, *, tags: naming.Tags, about: str
    ) -> str:
        """Found, where another one was quicker."""
        try:
            made = self._api.call(
                "ec2",
                region,
                "create_security_group",
                GroupName=name,
                Description=about,
                VpcId=vpc,
                TagSpecifications=[
                    {"ResourceType": "security-group", "Tags": naming.tag_list(tags)}
                ],
            )
        except AwsError as error:
            known = self._known_groups(region, name).get(vpc)
            if error.code != "InvalidGroup.Duplicate" or known is None:
                raise
            return known
        return str(made["GroupId"])

    def _known_groups(self, region: str, name: str) -> dict[str, str]:
        """Those of that name, by VPC."""
        wanted = [{"Name": "group-name", "Values": [name]}]
        found = pages(
            self._api, region, "describe_security_groups", key="SecurityGroups", Filters=wanted
        )
        return {str(group["VpcId"]): str(group["GroupId"]) for group in found}

    def _allow(self, region: str, group: str, rules: Sequence[Rule]) -> None:
        """Where one of them is there already EC2 takes none: then each by itself."""
        try:
            self._api.call(
                "ec2",
                region,
                "authorize_security_group_ingress",
                GroupId=group,
                IpPermissions=list(rules),
            )
        except AwsError as error:
            if error.code != "InvalidPermission.Duplicate":
                raise
            for rule in rules if len(rules) > 1 else ():
                self._allow(region, group, [rule])


def _open_port(port: str) -> Rule:
    """`80` or `9000-9010`."""
    first, _, last = port.partition("-")
    rule = {"IpProtocol": "tcp", "FromPort": int(first), "ToPort": int(last or first)}
    return {**rule, "IpRanges": [{"CidrIp": WORLD}]}
