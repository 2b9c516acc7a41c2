"""What the engine decides, step by step, over a store in memory and no outside at all."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres, gres_counts
from broker.effects import effects_due
from broker.engine import Engine
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Kill, Launch, Prepare, SendSignal, StartStep, Terminate
from broker.model.errors import BadOption, Busy, Conflict, Denied, Refusal, Unknown, Width
from broker.model.inbox import Message
from broker.model.job import Hold, JobState, Owner
from broker.model.lifecycle import Life, apply, life
from broker.model.offer import Machine, MachineState, Market
from broker.model.site import DeclaredNode, Elastic, Partition, Site
from broker.model.spec import (
    ArraySpec,
    Dependency,
    DependencyKind,
    Gres,
    Resources,
    StepSpec,
    TaskSpec,
    Where,
)
from broker.optimize.bundled import bundled
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from broker.world import World
from tests.sim.memory_store import MemoryStore

ALICE = Owner(2001, 2001, "alice", "alice")
BOB = Owner(2002, 2002, "bob", "bob")
ROOT = Owner(0, 0, "root", "root")
START = 1_000_000
NODES = tuple(
    DeclaredNode(
        name=f"n{i}",  # type: ignore[arg-type]
        whole=Tres(cpu=4, mem_mib=16000, node=1, gres=gres_counts({"gpu:a10g": 2})),
        features=("spot" if i < 3 else "ondemand",),
        weight=i,
    )
    for i in (1, 2, 3, 4)
)
DECLARED = Site(
    partitions=(
        Partition(
            "ec2",
            default=True,
            nodes=tuple(n.name for n in NODES),
            def_mem_per_cpu_mib=1024,
            max_time=7 * 86400,
            default_time=3600,
        ),
        Partition("down", state="DOWN", nodes=("n1",)),  # type: ignore[arg-type]
    ),
    nodes=NODES,
)
ELASTIC = Site(
    partitions=(
        Partition("ec2", default=True, elastic=Elastic("ec2-", 8), def_mem_per_cpu_mib=1024),
    )
)
CATALOG = bundled("local")


class Bench:
    """An engine and short words for what tests do with it."""

    def __init__(self, site: Site, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore()
        self.now = START
        self.requests = 0
        market = Quotes({"local": CATALOG}, Cooldown())
        self.engine = Engine.recovered(
            world=World(site), store=self.store, market=market, epoch=1, now=self.now
        )
        self.engine.configure(self.now)
        for node in list(self.world.nodes.values()):
            self.step(rep.Booted(node=node.name, launch=node.launch))

    @property
    def world(self) -> World:
        return self.engine.world

    def step(self, *messages: Message, full: bool = True, seconds: int = 0) -> list[object]:
        self.now += seconds
        outcome = self.engine.step(messages, self.now, full_pass=full)
        self.effects = outcome.effects
        for job in self.world.jobs.values():
            self._is_fold_of_events(job.id)
        return outcome.replies

    def _is_fold_of_events(self, job_id: JobId) -> None:
        folded = None
        for number, event in self.store.events:
            if getattr(event, "job", None) == job_id:
                folded = apply(folded, event, version=number)  # type: ignore[arg-type]
        if not self.store.full:
            assert folded == self.world.jobs[job_id]

    def submit(self, owner: Owner = ALICE, **fields: object) -> JobId:
        self.requests += 1
        spec = TaskSpec(**{"name": "job", "batch": StepSpec(name="batch"), **fields})
        (reply,) = self.step(
            cmd.Submit(spec=spec, owner=owner, request=f"r{self.requests}"), full=False
        )
        if isinstance(reply, Exception):
            raise reply
        if self.engine.next_begin == self.now + 1:
            self.step(seconds=1)  # purchases wait that long for more of their kind
        return reply  # type: ignore[return-value]

    def journal(self, node: str, *records: dict[str, object]) -> None:
        found = self.world.nodes[node]  # type: ignore[index]
        whole = [{"at": self.now, **record} for record in records]
        self.step(
            rep.Journal(
                node=found.name,
                launch=found.launch,
                start=found.journal,
                position=found.journal + 10,
                records=tuple(whole),
            )
        )

    def run(self, job: JobId, **end: object) -> None:
        """The job's batch step starts and ends on its node."""
        key = f"{self.world.jobs[job].key}/batch"
        node = self.world.jobs[job].shares[0].node
        self.journal(node, {"kind": "started", "key": key})
        self.journal(node, {"kind": "exited", "key": key, "code": 0, "signal": 0, **end})

    def state(self, job: JobId) -> str:
        return self.world.jobs[job].shown_state


@pytest.fixture
def bench() -> Bench:
    return Bench(DECLARED)


def test_another_configuration_looks_another_way_though_no_event_tells_of_it() -> None:
    bench = Bench(DECLARED)
    bench.step(seconds=1)
    before = bench.engine.snapshot
    root = Owner(0, 0, "root", "root")
    site = replace(bench.world.site, admins=frozenset({0}))
    bench.world.site = site
    bench.step(cmd.Reconfigure(site=replace(site, min_job_age=7), by=root))
    bench.step(seconds=1)
    after = bench.engine.snapshot
    assert after.site.min_job_age == 7
    assert after.look != before.look
    bench.step(seconds=1)
    assert bench.engine.snapshot.look == after.look


def test_ids_that_nodes_know_are_not_given_again_after_a_restore() -> None:
    bench = Bench(DECLARED)
    node = next(iter(bench.world.nodes.values()))
    told = [{"at": 1, "kind": "exited", "key": "4711/1/batch", "attempt": "4711/1", "code": 0}]
    bench.step(rep.Journal(node=node.name, launch=node.launch, start=0, position=99, records=told))
    (job,) = bench.step(
        cmd.Submit(
            spec=TaskSpec(name="job", batch=StepSpec(name="batch")), owner=ALICE, request="r4712"
        )
    )
    assert job == 4712


def test_a_job_that_fits_starts_in_its_own_submit_step(bench: Bench) -> None:
    job = bench.submit()
    assert bench.state(job) == "CONFIGURING"
    assert bench.world.jobs[job].shares[0].node == "n1"
    assert [effect.token for effect in bench.effects] == [f"start {job}/1/batch"]


@pytest.mark.parametrize(
    ("end", "state", "reason", "code"),
    [
        ({"code": 0}, "COMPLETED", "None", "0:0"),
        ({"code": 3}, "FAILED", "NonZeroExitCode", "3:0"),
        ({"signal": 9}, "FAILED", "RaisedSignal:9(Killed)", "0:9"),
        ({"signal": 15, "cause": "time_limit"}, "TIMEOUT", "TimeLimit", "0:15"),
        ({"code": 0, "cause": "time_limit"}, "TIMEOUT", "TimeLimit", "0:0"),
        ({"cause": "out_of_memory"}, "OUT_OF_MEMORY", "OutOfMemory", "0:125"),
        (
            {"cause": "launch_failed"},
            "FAILED",
            "RaisedSignal:53(Real-time signal 19)",
            "0:53",
        ),
    ],
)
def test_the_end_of_the_batch_step_decides_the_outcome(
    bench: Bench, end: dict[str, object], state: str, reason: str, code: str
) -> None:
    job = bench.submit()
    bench.run(job, **end)
    found = bench.world.jobs[job]
    assert (found.shown_state, found.reason, str(found.exit)) == (state, reason, code)
    assert found.over
    assert not bench.world.holders["n1"]  # type: ignore[index]


def test_jobs_share_a_node_until_a_resource_runs_out(bench: Bench) -> None:
    gpu = Resources(gres=(Gres(name="gpu"),))
    first = [bench.submit(resources=gpu) for _ in range(2)]
    third = bench.submit(resources=gpu)
    nodes = [bench.world.jobs[job].shares[0] for job in (*first, third)]
    assert [share.node for share in nodes] == ["n1", "n1", "n2"]
    assert [share.gpu_ids for share in nodes] == [(0,), (1,), (0,)]


def test_tasks_fill_nodes_in_order_as_slurm_does(bench: Bench) -> None:
    job = bench.submit(resources=Resources(tasks=6))
    shares = bench.world.jobs[job].shares
    assert [(share.node, share.tres.cpu) for share in shares] == [("n1", 4), ("n2", 2)]
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    job = bench.submit(resources=Resources(tasks=3, min_nodes=2, max_nodes=2))
    assert [share.tres.cpu for share in bench.world.jobs[job].shares] == [2, 1]


def test_a_request_that_no_node_can_meet_is_refused_and_leaves_nothing(bench: Bench) -> None:
    before = bench.world.next_job_id, len(bench.store.jobs)
    for resources in (
        Resources(mem_per_node_mib=999_000),
        Resources(cpus_per_task=5),
        Resources(gres=(Gres(name="gpu", count=3),)),
        Resources(cpus_exactly=1),
        Resources(any_of=(Where(region="us-east-1"),)),
    ):
        with pytest.raises(BadOption, match="Requested node configuration is not available"):
            bench.submit(resources=resources)
    with pytest.raises(BadOption, match="Invalid partition name specified"):
        bench.submit(partitions=("nosuch",))
    assert (bench.world.next_job_id, len(bench.store.jobs)) == before


def test_more_nodes_than_there_are_wait_with_a_reason(bench: Bench) -> None:
    job = bench.submit(resources=Resources(min_nodes=5, max_nodes=5))
    assert bench.world.jobs[job].reason == "PartitionConfig"
    down = bench.submit(partitions=("down",))
    assert bench.world.jobs[down].reason == "PartitionDown"


def test_a_submission_repeated_with_its_request_id_makes_one_job(bench: Bench) -> None:
    spec = TaskSpec(name="x", batch=StepSpec(name="batch"))
    asked = cmd.Submit(spec=spec, owner=ALICE, request="again")
    replies = [*bench.step(asked, asked), *bench.step(asked)]
    assert replies == [replies[0]] * 3
    again = Bench(DECLARED, bench.store)
    assert again.step(asked) == [replies[0]]
    assert len(bench.store.jobs) == 1


def test_a_full_disk_refuses_submissions_and_changes_nothing(bench: Bench) -> None:
    running = bench.submit()
    bench.store.full = True
    with pytest.raises(Busy):
        bench.submit()
    assert set(bench.world.jobs) == {running}
    bench.store.full = False
    assert bench.submit() == running + 1


def test_a_held_job_waits_for_its_release(bench: Bench) -> None:
    job = bench.submit(hold=True)
    assert (bench.world.jobs[job].reason, bench.world.jobs[job].priority) == ("JobHeldUser", 0)
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None))
    assert bench.state(job) == "CONFIGURING"


def test_a_user_cannot_release_an_operators_hold(bench: Bench) -> None:
    job = bench.submit(hold=True)
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ROOT, hold=Hold.ADMIN))
    (reply,) = bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None))
    assert isinstance(reply, Denied)
    assert bench.world.jobs[job].reason == "JobHeldAdmin"


@pytest.mark.parametrize(
    "ask",
    [
        lambda target: cmd.Cancel(target=target, by=BOB),
        lambda target: cmd.SetHold(target=target, by=BOB, hold=Hold.USER),
        lambda target: cmd.Requeue(target=target, by=BOB),
        lambda target: cmd.Update(target=target, by=BOB, name="mine"),
        lambda target: cmd.Signal(target=target, by=BOB, number=10),
    ],
)
def test_another_users_job_cannot_be_changed(bench: Bench, ask: object) -> None:
    job = bench.submit()
    before = bench.world.jobs[job]
    (reply,) = bench.step(ask(cmd.Target(job)))  # type: ignore[operator]
    assert isinstance(reply, Denied)
    assert bench.world.jobs[job] == before


def test_begin_time_holds_a_job_back(bench: Bench) -> None:
    job = bench.submit(begin=START + 100)
    assert bench.world.jobs[job].reason == "BeginTime"
    bench.step(seconds=50)
    assert bench.world.jobs[job].state is JobState.PENDING
    bench.step(seconds=50)
    assert bench.state(job) == "CONFIGURING"


@pytest.mark.parametrize(
    ("kind", "code", "state", "reason"),
    [
        ("afterok", 0, "CONFIGURING", "None"),
        ("afterok", 1, "PENDING", "DependencyNeverSatisfied"),
        ("afternotok", 1, "CONFIGURING", "None"),
        ("afternotok", 0, "PENDING", "DependencyNeverSatisfied"),
        ("afterany", 1, "CONFIGURING", "None"),
        ("after", 1, "CONFIGURING", "None"),
        ("singleton", 1, "CONFIGURING", "None"),
    ],
)
def test_dependencies_open_when_the_other_job_has_ended(
    bench: Bench, kind: str, code: int, state: str, reason: str
) -> None:
    first = bench.submit()
    wish = Dependency(kind=DependencyKind(kind), job=None if kind == "singleton" else first)
    second = bench.submit(after=(wish,))
    assert bench.world.jobs[second].reason == "Dependency"
    bench.run(first, code=code)
    assert (bench.state(second), bench.world.jobs[second].reason) == (state, reason)


def test_a_job_that_can_never_start_ends_if_it_asked_for_that(bench: Bench) -> None:
    first = bench.submit()
    wish = Dependency(kind=DependencyKind.AFTEROK, job=first)
    second = bench.submit(after=(wish,), kill_on_invalid_dep=True)
    third = bench.submit(after=(Dependency(kind=DependencyKind.AFTERANY, job=second),))
    bench.run(first, code=1)
    assert bench.state(second) == "CANCELLED"
    assert bench.state(third) == "CONFIGURING"


def test_afterok_of_an_unknown_job_is_refused_and_afterany_is_met(bench: Bench) -> None:
    with pytest.raises(BadOption, match="Job dependency problem"):
        bench.submit(after=(Dependency(kind=DependencyKind.AFTEROK, job=999),))
    job = bench.submit(after=(Dependency(kind=DependencyKind.AFTERANY, job=999),))
    assert bench.state(job) == "CONFIGURING"


def test_array_elements_are_split_off_and_the_last_keeps_the_arrays_id(bench: Bench) -> None:
    base = bench.submit(array=ArraySpec(tasks=(0, 1, 2)))
    places = {job.id: job.array.task for job in bench.world.array_jobs(base) if job.array}
    assert places == {base + 1: 0, base + 2: 1, base: 2}


def test_the_limit_of_an_array_holds_its_elements_back(bench: Bench) -> None:
    base = bench.submit(array=ArraySpec(tasks=(1, 2, 3), limit=1))
    assert bench.world.jobs[base].reason == "JobArrayTaskLimit"
    assert bench.world.jobs[base].array.waiting == (2, 3)  # type: ignore[union-attr]
    bench.run(JobId(base + 1))
    assert bench.world.jobs[base].array.waiting == (3,)  # type: ignore[union-attr]


def test_aftercorr_pairs_elements_index_by_index(bench: Bench) -> None:
    first = bench.submit(array=ArraySpec(tasks=(1, 2)))
    wish = Dependency(kind=DependencyKind.AFTERCORR, job=first)
    second = bench.submit(array=ArraySpec(tasks=(1, 2)), after=(wish,))
    assert bench.world.jobs[second].reason == "Dependency"
    bench.run(JobId(first + 1))
    started = [j.array.task for j in bench.world.array_jobs(second) if j.configuring and j.array]
    assert started == [1]


def test_cancelling_one_waiting_element_leaves_the_others(bench: Bench) -> None:
    base = bench.submit(array=ArraySpec(tasks=(1, 2, 3)), hold=True)
    bench.step(cmd.Cancel(target=cmd.Target(base, (2,)), by=ALICE))
    assert bench.world.jobs[base].array.waiting == (1, 3)  # type: ignore[union-attr]
    states = {j.array.task: j.shown_state for j in bench.world.array_jobs(base) if j.array}
    assert states == {None: "PENDING"}


def test_a_cancelled_job_completes_until_its_processes_are_gone(bench: Bench) -> None:
    job = bench.submit()
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert bench.state(job) == "COMPLETING"
    assert [type(effect) for effect in bench.effects] == [Kill]
    bench.journal("n1", {"kind": "exited", "key": f"{job}/1/batch", "signal": 15})
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]
    assert (found.shown_state, str(found.exit), found.ended_by) == ("CANCELLED", "0:15", 2001)
    (reply,) = bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert isinstance(reply, Conflict)
    (reply,) = bench.step(cmd.Cancel(target=cmd.Target(JobId(99)), by=ALICE))
    assert isinstance(reply, Unknown)


def test_a_requeued_job_comes_back_under_its_id_after_the_delay(bench: Bench) -> None:
    job = bench.submit()
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    bench.step(cmd.Requeue(target=cmd.Target(job), by=ALICE))
    assert life(bench.world.jobs[job]) is Life.REQUEUING
    bench.journal("n1", {"kind": "gone", "attempt": f"{job}/1"})
    found = bench.world.jobs[job]
    assert (found.state, found.restarts, found.reason) == (JobState.PENDING, 1, "BeginTime")
    assert [run.job.attempt for run in bench.store.runs] == [1]
    bench.step(seconds=DECLARED.requeue_delay)
    assert bench.world.jobs[job].key == f"{job}/2"
    bench.journal("n1", {"kind": "exited", "key": f"{job}/1/batch", "code": 7})
    assert bench.state(job) == "CONFIGURING", "late words of the old attempt are refused"


def test_words_of_a_journal_count_once(bench: Bench) -> None:
    job = bench.submit()
    node = bench.world.nodes["n1"]  # type: ignore[index]
    report = rep.Journal(
        node=node.name,
        launch=0,
        start=0,
        position=50,
        records=({"kind": "started", "key": f"{job}/1/batch", "at": bench.now},),
    )
    bench.step(report, report)
    events = len(bench.store.events)
    bench.step(report)
    assert len(bench.store.events) == events
    assert bench.state(job) == "RUNNING"


def test_backfill_starts_what_does_not_delay_the_first_in_line(bench: Bench) -> None:
    running = bench.submit(resources=Resources(cpus_per_task=4), time_limit=600)
    whole = Resources(min_nodes=4, max_nodes=4, exclusive=True)
    big = bench.submit(resources=whole)
    short = bench.submit(time_limit=300)
    long = bench.submit(time_limit=1200)
    bench.step()
    assert bench.state(running) == "CONFIGURING"
    assert bench.world.jobs[big].reason == "Resources"
    assert bench.state(short) == "CONFIGURING"
    assert bench.world.jobs[long].reason == "Priority"


def refused(launch: Launch) -> rep.NotLaunched:
    """None of its rungs has capacity."""
    tried = [
        rep.Tried(rung.offer, Refusal.CAPACITY, Width.TYPE_IN_REGION, "no capacity")
        for rung in launch.rungs
    ]
    return rep.NotLaunched(group=launch.group, tried=tuple(tried), nodes=len(launch.nodes))


def machine(launch: rep.Launched | Launch, now: int) -> tuple[Machine, ...]:
    offer = launch.rungs[0].offer  # type: ignore[union-attr]
    return tuple(
        Machine(
            id=f"m-{name}",
            node=name,
            launch=number,
            token=launch.group,
            state=MachineState.RUNNING,
            region=offer.region,
            zone=offer.zones[0],
            instance_type=offer.instance_type,
            market=Market.ON_DEMAND,
            micro_usd_per_hour=offer.micro_usd_per_hour,
            launched_at=now,
            running_at=now,
            address="/nowhere",
        )
        for name, number in launch.nodes  # type: ignore[union-attr]
    )


def bring_up(bench: Bench) -> Launch:
    (effect,) = [e for e in bench.effects if isinstance(e, Launch)]
    bench.step(rep.Launched(group=effect.group, machines=machine(effect, bench.now)))
    (prepare,) = [e for e in bench.effects if isinstance(e, Prepare)]
    bench.step(rep.Booted(node=prepare.node.name, launch=prepare.node.launch), seconds=30)
    return effect


def test_a_machine_is_recorded_before_it_is_bought_and_let_go_when_idle() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(resources=Resources(gres=(Gres(name="gpu", type="A10G"),)))
    node = bench.store.nodes["ec2-1"]  # type: ignore[index]
    assert (node.state.label, node.cause.label) == ("LAUNCHING", f"{job}/1")
    bring_up(bench)
    assert [type(effect) for effect in bench.effects] == [StartStep]
    bench.run(job)
    assert bench.world.nodes["ec2-1"].idle_since == bench.now  # type: ignore[index]
    bench.step(seconds=300)
    (effect,) = bench.effects
    assert isinstance(effect, Terminate)
    gone = replace(effect.machine, state=MachineState.TERMINATED, terminated_at=bench.now)  # type: ignore[type-var]
    bench.step(rep.Terminated(node=effect.node, launch=effect.launch, machine=gone))
    assert not bench.world.nodes
    price = effect.machine.micro_usd_per_hour  # type: ignore[union-attr]
    assert sum(entry.cost for entry in bench.store.entries.values()) == price * 330 // 3600
    charged = {entry.job for entry in bench.store.entries.values() if entry.cost}
    assert charged == {job, None}, "boot to the job that caused it, idle time to nobody's"


def test_when_every_offer_is_refused_the_job_waits_and_says_why() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    (effect,) = bench.effects
    assert isinstance(effect, Launch)
    tried = tuple(
        rep.Tried(rung.offer, Refusal.CAPACITY, Width.TYPE_IN_REGION, "no capacity")
        for rung in effect.rungs
    )
    bench.step(rep.NotLaunched(group=effect.group, tried=tried), full=False)
    found = bench.world.jobs[job]
    assert (found.state, found.reason) == (JobState.PENDING, "Resources")
    assert "no capacity" in found.detail
    assert not bench.world.nodes


def test_a_job_cancelled_before_its_machine_is_up_leaves_the_machine_to_idle_out() -> None:
    bench = Bench(ELASTIC)
    job = bench.submit()
    (launch,) = [e for e in bench.effects if isinstance(e, Launch)]
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert bench.world.jobs[job].over
    bench.step(rep.Launched(group=launch.group, machines=machine(launch, bench.now)))
    bench.step(rep.Booted(node="ec2-1", launch=launch.nodes[0][1]))  # type: ignore[arg-type]
    bench.step(seconds=300)
    assert [type(effect) for effect in bench.effects] == [Terminate]


@pytest.mark.parametrize("requeue", [True, False])
def test_a_job_whose_machine_vanished_is_requeued_if_it_may_be(requeue: bool) -> None:
    bench = Bench(ELASTIC)
    job = bench.submit(requeue=requeue)
    bring_up(bench)
    node = bench.world.nodes["ec2-1"]  # type: ignore[index]
    bench.journal("ec2-1", {"kind": "started", "key": f"{job}/1/batch"})
    bench.step(rep.Vanished(node=node.name, launch=node.launch), full=False)
    found = bench.world.jobs[job]
    if requeue:
        assert (found.state, found.restarts) == (JobState.PENDING, 1)
    else:
        assert (found.shown_state, found.reason, str(found.exit)) == (
            "NODE_FAIL",
            "NodeDown",
            "1:0",
        )


def test_a_restart_computes_the_same_effects_again() -> None:
    bench = Bench(ELASTIC)
    bench.submit()
    bench.submit(array=ArraySpec(tasks=(0, 1)))
    again = Bench(ELASTIC, bench.store)
    assert [e.token for e in effects_due(again.world)] == [e.token for e in bench.effects]
    assert again.world.jobs == bench.world.jobs


def test_a_kept_open_allocation_runs_its_steps_and_further_ones(bench: Bench) -> None:
    job = bench.submit(batch=None, steps=(StepSpec(name="train"),), cluster="dev")
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/batch"})
    assert [e.token for e in bench.effects] == [f"start {job}/1/0"]
    bench.journal("n1", {"kind": "started", "key": f"{job}/1/0"})
    bench.journal("n1", {"kind": "exited", "key": f"{job}/1/0", "code": 2})
    found = bench.world.jobs[job]
    assert (found.shown_state, str(found.derived)) == ("RUNNING", "2:0")
    (reply,) = bench.step(cmd.AddStep(job=job, by=ALICE, step=StepSpec(name="more"), request="s1"))
    assert str(reply) == "1"
    assert [e.token for e in bench.effects] == [f"start {job}/1/1"]


def test_an_operator_suspends_a_job_and_its_time_stands_still(bench: Bench) -> None:
    job = bench.submit()
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal("n1", {"kind": "started", "key": key})
    target = cmd.Target(job)
    (refused,) = bench.step(cmd.Suspend(target=target, by=ALICE))
    assert isinstance(refused, Denied)
    bench.step(cmd.Suspend(target=target, by=ROOT), seconds=10)
    assert bench.state(job) == "SUSPENDED"
    signals = [e.signal.number for e in bench.effects if isinstance(e, SendSignal)]
    assert signals == [19]
    (again,) = bench.step(cmd.Suspend(target=target, by=ROOT))
    assert isinstance(again, Conflict)
    bench.step(cmd.Suspend(target=target, by=ROOT, resume=True), seconds=30)
    record = bench.world.jobs[job]
    assert (record.shown_state, record.suspended_for) == ("RUNNING", 30)
    bench.run(job)
    assert bench.state(job) == "COMPLETED"


def test_a_job_that_its_user_stopped_says_so_until_it_goes_on(bench: Bench) -> None:
    job = bench.submit()
    bench.journal("n1", {"kind": "started", "key": f"{bench.world.jobs[job].key}/batch"})
    for number, state in ((19, "STOPPED"), (18, "RUNNING")):
        bench.step(cmd.Signal(target=cmd.Target(job), by=ALICE, number=number))
        assert bench.state(job) == state
    bench.step(cmd.Signal(target=cmd.Target(job), by=ALICE, number=19))
    bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert bench.state(job) == "COMPLETING"


def test_many_commands_are_done_in_turn_and_committed_together(bench: Bench) -> None:
    jobs = [bench.submit(begin=START + 1000) for _ in range(3)]
    asked = [cmd.Cancel(target=cmd.Target(job), by=ALICE) for job in (jobs[0], jobs[1], jobs[0])]
    stranger = cmd.Cancel(target=cmd.Target(jobs[2]), by=BOB)
    (replies,) = bench.step(cmd.Many((*asked, stranger)), full=False)
    assert isinstance(replies, list)
    assert [type(reply) for reply in replies] == [type(None), type(None), Conflict, Denied]
    assert [bench.state(job) for job in jobs] == ["CANCELLED", "CANCELLED", "PENDING"]


def test_many_jobs_are_ended_by_one_decision_each_as_if_asked_for_alone(bench: Bench) -> None:
    plain, done, others = (bench.submit(begin=START + 1000) for _ in range(3))
    theirs = bench.submit(begin=START + 1000, owner=BOB)
    array = bench.submit(array=ArraySpec(tasks=(1, 2)), hold=True)
    bench.step(cmd.Cancel(target=cmd.Target(done), by=ALICE))
    asked = (plain, done, JobId(99), theirs, array, plain)
    (replies,) = bench.step(cmd.CancelAll(jobs=asked, by=ALICE), full=False)
    kinds = [type(None), Conflict, Unknown, Denied, type(None), Conflict]
    assert [type(reply) for reply in replies] == kinds  # type: ignore[union-attr]
    assert [bench.state(job) for job in (plain, array)] == ["CANCELLED", "CANCELLED"]
    assert [bench.state(job) for job in (others, theirs)] == ["PENDING", "PENDING"]


def test_nothing_of_many_commands_stands_where_the_disk_is_full(bench: Bench) -> None:
    job = bench.submit(begin=START + 1000)
    bench.store.full = True
    (reply,) = bench.step(cmd.Many((cmd.Cancel(target=cmd.Target(job), by=ALICE),)))
    assert isinstance(reply, Busy)
    assert bench.state(job) == "PENDING"
