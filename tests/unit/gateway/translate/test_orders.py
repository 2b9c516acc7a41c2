"""What the agent is told about steps: files, variables and programs of each task."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from accounting.tres import Tres, gres_counts
from broker.model.errors import Unknown
from broker.model.ids import BATCH, Digest, NodeName, StepId
from broker.model.job import ArrayPlace, Job, Owner, Share, Step
from broker.model.node import Node, NodeState
from broker.model.site import Site
from broker.model.spec import CpuBind, Output, Phase, Program, SignalSpec, StepSpec, TaskSpec
from broker.run.launch import RELAYED, Bind, Task, Warn
from broker.world import Snapshot
from gateway.translate.environment import unpack
from gateway.translate.orders import OrderBook
from tests.unit.broker.made import machine

ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice", shell="/bin/bash")
WHOLE = Tres(4, 4096, 1, gres_counts({"gpu": 2}))
NODE = Node(NodeName("n1"), 0, NodeState.UP, WHOLE, ("ec2",))
MACHINE = machine(node=NodeName("n1"), launch=0)
OURS = Digest("ours")
BLOBS = {OURS: b"MINE=1\0SLURM_JOB_ID=9"}


@pytest.fixture
def book() -> OrderBook:
    return OrderBook(Site(), BLOBS.__getitem__, "login")


def job_with(spec: StepSpec | None, share: Share | None = None, **fields: Any) -> Job:
    """A running job of one node whose step 0 is as given."""
    whole = Share(NodeName("n1"), 0, WHOLE, (0, 1, 2, 3), (0, 1), 4)
    steps = [Step(BATCH, "batch")]
    if spec is not None:
        steps.append(Step(StepId("0"), spec.name, spec=spec, share=share or whole))
    usual: dict[str, Any] = {"name": "job", "batch": StepSpec(name="batch"), "cwd": "/work"}
    return Job(
        id=JobId(7),
        spec=TaskSpec(**{**usual, **fields}),
        owner=ALICE,
        account="physics",
        qos="normal",
        partitions=("ec2",),
        submitted=100,
        started=1000,
        time_limit=600,
        want=Tres(),
        attempt=1,
        shares=(whole,),
        steps=tuple(steps),
    )


def srun(**fields: Any) -> StepSpec:
    phases = (Phase(argv=("true", "-x")),)
    usual: dict[str, Any] = {"name": "true", "interactive": True, "environment": OURS}
    return StepSpec(**{**usual, "phases": phases, **fields})


def tasks(book: OrderBook, **fields: Any) -> tuple[Task, ...]:
    return book.order(job_with(srun(**fields)), StepId("0"), NODE).tasks


def test_tasks_of_srun_read_and_write_through_it(book: OrderBook) -> None:
    order = book.order(job_with(srun(tasks=2)), StepId("0"), NODE)
    assert order.relay
    assert order.in_batch
    assert order.phases[0].argv == (b"true", b"-x")
    assert (order.label, order.time_limit, order.job_ends) == ("STEP 7.0", None, 1600)
    streams = [(one.stdin, one.stdout, one.stderr) for one in order.tasks]
    assert streams == [(RELAYED, RELAYED, RELAYED)] * 2
    ranks = [unpack(one.variables)["SLURM_PROCID"] for one in order.tasks]
    assert ranks == ["0", "1"]
    shown = unpack(order.environment)
    assert (shown["MINE"], shown["SLURM_JOB_ID"], shown["SLURM_NTASKS"]) == ("1", "7", "2")


def test_files_of_tasks_are_named_by_rank_and_step(book: OrderBook) -> None:
    output = Output(stdin="in", stdout="o-%t-%n-%s", stderr="/abs/e.%J")
    first, second = tasks(book, tasks=2, output=output, cwd="/home/alice")
    assert (first.stdin, second.stdin) == (b"/home/alice/in",) * 2
    assert (first.stdout, second.stdout) == (b"/home/alice/o-0-0-0", b"/home/alice/o-1-0-0")
    assert first.stderr == b"/abs/e.7.0"


def test_a_file_that_all_tasks_share_is_named_from_where_srun_was_typed(book: OrderBook) -> None:
    output = Output(stdin="in", stdout="o.%t", stderr="e.%J", shared_from="/typed/50%t")
    (only,) = tasks(book, output=output, cwd="/home/alice")
    assert only.stdin == b"/typed/50%t/in"
    assert only.stdout == b"/home/alice/o.0"
    assert only.stderr == b"/typed/50%t/e.7.0"


def test_input_may_be_for_one_task_and_a_terminal_is_the_firsts(book: OrderBook) -> None:
    assert [one.stdin for one in tasks(book, tasks=3, input_rank=1)] == [None, RELAYED, None]
    alone = tasks(book, tasks=2, pty=(24, 80))
    assert [(one.stdin, one.stdout, one.stderr) for one in alone] == [
        (RELAYED, RELAYED, RELAYED),
        (None, None, None),
    ]


@pytest.mark.parametrize(
    ("pty", "told"),
    [(None, {}), ((24, 80), {"PORT": "0", "WIN_ROW": "24", "WIN_COL": "80"})],
)
def test_a_step_on_a_terminal_knows_how_large_it_was(
    book: OrderBook, pty: tuple[int, int] | None, told: dict[str, str]
) -> None:
    found = unpack(book.order(job_with(srun(pty=pty)), StepId("0"), NODE).environment)
    assert {name: found[f"SLURM_PTY_{name}"] for name in told} == told
    assert sum(name.startswith("SLURM_PTY_") for name in found) == len(told)


def test_programs_differ_by_rank_and_know_their_place(book: OrderBook) -> None:
    programs = (
        Program(ranks=(0,), argv=("echo", "zero", "%t")),
        Program(ranks=(1, 2), argv=("echo", "task:%t", "offset:%o")),
    )
    assert [one.argv for one in tasks(book, tasks=3, programs=programs)] == [
        (b"echo", b"zero", b"0"),
        (b"echo", b"task:1", b"offset:0"),
        (b"echo", b"task:2", b"offset:1"),
    ]


def test_each_task_sees_its_own_gpus_where_they_are_per_task(book: OrderBook) -> None:
    found = [unpack(one.variables) for one in tasks(book, tasks=2, gpus_per_task=1)]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in found] == ["0", "1"]
    assert "CUDA_VISIBLE_DEVICES" not in unpack(tasks(book)[0].variables)


def test_a_step_has_the_part_that_it_was_given(book: OrderBook) -> None:
    share = Share(NodeName("n1"), 0, Tres(1, 1024, 1, (("gpu", 1),)), (2,), (1,))
    order = book.order(job_with(srun(), share), StepId("0"), NODE)
    assert (order.cpus, order.memory_mib, order.gpus) == (1, 1024, (1,))
    assert unpack(order.environment)["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_steps_own_signal_stands_before_that_of_its_job(book: OrderBook) -> None:
    own, jobs = SignalSpec(number=12, before=5), SignalSpec(number=10, before=30)
    order = book.order(job_with(srun(signal=own), signal=jobs), StepId("0"), NODE)
    assert order.warn == Warn(12, 5, own=True)
    order = book.order(job_with(srun(), signal=jobs), StepId("0"), NODE)
    assert order.warn == Warn(10, 30)


def test_tasks_are_held_to_cpus_of_the_step(book: OrderBook) -> None:
    asked = CpuBind(kind="cores", verbose=True)
    share = Share(NodeName("n1"), 0, Tres(2, 1024, 1), (2, 3))
    order = book.order(job_with(srun(cpu_bind=asked, cpus_per_task=2), share), StepId("0"), NODE)
    assert order.bind == Bind("cores", (), True, 2, (2, 3))
    assert book.order(job_with(srun()), StepId("0"), NODE).bind is None


def test_limits_and_wishes_of_srun_are_passed_on(book: OrderBook) -> None:
    spec = srun(time_limit=60, kill_on_bad_exit=True, unbuffered=True, label=True, tasks=11)
    job = job_with(spec, signal=SignalSpec(number=10, before=30))
    order = book.order(job, StepId("0"), NODE)
    assert (order.time_limit, order.kill_on_bad_exit) == (60, True)
    assert (order.unbuffered, order.numbered) == (True, 2)
    assert order.warn is not None
    assert order.warn.signal == 10


def test_each_node_of_a_step_is_told_of_its_own_tasks(book: OrderBook) -> None:
    spec = srun(tasks=3, nodes=2, output=Output(stdout="%n-%t-%N"), gpus_per_task=1)
    shares = [
        Share(NodeName(name), 0, Tres(cpus, 100, 1), gpu_ids=gpus, tasks=cpus)
        for name, cpus, gpus in (("n1", 2, (0, 1)), ("n2", 1, (1,)))
    ]
    job = job_with(spec, shares[0])
    step = replace(job.steps[1], more=(shares[1],))
    job = replace(job, shares=(*job.shares, shares[1]), steps=(job.steps[0], step))
    orders = [
        book.order(job, StepId("0"), replace(NODE, name=NodeName(name))) for name in ("n1", "n2")
    ]
    assert [order.further for order in orders] == [False, True]
    assert [order.cpus for order in orders] == [2, 1]
    assert [[task.rank for task in order.tasks] for order in orders] == [[0, 1], [2]]
    assert [task.stdout for order in orders for task in order.tasks] == [
        b"/work/0-0-n1",
        b"/work/0-1-n1",
        b"/work/1-2-n2",
    ]
    shown = unpack(orders[1].environment) | unpack(orders[1].tasks[0].variables)
    expected = {
        "SLURMD_NODENAME": "n2",
        "SLURM_CPUS_ON_NODE": "1",
        "SLURM_GTIDS": "2",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": "2",
        "SLURM_NODEID": "1",
        "SLURM_PROCID": "2",
        "SLURM_STEP_NODELIST": "n[1-2]",
        "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_TASKS_PER_NODE": "2,1",
        "SLURM_TASKS_PER_NODE": "2,1",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    assert {name: shown[name] for name in expected} == expected


def test_a_file_that_all_nodes_write_is_begun_anew_by_the_first_alone(book: OrderBook) -> None:
    spec = srun(tasks=2, nodes=2, output=Output(stdout="all"))
    shares = [Share(NodeName(name), 0, Tres(1, 100, 1)) for name in ("n1", "n2")]
    job = job_with(spec, shares[0])
    job = replace(job, steps=(job.steps[0], replace(job.steps[1], more=(shares[1],))))
    nodes = [replace(NODE, name=NodeName(name)) for name in ("n1", "n2")]
    assert [book.order(job, StepId("0"), node).append for node in nodes] == [False, True]


def test_a_run_on_several_nodes_knows_its_rank_and_goes_on_in_the_log(book: OrderBook) -> None:
    phases = (Phase(argv=("true",)),)
    spec = StepSpec(name="run", phases=phases, overlap=True, nodes=2, tasks=2)
    shares = [Share(NodeName(name), 0, Tres(1, 100, 1)) for name in ("n1", "n2")]
    job = job_with(spec, shares[0], batch=None, output=Output(stdout="log"))
    step = replace(job.steps[1], more=(shares[1],))
    job = replace(job, shares=tuple(shares), steps=(job.steps[0], step))
    nodes = [replace(NODE, name=NodeName(name)) for name in ("n1", "n2")]
    orders = [book.order(job, StepId("0"), node) for node in nodes]
    assert [order.append for order in orders] == [False, True]
    seen = [unpack(order.environment) for order in orders]
    names = ("SLURM_PROCID", "SLURM_NODEID", "SKYPILOT_NODE_RANK", "SLURM_NTASKS")
    assert [[one[name] for name in names] for one in seen] == [
        ["0", "0", "0", "2"],
        ["1", "1", "1", "2"],
    ]


def test_a_site_may_hold_steps_to_their_cpus_and_memory() -> None:
    job = job_with(None)
    free = OrderBook(Site(), BLOBS.__getitem__, "login").order(job, BATCH, NODE)
    assert (free.cpu_ids, free.memory_limit_mib) == ((), None)
    strict = Site(constrain_cores=True, constrain_memory=True)
    held = OrderBook(strict, BLOBS.__getitem__, "login").order(job, BATCH, NODE)
    assert (held.cpu_ids, held.memory_limit_mib) == ((0, 1, 2, 3), 4096)
    assert held.job_memory_mib == 4096


def test_a_run_of_spz_writes_where_its_job_does(book: OrderBook) -> None:
    spec = StepSpec(name="run", phases=(Phase(argv=("true",)),), overlap=True)
    job = job_with(spec, batch=None, output=Output(stdout="%j-%s.log"))
    order = book.order(job, StepId("0"), NODE)
    assert (order.stdout, order.tasks, order.relay) == (b"/work/7-0.log", (), False)
    assert not order.in_batch
    held = book.order(job, BATCH, NODE)
    assert (held.hold, held.stdout, held.time_limit) == (True, None, 600)


def test_a_step_that_is_not_there_is_refused(book: OrderBook) -> None:
    with pytest.raises(Unknown):
        book.order(job_with(None), StepId("0"), NODE)


def test_what_runs_of_a_cluster_write_is_passed_on(book: OrderBook) -> None:
    output = Output(stdout="/logs/dev-%j.%s.log")
    run = StepSpec(name="x", phases=(Phase(argv=("true",)),))
    cluster = job_with(run, batch=None, cluster="dev", output=output)
    assert book.outputs(cluster, NODE) == ["/logs/dev-7.0.log"]
    batch = job_with(run, output=output)
    assert book.outputs(batch, NODE) == ["/logs/dev-7.batch.log"]


@pytest.mark.parametrize(
    ("pattern", "nodes", "written"),
    [
        ("/l/%s.%n.log", ("n1", "n2"), {"n1": ["/l/0.0.log"], "n2": ["/l/0.1.log"]}),
        ("/l/%s.log", ("n1", "n2"), {"n1": ["/l/0.log"], "n2": []}),
        ("/l/%s.%n.log", ("n2",), {"n1": [], "n2": ["/l/0.0.log"]}),
        ("/l/%s.%n.log", (), {"n1": ["/l/0.0.log"], "n2": []}),
    ],
    ids=["a file of each", "one file", "on the second node", "not placed yet"],
)
def test_each_node_of_a_cluster_passes_on_what_it_writes(
    book: OrderBook, pattern: str, nodes: tuple[str, ...], written: Mapping[str, list[str]]
) -> None:
    whole = [Share(NodeName(name), 0, WHOLE) for name in ("n1", "n2")]
    shares = [one for one in whole if one.node in nodes]
    spec = StepSpec(name="x", phases=(Phase(argv=("true",)),), nodes=max(1, len(nodes)))
    job = job_with(spec, batch=None, cluster="dev", output=Output(stdout=pattern))
    step = replace(job.steps[1], share=shares[0] if shares else None, more=tuple(shares[1:]))
    job = replace(job, shares=tuple(whole), steps=(job.steps[0], step))
    found = {name: book.outputs(job, replace(NODE, name=NodeName(name))) for name in written}
    assert found == written
    for name, paths in written.items():
        for path in paths if nodes else ():
            order = book.order(job, StepId("0"), replace(NODE, name=NodeName(name)))
            assert order.stdout == path.encode()


@pytest.mark.parametrize(
    ("address", "told"), [("/nodes/n1", "127.0.0.1"), ("10.0.0.7", "10.0.0.7")]
)
def test_a_step_is_told_the_addresses_of_its_jobs_nodes(address: str, told: str) -> None:
    machine = replace(MACHINE, address=address)
    known = {NODE.name: replace(NODE, machine=machine)}
    book = OrderBook(
        Site(), BLOBS.__getitem__, "login", lambda: Snapshot(1, 1, {}, known, 1, Site(), 0)
    )
    order = book.order(job_with(None), BATCH, NODE)
    assert unpack(order.environment)["SKYPILOT_NODE_IPS"] == told


def far(number: int) -> Node:
    name = NodeName(f"n{number}")
    machine = replace(MACHINE, node=name, address=f"54.0.0.{number}", inside=f"10.0.0.{number}")
    return replace(NODE, name=name, machine=machine)


def gang(book: OrderBook, nodes: tuple[Node, ...]) -> Job:
    """A job of two nodes, which the book knows as these."""
    known = {node.name: node for node in nodes}
    book.seen = lambda: Snapshot(1, 0, {}, known, 8, Site(), 0)
    book.keys = lambda attempt: (f"key of {attempt}", "ssh-ed25519 AAAA")
    book.seal = b"seal"
    shares = tuple(Share(NodeName(f"n{n}"), 0, WHOLE, (), (), n) for n in (1, 2))
    return replace(job_with(None), shares=shares)


def test_machines_of_a_job_are_told_how_to_enter_each_other(book: OrderBook) -> None:
    job = gang(book, (far(1), far(2)))
    kin = book.order(job, BATCH, far(1)).kin
    assert kin is not None
    assert (kin.key, kin.here) == ("key of 7/1", "n1")
    assert [node[:2] for node in kin.nodes] == [("n1", "10.0.0.1"), ("n2", "10.0.0.2")]
    assert 10_240 <= kin.port < 32_768
    door = book.door(job, far(2))
    assert door.kin == replace(kin, here="n2")
    assert door.phases[0].argv == (b"spz-door",)
    assert (door.stdin, door.stdout, door.stderr, door.time_limit) == (None, None, None, None)


def test_commands_on_machines_elsewhere_get_a_token_that_no_variable_of_the_users_hides(
    book: OrderBook,
) -> None:
    job = gang(book, (far(1), far(2)))
    entries = book.order(job, BATCH, far(1)).environment.split(b"\0")
    assert entries[0].startswith(b"SKYPURZA_TOKEN=7a1x")


def test_folders_of_this_host_need_neither_key_nor_token(book: OrderBook) -> None:
    here = replace(far(2), machine=replace(MACHINE, node=NodeName("n2"), address="/folder"))
    job = gang(book, (far(1), here))
    assert book.order(job, BATCH, far(1)).kin is None
    job = gang(book, (here,))
    assert b"SKYPURZA_TOKEN" not in book.order(job, BATCH, here).environment


FILES = (
    # of an array's batch step: where it writes, whether its tasks write one file together
    (Output(), False),
    (Output(stdout="one"), True),
    (Output(stdout="%A.out"), True),
    (Output(stdout="%A_%a.out"), False),
    (Output(stdout="%j"), False),
    (Output(stdout="%x-%N"), True),
    (Output(stdout="one", open_mode="append"), False),
    (Output(stdout="%a", stderr="errors"), True),
    (Output(stdout="/dev/null"), False),
    (Output(stdout="none"), False),
)


@pytest.mark.parametrize(("output", "together"), FILES)
def test_tasks_that_write_one_file_open_it_before_any_of_them_writes(
    book: OrderBook, output: Output, together: bool
) -> None:
    place = ArrayPlace(base=JobId(700), task=3)
    job = replace(job_with(None, output=output), array=place)
    assert bool(book.order(job, BATCH, NODE).settle) is together
    assert book.order(replace(job, array=None), BATCH, NODE).settle == 0


def test_a_site_may_keep_the_submitters_limits_from_jobs(book: OrderBook) -> None:
    job = job_with(None, rlimits=(("NOFILE", 100, 200),))
    assert book.order(job, BATCH, NODE).rlimits == {"NOFILE": (100, 200)}
    without = OrderBook(Site(propagates_limits=False), BLOBS.__getitem__, "login")
    assert without.order(job, BATCH, NODE).rlimits == {}
