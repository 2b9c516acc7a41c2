"""What readers see: each look is the world after one step, whoever looks when."""

from dataclasses import replace

from broker import seen
from broker.model import commands as cmd
from broker.model.spec import StepSpec, TaskSpec
from broker.world import Snapshot
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench


def submitted(bench: Bench, times: int = 1) -> None:
    spec = TaskSpec(name="x", batch=StepSpec(name="batch"), hold=True)
    for _ in range(times):
        bench.requests += 1
        asked = cmd.Submit(spec=spec, owner=ALICE, request=f"r{bench.requests}")
        bench.engine.step([asked], bench.now, full_pass=False)


def agrees(bench: Bench, found: Snapshot) -> bool:
    """With the world itself, in order too."""
    jobs, nodes = list(bench.world.jobs.items()), list(bench.world.nodes.items())
    return (list(found.jobs.items()), list(found.nodes.items())) == (jobs, nodes)


def test_everybody_who_looks_after_a_step_sees_the_same() -> None:
    bench = Bench(DECLARED)
    submitted(bench)
    assert bench.engine.snapshot is bench.engine.snapshot
    assert agrees(bench, bench.engine.snapshot)


def test_a_look_stays_as_it_was() -> None:
    bench = Bench(DECLARED)
    submitted(bench, 2)
    before = bench.engine.snapshot
    was = dict(before.jobs)
    submitted(bench, 3)
    bench.step(cmd.Cancel(target=cmd.Target(min(was)), by=ALICE))
    assert dict(before.jobs) == was
    assert len(bench.engine.snapshot.jobs) == 5


def test_steps_that_nobody_looked_at_are_in_the_next_look() -> None:
    bench = Bench(DECLARED)
    submitted(bench, 2 * seen.MOST_CHANGES)
    for job in list(bench.world.jobs)[::3]:
        bench.step(cmd.Cancel(target=cmd.Target(job), by=ALICE))
    assert agrees(bench, bench.engine.snapshot)


def test_what_is_forgotten_is_seen_no_more() -> None:
    bench = Bench(DECLARED)
    submitted(bench, 2)
    first, second = bench.world.jobs
    bench.step(cmd.Cancel(target=cmd.Target(first), by=ALICE))
    bench.step(seconds=DECLARED.min_job_age + 1)
    bench.step(seconds=1)
    assert list(bench.engine.snapshot.jobs) == [second]


def test_a_step_that_could_not_be_written_is_not_seen() -> None:
    bench = Bench(DECLARED)
    submitted(bench)
    before = bench.engine.snapshot
    bench.store.full = True
    submitted(bench)
    assert bench.engine.snapshot is before
    bench.store.full = False
    submitted(bench)
    assert agrees(bench, bench.engine.snapshot)
    assert len(bench.engine.snapshot.jobs) == 2


def test_the_site_is_told_without_a_look() -> None:
    bench = Bench(DECLARED)
    bench.world.site = replace(DECLARED, admins=frozenset({7}))
    assert bench.engine.site is DECLARED
    submitted(bench)
    assert bench.engine.site is bench.world.site
