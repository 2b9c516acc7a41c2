"""Which jobs come in, which are refused, which wait for a limit."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.assoc import Association, Qos, book
from accounting.change import Change
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from broker.decide.possible import must_know_features
from broker.model import commands as cmd
from broker.model.errors import BadOption, OverLimit
from broker.model.site import Site
from broker.model.spec import ALL, ArraySpec, Gres, Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ELASTIC, ROOT, Bench

TWO_NODES = Resources(min_nodes=2, max_nodes=2)
IMPOSSIBLE = "Requested node configuration is not available"


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        ({}, 1),
        ({"exclusive": True}, 4),
        ({"min_cpus_per_node": 2}, 2),
        ({"min_nodes": 1, "max_nodes": 2}, 2),
    ],
)
def test_an_estimate_counts_the_cpus_of_the_nodes_it_names(
    asked: dict[str, Any], cpus: int
) -> None:
    bench = Bench(DECLARED)
    spec = TaskSpec(name="x", resources=Resources(**asked))
    (reply,) = bench.step(cmd.TestSubmit(spec=spec, owner=ALICE))
    assert reply.cpus == cpus


def with_limits(
    *,
    qos: Limits,
    flags: tuple[str, ...] = (),
    user: Limits | None = None,
    also: tuple[str, ...] = (),
) -> Site:
    """Everybody is in account lab, under QOS short if they ask for it."""
    limits = user or Limits()
    made = book(
        [],
        [
            Association(
                user=UserName(name),
                account=AccountName("root"),
                qos=("short", *also),
                limits=limits,
            )
            for name in ("alice", "bob")
        ],
        qos=[Qos(name="short", flags=frozenset(flags), limits=qos)],
        enforce=["associations", "limits", "qos"],
    )
    return replace(DECLARED, book=made)


@pytest.mark.parametrize(
    ("resources", "option", "message"),
    [
        (Resources(mem_per_node_mib=17_000), "mem", IMPOSSIBLE),
        (Resources(mem_per_cpu_mib=20_000), "mem", IMPOSSIBLE),
        (Resources(tasks_per_node=5), "mincpus", IMPOSSIBLE),
        (Resources(min_cpus_per_node=5), "mincpus", IMPOSSIBLE),
        (Resources(tmp_mib=100), "tmp", IMPOSSIBLE),
        (Resources(gres=(Gres(name="gpu", type="foo"),)), "", IMPOSSIBLE),
        (Resources(constraint="spot&ondemand"), "", IMPOSSIBLE),
        (Resources(min_nodes=1, max_nodes=1, tasks=2, tasks_per_node=1), "", IMPOSSIBLE),
        (Resources(min_nodes=1, max_nodes=1, tasks=5), "", IMPOSSIBLE),
        (Resources(exclude=("n1", "n2", "n3", "n4")), "", IMPOSSIBLE),
        (Resources(max_nodes=0), "nodes", "Node count specification invalid"),
        (Resources(constraint="spot|nosuch"), "constraint", "Invalid feature specification"),
    ],
)
def test_what_no_node_could_run_is_refused_by_the_option_that_asks_too_much(
    resources: Resources, option: str, message: str
) -> None:
    bench = Bench(DECLARED)
    with pytest.raises(BadOption) as refused:
        bench.submit(resources=resources)
    assert (refused.value.option, refused.value.message) == (option, message)
    assert not bench.world.jobs


@pytest.mark.parametrize(
    "resources",
    [Resources(tasks=17), Resources(min_nodes=9), Resources(min_nodes=5, max_nodes=5)],
)
def test_what_is_beyond_the_whole_partition_waits_but_is_refused_as_a_test(
    resources: Resources,
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(resources=resources)
    assert bench.world.jobs[job].reason == "PartitionConfig"
    spec = TaskSpec(name="job", batch=StepSpec(name="batch"), resources=resources)
    (reply,) = bench.step(cmd.TestSubmit(spec=spec, owner=ALICE))
    assert isinstance(reply, BadOption)
    assert reply.message == IMPOSSIBLE


def test_what_a_job_would_cost_is_told_with_the_age_of_an_old_price() -> None:
    bench = Bench(ELASTIC)
    spec = TaskSpec(name="job", batch=StepSpec(name="batch"), resources=Resources())
    (reply,) = bench.step(cmd.TestSubmit(spec=spec, owner=ALICE))
    assert isinstance(reply, cmd.StartEstimate) and reply.micro_usd > 0
    assert reply.old_price == ""
    bench.now = 2_000_000_000
    (later,) = bench.step(cmd.TestSubmit(spec=spec, owner=ALICE))
    assert isinstance(later, cmd.StartEstimate)
    assert later.old_price.endswith("days old: `spz catalog refresh`")


def test_a_site_may_keep_refused_jobs_as_failed_with_their_script() -> None:
    bench = Bench(replace(DECLARED, keep_refused_jobs=True))
    resources = Resources(gpus=(Gres(name="gpu", type="foo", count=1),))
    with pytest.raises(BadOption, match=IMPOSSIBLE):
        bench.submit(resources=resources)
    (job,) = bench.world.jobs.values()
    assert (job.shown_state, job.reason, str(job.exit)) == ("FAILED", "BadConstraints", "0:1")
    assert job.want.gres == (("gpu", 1),)
    assert bench.submit() == job.id + 1


def test_only_what_is_impossible_is_kept() -> None:
    bench = Bench(replace(DECLARED, keep_refused_jobs=True))
    with pytest.raises(BadOption):
        bench.submit(partitions=("nosuch",))
    assert not bench.world.jobs


def test_features_of_elastic_partitions_are_the_catalogues() -> None:
    bench = Bench(ELASTIC)
    with pytest.raises(BadOption, match=IMPOSSIBLE):
        bench.submit(resources=Resources(constraint="nosuch"))


@pytest.mark.parametrize(
    ("limits", "fields", "reason"),
    [
        (Limits(max_submit_jobs=1), {}, "QOSMaxSubmitJobPerUserLimit"),
        (Limits(grp_submit_jobs=1), {}, "QOSGrpSubmitJobsLimit"),
        (Limits(max_wall=60), {"time_limit": 61}, "QOSMaxWallDurationPerJobLimit"),
        (Limits(max_tres_per_job={"cpu": 1}), {"resources": Resources(tasks=2)}, "QOSMaxCpuPerJob"),
        (Limits(min_tres_per_job={"cpu": 2}), {}, "QOSMinCpuNotSatisfied"),
    ],
)
def test_a_submission_over_a_limit_is_refused_by_its_name(
    limits: Limits, fields: dict[str, object], reason: str
) -> None:
    bench = Bench(with_limits(qos=limits, flags=("DenyOnLimit",)))
    with pytest.raises(OverLimit) as refused:
        for _ in range(2):
            bench.submit(hold=True, **fields)
    assert refused.value.limit.startswith(reason)
    assert refused.value.message.startswith("Job violates accounting/QOS policy")


def test_every_component_counts_as_a_submitted_job() -> None:
    bench = Bench(with_limits(qos=Limits(max_submit_jobs=2)))
    component = TaskSpec(name="het", batch=StepSpec(name="batch"))
    for number, (more, taken) in enumerate([(2, False), (1, True)]):
        asked = cmd.Submit(
            spec=component, more=(component,) * more, owner=ALICE, request=f"het{number}"
        )
        (reply,) = bench.step(asked)
        assert isinstance(reply, OverLimit) is not taken
    assert len(bench.world.jobs) == 2


def test_every_task_of_an_array_counts_as_a_submitted_job() -> None:
    bench = Bench(with_limits(qos=Limits(max_submit_jobs=3)))
    with pytest.raises(OverLimit):
        bench.submit(array=ArraySpec(tasks=(1, 2, 3, 4)))
    first = bench.submit(array=ArraySpec(tasks=(1, 2)), hold=True)
    bench.submit(hold=True)
    with pytest.raises(OverLimit):
        bench.submit(hold=True)
    bench.submit(BOB, hold=True)
    bench.step(cmd.Cancel(target=cmd.Target(first), by=ALICE))
    bench.submit(hold=True)


@pytest.mark.parametrize(
    ("site", "fields", "reason"),
    [
        (with_limits(qos=Limits(max_jobs=2)), {}, "QOSMaxJobsPerUserLimit"),
        (with_limits(qos=Limits(grp_jobs=2)), {}, "QOSGrpJobsLimit"),
        (with_limits(qos=Limits(), user=Limits(max_jobs=2)), {}, "AssocMaxJobsLimit"),
        (
            with_limits(qos=Limits(max_tres_per_user={"gres/gpu": 2})),
            {"resources": Resources(gres=(Gres(name="gpu"),))},
            "QOSMaxGRESPerUser",
        ),
        (with_limits(qos=Limits(grp_tres={"cpu": 2})), {}, "QOSGrpCpuLimit"),
    ],
)
def test_a_job_waits_while_others_use_its_limit_up(
    site: Site, fields: dict[str, object], reason: str
) -> None:
    bench = Bench(site)
    first, second, third = (bench.submit(**fields) for _ in range(3))
    assert [bench.world.jobs[job].reason for job in (first, second, third)] == [
        "None",
        "None",
        reason,
    ]
    bench.run(first)
    bench.step()
    assert bench.state(third) == "CONFIGURING"


@pytest.mark.parametrize("limits", [{"grp_tres": {"node": 1}}, {"max_tres_per_user": {"node": 1}}])
def test_a_node_that_several_jobs_share_counts_once(limits: dict[str, object]) -> None:
    bench = Bench(with_limits(qos=Limits(**limits)))  # type: ignore[arg-type]
    shared = [bench.submit(resources=Resources(cpus_per_task=2)) for _ in range(2)]
    assert {share.node for job in shared for share in bench.world.jobs[job].shares} == {"n1"}
    full = bench.submit(resources=Resources(cpus_per_task=2))
    bench.step()
    assert bench.state(full) == "PENDING"
    assert "Node" in bench.world.jobs[full].reason
    (used,) = bench.world.tally.values()
    assert (used.held["node"], used.in_use["node"]) == (2, 1)
    bench.run(shared[0])
    bench.journal("n1", {"kind": "gone", "attempt": f"{shared[0]}/1"})
    bench.step()
    assert [share.node for share in bench.world.jobs[full].shares] == ["n1"]


def test_a_job_that_waits_for_a_limit_keeps_nobody_else_waiting() -> None:
    bench = Bench(with_limits(qos=Limits(max_jobs=1)))
    bench.submit()
    bench.submit()
    assert bench.state(bench.submit(BOB)) == "CONFIGURING"


def test_tasks_of_an_array_start_up_to_the_limit() -> None:
    bench = Bench(with_limits(qos=Limits(max_jobs=2)))
    array = bench.submit(array=ArraySpec(tasks=(1, 2, 3, 4)))
    states = sorted(bench.state(job.id) for job in bench.world.array_jobs(array))
    assert states == ["CONFIGURING", "CONFIGURING", "PENDING"]
    assert bench.world.jobs[array].reason == "QOSMaxJobsPerUserLimit"


def test_what_is_counted_comes_back_to_nothing() -> None:
    bench = Bench(with_limits(qos=Limits(max_jobs=2)))
    jobs = [bench.submit() for _ in range(3)]
    for job in jobs:
        bench.run(job)
    (used,) = bench.world.tally.values()
    assert (used.queued, used.running, set(used.held.values())) == (0, 0, {0})


def test_a_cancelled_job_that_never_started_keeps_the_reason_it_waited_for() -> None:
    bench = Bench(DECLARED)
    held, begun = bench.submit(hold=True), bench.submit()
    for job in (held, begun):
        bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    reasons = [bench.world.jobs[job].reason for job in (held, begun)]
    assert reasons == ["JobHeldUser", "None"]


def test_cancelling_all_waiting_tasks_ends_the_arrays_record() -> None:
    bench = Bench(DECLARED)
    array = bench.submit(array=ArraySpec(tasks=(1, 2)), hold=True)
    bench.step(cmd.Cancel(target=cmd.Target(array, (1, 2)), by=ALICE))
    assert bench.state(array) == "CANCELLED"


def test_a_released_job_shows_no_reason_until_it_is_looked_at_and_starts_at_its_time() -> None:
    bench = Bench(DECLARED)
    job = bench.submit(begin=bench.now + 100, hold=True)
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None), full=False)
    assert (bench.world.jobs[job].reason, bench.engine.room_made) == ("None", False)
    assert bench.engine.next_begin == bench.now + 100


@pytest.mark.parametrize(
    ("offered", "constraint", "known"),
    [
        (None, "nosuch", True),
        (None, "((", False),
        (frozenset({"m7i", "spot"}), "m7i&spot", True),
        (frozenset({"m7i", "spot"}), "M7I", True),
        (frozenset({"m7i", "spot"}), "m7i|nosuch", False),
        (frozenset(), "nosuch", False),
    ],
)
def test_words_that_neither_a_node_nor_the_catalogue_knows_are_refused(
    offered: frozenset[str] | None, constraint: str, known: bool
) -> None:
    site = replace(ELASTIC, offered_features=offered)
    if known:
        must_know_features(site, constraint)
        return
    with pytest.raises(BadOption, match="Invalid feature specification"):
        must_know_features(site, constraint)


def test_temporary_disk_is_looked_at_on_each_node() -> None:
    nodes = tuple(replace(n, tmp_disk_mib=100 if n.name == "n3" else 0) for n in DECLARED.nodes)
    bench = Bench(replace(DECLARED, nodes=nodes))
    job = bench.submit(resources=Resources(tmp_mib=50))
    assert [share.node for share in bench.world.jobs[job].shares] == ["n3"]


def test_a_task_that_was_possible_is_judged_anew_once_its_nodes_are_others() -> None:
    bench = Bench(DECLARED)
    spec = TaskSpec(
        name="job", batch=StepSpec(name="batch"), resources=Resources(min_cpus_per_node=4)
    )

    def submitted(request: str) -> object:
        ask = cmd.Submit(spec=spec, owner=ALICE, request=request)
        return bench.step(ask, full=False)[0]

    assert [submitted("r1"), submitted("r2")] == [1, 2]
    smaller = tuple(replace(node, whole=replace(node.whole, cpu=2)) for node in DECLARED.nodes)
    bench.world.site = replace(DECLARED, nodes=smaller)
    assert isinstance(submitted("r3"), BadOption)


def test_a_job_does_not_move_where_too_many_are_submitted_unless_an_operator_moves_it() -> None:
    bench = Bench(with_limits(qos=Limits(max_submit_jobs=1), also=("normal",)))
    bench.submit(hold=True, qos="short")
    job = bench.submit(hold=True, qos="normal")
    (refused,) = bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, qos="short"))
    assert isinstance(refused, OverLimit)
    assert refused.limit == "QOSMaxSubmitJobPerUserLimit"
    (same,) = bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, qos="normal"))
    assert same is None
    (moved,) = bench.step(cmd.Update(target=cmd.Target(job), by=ROOT, qos="short"))
    assert moved is None


def test_an_association_in_a_partition_counts_jobs_of_its_own() -> None:
    few = Limits(max_jobs=1)
    general = Association(user=UserName("alice"), account=AccountName("root"), limits=few)
    made = book([], [general, replace(general, partition="ec2")], enforce=["limits"])
    other = replace(DECLARED.partitions[0], name="more", default=False)
    bench = Bench(replace(DECLARED, partitions=(*DECLARED.partitions, other), book=made))
    jobs = [bench.submit(partitions=(name,)) for name in ("ec2", "more", "ec2", "more")]
    assert [bench.world.jobs[job].reason for job in jobs] == [
        "None",
        "None",
        "AssocMaxJobsLimit",
        "AssocMaxJobsLimit",
    ]


@pytest.mark.parametrize(
    ("limits", "whole"),
    [
        ({"max_tres_per_user": {"cpu": 3}}, "QOSMaxCpuPerUserLimit"),
        ({"grp_tres": {"gres/gpu": 1}}, "QOSGrpGRES"),
        ({"max_tres_per_node": {"mem": 8000}}, "QOSMaxMemoryPerNode"),
    ],
)
def test_what_a_job_would_hold_counts_where_it_takes_nodes_whole(
    limits: dict[str, object], whole: str
) -> None:
    bench = Bench(with_limits(qos=Limits(**limits)))  # type: ignore[arg-type]
    asked = Resources(mem_per_node_mib=1000)
    small = bench.submit(resources=asked)
    bench.step(cmd.Cancel(target=cmd.Target(small), by=ALICE))
    large = bench.submit(
        resources=asked.model_copy(update={"exclusive": True, "mem_per_node_mib": ALL})
    )
    assert (bench.world.jobs[small].attempt, bench.world.jobs[large].reason) == (1, whole)


def test_of_machines_that_a_job_takes_whole_only_those_within_its_limits_are_bought() -> None:
    made = with_limits(qos=Limits(grp_tres={"cpu": 2})).book
    bench = Bench(replace(ELASTIC, book=made))
    job = bench.submit(resources=Resources(exclusive=True))
    assert bench.world.jobs[job].alloc.cpu == 2
    again = bench.submit(resources=Resources(exclusive=True))
    assert bench.world.jobs[again].reason == "QOSGrpCpuLimit"


@pytest.mark.parametrize(
    ("flag", "partition", "fields", "reason"),
    [
        ("PartitionTimeLimit", {"max_time": 60}, {"time_limit": 600}, "PartitionTimeLimit"),
        ("PartitionMaxNodes", {"max_nodes": 1}, {"resources": TWO_NODES}, "PartitionNodeLimit"),
        ("PartitionMinNodes", {"min_nodes": 2}, {}, "PartitionNodeLimit"),
    ],
)
def test_a_qos_lets_its_jobs_pass_a_limit_of_the_partition(
    flag: str, partition: dict[str, object], fields: dict[str, object], reason: str
) -> None:
    site = with_limits(qos=Limits())
    narrow = replace(site.partitions[0], **partition)  # type: ignore[arg-type]
    bench = Bench(replace(site, partitions=(narrow, *site.partitions[1:])))
    job = bench.submit(**fields)
    assert bench.world.jobs[job].reason == reason
    more = Change(qos=(Qos(name="short", flags=frozenset({flag})),))
    basis = bench.world.site.book
    bench.step(cmd.ChangeBook(change=more, basis=basis, by=ROOT, action="Modify QOS"))
    bench.step(full=True, seconds=1)
    assert bench.state(job) == "CONFIGURING"


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"time_limit": 600, "time_min": 30}, 30),
        ({"time_limit": "UNLIMITED", "time_min": 30}, 30),
        ({"time_limit": 50, "time_min": 30}, 50),
        ({"time_limit": 600, "time_min": 90}, None),
    ],
)
def test_a_job_over_its_partitions_limit_starts_with_the_least_that_it_asked_for(
    fields: dict[str, object], limit: int | None
) -> None:
    site = with_limits(qos=Limits())
    narrow = replace(site.partitions[0], max_time=60)
    bench = Bench(replace(site, partitions=(narrow, *site.partitions[1:])))
    job = bench.submit(**fields)
    bench.step(full=True, seconds=1)
    found = bench.world.jobs[job]
    assert (found.time_limit if found.shares else None) == limit
    assert found.reason == ("None" if limit else "PartitionTimeLimit")


def test_a_qos_that_requires_a_reservation_takes_no_jobs_without_one() -> None:
    bench = Bench(with_limits(qos=Limits(), flags=("RequiresReservation",)))
    with pytest.raises(BadOption, match="Invalid qos specification"):
        bench.submit()


def test_nor_does_a_job_come_under_such_a_qos_later() -> None:
    site = with_limits(qos=Limits(), flags=("RequiresReservation",), also=("normal",))
    bench = Bench(site)
    job = bench.submit(hold=True, qos="normal")
    (refused,) = bench.step(cmd.Update(target=cmd.Target(job), by=ALICE, qos="short"))
    assert isinstance(refused, BadOption)
    assert refused.option == "qos"


@pytest.mark.parametrize(
    ("flags", "state"), [(("UsageFactorSafe",), "PENDING"), ((), "CONFIGURING")]
)
def test_where_it_has_to_be_safe_the_usage_factor_may_count(
    flags: tuple[str, ...], state: str
) -> None:
    limits = Limits(grp_tres_mins={"cpu": 15})
    grade = Qos(name="short", usage_factor=2.0, flags=frozenset(flags), limits=limits)
    own = Association(user=UserName("alice"), account=AccountName("root"), qos=("short",))
    made = book([], [own], qos=[grade], enforce=["safe", "qos"])
    bench = Bench(replace(DECLARED, book=made))
    assert bench.state(bench.submit(time_limit=600)) == state


HALVED = (
    # what a job of a cpu and 1800 s breaks where its QOS counts twice, and how many such start
    ({"grp_tres_mins": {"cpu": 100}}, (), 2),
    ({"grp_tres_mins": {"cpu": 100}}, ("UsageFactorSafe",), 1),
    ({"grp_tres_run_mins": {"cpu": 100}}, (), 2),
    ({"grp_tres_run_mins": {"cpu": 100}}, ("UsageFactorSafe",), 1),
    ({"max_tres_mins_per_job": {"cpu": 50}}, (), 3),
    ({"max_tres_mins_per_job": {"cpu": 50}}, ("UsageFactorSafe",), 0),
    ({"max_tres_mins_per_job": {"cpu": 50}}, ("UsageFactorSafe", "DenyOnLimit"), 0),
    ({"max_wall": 3000}, (), 3),
    ({"max_wall": 3000}, ("UsageFactorSafe",), 0),
    ({"max_wall": 3000}, ("UsageFactorSafe", "DenyOnLimit"), 0),
    ({"grp_wall": 3000}, ("UsageFactorSafe",), 0),
)
"""As a real 22.05 starts them with AccountingStorageEnforce=safe."""


@pytest.mark.parametrize(("limits", "flags", "started"), HALVED)
def test_what_may_be_used_counts_times_the_factor_of_the_qos(
    limits: dict[str, Any], flags: tuple[str, ...], started: int
) -> None:
    grade = Qos(name="short", usage_factor=2.0, flags=frozenset(flags), limits=Limits(**limits))
    own = Association(user=UserName("alice"), account=AccountName("root"), qos=("short",))
    bench = Bench(replace(DECLARED, book=book([], [own], qos=[grade], enforce=["safe", "qos"])))
    jobs = [bench.submit(time_limit=1800, resources={"cpus_per_task": 1}) for _ in range(3)]
    assert [bench.state(job) for job in jobs].count("CONFIGURING") == started
