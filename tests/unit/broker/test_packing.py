"""Jobs that are planned together: who shares a machine, which one, and who waits for one."""

from collections import Counter
from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch, Prepare, Terminate
from broker.model.job import Job
from broker.model.node import NodeState
from broker.model.offer import BuyPolicy, MachineState
from broker.model.site import DeclaredNode, Elastic, Site
from broker.model.spec import ALL, ArraySpec, Gres, Resources
from tests.unit.broker.test_engine import ALICE, BOB, ELASTIC, Bench, machine

PLAIN = ELASTIC.partitions[0]
QUARTER = 900


def site(*, most: int = 8, share_users: bool = False, idle: int | None = 300) -> Site:
    elastic = Elastic("ec2-", most, share_users=share_users, idle_seconds=idle)
    return Site(partitions=(replace(PLAIN, elastic=elastic),))


def array(bench: Bench, count: int, **fields: object) -> list[Job]:
    """Its elements as they stand once they were looked at."""
    base = bench.submit(array=ArraySpec(tasks=tuple(range(count))), time_limit=QUARTER, **fields)
    return [job for job in bench.world.jobs.values() if job.array and job.array.base == base]


def nodes_of(jobs: list[Job]) -> Counter[str]:
    return Counter(share.node for job in jobs for share in job.shares)


def bring_up(bench: Bench) -> None:
    """Every machine that is bought stands and has booted."""
    for effect in [e for e in bench.effects if isinstance(e, Launch)]:
        bench.step(rep.Launched(group=effect.group, machines=machine(effect, bench.now)))
    for prepare in [e for e in bench.effects if isinstance(e, Prepare)]:
        bench.step(rep.Booted(node=prepare.node.name, launch=prepare.node.launch))


def test_elements_of_an_array_share_machines_that_cost_less_for_all() -> None:
    bench = Bench(site())
    jobs = array(bench, 16)
    held = nodes_of(jobs)
    assert sum(held.values()) == 16
    assert len(held) <= 8
    for name, count in held.items():
        node = bench.world.nodes[name]  # type: ignore[index]
        assert (node.state, node.whole.cpu) == (NodeState.LAUNCHING, count)
        cpus = [
            cpu
            for job in jobs
            for share in job.shares
            if share.node == name
            for cpu in share.cpu_ids
        ]
        assert sorted(cpus) == list(range(count)), "each has cpus of its own"


def test_where_names_are_few_machines_are_larger() -> None:
    bench = Bench(site(most=2))
    assert len(nodes_of(array(bench, 64))) == 2
    assert not bench.world.pending


def test_every_rung_has_room_for_all_who_ride() -> None:
    bench = Bench(site(most=1))
    jobs = array(bench, 8)
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    assert all(rung.offer.cpus >= 8 for rung in launch.rungs)
    last = replace(launch, rungs=launch.rungs[-1:])
    bench.step(rep.Launched(group=launch.group, machines=machine(last, bench.now)))
    held = [bench.world.jobs[job.id].shares[0] for job in jobs]
    assert len({cpu for share in held for cpu in share.cpu_ids}) == 8


def test_what_was_not_bought_sends_all_who_rode_back() -> None:
    bench = Bench(site(most=1))
    jobs = array(bench, 4)
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    bench.step(rep.NotLaunched(group=launch.group, tried=()), full=False)
    assert {bench.state(job.id) for job in jobs} == {"PENDING"}


@pytest.mark.parametrize(
    "resources",
    [
        Resources(exclusive=True),
        Resources(mem_per_node_mib=ALL),
        Resources(min_nodes=1, max_nodes=1, exclusive=True, tasks=2),
    ],
)
def test_who_wants_a_whole_node_shares_none(resources: Resources) -> None:
    bench = Bench(site())
    assert set(nodes_of(array(bench, 3, resources=resources)).values()) == {1}


@pytest.mark.parametrize(("share", "nodes"), [(False, 2), (True, 1)])
def test_users_share_machines_only_where_the_partition_says_so(share: bool, nodes: int) -> None:
    bench = Bench(site(share_users=share))
    first = bench.submit(ALICE, resources=Resources(cpus_per_task=3), time_limit=QUARTER)
    bring_up(bench)
    second = bench.submit(BOB, time_limit=QUARTER)
    held = [bench.world.jobs[job].shares[0].node for job in (first, second)]
    assert len(set(held)) == nodes


def idle_machine(bench: Bench, cpus: int) -> JobId:
    """Stands idle after the job that it was bought for."""
    job = bench.submit(resources=Resources(cpus_per_task=cpus), time_limit=QUARTER)
    bring_up(bench)
    bench.run(job)
    return job


def test_a_small_job_does_not_keep_a_large_idle_machine() -> None:
    bench = Bench(site())
    idle_machine(bench, 32)
    job = bench.submit(time_limit=QUARTER)
    assert bench.world.jobs[job].shares[0].node == "ec2-2"


def test_an_idle_machine_is_taken_before_another_is_bought() -> None:
    bench = Bench(site())
    idle_machine(bench, 4)
    jobs = array(bench, 4)
    assert nodes_of(jobs) == {"ec2-1": 4}
    assert not [e for e in bench.effects if isinstance(e, Launch)]


def test_a_short_job_rides_on_a_machine_that_is_there_for_longer() -> None:
    bench = Bench(site())
    bench.submit(resources=Resources(cpus_per_task=30), time_limit=4 * QUARTER)
    bring_up(bench)
    job = bench.submit(time_limit=QUARTER)
    assert bench.world.jobs[job].shares[0].node == "ec2-1"


def test_a_job_waits_for_a_machine_that_is_free_before_a_new_one_would_be_up() -> None:
    slow = Elastic("ec2-", 8, buy=BuyPolicy(boot_seconds=120))
    bench = Bench(Site(partitions=(replace(PLAIN, elastic=slow),), kill_wait=30))
    first = bench.submit(resources=Resources(cpus_per_task=4), time_limit=QUARTER)
    bring_up(bench)
    key = f"{bench.world.jobs[first].key}/batch"
    bench.journal("ec2-1", {"kind": "started", "key": key})
    bench.step(seconds=QUARTER - 80)
    job = bench.submit(resources=Resources(cpus_per_task=4), time_limit=QUARTER)
    found = bench.world.jobs[job]
    assert (found.reason, found.detail) == (
        "Resources",
        "ec2-1 is free sooner than a new machine, and costs less",
    )
    bench.journal("ec2-1", {"kind": "exited", "key": key, "code": 0, "signal": 0})
    assert bench.world.jobs[job].shares[0].node == "ec2-1"


def test_when_all_names_are_in_use_the_rest_of_an_array_waits() -> None:
    whole = Resources(exclusive=True)
    bench = Bench(site(most=2))
    base = bench.submit(array=ArraySpec(tasks=tuple(range(5))), resources=whole)
    rest = bench.world.jobs[base]
    assert rest.array is not None and len(rest.array.waiting) == 3
    assert rest.detail == "all 2 nodes of ec2 are in use"


def test_a_ceiling_of_machines_holds_for_all_partitions_together() -> None:
    parts = [replace(PLAIN, name=n, elastic=Elastic(f"{n}-", 8)) for n in ("a", "b")]
    bench = Bench(Site(partitions=(*parts,), max_bought=3, nodes=(DeclaredNode("n1", Tres(1)),)))  # type: ignore[arg-type]
    whole = Resources(exclusive=True)
    jobs = [bench.submit(partitions=(name,), resources=whole) for name in ("a", "b", "a", "b")]
    held = [bench.world.jobs[job].shares for job in jobs]
    assert [len(shares) for shares in held] == [1, 1, 1, 0]
    last = bench.world.jobs[jobs[-1]]
    told = "all 3 nodes of the site's ceiling are in use"
    assert (last.reason, last.detail) == ("Resources", told)


def test_a_declared_node_with_room_goes_before_anything_that_is_bought() -> None:
    node = DeclaredNode("n1", Tres(2, 8000, 1))  # type: ignore[arg-type]
    both = replace(PLAIN, nodes=("n1",), elastic=Elastic("ec2-", 8))  # type: ignore[arg-type]
    bench = Bench(Site(partitions=(both,), nodes=(node,)))
    jobs = array(bench, 4)
    held = nodes_of(jobs)
    assert held["n1"] == 2
    assert sum(count for name, count in held.items() if name != "n1") == 2


def test_gpus_of_a_machine_that_has_more_are_shared_out_one_to_each() -> None:
    bench = Bench(site())
    jobs = array(bench, 8, resources=Resources(gres=(Gres(name="gpu", type="A100"),)))
    assert nodes_of(jobs) == {"ec2-1": 8}
    assert sorted(share.gpu_ids for job in jobs for share in job.shares) == [(n,) for n in range(8)]


def test_very_many_tasks_are_spread_where_one_machine_for_them_is_dear() -> None:
    bench = Bench(site())
    job = bench.submit(resources=Resources(tasks=256), time_limit=QUARTER)
    shares = bench.world.jobs[job].shares
    assert [share.tasks for share in shares] == [128, 128]


@pytest.mark.parametrize(("idle", "kept"), [(None, 60), (300, 300)])
def test_an_idle_machine_is_kept_as_the_partition_says_or_as_long_as_a_start_costs(
    idle: int | None, kept: int
) -> None:
    bench = Bench(site(idle=idle))
    bench.submit()
    assert [node.idle_seconds for node in bench.world.nodes.values()] == [kept]


def test_jobs_of_one_second_are_bought_for_together() -> None:
    bench = Bench(site())
    asked = [bench.submit(time_limit=QUARTER) for _ in range(1)]
    spec = bench.world.jobs[asked[0]].spec
    fresh = [cmd.Submit(spec=spec, owner=ALICE, request=f"more{n}") for n in range(8)]
    for message in fresh:
        bench.step(message)
    waiting = [job for job in bench.world.jobs.values() if not job.shares]
    assert {job.reason for job in waiting} == {"None"}
    bench.step(seconds=1)
    assert not bench.world.pending
    assert len(nodes_of(list(bench.world.jobs.values()))) < 8


def test_partitions_may_be_cut_off_from_buying_by_their_names() -> None:
    """A lower one is tried when the first has no names left."""
    first = replace(PLAIN, name="small", default=False, elastic=Elastic("s-", 1))
    second = replace(PLAIN, elastic=Elastic("ec2-", 8))
    bench = Bench(Site(partitions=(second, first)))
    whole = Resources(cpus_per_task=180)
    for _ in range(2):
        bench.submit(partitions=("small", "ec2"), resources=whole, time_limit=QUARTER)
    names = sorted(nodes_of(list(bench.world.jobs.values())))
    assert names == ["ec2-1", "s-1"]


@pytest.mark.parametrize("prefer", ["time", "cost"])
def test_what_is_weighed_first_can_be_asked_for_like_a_feature(prefer: str) -> None:
    """Bare metal takes minutes longer to boot: who prefers time has it last."""
    metal = BuyPolicy(families=("m7i",), instance_types=())
    elastic = Elastic("ec2-", 8, buy=metal)
    known = frozenset({"metal", "m7i"})
    bench = Bench(Site(partitions=(replace(PLAIN, elastic=elastic),), offered_features=known))
    job = bench.submit(resources=Resources(cpus_per_task=96, prefer=prefer, exclusive=True))
    first, *_ = bench.world.jobs[job].choice.splitlines()
    told = "starts soonest" if prefer == "time" else "least expected cost"
    assert told in first


def test_an_idle_machine_of_another_user_gives_its_name_to_who_waits() -> None:
    bench = Bench(site(most=1))
    idle_machine(bench, 4)
    job = bench.submit(BOB, time_limit=QUARTER)
    (effect,) = bench.effects
    assert isinstance(effect, Terminate)
    gone = replace(effect.machine, state=MachineState.TERMINATED, terminated_at=bench.now)  # type: ignore[type-var]
    terminated = rep.Terminated(node=effect.node, launch=effect.launch, machine=gone)
    bench.step(terminated, seconds=1)
    assert bench.world.jobs[job].shares[0].node == "ec2-1"
