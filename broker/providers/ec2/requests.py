"""What is asked of EC2 for a purchase: calls of RunInstances or CreateFleet as data; pure."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from broker.model.build import Build
from broker.model.ids import NodeName
from broker.model.offer import BLOCK, Market, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2 import naming
from broker.providers.ec2.images import Image
from broker.providers.ec2.network import Network, Subnet
from broker.providers.ec2.settings import Ec2Settings

RUN = "run_instances"
FLEET = "create_fleet"
LATEST = "$Latest"
EFA = "efa"
Params = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call that buys everything or nothing; kept on disk while its outcome is not known."""

    operation: str
    region: str
    zones: tuple[str, ...]
    """Those it may be served from, by the ids of their subnets: `SUBNET=ZONE`."""
    params: Params
    template: Params | None = None
    """The launch template that a fleet needs."""
    group: str = ""
    """The placement group that is made for it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What a region gives to a purchase."""

    image: Image
    network: Network
    settings: Ec2Settings
    site: naming.Site
    user_data: str
    joins: str = ""
    """The placement group that a single machine is added to."""


def calls(bought: naming.Purchase, ground: Ground) -> Iterator[Call]:
    """The calls to try in turn: one for a single machine, one per zone for a gang.

    For several machines of which fewer will do it is the first zone's alone: who gets none goes on
    by itself.
    """
    offer = bought.offer
    subnets = ground.network.in_zones(offer.zones)
    alone = len(bought.nodes) == 1 and not offer.reservation and not ground.joins
    if alone and (len(subnets) > 1 or offer.market is Market.SPOT):
        yield _fleet(bought, ground, subnets)
        return
    for subnet in subnets[:1] if bought.partial else subnets:
        yield _run(bought, ground, subnet)


def _run(bought: naming.Purchase, ground: Ground, subnet: Subnet) -> Call:
    count, offer = len(bought.nodes), bought.offer
    gang = bool(ground.joins) or (count > 1 and not bought.partial)
    data = _instance(bought, ground, gang=gang)
    data["NetworkInterfaces"][0]["SubnetId"] = subnet.id
    group = ""
    if gang and "InterfaceType" in data["NetworkInterfaces"][0]:
        own = naming.name(ground.site, "gang", naming.client_token(ground.site, bought, "")[-16:])
        group = "" if ground.joins else own
        data["Placement"] = {"GroupName": ground.joins or own}
    if BLOCK in offer.features:
        data["InstanceMarketOptions"] = {"MarketType": BLOCK}
    elif offer.market is Market.SPOT:
        once = {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
        data["InstanceMarketOptions"] = {"MarketType": "spot", "SpotOptions": once}
    return Call(
        operation=RUN,
        region=offer.region,
        zones=_zones([subnet]),
        params={
            **data,
            "UserData": ground.user_data,
            "MinCount": 1 if bought.partial else count,
            "MaxCount": count,
            "ClientToken": naming.client_token(ground.site, bought, _pool(offer, [subnet])),
        },
        group=group,
    )


def _fleet(bought: naming.Purchase, ground: Ground, subnets: Sequence[Subnet]) -> Call:
    offer, count = bought.offer, len(bought.nodes)
    token = naming.client_token(ground.site, bought, _pool(offer, subnets))
    name = naming.name(ground.site, "fleet", token[-24:])
    data = _instance(bought, ground, gang=False)
    data["UserData"] = base64.b64encode(ground.user_data.encode()).decode("ascii")
    spot = offer.market is Market.SPOT
    tags = naming.tag_list(naming.of_machines(ground.site, bought))
    target: Params = {
        "TotalTargetCapacity": count,
        "DefaultTargetCapacityType": "spot" if spot else "on-demand",
    }
    options: Params = {"MinTargetCapacity": count, "SingleInstanceType": True}
    how: Params = (
        {"SpotOptions": {**options, "AllocationStrategy": "price-capacity-optimized"}}
        if spot
        else {"OnDemandOptions": {**options, "AllocationStrategy": "lowest-price"}}
    )
    return Call(
        operation=FLEET,
        region=offer.region,
        zones=_zones(subnets),
        params={
            "Type": "instant",
            "ClientToken": token,
            "TargetCapacitySpecification": target,
            **how,
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateName": name,
                        "Version": LATEST,
                    },
                    "Overrides": [
                        {"InstanceType": offer.instance_type, "SubnetId": subnet.id}
                        for subnet in subnets
                    ],
                }
            ],
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": tags} for kind in ("fleet", "instance")
            ],
        },
        template={
            "LaunchTemplateName": name,
            "LaunchTemplateData": data,
            "TagSpecifications": [{"ResourceType": "launch-template", "Tags": tags}],
        },
    )


def _instance(bought: naming.Purchase, ground: Ground, *, gang: bool) -> Params:
    """What a machine is, in the words that both calls share."""
    settings, image, offer = ground.settings, ground.image, bought.offer
    tags = naming.tag_list(naming.of_machines(ground.site, bought))
    tagged = ["instance", "volume", "network-interface"]
    if offer.market is Market.SPOT:
        tagged.append("spot-instances-request")
    root = _root(settings, bought.purpose.build)
    card: Params = {
        "DeviceIndex": 0,
        "Groups": list(ground.network.groups),
        "AssociatePublicIpAddress": settings.public,
        "DeleteOnTermination": True,
    }
    wanted = gang or bought.purpose.build.fabric
    if wanted and EFA in offer.features and settings.efa:
        card["InterfaceType"] = EFA
    data: Params = {
        "ImageId": image.id,
        "InstanceType": offer.instance_type,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 1,
        },
        "NetworkInterfaces": [card],
        "BlockDeviceMappings": [{"DeviceName": image.root_device, "Ebs": root}],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in tagged],
    }
    if offer.market is Market.ON_DEMAND:
        data["CapacityReservationSpecification"] = _reserved(offer)
    if settings.instance_profile:
        key = "Arn" if settings.instance_profile.startswith("arn:") else "Name"
        data["IamInstanceProfile"] = {key: settings.instance_profile}
    return data


def _reserved(offer: Offer) -> Params:
    """The reservation that it was planned into, or none: EC2 puts a launch that says nothing into
    any open one, which would be charged for twice."""
    if not offer.reservation:
        return {"CapacityReservationPreference": "none"}
    return {"CapacityReservationTarget": {"CapacityReservationId": offer.reservation}}


def _root(settings: Ec2Settings, build: Build) -> Params:
    volume = build.volume(settings.root_gib)
    root: Params = {
        "VolumeSize": volume.gib,
        "VolumeType": volume.kind,
        "Encrypted": True,
        "DeleteOnTermination": True,
    }
    more = {"Iops": volume.iops, "Throughput": volume.mbps, "KmsKeyId": settings.kms_key}
    return root | {key: value for key, value in more.items() if value}


def _zones(subnets: Sequence[Subnet]) -> tuple[str, ...]:
    return tuple(f"{subnet.id}={subnet.zone}" for subnet in subnets)


def _pool(offer: Offer, subnets: Sequence[Subnet]) -> str:
    zones = "+".join(subnet.zone for subnet in subnets)
    return f"{offer.region} {zones} {offer.instance_type} {offer.market} {offer.reservation}"


def call_to_json(call: Call, bought: naming.Purchase) -> Params:
    """As it is written down before it is made."""
    nodes = [[node, launch] for node, launch in bought.nodes]
    return {"call": asdict(call), "bought": {**asdict(bought), "nodes": nodes}}


def call_from_json(value: Mapping[str, Any]) -> tuple[Call, naming.Purchase]:
    """What `call_to_json` wrote."""
    call, bought = value["call"], value["bought"]
    offer = bought["offer"]
    pairs = tuple((str(name), int(count)) for name, count in offer["gres"])
    offer = Offer(
        **{
            **offer,
            "market": Market(offer["market"]),
            "gres": pairs,
            "zones": tuple(offer["zones"]),
            "features": tuple(offer["features"]),
        }
    )
    return (
        replace(Call(**call), zones=tuple(call["zones"])),
        naming.Purchase(
            offer=offer,
            nodes=tuple((NodeName(node), int(launch)) for node, launch in bought["nodes"]),
            token=str(bought["token"]),
            purpose=_purpose(bought["purpose"]),
            at=int(bought["at"]),
            partial=bool(bought["partial"]),
        ),
    )


def _purpose(value: Mapping[str, Any]) -> Purpose:
    """One that was written before it had wishes has none."""
    build = dict(value.get("build", {}))
    for field in ("images", "labels"):
        build[field] = tuple((str(one), str(other)) for one, other in build.get(field, ()))
    build["ports"] = tuple(map(str, build.get("ports", ())))
    return Purpose(**{**value, "build": Build(**build)})
