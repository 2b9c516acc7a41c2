"""Names of machines that can be bought go to who waits first."""

from hypothesis import given
from hypothesis import strategies as st

from broker.model.effects import Launch
from broker.model.spec import Resources
from tests.unit.broker.test_engine import ALICE, BOB, Bench
from tests.unit.broker.test_preempting import WHOLE, bought, launched


def test_nothing_is_bought_for_a_lower_job_of_what_the_higher_one_waits_for() -> None:
    bench = Bench(bought(2))
    launched(bench, BOB, "normal")
    both = bench.submit(ALICE, resources=Resources(min_nodes=2, tasks=8, tasks_per_node=4))
    lower = bench.submit(BOB, resources=WHOLE)
    bench.step(seconds=1)
    assert [bench.state(job) for job in (both, lower)] == ["PENDING", "PENDING"]
    assert not [effect for effect in bench.effects if isinstance(effect, Launch)]


@given(st.integers(1, 4), st.integers(0, 3), st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_no_later_job_gets_a_machine_while_an_earlier_one_waits_for_as_many(
    most: int, ran: int, sizes: list[int]
) -> None:
    bench = Bench(bought(most))
    for _ in range(min(ran, most)):
        launched(bench, BOB, "normal")
    free, blocked = most - min(ran, most), False
    for nodes in sizes:
        want = Resources(min_nodes=nodes, tasks=4 * nodes, tasks_per_node=4)
        job = bench.submit(ALICE, resources=want)
        bench.step(seconds=1)
        if nodes > most:
            continue  # it can never start, and keeps nobody waiting
        blocked = blocked or nodes > free
        free -= 0 if blocked else nodes
        assert (len(bench.world.jobs[job].shares) == nodes) is not blocked
