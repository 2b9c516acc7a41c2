"""Which requests no declared node can meet, by how nodes are built; when that is judged."""

from dataclasses import replace

import pytest

from accounting.tres import Tres
from broker.model import commands as cmd
from broker.model.errors import BadOption
from broker.model.ids import NodeName
from broker.model.job import Hold
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import Resources
from tests.unit.broker.test_engine import ALICE, Bench

NOT_AVAILABLE = "Requested node configuration is not available"
NODES = tuple(
    DeclaredNode(
        name=NodeName(f"n{number}"),
        whole=Tres(cpu=8, mem_mib=8000, node=1),
        sockets=2,
        cores_per_socket=2,
        threads_per_core=2,
    )
    for number in (1, 2)
)
NAMES = tuple(node.name for node in NODES)
SITE = Site(
    partitions=(
        Partition("all", default=True, nodes=NAMES, default_time=60),
        Partition("theirs", nodes=NAMES, allow_accounts=("other",)),
    ),
    nodes=NODES,
)


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"sockets": 2, "cores_per_socket": 2, "threads_per_core": 2}, True),
        ({"sockets": 3}, False),
        ({"cores_per_socket": 3}, False),
        ({"threads_per_core": 3}, False),
        ({"sockets": 3, "min_nodes": 9}, True),
        ({"tasks_per_node": 4, "tasks_per_socket": 2}, True),
        ({"tasks_per_node": 5, "tasks_per_socket": 2}, False),
        ({"tasks_per_core": 8}, True),
        ({"tasks_per_core": 9}, False),
        ({"tasks_per_core": 2, "cpus_per_task": 4}, True),
        ({"tasks_per_core": 2, "cpus_per_task": 5}, False),
        ({"tasks_per_socket": 3, "cpus_per_task": 3}, False),
    ],
)
def test_a_node_has_to_be_of_the_shape_that_is_asked_for(
    fields: dict[str, int], taken: bool
) -> None:
    bench = Bench(SITE)
    if taken:
        assert bench.submit(resources=Resources(**fields))
        return
    with pytest.raises(BadOption, match=NOT_AVAILABLE):
        bench.submit(resources=Resources(**fields))


@pytest.mark.parametrize(
    ("fields", "spread"),
    [
        ({"tasks": 4, "tasks_per_socket": 2}, [4]),
        ({"tasks": 4, "tasks_per_socket": 1}, [2, 2]),
        ({"tasks": 5, "tasks_per_core": 1}, [4, 1]),
    ],
)
def test_no_more_tasks_start_on_a_node_than_its_sockets_and_cores_may_have(
    fields: dict[str, int], spread: list[int]
) -> None:
    bench = Bench(SITE)
    job = bench.submit(resources=Resources(**fields))
    bench.step()
    assert [share.tasks for share in bench.world.jobs[job].shares] == spread


def test_nodes_are_not_judged_of_a_partition_that_will_not_have_the_account() -> None:
    bench = Bench(SITE)
    job = bench.submit(partitions=("theirs",), resources=Resources(sockets=3))
    bench.step()
    assert bench.world.jobs[job].reason == "AccountNotAllowed"


def test_a_held_job_is_judged_when_it_is_released_and_stays_held_if_it_can_never_run() -> None:
    bench = Bench(SITE)
    job = bench.submit(hold=True, resources=Resources(sockets=3))
    assert bench.world.jobs[job].reason == Hold.USER.value
    bench.step(cmd.SetHold(target=cmd.Target(job), by=ALICE, hold=None))
    bench.step()
    found = bench.world.jobs[job]
    assert (found.hold, found.reason) == (Hold.USER, "BadConstraints")


def test_of_a_range_of_nodes_the_fewest_are_taken_where_that_is_asked_for() -> None:
    for options, count in (((), 2), ((("use-min-nodes", ""),), 1)):
        bench = Bench(SITE)
        job = bench.submit(resources=Resources(min_nodes=1, max_nodes=2), options=options)
        bench.step()
        assert len(bench.world.jobs[job].shares) == count


def test_preferred_nodes_are_taken_while_there_is_room() -> None:
    nodes = (NODES[0], replace(NODES[1], features=("fast",)))
    bench = Bench(replace(SITE, nodes=nodes))
    wish = Resources(prefer="fast", cpus_per_task=8)
    first, second = bench.submit(resources=wish), bench.submit(resources=wish)
    bench.step()
    jobs = bench.world.jobs
    assert [jobs[one].shares[0].node for one in (first, second)] == ["n2", "n1"]


def test_every_node_that_is_named_has_to_be_as_asked_for() -> None:
    nodes = (NODES[0], replace(NODES[1], features=("fast",)))
    bench = Bench(replace(SITE, nodes=nodes))
    with pytest.raises(BadOption, match=NOT_AVAILABLE):
        bench.submit(resources=Resources(nodelist=("n1", "n2"), constraint="fast"))
    assert bench.submit(resources=Resources(nodelist=("n2",), constraint="fast"))


@pytest.mark.parametrize(
    ("nodes", "constraint", "taken"),
    [
        (None, "a*2", 2),
        (4, "a*2", 4),
        (2, "a*2", 2),
        (1, "a*2", 0),
        (4, "a*4", 0),
        (4, "b*3", 0),
        (4, "b*2", 4),
        (None, "[a*2&b*2]", 4),
        (4, "[a*2&b*2]", 4),
        (2, "[a*1&b*1]", 2),
        (1, "[a*1&b*1]", 0),
    ],
)
def test_counts_of_features_are_of_so_many_nodes_at_least(
    nodes: int | None, constraint: str, taken: int
) -> None:
    """As a real 22.05 with such nodes answered; 0: refused."""
    words = (("a",), ("a",), ("a", "b"), ("b",))
    made = tuple(
        replace(NODES[0], name=NodeName(f"n{number}"), features=features)
        for number, features in enumerate(words, 1)
    )
    names = tuple(node.name for node in made)
    parts = (Partition("all", default=True, nodes=names, default_time=60),)
    bench = Bench(Site(partitions=parts, nodes=made))
    wish = Resources(constraint=constraint, min_nodes=nodes, max_nodes=nodes)
    if not taken:
        with pytest.raises(BadOption, match=NOT_AVAILABLE):
            bench.submit(resources=wish)
        return
    job = bench.submit(resources=wish)
    bench.step()
    assert len(bench.world.jobs[job].shares) == taken
