"""Machines shared, kept and waited for over a whole life of jobs: what they cost in the end."""

from dataclasses import replace

import pytest

from broker.model import commands as cmd
from broker.model.job import Owner
from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import ArraySpec, Resources, StepSpec, TaskSpec
from broker.providers.fake import Delays
from broker.providers.fake_agent import Fate
from tests.sim.audit import Audit, billed
from tests.sim.harness import Simulation
from tests.sim.site import ALICE, BOB

TEN_MINUTES = 600
BUY = BuyPolicy(provider="fake", boot_seconds=30, root_gib=30, public_address=True)
ELASTIC = Elastic("ec2-", 50, buy=BUY, idle_seconds=None)


def asked(at: int, owner: Owner = ALICE, **fields: object) -> tuple[int, cmd.Submit]:
    usual = {"name": "job", "batch": StepSpec(name="batch"), "time_limit": TEN_MINUTES}
    spec = TaskSpec(**(usual | fields))
    return at, cmd.Submit(spec=spec, owner=owner, request=f"{at} {owner.user} {len(fields)}")


def life(*jobs: tuple[int, cmd.Submit], elastic: Elastic = ELASTIC, run: int = 540) -> Audit:
    """All of them from the first to the end of the last machine, audited."""
    audit = Audit()
    part = Partition("ec2", default=True, elastic=elastic, def_mem_per_cpu_mib=1024)
    site = Site(partitions=(part,))
    sim = Simulation(
        site, lambda _key, _order: Fate(run), check=audit, delays=Delays(boot=30, stop=5)
    )
    for at, message in jobs:
        sim.submit_at(at, message)
    sim.run(10 * 86_400)
    audit.finish(sim)
    assert all(job.state.label == "COMPLETED" for job in sim.store.jobs.values())
    return audit


def cost(audit: Audit) -> int:
    return sum(billed(one, part) for one in audit.machines.values() for part in ("", "volume"))


FORTY = ArraySpec(tasks=tuple(range(40)))


def test_an_array_costs_far_less_together_than_one_machine_for_each_of_its_tasks() -> None:
    together = life(asked(0, array=FORTY))
    apart = life(asked(0, array=FORTY, resources=Resources(exclusive=True)))
    assert len(apart.machines) == 40
    assert cost(together) < 0.7 * cost(apart)


@pytest.mark.parametrize(("share", "most"), [(False, 2), (True, 1)])
def test_users_are_put_together_only_where_the_partition_says_so(share: bool, most: int) -> None:
    elastic = replace(ELASTIC, share_users=share)
    first = asked(0, ALICE, resources=Resources(cpus_per_task=3))
    audit = life(first, asked(60, BOB), elastic=elastic)
    assert len(audit.machines) == most


@pytest.mark.parametrize(
    ("idle", "gap", "machines"),
    [(300, 200, 1), (300, 500, 2), (0, 30, 2), (None, 20, 1), (None, 3600, 2)],
)
def test_a_machine_is_kept_for_the_next_job_as_long_as_the_partition_says_or_a_start_costs(
    idle: int | None, gap: int, machines: int
) -> None:
    """Of two jobs, the second comes `gap` seconds after the first is over."""
    elastic = replace(ELASTIC, idle_seconds=idle)
    second = asked(35 + 540 + gap)
    assert len(life(asked(0), second, elastic=elastic).machines) == machines


def test_a_job_goes_onto_a_machine_that_boots_for_another() -> None:
    wide = asked(0, resources=Resources(cpus_per_task=3))
    assert len(life(wide, asked(10)).machines) == 1


def test_a_job_waits_for_a_machine_that_is_free_sooner_than_another_would_be_up() -> None:
    """The first runs to its limit, 90 s before which the second comes; a boot takes ten minutes."""
    slow = replace(ELASTIC, buy=replace(BUY, boot_seconds=600))
    first = asked(0, resources=Resources(cpus_per_task=2))
    second = asked(540, resources=Resources(cpus_per_task=2))
    assert len(life(first, second, elastic=slow).machines) == 1
