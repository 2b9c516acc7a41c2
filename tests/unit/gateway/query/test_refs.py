"""Jobs as command lines name them; how much of them one line may name."""

import pytest

from gateway.query.refs import MOST_NAMED, read_ref, read_refs
from sbatch_shim.grammar.arrays import read_array
from sbatch_shim.grammar.values import read_nodes


@pytest.mark.parametrize(
    "text",
    [
        "1_[0-4000000000]",
        f"1_[0-{MOST_NAMED}]",
        pytest.param(f"1_[{','.join(['0-9999'] * 999)}]", id="the same elements many times"),
    ],
)
def test_nobody_keeps_the_service_busy_with_elements_that_no_array_has(text: str) -> None:
    assert read_ref(text) is None


def test_what_one_line_names_has_a_limit() -> None:
    words = [f"{job}_[0-9999]" for job in range(1, 9)]
    found = list(read_refs([",".join(words), "9", "x"]))
    assert [word for word, _ in found] == [*words, "9", "x"]
    assert [refs is not None for _, refs in found] == [*[True] * 6, *[False] * 4]


@pytest.mark.parametrize("text", ["0-4000000000:1", f"3,0-{'9' * 30}:2", "0-65535:1,1-65535"])
def test_a_list_of_numbers_of_nodes_has_a_limit(text: str) -> None:
    assert read_nodes(text) is None


def test_an_array_may_have_as_many_elements_as_slurm_allows() -> None:
    whole = read_array("0-4000000", 4_000_001)
    assert whole is not None
    assert len(whole.tasks) == 4_000_001
    assert read_array("0-4000000,0-1", 4_000_001) is None
