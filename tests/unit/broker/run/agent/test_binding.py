"""Which cpus of its node each task of a step is held to."""

# ruff: noqa: E501 - a row stays on one line

import os
from typing import Any

import pytest

from broker.run.agent import binding

FIRST, *_ = sorted(os.sched_getaffinity(0))


def bound(kind: str, *items: str, each: int = 1, verbose: bool = False) -> dict[str, Any]:
    there = sorted(os.sched_getaffinity(0))
    return {"kind": kind, "items": list(items), "each": each, "verbose": verbose, "cpus": there}


# fmt: off
WANTED: dict[str, tuple[dict[str, Any], int, list[int], list[set[int]]]] = {
    "each its thread":         (bound("threads"), 2, [4, 5, 6], [{4}, {5}]),
    "two threads each":        (bound("threads", each=2), 2, [0, 1, 2, 3], [{0, 1}, {2, 3}]),
    "more than there are":     (bound("threads", each=2), 2, [0, 1, 2], []),
    "by rank, round and round": (bound("rank"), 3, [4, 6], [{4}, {6}, {4}]),
    "cpus by number":          (bound("map_cpu", "3", "1"), 2, [0], [{3}, {1}]),
    "cpus by mask":            (bound("mask_cpu", "5", "f0"), 2, [0], [{0, 2}, {4, 5, 6, 7}]),
    "cpus that no set has":     (bound("map_cpu", "1023", "1024", "9" * 30), 3, [0], [{1023}, set(), set()]),
    "masks beyond a set":       (bound("mask_cpu", "1" + "0" * 256, "f" * 400), 2, [0], [set(), set(range(1024))]),
    "none":                    (bound("none"), 2, [0, 1], []),
    "nothing said":            (bound(""), 2, [0, 1], []),
}
# fmt: on


@pytest.mark.parametrize("what", WANTED)
def test_each_place_has_its_cpus(what: str) -> None:
    bind, count, there, sets = WANTED[what]
    assert binding.wanted(bind, count, there) == sets


@pytest.mark.parametrize("kind", ["cores", "sockets", "ldoms"])
def test_units_of_this_machine_hold_what_is_the_steps_and_nothing_else(kind: str) -> None:
    there = sorted(os.sched_getaffinity(0))
    (own,) = binding.wanted(bound(kind), 1, there)
    assert FIRST in own
    assert own <= set(there)


# fmt: off
TOLD: dict[str, tuple[dict[str, Any], list[set[int]], tuple[str, str, str, str]]] = {
    "cores are masks":  (bound("cores"), [{0}, {1, 2}], ("quiet,mask_cpu:0x1,0x6", "0x1,0x6", "mask_cpu:", "quiet")),
    "too few cpus":     (bound("threads"), [], ("quiet,none", "", "none", "quiet")),
    "none":             (bound("none"), [], ("quiet,none", "", "none", "quiet")),
    "a list as it was": (bound("map_cpu", "0", "1"), [{0}, {1}], ("quiet,map_cpu:0,1", "0,1", "map_cpu:", "quiet")),
    "rank":             (bound("rank", verbose=True), [{0}], ("verbose,rank", "", "rank", "verbose")),
    "only loud":        (bound("", verbose=True), [], ("verbose", "", "", "verbose")),
}
# fmt: on


@pytest.mark.parametrize("what", TOLD)
def test_tasks_are_told_in_slurms_variables(what: str) -> None:
    bind, sets, (whole, items, kind, loud) = TOLD[what]
    assert binding.variables(bind, sets) == {
        b"SLURM_CPU_BIND": whole.encode(),
        b"SLURM_CPU_BIND_LIST": items.encode(),
        b"SLURM_CPU_BIND_TYPE": kind.encode(),
        b"SLURM_CPU_BIND_VERBOSE": loud.encode(),
    }


@pytest.mark.parametrize("cpu", ["100000", "9" * 30])
def test_a_cpu_that_none_has_is_told_and_the_task_runs_on(
    cpu: str, capfd: pytest.CaptureFixture[str]
) -> None:
    step = {"bind": bound("map_cpu", cpu), "tasks": [{}], "node": "n1"}
    assert binding.hold(step, 0)[b"SLURM_CPU_BIND_LIST"] == cpu.encode()
    assert ",0x0) failed: Invalid argument" in capfd.readouterr().err


def test_a_node_of_other_cpus_gives_what_it_has() -> None:
    may = sorted(os.sched_getaffinity(0))
    assert binding.available([100_000]) == may
    assert binding.available([FIRST, 100_000]) == [FIRST]


@pytest.mark.parametrize(("text", "cpus"), [("0-2,5", {0, 1, 2, 5}), ("7", {7}), ("", set())])
def test_lists_of_cpus_are_read(text: str, cpus: set[int]) -> None:
    assert binding.spread(text) == cpus
