"""Where machines stand in a region: its VPC, a subnet in each zone, the group that lets SSH in."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from broker.providers.ec2 import naming
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.settings import Ec2Settings

WORLD = "0.0.0.0/0"
LONGEST_DESCRIPTION = 255


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


class Networks:
    """Found or made at the first launch in a region; may be asked from any thread."""

    def __init__(self, api: Api, site: naming.Site, settings: Ec2Settings) -> None:
        self._api = api
        self._site = site
        self._settings = settings
        self._kept: dict[str, Network] = {}
        self._lock = threading.Lock()

    def find(self, region: str) -> Network:
        """Raises AwsError, NoAnswerError."""
        with self._lock:
            if region not in self._kept:
                self._kept[region] = self._look_up(region)
            return self._kept[region]

    def opened(self, region: str, ports: tuple[str, ...]) -> Network:
        """With these ports open to the world beside. Raises AwsError, NoAnswerError."""
        found = self.find(region)
        if not ports:
            return found
        with self._lock:
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
        with self._lock:
            self._kept.pop(region, None)

    def look(self, region: str) -> tuple[str, tuple[Subnet, ...]]:
        """VPC and subnets as they are, nothing being made. Raises AwsError, NoAnswerError."""
        vpc = self._vpc(region)
        return str(vpc["VpcId"]), self._subnets(region, str(vpc["VpcId"]))

    def _look_up(self, region: str) -> Network:
        vpc = self._vpc(region)
        groups = self._settings.security_groups.get(region) or (self._group(region, vpc),)
        subnets = self._subnets(region, vpc["VpcId"])
        return Network(vpc["VpcId"], tuple(groups), subnets)

    def _vpc(self, region: str) -> Mapping[str, Any]:
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

    def _subnets(self, region: str, vpc: str) -> tuple[Subnet, ...]:
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

    # --- the security group

    def _group(self, region: str, vpc: Mapping[str, Any]) -> str:
        """SSH from the gateway alone, and everything between machines of the site."""
        name = naming.name(self._site, "node", f"ssh-{self._site.id}")
        tags = naming.common(self._site, "node", "ssh")
        about = "SSH from the gateway; everything between its nodes"
        group = self._named_group(region, str(vpc["VpcId"]), name, tags=tags, about=about)
        sources = self._settings.ssh_from or (str(vpc["CidrBlock"]),)
        port = self._settings.ssh_port
        ssh = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port}
        self._allow(region, group, {**ssh, "IpRanges": [{"CidrIp": one} for one in sources]})
        within = [{"GroupId": group}]
        self._allow(region, group, {"IpProtocol": "-1", "UserIdGroupPairs": within})
        return group

    def _ports_group(self, region: str, vpc: str, ports: tuple[str, ...]) -> str:
        """These ports from anywhere; looked for each time, for what nothing uses is let go."""
        name = naming.ports_group(self._site, ports)
        tags = {**naming.common(self._site, naming.PORTS, "open"), "Name": name}
        about = f"Ports {', '.join(ports)}"[:LONGEST_DESCRIPTION]
        group = self._named_group(region, vpc, name, tags=tags, about=about)
        for one in ports:
            first, _, last = one.partition("-")
            rule = {"IpProtocol": "tcp", "FromPort": int(first), "ToPort": int(last or first)}
            self._allow(region, group, {**rule, "IpRanges": [{"CidrIp": WORLD}]})
        return group

    def _named_group(
        self, region: str, vpc: str, name: str, *, tags: naming.Tags, about: str
    ) -> str:
        """The group of that name, made where there is none."""
        known = self._known_group(region, name, vpc)
        if known is not None:
            return known
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
            known = self._known_group(region, name, vpc)
            if error.code != "InvalidGroup.Duplicate" or known is None:
                raise
            return known
        return str(made["GroupId"])

    def _known_group(self, region: str, name: str, vpc: str) -> str | None:
        wanted = [
            {"Name": "group-name", "Values": [name]},
            {"Name": "vpc-id", "Values": [vpc]},
        ]
        found = pages(
            self._api, region, "describe_security_groups", key="SecurityGroups", Filters=wanted
        )
        return next((str(group["GroupId"]) for group in found), None)

    def _allow(self, region: str, group: str, rule: Mapping[str, Any]) -> None:
        try:
            self._api.call(
                "ec2",
                region,
                "authorize_security_group_ingress",
                GroupId=group,
                IpPermissions=[rule],
            )
        except AwsError as error:
            if error.code != "InvalidPermission.Duplicate":
                raise
