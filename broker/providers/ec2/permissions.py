"""What a site may do in AWS, tried without doing it: every action of docs/aws-policy.json.

EC2's own are tried by DryRun. What only things with our tag may have done to them EC2 refuses for a
thing that is not there, too; of these, and of what has no dry run, IAM's simulation is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.providers.ec2 import naming
from broker.providers.ec2.clients import HOME_REGION, Api
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.lines import DENIED

Asks = Mapping[str, dict[str, Any]]
"""Parameters by operation."""
NUMBER = "00000000000000000"
INSTANCE, TRIED_TYPE, TRIED_IMAGE = f"i-{NUMBER}", "m7i.large", "ami-00000000"
LOOKS: Asks = {
    operation: {}
    for operation in (
        "describe_addresses",
        "describe_availability_zones",
        "describe_capacity_reservations",
        "describe_images",
        "describe_instance_type_offerings",
        "describe_instance_types",
        "describe_instances",
        "describe_launch_templates",
        "describe_network_interfaces",
        "describe_placement_groups",
        "describe_regions",
        "describe_security_groups",
        "describe_spot_price_history",
        "describe_subnets",
        "describe_volumes",
        "describe_vpcs",
    )
}
DONE_TO_OURS: Asks = {
    "attach_volume": {"InstanceId": INSTANCE, "VolumeId": f"vol-{NUMBER}", "Device": "/dev/sdf"},
    "authorize_security_group_ingress": {"GroupId": f"sg-{NUMBER}", "IpPermissions": []},
    "delete_launch_template": {"LaunchTemplateId": f"lt-{NUMBER}"},
    "delete_network_interface": {"NetworkInterfaceId": f"eni-{NUMBER}"},
    "delete_placement_group": {"GroupName": "skypurza-check"},
    "delete_security_group": {"GroupId": f"sg-{NUMBER}"},
    "delete_volume": {"VolumeId": f"vol-{NUMBER}"},
    "detach_volume": {"VolumeId": f"vol-{NUMBER}"},
    "modify_instance_attribute": {"InstanceId": INSTANCE, "Groups": [f"sg-{NUMBER}"]},
    "release_address": {"AllocationId": f"eipalloc-{NUMBER}"},
    "start_instances": {"InstanceIds": [INSTANCE]},
    "stop_instances": {"InstanceIds": [INSTANCE]},
    "terminate_instances": {"InstanceIds": [INSTANCE]},
}
"""To what bears our tag, and to nothing else."""


def made(site: naming.Site, zone: str) -> Asks:
    """What is made with our tag on it, which `ec2:CreateTags` has to allow as well."""
    name = naming.name(site, "check", site.id)
    tags = naming.tag_list(naming.common(site, "check", "dry-run"))

    def tagged(*kinds: str) -> dict[str, Any]:
        return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in kinds]}

    machine = {"ImageId": TRIED_IMAGE, "InstanceType": TRIED_TYPE}
    template = {"LaunchTemplateName": name, "LaunchTemplateData": {"InstanceType": TRIED_TYPE}}
    fleet: dict[str, Any] = {
        "Type": "instant",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1},
        "LaunchTemplateConfigs": [],
    }
    return {
        "create_fleet": fleet | tagged("fleet", "instance"),
        "create_launch_template": template | tagged("launch-template"),
        "create_placement_group": {"GroupName": name, "Strategy": "cluster"}
        | tagged("placement-group"),
        "create_security_group": {"GroupName": name, "Description": "dry run"}
        | tagged("security-group"),
        "create_volume": {"AvailabilityZone": zone, "Size": 1} | tagged("volume"),
        "run_instances": {"MinCount": 1, "MaxCount": 1, **machine}
        | tagged("instance", "volume", "network-interface"),
    }


@dataclass(frozen=True, slots=True)
class Simulated:
    """What IAM says of actions that cannot be tried."""

    denied: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()
    """Actions that it told anything of."""


@dataclass(frozen=True, slots=True)
class Tried:
    """IAM's names of actions."""

    denied: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)
    """Refused for a thing that is not there, and nobody says whether for ours, too."""


def tried(api: Api, region: str, asks: Asks, *, ours: Simulated) -> Tried:
    """Each once, without doing it. Raises NoAnswerError."""
    found = Tried()
    for operation, params in asks.items():
        name = action(operation)
        if not _is_denied(api, region, operation, params=params):
            continue
        if operation not in DONE_TO_OURS or name in ours.denied:
            found.denied.append(name)
        elif name not in ours.told:
            found.doubtful.append(name)
    return found


def action(operation: str) -> str:
    """IAM's name of an operation of EC2."""
    return "ec2:" + "".join(part.title() for part in operation.split("_"))


def _is_denied(api: Api, region: str, operation: str, *, params: dict[str, Any]) -> bool:
    """EC2 looks at permissions first: any other complaint means that it is allowed."""
    try:
        api.call("ec2", region, operation, DryRun=True, **params)
    except AwsError as error:
        return error.code in DENIED
    return False


def simulated(api: Api, arn: str, queues: Sequence[str]) -> Simulated:
    """What may be done to things of ours, and what has no dry run; empty where nobody may ask."""
    denied: set[str] = set()
    told: set[str] = set()
    for actions, resources, context in _questions(arn, queues):
        try:
            reply = api.call(
                "iam",
                HOME_REGION,
                "simulate_principal_policy",
                PolicySourceArn=principal(arn),
                ActionNames=actions,
                ResourceArns=resources,
                ContextEntries=[
                    {"ContextKeyName": key, "ContextKeyValues": [value], "ContextKeyType": "string"}
                    for key, value in context.items()
                ],
            )
        except (AwsError, NoAnswerError):
            continue
        told |= {*actions}
        results = reply.get("EvaluationResults", ())
        denied |= {one["EvalActionName"] for one in results if one["EvalDecision"] != "allowed"}
    return Simulated(frozenset(denied), frozenset(told))


UNTRIED = (
    "ce:GetCostAndUsage",
    "ce:GetCostAndUsageWithResources",
    "sts:DecodeAuthorizationMessage",
    "iam:CreateServiceLinkedRole",
)
DELETES = "sqs:DeleteMessage"


def _questions(
    arn: str, queues: Sequence[str]
) -> Iterator[tuple[list[str], list[str], dict[str, str]]]:
    """Actions, on what, and what holds then: each as the policy has it."""
    _, partition, _, _, account, *_ = arn.split(":")
    *anywhere, role = UNTRIED
    yield [action(one) for one in DONE_TO_OURS], ["*"], {"aws:ResourceTag/ManagedBy": "skypurza"}
    yield anywhere, ["*"], {}
    spot = "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
    service = {"iam:AWSServiceName": "spot.amazonaws.com"}
    yield [role], [f"arn:{partition}:iam::{account}:{spot}"], service
    if queues:
        yield [DELETES], [*queues], {}


def principal(arn: str) -> str:
    """Whose policies count: of an assumed role's session the role."""
    head, _, rest = arn.partition(":assumed-role/")
    if not rest:
        return arn
    return f"{head.replace(':sts:', ':iam:')}:role/{rest.split('/')[0]}"
