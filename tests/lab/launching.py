"""RunInstances, CreateFleet, TerminateInstances and what shows instances, on top of moto's own."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Reservation
from moto.ec2.responses import EC2Response
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import filter_dict_attribute_mapping

from tests.lab.bill import beside
from tests.lab.box import Box
from tests.lab.faults import Fault
from tests.lab.fleet import Asked, Choice, Given, allocate
from tests.lab.instance import LabInstance
from tests.lab.machines import USER, Machine
from tests.lab.stock import Pool
from tests.lab.tokens import fingerprint
from tests.lab.wares import ON_DEMAND, SPOT

filter_dict_attribute_mapping["placement-group-name"] = "placement.group_name"
"""moto knows no such filter."""
BLOCK = "capacity-block"
USER_DATA_BYTES = 16 * 1024
FLEET_DEFAULTS = {ON_DEMAND: "lowest-price", SPOT: "lowest-price"}


class Launching(EC2Response):
    """`box` is set in a subclass made for one box."""

    box: Box
    RESPONSE_KEY_PATH_TO_TRANSFORMER: ClassVar[dict[str, Any]] = {
        path: change
        for path, change in EC2Response.RESPONSE_KEY_PATH_TO_TRANSFORMER.items()
        if not path.startswith("RunInstances.")
    }

    # --- RunInstances

    def run_instances(self) -> ActionResult:
        self.error_on_dryrun()
        key = (self.region, "RunInstances", self._get_param("ClientToken", ""))
        asked = fingerprint(self.params)
        reservation = self.box.tokens.recall(key, asked)
        if reservation is None:
            params = self._with_template(self.params)
            pool, count = self._find(params)
            reservation = self._launch(params, pool, count)
            self.box.tokens.remember(key, asked, reservation)
        return ActionResult(reservation)

    def _with_template(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What was asked, laid over its launch template."""
        named = params.get("LaunchTemplate")
        rest = {name: value for name, value in params.items() if name != "LaunchTemplate"}
        if not named:
            return rest
        template = self.ec2_backend._get_template_from_args(named)
        tags = template.data.get("TagSpecifications", []) + rest.get("TagSpecifications", [])
        own = dict(template.data)
        if "UserData" in own:
            own["UserData"] = str(own["UserData"])
        return {**own, **rest, "TagSpecifications": tags}

    def _find(self, params: Mapping[str, Any]) -> tuple[Pool, int]:
        """The first zone that has enough. Raises Fault."""
        least, most = int(params.get("MinCount", 1)), int(params.get("MaxCount", 1))
        market = _market(params)
        refused: Fault | None = None
        zones, kind = self._zones(params), str(params["InstanceType"])
        if reserved := self._reserved(params):
            pool = Pool(kind, self.region, zones[0], market)
            self.box.stock.reserved(reserved, pool, most, taken=self.box.machines.living())
            return pool, most
        self.box.weather.launch(Pool(kind, self.region, zones[0], market), least)
        for zone in zones:
            pool = Pool(kind, self.region, zone, market)
            try:
                self._check_price(pool, params)
                self.box.weather.zone(pool, least)
                return pool, self.box.stock.grant(pool, least, most, self.box.machines.living())
            except Fault as fault:
                better = refused is None or refused.code == "Unsupported"
                refused = fault if better else refused
        assert refused is not None
        raise refused

    def _reserved(self, params: Mapping[str, Any]) -> str:
        """The reservation that it names. Raises Fault where its market is not the right one."""
        asked = params.get("CapacityReservationSpecification") or {}
        id = str((asked.get("CapacityReservationTarget") or {}).get("CapacityReservationId", ""))
        found = self.box.stock.reservations.get(id)
        if found is not None and found.block != (_market_type(params) == BLOCK):
            raise Fault("InvalidParameterCombination", f"{id} wants market type {BLOCK}, or none")
        return id

    def _falls_into(self, params: Mapping[str, Any], pool: Pool) -> str:
        """The open reservation that a launch gets into which does not say that it wants none."""
        asked = params.get("CapacityReservationSpecification") or {}
        if asked.get("CapacityReservationPreference") == "none":
            return ""
        return self.box.stock.open_for(pool, self.box.machines.living())

    def _zones(self, params: Mapping[str, Any]) -> list[str]:
        """Ids of the zones that the request leaves open. Raises Fault."""
        kind = str(params.get("InstanceType"))
        if kind not in self.box.wares.shapes:
            raise Fault("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
        zone = self._zone_asked(params)
        if zone is not None:
            return [zone]
        known = {zone.zone_id for zone in self.ec2_backend.describe_availability_zones()}
        offered = self.box.wares.zones.get((kind, self.region), ())
        found = [zone for zone in offered if zone in known]
        if not found:
            raise Fault("Unsupported", instance_type=kind, zone=self.region)
        return found

    def _zone_asked(self, params: Mapping[str, Any]) -> str | None:
        placement = params.get("Placement") or {}
        nics = params.get("NetworkInterfaces") or [{}]
        subnet = params.get("SubnetId") or nics[0].get("SubnetId")
        if zone := placement.get("AvailabilityZoneId") or params.get("AvailabilityZoneId"):
            return str(zone)
        name = placement.get("AvailabilityZone") or params.get("AvailabilityZone")
        if subnet:
            name = self.ec2_backend.get_subnet(subnet).availability_zone
        return self._zone_id(name) if name else None

    def _zone_id(self, name: str) -> str:
        for zone in self.ec2_backend.describe_availability_zones():
            if zone.name == name:
                return str(zone.zone_id)
        raise Fault("InvalidParameterValue", f"Invalid availability zone: [{name}]")

    def _zone_name(self, zone_id: str) -> str:
        for zone in self.ec2_backend.describe_availability_zones():
            if zone.zone_id == zone_id:
                return str(zone.name)
        raise Fault("InvalidParameterValue", f"Invalid availability zone ID: [{zone_id}]")

    def _price(self, pool: Pool) -> int:
        price = self.box.wares.price(
            pool.instance_type, pool.market, region=pool.region, zone=pool.zone
        )
        if price is None:
            raise Fault("Unsupported", instance_type=pool.instance_type, zone=pool.zone)
        return price

    def _check_price(self, pool: Pool, params: Mapping[str, Any]) -> None:
        options = (params.get("InstanceMarketOptions") or {}).get("SpotOptions") or {}
        most = options.get("MaxPrice") or params.get("MaxPrice")
        if most and self._price(pool) > float(most) * 1_000_000:
            raise Fault("SpotMaxPriceTooLow")

    def _launch(self, params: Mapping[str, Any], pool: Pool, count: int) -> Reservation:
        """So many machines, made by moto with what it knows, and put under the box's rule."""
        if len(base64.b64decode(params.get("UserData") or "")) > USER_DATA_BYTES:
            raise Fault("InvalidParameterValue", "User data is limited to 16384 bytes")
        placement = dict(params.get("Placement") or {})
        group = placement.get("GroupName", "")
        if group and (self.region, group) not in self.box.groups:
            raise Fault("InvalidPlacementGroup.Unknown", name=group)
        if not params.get("SubnetId"):
            placement["AvailabilityZone"] = self._zone_name(pool.zone)
        asked = _with_subnet(params)
        self.params = {**asked, "MinCount": count, "MaxCount": count, "Placement": placement}
        reservation = InstanceResponse.run_instances(self).result
        for instance in reservation.instances:
            instance.placement.group_name = group
            instance.placement.availability_zone_id = pool.zone
            for nic in instance.nics.values():
                nic.delete_on_termination = True
            self._adopt(instance, pool, params)
        return reservation

    def _adopt(self, instance: LabInstance, pool: Pool, params: Mapping[str, Any]) -> None:
        box, number, now = self.box, self.box.machines.number(), self.box.now()
        reservation = self._reserved(params) or self._falls_into(params, pool)
        machine = Machine(
            id=instance.id,
            number=number,
            region=pool.region,
            zone=pool.zone,
            instance_type=pool.instance_type,
            market=pool.market,
            micro_usd_per_hour=0 if reservation else self._price(pool),
            reservation=reservation,
            address=box.machines.hosts.address(number),
            launched_at=now,
            boots_at=now + box.delays.of("boot"),
            visible_at=now + box.delays.of("visible"),
            user_data=base64.b64decode(str(instance.user_data or "")),
            index=instance.ami_launch_index,
            beside=beside(params),
            tags={tag["key"]: tag["value"] for tag in instance.get_tags()},
            ends_itself=instance.instance_initiated_shutdown_behavior == "terminate",
            show=instance.show,
        )
        instance.machine = machine
        instance.end = lambda: box.machines.end(machine, USER, box.now())
        instance.halt = lambda: box.machines.halt(machine, box.now())
        instance.wake = lambda: self._wake(machine, pool)
        if pool.market == SPOT:
            instance.lifecycle = "spot"
            instance.spot_instance_request_id = f"sir-{instance.id[-8:]}"
        box.machines.add(machine)
        instance.show(machine)

    def _wake(self, machine: Machine, pool: Pool) -> None:
        """A stopped machine has no claim to room. Raises Fault."""
        if machine.state == "stopped":
            self.box.stock.grant(pool, 1, 1, self.box.machines.living())
            self.box.machines.wake(machine, self.box.now())

    # --- CreateFleet

    def create_fleet(self) -> ActionResult:
        self.error_on_dryrun()
        if self._get_param("Type") != "instant":
            raise Fault("InvalidParameterValue", "the box has fleets of type instant only")
        key = (self.region, "CreateFleet", self._get_param("ClientToken", ""))
        asked = fingerprint(self.params)
        answer = self.box.tokens.recall(key, asked)
        if answer is None:
            answer = self._fleet(self.params)
            if answer["Instances"]:
                self.box.tokens.remember(key, asked, answer)
        return ActionResult(answer)

    def _fleet(self, params: Mapping[str, Any]) -> dict[str, Any]:
        target = params["TargetCapacitySpecification"]
        spot = target.get("DefaultTargetCapacityType", "on-demand") == "spot"
        market = SPOT if spot else ON_DEMAND
        options = params.get("SpotOptions" if spot else "OnDemandOptions") or {}
        asked = Asked(
            count=int(target["TotalTargetCapacity"]),
            strategy=options.get("AllocationStrategy", FLEET_DEFAULTS[market]),
            least=int(options.get("MinTargetCapacity", 0)),
            one_type=bool(options.get("SingleInstanceType")),
            one_zone=bool(options.get("SingleAvailabilityZone")),
        )
        given = allocate(list(self._choices(params, market)), asked, self._granter())
        tags = params.get("TagSpecifications") or []
        fleet = f"fleet-{fingerprint({'now': self.box.now(), **params})[:17]}"
        return {
            "FleetId": fleet,
            "Instances": [self._granted(c, n, tags, fleet) for c, n in given.granted],
            "Errors": _errors(given),
        }

    def _granter(self) -> Callable[[Choice, int, int], int]:
        planned: list[Any] = list(self.box.machines.living())
        refused: dict[str, Fault | None] = {}

        def grant(choice: Choice, least: int, most: int) -> int:
            self._check_price(choice.pool, choice.override)
            if choice.pool.instance_type not in refused:  # once in a call, not for each zone
                refused[choice.pool.instance_type] = self._luck(choice.pool, least)
            if (fault := refused[choice.pool.instance_type]) is not None:
                raise fault
            self.box.weather.zone(choice.pool, least)
            count = self.box.stock.grant(choice.pool, least, most, planned)
            planned.extend([choice.pool] * count)
            return count

        return grant

    def _luck(self, pool: Pool, least: int) -> Fault | None:
        try:
            self.box.weather.launch(pool, least)
        except Fault as fault:
            return fault
        return None

    def _choices(self, params: Mapping[str, Any], market: str) -> Iterator[Choice]:
        for config in params.get("LaunchTemplateConfigs") or ():
            named = config["LaunchTemplateSpecification"]
            base = self._with_template({"LaunchTemplate": named})
            for override in config.get("Overrides") or [{}]:
                asked = {**base, **override}
                for zone in self._zones(asked):
                    pool = Pool(str(asked["InstanceType"]), self.region, zone, market)
                    yield Choice(
                        pool=pool,
                        template=named,
                        override=override,
                        micro_usd_per_hour=self._price_or_none(pool),
                        free=self.box.stock.free(pool, self.box.machines.living()),
                        priority=float(override.get("Priority", 0)),
                    )

    def _price_or_none(self, pool: Pool) -> int:
        """For the order only: where there is no price there is no offer either."""
        kind, place = pool.instance_type, {"region": pool.region, "zone": pool.zone}
        return self.box.wares.price(kind, pool.market, **place) or 0

    def _granted(self, choice: Choice, count: int, tags: list[Any], fleet: str) -> dict[str, Any]:
        own = {"ResourceType": "instance", "Tags": [{"Key": "aws:ec2:fleet-id", "Value": fleet}]}
        base = self._with_template({"LaunchTemplate": choice.template})
        wanted = [spec for spec in tags if spec["ResourceType"] != "fleet"]
        spec = {
            **base,
            **choice.override,
            "TagSpecifications": [*base.get("TagSpecifications", []), *wanted, own],
        }
        if choice.pool.market == SPOT:
            spec["InstanceMarketOptions"] = {"MarketType": "spot"}
        reservation = self._launch(spec, choice.pool, count)
        return {
            "LaunchTemplateAndOverrides": _which(choice),
            "Lifecycle": choice.pool.market,
            "InstanceIds": [instance.id for instance in reservation.instances],
            "InstanceType": choice.pool.instance_type,
        }

    def delete_launch_template(self) -> ActionResult:
        name = self._get_param("LaunchTemplateName")
        if name and name not in self.ec2_backend.launch_template_name_to_ids:
            raise Fault("InvalidLaunchTemplateName.NotFoundException", f"no template {name}")
        return super().delete_launch_template()

    # --- what is there

    def describe_instances(self) -> ActionResult:
        ids = self._get_param("InstanceIds", [])
        hidden = self._hidden(ids)
        result = super().describe_instances().result
        if hidden:
            result["Reservations"] = list(_seen(result["Reservations"], hidden))
        return ActionResult(result)

    def describe_instance_status(self) -> ActionResult:
        hidden = self._hidden(self._get_param("InstanceIds", []))
        result = super().describe_instance_status().result
        shown = [i for i in result["InstanceStatuses"] if _id(i) not in hidden]
        return ActionResult({**result, "InstanceStatuses": shown})

    def terminate_instances(self) -> ActionResult:
        self._hidden(self._get_param("InstanceIds", []))
        return super().terminate_instances()

    def _hidden(self, asked: Sequence[str]) -> set[str]:
        """Ids that are not found yet. Raises Fault if one of them was asked for."""
        hidden = self.box.machines.hidden(self.box.now())
        for id in asked:
            if id in hidden:
                raise Fault("InvalidInstanceID.NotFound", id=id)
        return hidden

    # --- how an answer is made

    def call_action(self) -> Any:
        with self.box.lock:
            try:
                return super().call_action()
            except Fault as fault:
                error = EC2ClientError(fault.code, fault.message)
                _status, headers, body = self.serialized(ActionResult(error))
                headers["status"] = fault.status
                headers, body = self._enrich_response(headers, body)
                return fault.status, headers, body


def _market_type(params: Mapping[str, Any]) -> str:
    return str((params.get("InstanceMarketOptions") or {}).get("MarketType", ""))


def _market(params: Mapping[str, Any]) -> str:
    return SPOT if _market_type(params) == "spot" else ON_DEMAND


def _with_subnet(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """A fleet's override names the subnet of interfaces that its template describes."""
    subnet, nics = params.get("SubnetId"), params.get("NetworkInterfaces")
    if not subnet or not nics:
        return params
    rest = {name: value for name, value in params.items() if name != "SubnetId"}
    return {**rest, "NetworkInterfaces": [{**nics[0], "SubnetId": subnet}, *nics[1:]]}


def _which(choice: Choice) -> dict[str, Any]:
    return {"LaunchTemplateSpecification": choice.template, "Overrides": choice.override}


def _errors(given: Given) -> list[dict[str, Any]]:
    return [
        {
            "LaunchTemplateAndOverrides": _which(choice),
            "Lifecycle": choice.pool.market,
            "ErrorCode": fault.code,
            "ErrorMessage": fault.message,
        }
        for choice, fault in given.refused
    ]


def _seen(reservations: Sequence[Any], hidden: set[str]) -> Iterator[Any]:
    for reservation in reservations:
        seen = [i for i in reservation.instances if i.id not in hidden]
        if seen:
            reservation.instances = seen  # of a copy that moto made for this answer
            yield reservation


def _id(status: Any) -> str:
    return str(status["InstanceId"] if isinstance(status, dict) else status.id)
