"""From what a launch gave to the machines of its nodes; pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from broker.model.offer import Machine
from broker.providers.ec2 import naming
from broker.providers.ec2.instances import machines
from broker.providers.ec2.requests import Call


def dealt(
    instances: Sequence[dict[str, Any]],
    call: Call,
    bought: naming.Purchase,
    *,
    site: naming.Site,
    public: bool,
) -> list[Machine]:
    """Which instance is which node; what is not described yet is as it was asked for."""
    tags = naming.tag_list(naming.of_machines(site, bought))
    zones = dict(pair.split("=") for pair in call.zones)
    usual = {
        "InstanceType": bought.offer.instance_type,
        "State": {"Name": "pending"},
        "LaunchTime": datetime.fromtimestamp(bought.at, UTC),
        "InstanceLifecycle": "spot" if bought.offer.market == "spot" else "",
        "Placement": {"AvailabilityZoneId": next(iter(zones.values()), "")},
    }
    whole = [{**usual, **one, "Tags": tags} for one in instances]
    found = {m.identity: m for m in machines(whole, call.region, public=public)}
    by_id = {one["InstanceId"]: one.get("SubnetId", "") for one in whole}
    return [
        replace(machine, zone=zones.get(by_id[machine.id], machine.zone))
        for machine in (found[node] for node in bought.nodes if node in found)
    ]
