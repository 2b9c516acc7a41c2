"""Host lists as sets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbatch_shim.grammar import hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("ec2-1", ["ec2-1"]),
        ("ec2-[1-3]", ["ec2-1", "ec2-2", "ec2-3"]),
        ("n[001-003,7]", ["n001", "n002", "n003", "n7"]),
        ("b,a,a", ["b", "a", "a"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("a[1-2]-ib,c", ["a1-ib", "a2-ib", "c"]),
        ("a b", ["a", "b"]),
    ],
)
def test_a_list_expands_in_the_order_given(text: str, names: list[str]) -> None:
    assert hostlist.expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        *("a[1-", "a]1[", "a[[1]]", "a[2-1]", "a[x]", "a[]", "a[1-9999999999]"),
        pytest.param(f"a[{','.join(['1-60000'] * 9999)}]", id="very many numbers"),
        pytest.param("a[1-60000]" * 9, id="very many names"),
    ],
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(hostlist.HostlistError):
        hostlist.expand(text)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["ec2-1"], "ec2-1"),
        (["ec2-3", "ec2-1", "ec2-2"], "ec2-[1-3]"),
        (["n009", "n010", "n012"], "n[009-010,012]"),
        (["n9", "n10"], "n[9-10]"),
        (["a", "b1"], "a,b1"),
        (["n1", "n01"], "n[1,01]"),
        ([], ""),
    ],
)
def test_names_fold_sorted_into_brackets(names: list[str], text: str) -> None:
    assert hostlist.fold(names) == text


def test_join_keeps_order_and_repeats() -> None:
    assert hostlist.join(["c2", "c1", "a", "c3", "c4"]) == "c[2,1],a,c[3-4]"


def test_lists_are_sets() -> None:
    assert hostlist.union("a[1-2]", "a3") == "a[1-3]"
    assert hostlist.difference("a[1-4]", "a2") == "a[1,3-4]"
    assert hostlist.intersection("a[1-4]", "a[3-9]") == "a[3-4]"


@given(st.lists(st.from_regex(r"[a-z]-?[0-9]{1,4}", fullmatch=True)))
def test_folding_then_expanding_gives_the_sorted_set(names: list[str]) -> None:
    assert hostlist.expand(hostlist.fold(names)) == hostlist.sorted_names(set(names))
