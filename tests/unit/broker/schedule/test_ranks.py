"""Where the tasks of a step are, as Slurm lays them out."""

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName, StepId
from broker.model.job import Share, Step
from broker.model.spec import Output, StepSpec
from broker.schedule.ranks import counts, ranks, shares_files


def laid_out(spec: StepSpec, room: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    each = counts(spec, room)
    shares = [
        Share(NodeName(f"n{place}"), 0, Tres(), tasks=count)
        for place, count in enumerate(each, start=1)
    ]
    return ranks(Step(StepId("0"), "x", spec=spec, share=shares[0], more=tuple(shares[1:])))


@pytest.mark.parametrize(
    ("tasks", "distribution", "room", "expected"),
    [
        (1, "", (4,), [(0,)]),
        (4, "", (3, 1), [(0, 1, 2), (3,)]),
        (6, "", (4, 1, 1), [(0, 1, 2, 3), (4,), (5,)]),
        (2, "", (4, 4), [(0,), (1,)]),
        (4, "cyclic", (4, 1, 1), [(0, 3), (1,), (2,)]),
        (4, "block", (4, 1, 1), [(0, 1), (2,), (3,)]),
        (4, "block:cyclic", (4, 1, 1), [(0, 1), (2,), (3,)]),
        (4, "block,Pack", (4, 1, 1), [(0, 1), (2,), (3,)]),
        (4, "block,Pack", (4, 4), [(0, 1, 2), (3,)]),
        (5, "plane=2", (4, 1, 1), [(0, 1, 4), (2,), (3,)]),
        (8, "plane=2", (4, 4), [(0, 1, 4, 5), (2, 3, 6, 7)]),
        (9, "", (1, 1), [(0, 1, 2, 3, 4), (5, 6, 7, 8)]),
        (9, "*:block", (1, 1), [(0, 1, 2, 3, 4), (5, 6, 7, 8)]),
        (5, "plane=2", (0, 0), [(0, 1, 4), (2, 3)]),
    ],
)
def test_tasks_are_laid_out_as_slurm_does(
    tasks: int, distribution: str, room: tuple[int, ...], expected: list[tuple[int, ...]]
) -> None:
    spec = StepSpec(name="x", tasks=tasks, nodes=len(room), distribution=distribution)
    assert list(laid_out(spec, room)) == expected


def test_an_arbitrary_layout_is_that_of_the_named_nodes() -> None:
    hosts = ("n2", "n1", "n2")
    spec = StepSpec(name="x", tasks=3, nodes=2, distribution="arbitrary", hosts=hosts)
    shares = [Share(NodeName(name), 0, Tres(), tasks=n) for name, n in (("n1", 1), ("n2", 2))]
    step = Step(StepId("0"), "x", spec=spec, share=shares[0], more=(shares[1],))
    assert ranks(step) == ((1,), (0, 2))


@pytest.mark.parametrize(
    ("output", "shared"),
    [
        (None, False),
        (Output(), False),
        (Output(stdout="out"), True),
        (Output(stdout="out", open_mode="append"), False),
        (Output(stdout="/dev/null"), False),
        (Output(stdout="out.%t"), False),
        (Output(stdout="out.%3n"), False),
        (Output(stdout="out.%j"), True),
        (Output(stdout="out.%t\\"), True),
        (Output(stdout="out.%N", stderr="err"), True),
    ],
)
def test_files_are_shared_by_nodes_where_their_names_are_the_same(
    output: Output | None, shared: bool
) -> None:
    spec = StepSpec(name="x", output=output, interactive=True)
    assert shares_files(Step(StepId("0"), "x", spec=spec), Output(stdout="job")) is shared


@pytest.mark.parametrize(
    ("jobs", "shared"),
    [
        (Output(), True),
        (Output(stdout="log-%N", stderr="err-%N"), False),
        (Output(stdout="log"), True),
        (Output(stdout="log", open_mode="append"), False),
    ],
)
def test_a_step_that_nobody_watches_writes_where_its_job_does(jobs: Output, shared: bool) -> None:
    assert shares_files(Step(StepId("0"), "x", spec=StepSpec(name="x")), jobs) is shared
