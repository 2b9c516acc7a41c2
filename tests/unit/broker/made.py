"""A machine as tests of several rooms need one."""

from dataclasses import replace
from typing import Any

from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market

MACHINE = Machine(
    id="i-1",
    node=NodeName("ec2-1"),
    launch=1,
    token="1/1",
    state=MachineState.RUNNING,
    region="us-east-1",
    zone="use1-az1",
    instance_type="m7i.large",
    market=Market.ON_DEMAND,
    micro_usd_per_hour=100_800,
    launched_at=0,
)


def machine(**changes: Any) -> Machine:
    """A running one of `ec2-1`, but for what is said."""
    return replace(MACHINE, **changes)
