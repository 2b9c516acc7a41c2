"""A small EC2 behind `Api`, in the test's own time: instances, tokens, refusals, lost replies."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

from broker.providers.ec2.errors import QUOTAS, AwsError, NoAnswerError
from broker.providers.refusals import Rule

REGIONS = ("us-east-1", "eu-west-1")
SHORT = {"us-east-1": "use1", "eu-west-1": "euw1"}
CODES = {
    "capacity": "InsufficientInstanceCapacity",
    "quota": "VcpuLimitExceeded",
    "auth": "UnauthorizedOperation",
    "throttled": "RequestLimitExceeded",
    "invalid": "Unsupported",
}


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S GMT")


@dataclass
class Instance:
    id: str
    region: str
    subnet: str
    params: dict[str, Any]
    index: int
    at: int
    boots_at: int
    hidden_until: float
    spot: bool
    ended_at: int | None = None
    stopped_at: int | None = None
    reason: str = ""

    def zone(self) -> str:
        return self.subnet.removeprefix("subnet-")

    def state(self, now: int) -> str:
        if self.ended_at is not None:
            return "terminated"
        if self.stopped_at is not None:
            return "stopped"
        return "running" if now >= self.boots_at else "pending"

    def told(self, now: int, *, steady: bool) -> dict[str, Any]:
        """With `steady` LaunchTime stays what it was, as in EC2; else it says when it runs."""
        state, letter = self.state(now), "abcdef"[int(self.zone()[-1]) - 1]
        up = self.ended_at is None or self.ended_at > self.boots_at
        specs = self.params.get("TagSpecifications", [])
        found = {
            "InstanceId": self.id,
            "InstanceType": self.params["InstanceType"],
            "AmiLaunchIndex": self.index,
            "State": {"Name": state},
            "LaunchTime": datetime.fromtimestamp(
                self.at
                if steady or state == "pending"
                else (self.boots_at if up else self.ended_at or 0),
                UTC,
            ),
            "Placement": {
                "AvailabilityZone": f"{self.region}{letter}",
                **self.params.get("Placement", {}),
            },
            "SubnetId": self.subnet,
            "Tags": next((s["Tags"] for s in specs if s["ResourceType"] == "instance"), []),
            "PrivateIpAddress": "10.0.0.7",
        }
        if state == "running":
            found["PublicIpAddress"] = "198.51.100.7"
        if self.spot:
            found["InstanceLifecycle"] = "spot"
        if self.stopped_at is not None:
            found["StateTransitionReason"] = f"User initiated ({moment(self.stopped_at)})"
        if self.ended_at is not None:
            found["StateReason"] = {"Code": self.reason}
            if self.reason.startswith("Client."):
                found["StateTransitionReason"] = f"User initiated ({moment(self.ended_at)})"
        return found


@dataclass
class StubEc2:
    """Answers what the provider asks; `calls` are all that were made."""

    now: Callable[[], int]
    boot: int = 30
    steady: bool = False
    rules: list[tuple[Rule, int | None, str]] = field(default_factory=list)
    rooms: dict[str, int] = field(default_factory=dict)
    instances: list[Instance] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    lost_replies: int = 0
    """So many launches work and are not answered."""
    hidden: float = 0
    """Seconds until a new instance is described."""
    tokens: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    allowed: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """What each group lets in."""
    images: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    """By id, what is told of it; None where it is not known."""
    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    zones: int = 3
    denied: set[str] = field(default_factory=set)
    forbidden: set[str] = field(default_factory=set)
    """IAM's names of actions that its simulation says no to."""
    quotas: dict[str, float] = field(default_factory=dict)
    then: str = ""
    """After a lost reply launches are refused for this."""
    shut: dict[str, str] = field(default_factory=dict)
    """Regions that say no to everything, with the code."""
    silent: set[str] = field(default_factory=set)
    """Regions and operations that do not answer."""
    left: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """What machines left behind, by the key of its describe call, with its region."""

    def refuse(self, rule: Rule, code: str = "") -> None:
        self.rules.append((rule, rule.times, code or CODES[rule.refusal]))

    def interrupt(self, instance: str) -> None:
        found = next(one for one in self.instances if one.id == instance)
        found.ended_at, found.reason = self.now(), "Server.SpotInstanceTermination"

    def count(self, operation: str) -> int:
        return sum(name == operation for name, _ in self.calls)

    # --- Api

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        self.calls.append((operation, params))
        if {region, operation} & self.silent:
            raise NoAnswerError(f"{operation} in {region}: no answer")
        if region in self.shut:
            raise AwsError(self.shut[region], "this region is not for you", 401)
        if operation in self.denied:
            raise AwsError("UnauthorizedOperation", "you are not authorized", 403)
        if params.get("DryRun"):
            raise AwsError("DryRunOperation", "it would have succeeded", 412)
        found: dict[str, Any] = getattr(self, f"_{operation}")(region, params)
        return found

    def _get_parameter(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        if not params["Name"].startswith("/aws/service/"):
            raise AwsError("ParameterNotFound", f"no {params['Name']}")
        return {"Parameter": {"Value": f"ami-{params['Name'].split('/')[3][:8]}"}}

    def _describe_images(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        (id,) = params["ImageIds"]
        usual = {"Name": "al2023-ami", "RootDeviceName": "/dev/xvda"}
        return {"Images": [one for one in [self.images.get(id, usual)] if one is not None]}

    def _describe_vpcs(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"Vpcs": [{"VpcId": "vpc-1", "CidrBlock": "172.31.0.0/16"}]}

    def _describe_subnets(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        zones = (f"{SHORT[region]}-az{number}" for number in range(1, self.zones + 1))
        return {
            "Subnets": [
                {"SubnetId": f"subnet-{zone}", "AvailabilityZoneId": zone} for zone in zones
            ]
        }

    def _describe_availability_zones(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "AvailabilityZones": [
                {"ZoneName": f"{region}{letter}", "ZoneId": f"{SHORT[region]}-az{number}"}
                for number, letter in enumerate("abc", 1)
            ]
        }

    def _describe_spot_price_history(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        """What machines were bought at is all there ever was."""
        return {"SpotPriceHistory": []}

    def _describe_security_groups(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        if params["Filters"][0]["Name"].startswith("tag:"):
            made = (key.split(" ") for key in self.groups)
            there = (
                (name, self.groups[f"{where} {name}"]) for where, name in made if where == region
            )
            return {"SecurityGroups": [{"GroupId": id, "GroupName": name} for name, id in there]}
        name = params["Filters"][0]["Values"][0]
        known = self.groups.get(f"{region} {name}")
        return {"SecurityGroups": [{"GroupId": known, "VpcId": "vpc-1"}] if known else []}

    def _create_security_group(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        made = self.groups[f"{region} {params['GroupName']}"] = f"sg-{len(self.groups)}"
        return {"GroupId": made}

    def _authorize_security_group_ingress(
        self, region: str, params: dict[str, Any]
    ) -> dict[str, Any]:
        rules, known = params["IpPermissions"], self.allowed.setdefault(params["GroupId"], [])
        if any(rule in known for rule in rules):
            raise AwsError("InvalidPermission.Duplicate", "one of them is there already")
        known += rules
        return {}

    def _modify_instance_attribute(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _create_placement_group(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _create_launch_template(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        self.templates[params["LaunchTemplateName"]] = params["LaunchTemplateData"]
        return {}

    def _delete_launch_template(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        self.templates.pop(params["LaunchTemplateName"])
        return {}

    def _run_instances(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        spot = "InstanceMarketOptions" in params
        subnet = params["NetworkInterfaces"][0]["SubnetId"]
        return self._once(
            params["ClientToken"],
            lambda: self._buy(region, params, [subnet], count=params["MaxCount"], spot=spot),
        )

    def _create_fleet(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        wanted = params["TargetCapacitySpecification"]
        config = params["LaunchTemplateConfigs"][0]
        data = dict(self.templates[config["LaunchTemplateSpecification"]["LaunchTemplateName"]])
        data["InstanceType"] = config["Overrides"][0]["InstanceType"]
        subnets = [override["SubnetId"] for override in config["Overrides"]]
        spot = wanted["DefaultTargetCapacityType"] == "spot"

        def buy() -> dict[str, Any]:
            try:
                count = wanted["TotalTargetCapacity"]
                made = self._buy(region, data, subnets, count=count, spot=spot)
            except AwsError as error:
                told = {"ErrorCode": error.code, "ErrorMessage": error.message}
                return {"Instances": [], "Errors": [told]}
            return {"Instances": [{"InstanceIds": [i["InstanceId"] for i in made["Instances"]]}]}

        return self._once(params["ClientToken"], buy)

    def _once(self, token: str, act: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if self.then and not self.lost_replies:
            raise AwsError(self.then, "not now", 400)
        if token not in self.tokens:
            made = act()
            if made.get("Instances"):
                self.tokens[token] = made
            else:
                return made
            if self.lost_replies:
                self.lost_replies -= 1
                raise NoAnswerError("the reply was lost")
        return self.tokens[token]

    def _buy(
        self, region: str, params: dict[str, Any], subnets: list[str], *, count: int, spot: bool
    ) -> dict[str, Any]:
        kind, now = params["InstanceType"], self.now()
        subnet = self._open(region, kind, subnets, spot=spot)
        room = self._must_have_room(kind, params.get("MinCount", count))
        made = [
            Instance(
                f"i-{len(self.instances) + n:017x}",
                region,
                subnet,
                params,
                index=n,
                at=now,
                boots_at=now + self.boot,
                hidden_until=now + self.hidden,
                spot=spot,
            )
            for n in range(min(count, room))
        ]
        self.instances += made
        return {"Instances": [one.told(now, steady=self.steady) for one in made]}

    def _must_have_room(self, kind: str, count: int) -> int:
        taken = (i for i in self.instances if i.ended_at is None and i.stopped_at is None)
        there = sum(i.params["InstanceType"] == kind for i in taken)
        room = self.rooms.get(kind, 10_000) - there
        if room < count:
            raise AwsError("InsufficientInstanceCapacity", "no room", 500)
        return room

    def _open(self, region: str, kind: str, subnets: list[str], *, spot: bool) -> str:
        code = ""
        met: set[int] = set()
        for subnet in subnets:
            number = self._against(region, kind, subnet, spot=spot)
            if number is None:
                self._strike(met)
                return subnet
            met.add(number)
            code = code or self.rules[number][2]
        self._strike(met)
        raise AwsError(code, "current vCPU limit of 32 allows", 500 if "Insuff" in code else 400)

    def _strike(self, met: set[int]) -> None:
        for number in met:
            rule, left, code = self.rules[number]
            self.rules[number] = (rule, None if left is None else left - 1, code)

    def _against(self, region: str, kind: str, subnet: str, *, spot: bool) -> int | None:
        for number, (rule, left, _) in enumerate(self.rules):
            asked = (
                (rule.instance_type, kind),
                (rule.region, region),
                (rule.zone, subnet.removeprefix("subnet-")),
                (rule.market, "spot" if spot else "on-demand"),
            )
            if left != 0 and all(wanted in {None, given} for wanted, given in asked):
                return number
        return None

    def _describe_instances(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        now = self.now()
        seen = [i for i in self.instances if i.region == region and now >= i.hidden_until]
        if "InstanceIds" in params:
            missing = set(params["InstanceIds"]) - {one.id for one in seen}
            if missing:
                raise AwsError("InvalidInstanceID.NotFound", str(missing))
            seen = [one for one in seen if one.id in params["InstanceIds"]]
        for wanted in params.get("Filters", ()):
            if wanted["Name"] == "placement-group-name":
                seen = [
                    one
                    for one in seen
                    if one.params.get("Placement", {}).get("GroupName") in wanted["Values"]
                ]
            elif wanted["Name"] == "instance-state-name":
                seen = [one for one in seen if one.state(now) in wanted["Values"]]
        told = [one.told(now, steady=self.steady) for one in seen]
        return {"Reservations": [{"Instances": told}] if told else []}

    def _get_caller_identity(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        date = formatdate(self.now(), usegmt=True)
        return {
            "Arn": "arn:aws:iam::123456789012:user/gateway",
            "Account": "123456789012",
            "ResponseMetadata": {"HTTPHeaders": {"date": date}},
        }

    def _list_service_quotas(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        codes = {code for group in QUOTAS.values() for code in group.values()}
        values = dict.fromkeys(codes, 32.0) | self.quotas
        return {"Quotas": [{"QuotaCode": code, "Value": value} for code, value in values.items()]}

    def _get_products(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"PriceList": []}

    def _simulate_principal_policy(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        told = dict.fromkeys(params["ActionNames"], "allowed")
        told |= {name: "implicitDeny" for name in params["ActionNames"] if name in self.forbidden}
        results = [{"EvalActionName": name, "EvalDecision": one} for name, one in told.items()]
        return {"EvaluationResults": results}

    def _create_tags(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _describe_regions(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"Regions": [{"RegionName": name} for name in REGIONS]}

    def _describe_capacity_reservations(
        self, region: str, params: dict[str, Any]
    ) -> dict[str, Any]:
        return self._left("CapacityReservations", region)

    def _left(self, key: str, region: str) -> dict[str, Any]:
        return {key: [one for where, one in self.left.get(key, []) if where == region]}

    def _describe_volumes(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._left("Volumes", region)

    def _describe_addresses(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._left("Addresses", region)

    def _describe_network_interfaces(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._left("NetworkInterfaces", region)

    def _describe_launch_templates(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._left("LaunchTemplates", region)

    def _describe_placement_groups(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._left("PlacementGroups", region)

    def _delete_volume(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._drop("Volumes", params)

    def _release_address(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        return self._drop("Addresses", params)

    def _delete_placement_group(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AwsError("InvalidPlacementGroup.InUse", "it is in use")

    def _delete_security_group(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        self.groups = {key: id for key, id in self.groups.items() if id != params["GroupId"]}
        return {}

    def _drop(self, key: str, params: dict[str, Any]) -> dict[str, Any]:
        name, value = next(iter(params.items()))
        self.left[key] = [one for one in self.left[key] if one[1].get(name) != value]
        return {}

    def _terminate_instances(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        for one in self.instances:
            if one.id in params["InstanceIds"] and one.ended_at is None:
                one.ended_at, one.reason = self.now(), "Client.UserInitiatedShutdown"
        return {}

    def _stop_instances(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        for one in self.instances:
            if one.id in params["InstanceIds"] and one.stopped_at is None:
                one.stopped_at = self.now()
        return {}

    def _start_instances(self, region: str, params: dict[str, Any]) -> dict[str, Any]:
        for one in self.instances:
            if one.id in params["InstanceIds"] and one.stopped_at is not None:
                self._must_have_room(one.params["InstanceType"], 1)
                one.stopped_at, one.at = None, self.now()
                one.boots_at = self.now() + self.boot
        return {}
