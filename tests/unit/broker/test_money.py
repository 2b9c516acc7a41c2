"""What goes to the ledger beside money: how long a job waited, how long a node took no work."""

import pytest

from accounting import rollup
from accounting.ledger import Entry, Kind, Sampled
from broker.model import commands as cmd
from broker.model.spec import Resources
from tests.unit.broker.test_engine import DECLARED, ROOT, Bench

SEEN = {
    "user_us": 1_500_000, "sys_us": 500_000, "max_rss_kib": 64, "max_size_kib": 128,
    "read": 7, "written": 9, "pages": 3,
}  # fmt: skip
TOLD = Sampled(
    read=(
        ("cpu", 2000), ("energy", 0), ("fs/disk", 7), ("mem", 65536), ("pages", 3),
        ("vmem", 131072),
    ),
    written=(("energy", 0), ("fs/disk", 9)),
)  # fmt: skip
NOT_LOOKED_AT = Sampled(
    read=(("cpu", 2000), ("energy", 0), ("mem", 65536)), written=(("energy", 0),)
)


def posted(bench: Bench, kind: Kind) -> list[Entry]:
    return [entry for entry in bench.store.entries.values() if entry.kind is kind]


def drain(bench: Bench, state: str) -> None:
    bench.step(cmd.SetNode(node="n1", by=ROOT, state=state, reason="disk"))


def test_a_node_that_is_drained_leaves_the_time_until_it_is_back() -> None:
    bench = Bench(DECLARED)
    began = bench.now
    drain(bench, "drain")
    bench.step(seconds=100)
    assert posted(bench, Kind.DOWN) == []
    drain(bench, "resume")
    drain(bench, "resume")
    (entry,) = posted(bench, Kind.DOWN)
    whole = bench.world.nodes["n1"].whole
    assert (entry.account, entry.user, entry.job, entry.cost) == ("overhead", "", None, 0)
    assert (entry.since, entry.at, entry.machine) == (began, began + 100, "n1.0")
    assert entry.tres_seconds == whole.times(100)


def test_a_node_that_is_down_and_drained_is_out_once_until_it_is_neither() -> None:
    bench = Bench(DECLARED)
    began = bench.now
    drain(bench, "down")
    bench.step(seconds=10)
    drain(bench, "drain")
    bench.step(seconds=20)
    assert posted(bench, Kind.DOWN) == []
    drain(bench, "resume")
    (entry,) = posted(bench, Kind.DOWN)
    assert (entry.since, entry.at) == (began, began + 30)


def test_a_job_tells_how_long_it_waited_though_it_could_have_run() -> None:
    bench = Bench(DECLARED)
    drain(bench, "drain")
    waits = bench.submit(wckey="proj", resources=Resources(min_nodes=4))
    bench.step(seconds=50)
    drain(bench, "resume")
    bench.step(seconds=0)
    key = f"{bench.world.jobs[waits].key}/batch"
    bench.journal(bench.world.jobs[waits].shares[0].node, {"kind": "started", "key": key})
    bench.step(seconds=20)
    bench.run(waits)
    for share in bench.world.jobs[waits].shares:
        bench.journal(share.node, {"kind": "gone", "attempt": bench.world.jobs[waits].key})
    (entry,) = posted(bench, Kind.USAGE)
    assert (entry.waited, entry.wckey) == (50, "proj")


@pytest.mark.parametrize("ends", ["suspended", "running"])
def test_time_for_which_a_job_was_suspended_is_no_use_of_it_nor_of_its_steps(ends: str) -> None:
    bench = Bench(DECLARED)
    job = bench.submit()
    target, key = cmd.Target(job), bench.world.jobs[job].key
    bench.journal("n1", {"kind": "started", "key": f"{key}/batch"})
    bench.step(cmd.Suspend(target=target, by=ROOT), seconds=20)
    bench.step(cmd.Suspend(target=target, by=ROOT, resume=True), seconds=300)
    if ends == "suspended":
        bench.step(cmd.Suspend(target=target, by=ROOT), seconds=10)
        bench.step(cmd.Cancel(target=target, by=ROOT), seconds=500)
    else:
        bench.step(cmd.Cancel(target=target, by=ROOT), seconds=10)
    record = bench.world.jobs[job]
    assert record.ended is not None
    assert record.ran(bench.now) == 30
    bench.journal("n1", {"kind": "exited", "key": f"{key}/batch", "signal": 15})
    bench.journal("n1", {"kind": "gone", "attempt": key})
    for kind in (Kind.USAGE, Kind.STEP):
        (entry,) = posted(bench, kind)
        assert entry.tres_seconds.cpu == entry.at - entry.since == 30


@pytest.mark.parametrize(
    ("seen", "seconds", "told"),
    [(SEEN, 20, TOLD), (SEEN, 0, TOLD), ({**SEEN, "max_size_kib": 0}, 5, NOT_LOOKED_AT)],
)
def test_each_step_of_an_attempt_has_an_entry_with_what_was_measured_of_it(
    seen: dict[str, int], seconds: int, told: Sampled
) -> None:
    bench = Bench(DECLARED)
    job = bench.submit(resources=Resources(tasks=2, mem_per_node_mib=100))
    key, node = bench.world.jobs[job].key, bench.world.jobs[job].shares[0].node
    bench.journal(node, {"kind": "started", "key": f"{key}/batch"})
    began = bench.now
    bench.step(seconds=seconds)
    bench.journal(node, {"kind": "exited", "key": f"{key}/batch", "code": 0, **seen})
    bench.journal(node, {"kind": "gone", "attempt": key})
    (entry,) = posted(bench, Kind.STEP)
    assert (entry.key, entry.step) == (f"{job}/1.batch/usage/{began}", "batch")
    assert (entry.tres_seconds.cpu, entry.tres_seconds.mem_mib) == (2 * seconds, 100 * seconds)
    assert (entry.billing_seconds, entry.sampled) == (2 * seconds, told)
    whole = sum((one.tres_seconds.cpu for one in posted(bench, Kind.USAGE)), start=0)
    assert rollup.counts(entry.tres_seconds).get("cpu", 0) == whole
    assert not rollup.used([entry])
    assert not rollup.spent([entry])
