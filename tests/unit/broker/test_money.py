"""What goes to the ledger beside money: how long a job waited, how long a node took no work."""

from accounting.ledger import Entry, Kind
from broker.model import commands as cmd
from broker.model.spec import Resources
from tests.unit.broker.test_engine import DECLARED, ROOT, Bench


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
