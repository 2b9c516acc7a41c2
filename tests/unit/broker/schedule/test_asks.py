"""What jobs ask of their partitions is worked out once for those that ask alike."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.job import Job
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Gres, Resources, StepSpec, TaskSpec
from broker.schedule.eligible import Asks
from tests.unit.broker.test_engine import ALICE

ELASTIC = Elastic("ec2-", 2)
SITE = Site(
    partitions=(
        Partition("ec2", elastic=ELASTIC, def_mem_per_cpu_mib=1024),
        Partition("other", elastic=replace(ELASTIC, max_nodes=1), def_mem_per_cpu_mib=2048),
    )
)


def job(number: int, *, partition: str = "ec2", **fields: Any) -> Job:
    """One of its own name, output and environment."""
    spec = TaskSpec(name=f"job{number}", batch=StepSpec(name="batch"), **fields)
    return Job(
        id=JobId(number),
        spec=spec,
        owner=ALICE,
        account="a",
        qos="normal",
        partitions=(partition,),
        submitted=0,
        time_limit=900,
        want=Tres(cpu=1, node=1),
    )


def test_jobs_that_ask_alike_share_a_demand_whatever_they_are_called() -> None:
    asks = Asks(SITE)
    first, second = (
        asks.of(job(n, resources=Resources(tasks=2), options=(("output", f"{n}.out"),)))[0].demand
        for n in (1, 2)
    )
    assert first is second
    assert first.tasks == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": Resources(tasks=3)},
        {"partition": "other"},
        {"options": (("overcommit", ""),)},
        {"options": (("use-min-nodes", ""),)},
        {
            "resources": Resources(tasks=2, gres=(Gres(name="gpu", count=2),)),
            "options": (("ntasks-per-gpu", "2"),),
        },
    ],
)
def test_whatever_makes_a_demand_another_makes_it_another_here(fields: dict[str, Any]) -> None:
    asks = Asks(SITE)
    usual = asks.of(job(1, resources=Resources(tasks=2)))[0]
    other = asks.of(job(2, **{"resources": Resources(tasks=2), **fields}))[0]
    assert usual.demand != other.demand


def test_a_partition_that_can_never_serve_it_is_told_of_each_job() -> None:
    asks = Asks(SITE)
    wide = Resources(min_nodes=2, max_nodes=2)
    gates = [asks.of(job(n, partition="other", resources=wide))[0].gate for n in (1, 2)]
    assert gates == ["PartitionConfig"] * 2
    assert asks.of(job(3, resources=wide))[0].gate is None
