"""What a partition asks of its jobs, gives them and keeps from them."""

from dataclasses import replace

import pytest

from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch
from broker.model.errors import BadOption, Conflict, Denied, SpzError
from broker.model.job import ExitCode, Owner
from broker.model.node import NodeState
from broker.model.offer import BuyPolicy
from broker.model.site import Elastic, Partition, Site
from broker.model.spec import Gres, Resources, StepSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ELASTIC, NODES, ROOT, Bench, machine

FIRST = DECLARED.partitions[0]
LAB = 3003
DENIED = "Access/permission denied"
NO_GROUP = "User's group not permitted to use this partition"
MEMBER = replace(BOB, groups=(LAB,))


def declared(**rules: object) -> Site:
    """The usual partition, and one more with rules."""
    other = Partition("other", nodes=tuple(node.name for node in NODES), **rules)  # type: ignore[arg-type]
    return replace(DECLARED, partitions=(FIRST, other))


def answer(bench: Bench, owner: Owner, **fields: object) -> str:
    """What is said of a submission; empty where it is taken."""
    try:
        bench.submit(owner, **fields)
    except SpzError as error:
        return error.message
    return ""


OF_LAB = {"allow_groups": ("lab",), "allowed_gids": frozenset({LAB})}
ACCESS = (
    ("in no group of those", OF_LAB, ALICE, NO_GROUP),
    ("in one as a further group", OF_LAB, MEMBER, ""),
    ("in one as the first group", OF_LAB, replace(ALICE, gid=LAB), ""),
    ("root is in all", OF_LAB, ROOT, ""),
    ("a group that nobody has", {"allow_groups": ("gone",)}, ALICE, NO_GROUP),
    ("without a reservation", {"req_resv": True}, ALICE, DENIED),
    ("root without a reservation", {"req_resv": True}, ROOT, DENIED),
    ("root where it may not", {"disable_root_jobs": True}, ROOT, "Invalid user id"),
    ("others there", {"disable_root_jobs": True}, ALICE, ""),
    ("for root alone", {"root_only": True}, ALICE, DENIED),
)


@pytest.mark.parametrize(("what", "rules", "owner", "said"), ACCESS)
def test_a_partition_lets_in_whom_its_rules_allow(
    what: str, rules: dict[str, object], owner: Owner, said: str
) -> None:
    bench = Bench(declared(**rules))
    assert answer(bench, owner, partitions=("other",)) == said, what
    assert answer(Bench(declared(**rules)), owner, partitions=("other", "ec2")) == ""


@pytest.mark.parametrize(("what", "rules", "owner", "said"), ACCESS)
def test_a_waiting_job_is_moved_only_where_it_could_have_been_submitted(
    what: str, rules: dict[str, object], owner: Owner, said: str
) -> None:
    bench = Bench(declared(**rules))
    job = bench.submit(owner, hold=True)
    (reply,) = bench.step(cmd.Update(target=cmd.Target(job), by=owner, partitions=("other",)))
    assert (reply.message if isinstance(reply, Denied) else "") == said, what


def test_a_job_is_in_those_of_its_partitions_that_let_it_in() -> None:
    bench = Bench(declared(**OF_LAB))
    job = bench.submit(ALICE, partitions=("other", "ec2"), hold=True)
    assert bench.world.jobs[job].partitions == ("ec2",)


def test_a_qos_that_is_kept_out_waits() -> None:
    bench = Bench(declared(deny_qos=("normal",)))
    job = bench.submit(partitions=("other",))
    bench.step()
    assert bench.world.jobs[job].reason == "QOSNotAllowed"


MEMORY = (
    # asked for; then cpus of a task, MiB by cpu, cpus that a node must have (22.05)
    ({"mem_per_cpu_mib": 2500}, 3, 834, 3),
    ({"mem_per_cpu_mib": 2500, "tasks": 2}, 3, 834, None),
    ({"mem_per_cpu_mib": 2500, "cpus_per_task": 2}, 6, 834, 6),
    ({"mem_per_cpu_mib": 500}, None, 500, None),
    ({"mem_per_node_mib": 2500}, None, None, 3),
    ({"mem_per_node_mib": 2500, "tasks": 4}, None, None, 3),
    ({"mem_per_node_mib": 2500, "min_cpus_per_node": 4}, None, None, 4),
    ({"mem_per_node_mib": 1000}, None, None, None),
)


@pytest.mark.parametrize(("asked", "cpus", "per_cpu", "least"), MEMORY)
def test_more_memory_than_its_cpus_bring_gives_a_job_more_cpus(
    asked: dict[str, object], cpus: int | None, per_cpu: int | None, least: int | None
) -> None:
    bench = Bench(declared(max_mem_per_cpu_mib=1000))
    job = bench.submit(partitions=("other",), resources=asked, hold=True)
    has = bench.world.jobs[job].spec.resources
    assert (has.cpus_per_task, has.mem_per_cpu_mib, has.min_cpus_per_node) == (cpus, per_cpu, least)


def test_a_change_of_memory_changes_the_cpus_too() -> None:
    bench = Bench(declared(max_mem_per_cpu_mib=1000))
    job = bench.submit(partitions=("other",), resources={"tasks": 1}, hold=True)
    spec = (("resources.mem_per_cpu_mib", 1900),)
    bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, spec=spec))
    has = bench.world.jobs[job].spec.resources
    assert (has.cpus_per_task, has.mem_per_cpu_mib) == (2, 950)


CPUS = (
    # of nodes with 4 cpus, of which the partition's jobs may hold 2 (22.05)
    ({"tasks": 3, "min_nodes": 1, "max_nodes": 1}, None),
    ({"cpus_per_task": 3}, None),
    ({"exclusive": True}, None),
    ({"tasks": 3}, [1, 2]),
    ({"tasks": 4}, [2, 2]),
    ({"tasks": 2, "min_nodes": 1}, [2]),
)


@pytest.mark.parametrize(("asked", "cpus"), CPUS)
def test_jobs_take_no_more_cpus_of_a_node_than_the_partition_may(
    asked: dict[str, object], cpus: list[int] | None
) -> None:
    bench = Bench(declared(max_cpus_per_node=2, def_mem_per_cpu_mib=1000))
    if cpus is None:
        with pytest.raises(BadOption, match="Requested node configuration is not available"):
            bench.submit(partitions=("other",), resources=asked)
        return
    job = bench.submit(partitions=("other",), resources=asked)
    assert sorted(share.tres.cpu for share in bench.world.jobs[job].shares) == cpus


def test_jobs_share_what_their_partition_may_have_of_a_node_and_leave_others_the_rest() -> None:
    bench = Bench(declared(max_cpus_per_node=2, def_mem_per_cpu_mib=1000))
    jobs = [bench.submit(partitions=("other",)) for _ in range(9)]
    other = [bench.submit() for _ in range(8)]
    bench.step()
    assert [bench.state(job) for job in jobs] == ["CONFIGURING"] * 8 + ["PENDING"]
    assert [bench.state(job) for job in other] == ["CONFIGURING"] * 8
    bench.step(cmd.Cancel(target=cmd.Target(other[0]), by=ALICE))
    bench.step(seconds=1)
    assert bench.state(jobs[8]) == "PENDING"


def test_more_cpus_than_a_partition_may_have_of_all_its_nodes_wait_for_another_configuration() -> (
    None
):
    bench = Bench(declared(max_cpus_per_node=2, def_mem_per_cpu_mib=1000))
    job = bench.submit(partitions=("other",), resources={"tasks": 9})
    bench.step()
    assert bench.world.jobs[job].reason == "PartitionConfig"


def test_machines_are_bought_for_no_more_cpus_than_the_partition_may_have_of_one() -> None:
    part = replace(ELASTIC.partitions[0], max_cpus_per_node=2)
    bench = Bench(Site(partitions=(part,)))
    job = bench.submit(resources={"tasks": 5})
    assert [share.tres.cpu for share in bench.world.jobs[job].shares] == [2, 2, 1]
    for asked in ({"cpus_per_task": 3}, {"exclusive": True}, {"tasks": 3, "max_nodes": 1}):
        with pytest.raises(BadOption):
            bench.submit(resources=asked)


def test_an_exclusive_partition_gives_each_job_its_nodes_alone() -> None:
    bench = Bench(declared(whole_nodes=True))
    jobs = [bench.submit(partitions=("other",)) for _ in range(2)]
    held = [bench.world.jobs[job].shares[0] for job in jobs]
    assert [share.tres.cpu for share in held] == [4, 4]
    assert held[0].node != held[1].node


def test_bought_machines_have_the_features_of_their_partition() -> None:
    buy = BuyPolicy(features=("fast", "site-b"))
    part = replace(ELASTIC.partitions[0], elastic=Elastic("ec2-", 8, buy=buy))
    bench = Bench(Site(partitions=(part,), offered_features=frozenset({"spot"})))
    job = bench.submit(resources=Resources(constraint="Fast&site-b"))
    node = bench.world.nodes[bench.world.jobs[job].shares[0].node]
    assert {"fast", "site-b"} <= set(node.features)
    with pytest.raises(BadOption, match="Invalid feature specification"):
        bench.submit(resources=Resources(constraint="slow"))


def test_nothing_starts_while_a_job_that_has_just_ended_leaves_its_nodes() -> None:
    bench = Bench(replace(DECLARED, complete_wait=20))
    first = bench.submit()
    bench.run(first)
    bench.step(cmd.Cancel(target=cmd.Target(second := bench.submit()), by=ALICE))
    assert bench.state(second) == "COMPLETING"
    third = bench.submit()
    bench.step(seconds=19)
    assert bench.state(third) == "PENDING"
    bench.step(seconds=1)
    assert bench.state(third) == "CONFIGURING"


def test_a_node_whose_processes_outlive_sigkill_is_drained() -> None:
    bench = Bench(DECLARED)
    job = bench.submit(resources=Resources(gres=(Gres(name="gpu", count=1),)))
    node = bench.world.jobs[job].shares[0].node
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(node, {"kind": "started", "key": key})
    bench.journal(node, {"kind": "unkillable", "key": key, "pids": [4711]})
    drained = bench.world.nodes[node]
    assert (drained.drain, drained.reason, drained.reason_uid) == (True, "Kill task failed", 0)
    assert bench.state(job) == "RUNNING"


def test_an_allocation_whose_command_does_not_come_again_ends_for_that_reason() -> None:
    bench = Bench(DECLARED)
    job = bench.submit(batch=None, allocator="salloc")
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
    bench.step(cmd.FinishAllocation(job=job, by=ALICE, abandoned=True))
    found = bench.world.jobs[job]
    assert (found.state.label, found.reason, found.exit) == ("TIMEOUT", "InactiveLimit", ExitCode())


OVER = ((0, None, 0), (120, None, 120), (120, 60, 60), (60, 0, 0))


@pytest.mark.parametrize(("site", "partition", "seconds"), OVER)
def test_a_job_may_run_so_far_beyond_its_limit(
    site: int, partition: int | None, seconds: int
) -> None:
    part = replace(FIRST, over_time=partition)
    bench = Bench(replace(DECLARED, partitions=(part,), over_time=site, kill_wait=30))
    job = bench.submit(time_limit=600)
    bench.journal("n1", {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    bench.step(seconds=600 + 30 + 60 + seconds - 1)
    assert bench.state(job) == "RUNNING"
    bench.step(seconds=1)
    assert bench.world.jobs[job].reason == "TimeLimit"


def test_a_machine_that_is_powered_down_goes_when_no_job_holds_it() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    (launch,) = [effect for effect in bench.effects if isinstance(effect, Launch)]
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    name = bench.world.jobs[job].shares[0].node
    node = bench.world.nodes[name]
    bench.step(rep.Booted(node=name, launch=node.launch))
    for state in ("power_down", "power_down_asap"):
        (reply,) = bench.step(cmd.SetNode(node=name, by=ROOT, state=state))
        assert reply is None
    assert bench.world.nodes[name].drain
    assert bench.world.nodes[name].state is NodeState.UP
    bench.run(job)
    bench.journal(name, {"kind": "gone", "attempt": bench.world.jobs[job].key})
    bench.step(seconds=1)
    assert bench.world.nodes[name].state is NodeState.TERMINATING


LONG, WIDE = {"time_limit": 9 * 86400}, {"resources": {"min_nodes": 3}}
ENFORCED = (
    # partitions must; what is asked for; partitions; what is said
    ("NO", LONG, ("ec2",), ""),
    ("ANY", LONG, ("ec2",), "Requested time limit is invalid (missing or exceeds some limit)"),
    ("ANY", LONG, ("ec2", "other"), ""),
    (
        "ALL",
        LONG,
        ("ec2", "other"),
        "Requested time limit is invalid (missing or exceeds some limit)",
    ),
    ("ALL", WIDE, ("other",), "Node count specification invalid"),
    ("ALL", {"qos": "normal"}, ("other",), ""),
)


@pytest.mark.parametrize(("how", "asked", "partitions", "said"), ENFORCED)
def test_what_would_only_wait_is_refused_where_limits_of_partitions_are_enforced(
    how: str, asked: dict[str, object], partitions: tuple[str, ...], said: str
) -> None:
    bench = Bench(replace(declared(max_nodes=2), enforce=how))
    assert answer(bench, ALICE, partitions=partitions, **asked) == said


def test_tasks_of_a_node_and_steps_of_a_job_have_a_most() -> None:
    bench = Bench(replace(DECLARED, max_tasks_per_node=2, max_step_count=1))
    with pytest.raises(BadOption, match="Task count specification invalid"):
        bench.submit(resources={"tasks_per_node": 3})
    job = bench.submit(batch=None, allocator="salloc", resources={"tasks_per_node": 2})
    step = StepSpec(name="true")
    first, second = bench.step(
        *(cmd.AddStep(job=job, by=ALICE, step=step, request=name) for name in "ab")
    )
    assert first == "0"
    assert isinstance(second, Conflict)
    assert second.message == "Step limit reached for this job"
