"""Values and text, by table: tests/tables/grammar/values.csv."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sbatch_shim.grammar import arrays, dependencies, resources, states, values

TABLE = Path(__file__).parents[4] / "tests" / "tables" / "grammar" / "values.csv"
MAX_ARRAY_SIZE = 1001


def _words(found: tuple[Any, ...]) -> str:
    return " ".join(str(part) for part in found)


def _array(text: str) -> tuple[str, str] | None:
    found = arrays.read_array(text, MAX_ARRAY_SIZE)
    if found is None:
        return None
    tasks = ",".join(str(task) for task in found.tasks)
    return f"{tasks} {found.limit} {found.step}", arrays.show_array(found.tasks, found.limit)


def _dependency(text: str) -> tuple[str, str]:
    try:
        found = dependencies.read_dependencies(text)
    except dependencies.DependencyError:
        return "!", ""
    return ("?" if found.any_one else ";").join(_words(one) for one in found.all), ""


def _gres(read: Callable[[str], tuple[resources.Item, ...]]) -> Callable[[str], tuple[str, str]]:
    def found(text: str) -> tuple[str, str]:
        try:
            items = read(text)
        except resources.GresError as wrong:
            return f"!{wrong.kind}", ""
        return ";".join(_words(item) for item in items), ""

    return found


def _shown(
    read: Callable[[str], Any], show: Callable[[Any], str] = lambda _: ""
) -> Callable[[str], tuple[str, str] | None]:
    def found(text: str) -> tuple[str, str] | None:
        value = read(text)
        if value is None:
            return None
        return (_words(value) if isinstance(value, tuple) else str(value)), show(value)

    return found


READERS: dict[str, Callable[[str], tuple[str, str] | None]] = {
    "time limit": _shown(values.read_time_limit, values.show_long),
    "memory": _shown(values.read_mebibytes, values.show_mebibytes),
    "count": _shown(values.read_count),
    "scaled count": _shown(values.read_scaled_count),
    "job state": _shown(states.read_job_state),
    "signal": _shown(values.read_signal, values.show_signal),
    "nodes": _shown(values.read_nodes),
    "array": _array,
    "dependency": _dependency,
    "gres": _gres(resources.read_gres),
    "gpus": _gres(resources.read_gpus),
}


def rows() -> list[dict[str, str]]:
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['kind']}: {row['text']!r}")
def test_text_is_read_as_slurm_reads_it_and_shown_in_one_form(row: dict[str, str]) -> None:
    found = READERS[row["kind"]](row["text"]) or ("", "")
    assert found == (row["value"], row["shown"])


@pytest.mark.parametrize(
    ("seconds", "short", "long"),
    [
        (7, "0:07", "00:00:07"),
        (300, "5:00", "00:05:00"),
        (3600, "1:00:00", "01:00:00"),
        (90061, "1-01:01:01", "1-01:01:01"),
        (values.UNLIMITED, "UNLIMITED", "UNLIMITED"),
    ],
)
def test_durations_are_short_in_squeue_and_long_in_sacct(
    seconds: int | str, short: str, long: str
) -> None:
    assert values.show_short(seconds) == short
    assert values.show_long(seconds) == long


def test_sinfo_calls_no_limit_infinite() -> None:
    assert values.show_short(values.UNLIMITED, "infinite") == "infinite"


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "00:00.000"),
        (61_234_567, "01:01.234"),
        (3_600_000_000, "01:00:00"),
        (90_061_000_000, "1-01:01:01"),
    ],
)
def test_cpu_times_have_milliseconds_below_an_hour(micros: int, text: str) -> None:
    assert values.show_cpu_time(micros) == text


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (1500, "M", "1500M"),
        (1536, "M", "1.50G"),
        (1024, "M", "1G"),
        (1234, "K", "1234K"),
        (0, "M", "0M"),
    ],
)
def test_sizes_are_scaled_only_where_that_is_exact(number: int, unit: str, text: str) -> None:
    assert values.show_scaled(number, unit) == text


def test_a_long_list_of_indexes_is_cut_with_dots_unless_width_is_zero() -> None:
    tasks = [index for index in range(200) if index % 3]
    cut = arrays.show_array(tasks, 5)
    assert cut.endswith(",...%5")
    assert len(cut) <= arrays.BITSTR_LEN + len("%5")
    assert arrays.show_array(tasks, None, 0) == arrays.show_indexes(tasks)


@pytest.mark.parametrize("width", range(1, 12))
def test_a_list_of_indexes_is_never_wider_than_asked(width: int) -> None:
    for tasks in ([1, 2, 3], [1, 4, 7, 10], range(1, 11), [100, 200]):
        assert len(arrays.show_array(tasks, None, width)) <= width


@pytest.mark.parametrize("text", ["9" * 41, "9" * 5000, "²", "٣", "+1", ""])
def test_what_no_number_of_slurm_can_be_is_none(text: str) -> None:
    assert values.read_digits(text) is None
