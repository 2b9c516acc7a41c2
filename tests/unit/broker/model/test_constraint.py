"""Feature expressions read as Slurm reads them: from the left, `&` and `|` alike."""

import pytest

from broker.model.constraint import holds, kinds, names, parse, suits, ways, written
from broker.model.errors import BadOption


@pytest.mark.parametrize(
    "text, features, expected",
    [
        ("g5", {"g5"}, True),
        ("G5", {"g5"}, True),
        ("g5", {"g6"}, False),
        ("g5&spot", {"g5", "spot"}, True),
        ("g5 & spot", {"g5"}, False),
        ("g5|g6", {"g6"}, True),
        ("a|b&c", {"a"}, False),
        ("a&b|c", {"c"}, True),
        ("a|(b&c)", {"a"}, True),
        ("(a|b)&(c|d)", {"b", "d"}, True),
        ("[us-east-1|us-west-2]&nvme", {"us-west-2", "nvme"}, True),
        ("c7i.4xlarge", {"c7i.4xlarge"}, True),
        ("use1-az4", {"use1-az4"}, True),
        ("a100-80gb", {"a100"}, False),
        ("Spot*2", {"spot"}, True),
        ("spot*2", {"g5"}, False),
        ("[a*2&b*4]", {"a", "b"}, True),
        ("[a*2&b*4]", {"a"}, False),
        ("[(a&b)*2&c * 3]", {"c"}, False),
        ("[(a&b)|c]", {"c"}, True),
    ],
)
def test_a_constraint_holds_for_features(text: str, features: set[str], expected: bool) -> None:
    assert holds(parse(text), features) is expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "&",
        "a&",
        "|a",
        "(a",
        "a)",
        "a b",
        "[a|b",
        "(a]",
        "a&&b",
        "*2",
        "a*",
        "a*0",
        "a*2*3",
        "a*2&b*1",
        "a*2&c",
        "c|a*2",
        "(a&b)*2",
        "[a*2]&[b*1]",
        "[a*2&b]|c",
        "[a*2&c]",
        "[a&c]",
        "[a*2&b*1&c]",
        "[a*2|b*1]",
        "[a|b*2]",
        "[a|b]*2",
        "[[a]]",
        "()",
    ],
)
def test_what_is_no_constraint_is_refused_with_the_text_of_slurm(text: str) -> None:
    with pytest.raises(BadOption, match="Invalid feature specification") as caught:
        parse(text)
    assert (caught.value.option, caught.value.value) == ("constraint", text)


@pytest.mark.parametrize(
    ("text", "counts", "features", "suited"),
    [
        ("a", [], {"a"}, True),
        ("a", [], {"b"}, False),
        ("a*2", [2], {"a"}, True),
        ("a*2", [2], {"b"}, True),
        ("[a*2&b*4]", [2, 4], {"b"}, True),
        ("[a*2&b*4]", [2, 4], {"c"}, True),
        ("[(a|x)*2&b*1]", [2, 1], {"x"}, True),
    ],
)
def test_counts_of_several_kinds_are_met_by_nodes_that_differ(
    text: str, counts: list[int], features: set[str], suited: bool
) -> None:
    found = parse(text)
    assert [one.count for one in kinds(found)] == counts
    assert suits(found, features) is suited


def test_names_are_all_that_is_mentioned() -> None:
    assert names(parse("A&(b|c)")) == {"a", "b", "c"}
    assert names(None) == frozenset()


@pytest.mark.parametrize(
    ("text", "each"),
    [
        ("a|b", ["(a|b)"]),
        ("[a|b]", ["a", "b"]),
        ("[a|b|c]&x", ["(a&x)", "(b&x)", "(c&x)"]),
        ("[(a&b)|c]", ["(a&b)", "c"]),
        ("x&[a|b]", ["(x&a)", "(x&b)"]),
        ("a*2", ["a"]),
    ],
)
def test_alternatives_in_brackets_are_ways_of_which_all_nodes_have_one(
    text: str, each: list[str]
) -> None:
    found = ways(parse(text))
    assert [written(one) for one in found] == each
    assert [parse(written(one)) for one in ways(parse("[a|b]&c|d"))] == list(
        ways(parse("[a|b]&c|d"))
    )


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("|".join(["a"] * 100), True),
        ("|".join(["a"] * 3000), False),
        ("(" * 3000, False),
        ("&".join(["[a|b]"] * 6), True),
        ("&".join(["[a|b]"] * 7), False),
        ("[" + "|".join(["a"] * 65) + "]", False),
    ],
)
def test_expressions_that_nobody_writes_are_refused(text: str, good: bool) -> None:
    """However long, or with however many ways, they keep nobody else waiting."""
    if good:
        assert len(ways(parse(text))) <= 64
    else:
        with pytest.raises(BadOption):
            parse(text)
