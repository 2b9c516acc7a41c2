"""Which nodes a job takes, what of each, and what it asks to buy."""

from dataclasses import replace

import pytest

from accounting.tres import Tres, gres_counts
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.model.site import Partition
from broker.model.spec import ALL, Gres, Resources, StepSpec, TaskSpec
from broker.schedule.demand import demand, need_of, wanted
from broker.schedule.fit import Room, choose, even_shares, room

PARTITION = Partition("ec2", def_mem_per_cpu_mib=1000)


def ask(**resources: object) -> TaskSpec:
    return TaskSpec(
        name="x",
        batch=StepSpec(name="batch"),
        resources=Resources(**resources),  # type: ignore[arg-type]
    )


def rooms(*cpus: int, gpus: int = 2) -> list[Room]:
    return [
        room(
            Node(
                name=NodeName(f"n{number}"),
                launch=0,
                state=NodeState.UP,
                whole=Tres(cpu, 8000, 1, gres_counts({"gpu:a10g": gpus})),
                partitions=("ec2",),
            ),
            (),
        )
        for number, cpu in enumerate(cpus, 1)
    ]


@pytest.mark.parametrize(
    ("constraint", "more", "nodes"),
    [
        ("[a*1&b*1]", {}, ["n1", "n4"]),
        ("a*2", {}, ["n1", "n2"]),
        ("b*2", {}, ["n3", "n4"]),
        ("b*3", {}, None),
        ("b*2", {"min_nodes": 4, "max_nodes": 4}, ["n1", "n2", "n3", "n4"]),
        ("b*3", {"min_nodes": 4, "max_nodes": 4}, None),
        ("a*2", {"min_nodes": 4, "max_nodes": 4}, ["n1", "n2", "n3", "n4"]),
        ("b*1", {"min_nodes": 2, "max_nodes": 2}, ["n1", "n3"]),
        ("[a*2&b*2]", {}, ["n1", "n2", "n3", "n4"]),
        ("[a*2&b*3]", {}, None),
        ("[b*1&a*3]", {}, ["n1", "n2", "n3", "n4"]),  # n3 is both: it is wanted as an a
        ("[a*1&b*1]", {"min_nodes": 3, "max_nodes": 3}, ["n1", "n2", "n4"]),
        ("[a*1&b*1]", {"cpus_per_task": 3}, ["n3", "n4"]),
        ("[a*1&b*1]", {"tasks": 5}, ["n1", "n4"]),
    ],
)
def test_nodes_of_several_sorts_are_taken_as_many_as_were_asked_for(
    constraint: str, more: dict[str, object], nodes: list[str] | None
) -> None:
    words = (("a",), ("a",), ("A", "b"), ("b",))
    there = rooms(2, 2, 4, 4)
    for one, features in zip(there, words, strict=True):
        one.node = replace(one.node, features=features)
    shares = choose(demand(ask(constraint=constraint, **more), PARTITION), there)
    assert (None if shares is None else sorted(share.node for share in shares)) == nodes


@pytest.mark.parametrize(
    ("constraint", "more", "nodes"),
    [
        ("[a|b]", {"min_nodes": 2, "max_nodes": 2}, ["n1", "n3"]),
        ("[b|a]", {"min_nodes": 2, "max_nodes": 2}, ["n2", "n4"]),
        ("a|b", {"min_nodes": 2, "max_nodes": 2}, ["n1", "n2"]),
        ("[a|b]&c", {"min_nodes": 2, "max_nodes": 2}, ["n4", "n5"]),
        ("[a|b]", {"min_nodes": 4, "max_nodes": 4}, None),
        ("[a|c]", {"min_nodes": 3, "max_nodes": 3}, ["n3", "n4", "n5"]),
        ("[a|b]", {}, ["n1"]),
    ],
)
def test_of_alternatives_in_brackets_all_nodes_are_the_same(
    constraint: str, more: dict[str, object], nodes: list[str] | None
) -> None:
    words = (("a",), ("b",), ("A", "c"), ("b", "c"), ("b", "c"))
    there = rooms(2, 2, 2, 2, 2)
    for one, features in zip(there, words, strict=True):
        one.node = replace(one.node, features=features)
    shares = choose(demand(ask(constraint=constraint, **more), PARTITION), there)
    assert (None if shares is None else sorted(share.node for share in shares)) == nodes


GPU = Gres(name="gpu")


@pytest.mark.parametrize(
    ("resources", "nodes", "shares"),
    [
        ({}, (4, 4), [("n1", 1, 1, 0)]),
        ({"tasks": 3}, (2, 4), [("n2", 3, 3, 0)]),
        ({"tasks": 6}, (4, 4), [("n1", 4, 4, 0), ("n2", 2, 2, 0)]),
        ({"tasks": 9}, (4, 4), None),
        ({"tasks": 3, "min_nodes": 2, "max_nodes": 2}, (4, 4), [("n1", 2, 2, 0), ("n2", 1, 1, 0)]),
        ({"tasks": 4, "tasks_per_node": 2}, (4, 4), [("n1", 2, 2, 0), ("n2", 2, 2, 0)]),
        ({"cpus_per_task": 3}, (2, 4), [("n2", 1, 3, 0)]),
        ({"cpus_per_task": 5}, (4, 4), None),
        ({"min_nodes": 3, "max_nodes": 3}, (4, 4), None),
        ({"exclusive": True}, (4,), [("n1", 1, 4, 2)]),
        ({"exclusive": True}, (16,), [("n1", 1, 16, 2)]),
        ({"exclusive": True, "tasks": 9}, (16,), None),
        ({"exclusive": True, "gres": (Gres(name="gpu", count=3),)}, (4,), None),
        ({"gres": (GPU,)}, (4,), [("n1", 1, 1, 1)]),
        ({"gres": (Gres(name="gpu", count=3),)}, (4,), None),
        (
            {"gpus": (Gres(name="gpu", count=3),), "min_nodes": 2, "max_nodes": 2},
            (4, 4),
            [("n1", 1, 1, 2), ("n2", 1, 1, 1)],
        ),
        (
            {"gpus_per_task": (GPU,), "tasks": 3},
            (4, 4),
            [("n1", 2, 2, 2), ("n2", 1, 1, 1)],
        ),
        ({"mem_per_node_mib": 9000}, (4,), None),
        ({"tasks": 9, "mem_per_cpu_mib": 10}, (16,), [("n1", 9, 9, 0)]),
        ({"gpus": (GPU,), "min_nodes": 1, "max_nodes": 2}, (4, 4), [("n1", 1, 1, 1)]),
        ({"nodelist": ("n2",)}, (4, 4), [("n2", 1, 1, 0)]),
        ({"nodelist": ("n2",)}, (4, 0), None),
        ({"nodelist": ("n2", "n3")}, (4, 4, 4), [("n2", 1, 1, 0), ("n3", 1, 1, 0)]),
        ({"nodelist": ("n2",), "tasks": 5}, (4, 4), [("n2", 4, 4, 0), ("n1", 1, 1, 0)]),
        ({"nodelist": ("n2",), "tasks": 5}, (4, 0, 4), None),
        (
            {"nodelist": ("n3",), "min_nodes": 2, "max_nodes": 2},
            (4, 4, 4),
            [("n3", 1, 1, 0), ("n1", 1, 1, 0)],
        ),
        ({"nodelist": ("n2", "n3"), "min_nodes": 1, "max_nodes": 1}, (4, 0, 4), [("n3", 1, 1, 0)]),
    ],
)
def test_a_job_takes_the_nodes_that_slurm_would_give_it(
    resources: dict[str, object],
    nodes: tuple[int, ...],
    shares: list[tuple[str, int, int, int]] | None,
) -> None:
    found = choose(demand(ask(**resources), PARTITION), rooms(*nodes))
    shown = found and [(s.node, s.tasks, s.tres.cpu, len(s.gpu_ids)) for s in found]
    assert (list(shown) if shown else None) == shares


def test_an_untyped_gpu_is_one_of_the_nodes_type_and_ids_are_the_lowest_free() -> None:
    (one,) = rooms(4)
    wants = demand(ask(gres=(GPU,), cpus_per_task=2), PARTITION)
    taken = []
    for _ in range(2):
        (share,) = choose(wants, [one]) or ()
        one.take(share)
        taken.append((share.cpu_ids, share.gpu_ids, share.tres.gres))
    gres = gres_counts({"gpu:a10g": 1})
    assert taken == [((0, 1), (0,), gres), ((2, 3), (1,), gres)]
    assert choose(wants, [one]) is None


@pytest.mark.parametrize(
    ("resources", "cpus", "memory", "nodes"),
    [
        ({}, 1, 1000, 1),
        ({"tasks": 4, "cpus_per_task": 2}, 8, 8000, 1),
        ({"min_nodes": 2, "max_nodes": 2}, 2, 2000, 2),
        ({"min_nodes": 2, "max_nodes": 3}, 1, 1000, 2),
        ({"min_nodes": 2, "max_nodes": 3, "tasks": 2}, 2, 2000, 2),
        ({"mem_per_node_mib": 500, "min_nodes": 2, "max_nodes": 2}, 2, 1000, 2),
        ({"mem_per_node_mib": ALL}, 1, 1000, 1),
        ({"mem_per_gpu_mib": 700, "gres": (Gres(name="gpu", count=2),)}, 1, 1400, 1),
        ({"cpus_per_gpu": 4, "gres": (Gres(name="gpu", count=2),)}, 8, 8000, 1),
    ],
)
def test_what_a_job_asks_for_in_all(
    resources: dict[str, object], cpus: int, memory: int, nodes: int
) -> None:
    found = wanted(demand(ask(**resources), PARTITION))
    if resources.get("mem_per_node_mib") != ALL:
        assert found.mem_mib == memory
    assert (found.cpu, found.node) == (cpus, nodes)


@pytest.mark.parametrize(
    ("resources", "need"),
    [
        ({"tasks": 5, "min_nodes": 2, "max_nodes": 2}, (3, 3000, 2, 0)),
        ({"gpus": (Gres(name="gpu", count=3),), "min_nodes": 2, "max_nodes": 2}, (1, 1000, 2, 2)),
        ({"gpus_per_task": (GPU,), "tasks": 2}, (2, 2000, 1, 2)),
        ({"exclusive": True, "cpus_per_task": 3}, (3, 3000, 1, 0)),
    ],
)
def test_what_is_bought_holds_an_even_share_of_the_job(
    resources: dict[str, object], need: tuple[int, int, int, int]
) -> None:
    spec = ask(**resources)
    wants = demand(spec, PARTITION)
    found = need_of(spec, wants, 60)
    assert (found.cpus, found.mem_mib, found.nodes, found.gpus) == need
    machines = rooms(*[found.cpus] * found.nodes, gpus=found.gpus)
    assert sum(share.tasks for share in even_shares(wants, machines)) == wants.tasks
