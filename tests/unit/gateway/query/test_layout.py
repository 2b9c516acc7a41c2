"""Formats of squeue: letters, names, widths."""

# ruff: noqa: E501 - a row stays on one line

import pytest

from broker.model.errors import Refused
from gateway.query.select import (
    DEFAULT_SORT,
    SortError,
    Wanted,
    ordered,
    select,
    spread_arrays,
    spread_partitions,
)
from gateway.query.views import SQUEUE_DEFAULT, squeue_letters, squeue_names
from gateway.query.width import WIDEST
from tests.unit.gateway.query.records import NOON, context, running
from tests.unit.gateway.query.scene import queue

LETTER_FORMATS = [
    ("%i", "JOBID", "700001"),
    ("%.8i|", "   JOBID|", "  700001|"),
    ("%8i|", "JOBID   |", "700001  |"),
    ("%.3i|%3i", "JOB|JOB", "700|700"),
    ("%i%j", "JOBIDNAME", "700001wrap"),
    ("abc %i def", "abc JOBID def", "abc 700001 def"),
    ("%i\\t%j", "JOBID\\tNAME", "700001\\twrap"),
    ("%i,100%", "JOBID,100", "700001,100"),
    ("nothing", "nothing", "nothing"),
    ("", "", ""),
    ("%", "", ""),
    ("%.2N|%2N", "NODELIST|NO", "ec2-1|ec"),
    ("%.4R|%4R|%.4Y", "NODELIST(REASON)|NODE|SCHEDNODES", "ec2-1|ec2-|(null)"),
    ("%.2l|%2l|%.1M|%.3n", "TI|TI|T|REQ", "1:00:00|1:|0:30|   "),
]


@pytest.mark.parametrize(("text", "header", "row"), LETTER_FORMATS)
def test_letters_take_a_width_and_a_side(text: str, header: str, row: str) -> None:
    layout = squeue_letters(text)
    assert layout.header == header
    assert layout.lines([running()], context()) == [row]
    assert not layout.unknown


def test_an_unknown_letter_stays_as_text_and_is_told() -> None:
    layout = squeue_letters("%%|%i %.3?x %5")
    assert layout.lines([running()], context()) == ["%|700001 %.3?x %5"]
    assert layout.unknown == ("|", "?", "")


NAME_FORMATS = [
    ("jobid,name", "JOBID               NAME                ", "700001              wrap                "),
    ("JobID:.8,NAME:3", "   JOBIDNAM", "  700001wra"),
    ("jobid:x", "JOBIDx", "700001x"),
    ("jobid:", "JOBID", "700001"),
    ("jobid: ,name:2|", "JOBID NA|", "700001 wr|"),
    ("name:4,", "NAME", "wrap"),
    ("name:-2,jobid:.-9", "NAME JOBID ", "wrap 700001 "),
    ("name:-3x,name:-0|", "NAME xNAME|", "wrap xwrap|"),
    ("name:+2,name: 6,name:.+5", "NANAME   NAME", "wrwrap   wrap"),
    ("name:-,name: ,name:+x", "NAME-NAME NAME+x", "wrap-wrap wrap+x"),
    ("name:-.5,name:--5", "NAME-.5NAME--5", "wrap-.5wrap--5"),
    ("name:007,name:5.5,name:0x9", "NAME   NAME .5NAMEx9", "wrap   wrap .5wrapx9"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "header", "row"), NAME_FORMATS)
def test_names_are_twenty_wide_unless_told(text: str, header: str, row: str) -> None:
    layout = squeue_names(text)
    assert layout.header == header
    assert layout.lines([running()], context()) == [row]


def test_an_unknown_name_is_left_out_and_told() -> None:
    layout = squeue_names("nosuch,jobid:6")
    assert layout.lines([running()], context()) == ["700001"]
    assert layout.unknown == ("nosuch",)


def test_a_layout_knows_whether_time_alone_changes_it() -> None:
    assert squeue_letters(SQUEUE_DEFAULT).timed
    assert not squeue_letters("%i %T %N").timed


FILTERS = [
    (Wanted(), "1 2 3 4 5 6 7 8 9 14"),
    (Wanted(all_states=True), "1 2 3 4 5 6 7 8 9 10 11 14"),
    (Wanted(states=frozenset({"RUNNING"})), "1 2 3 14"),
    (Wanted(users=frozenset({"bob"})), "2 6"),
    (Wanted(users=frozenset({"2002"})), "2 6"),
    (Wanted(not_user=2001), "2 6"),
    (Wanted(accounts=frozenset({"chem"})), "2 3 6"),
    (Wanted(names=frozenset({"arr2", "dep"})), "6 8 14"),
    (Wanted(partitions=frozenset({"debug"})), "9"),
    (Wanted(hidden=frozenset({"ec2"})), "9"),
    (Wanted(nodes=frozenset({"ec2-2"})), "14"),
    (Wanted(qos=frozenset({"high"})), ""),
    (Wanted(licenses=frozenset({"x"})), ""),
    (Wanted(over=10), "1 2 3"),
    (Wanted(under=10), "14"),
]


@pytest.mark.parametrize(("wanted", "ids"), FILTERS)
def test_filters_choose_jobs(wanted: Wanted, ids: str) -> None:
    found = select(queue(), wanted, context())
    assert " ".join(str(job.id - 700000) for job in found) == ids


SORTS = [
    (DEFAULT_SORT, "9 5 8 6 7 4 2 3 14 1"),
    ("i", "1 2 3 4 5 6 7 14 8 9"),
    ("-i", "9 8 14 7 6 5 4 3 2 1"),
    ("S", "1 2 3 14 5 4 6 7 8 9"),
    ("u,-p", "5 8 14 9 3 1 7 4 2 6"),
]


@pytest.mark.parametrize(("text", "ids"), SORTS)
def test_order_follows_the_letters(text: str, ids: str) -> None:
    found = ordered(select(queue(), Wanted(), context()), text, context())
    places = {int(number): place for place, number in enumerate(ids.split())}
    if text in {DEFAULT_SORT, "i", "-i", "S"}:
        assert [job.id - 700000 for job in found] == list(places)
    else:
        users = [job.owner.user for job in found]
        assert users == sorted(users)


def test_nothing_is_sorted_by_an_unknown_letter() -> None:
    with pytest.raises(SortError):
        ordered(queue(), "^", context())


def test_an_array_spreads_into_its_elements() -> None:
    arrays = [job for job in queue() if job.array and job.array.task is None]
    tasks = [job.array.task for job in spread_arrays(arrays) if job.array]
    assert tasks == [1, 2, 5, 6, 7, 8, 9, 10, 2, 3]


def test_a_job_spreads_over_its_partitions() -> None:
    big = [job for job in queue() if job.spec.name == "big"]
    assert [job.partition for job in spread_partitions(big)] == ["debug", "ec2"]


def test_the_scene_is_of_this_noon() -> None:
    assert all(job.submitted <= NOON for job in queue())


TOO_MUCH = ["%.9999i" * 20_000, "%i" * 501]


@pytest.mark.parametrize("text", TOO_MUCH, ids=["wide", "columns"])
def test_more_than_the_service_can_hold_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="at most"):
        squeue_letters(text)


def test_a_width_is_held_to_what_a_screen_could_show_and_rows_count() -> None:
    layout = squeue_names("name:999999999,jobid:" + "9" * 5000)
    assert {len(line) for line in layout.lines([running()], context())} == {2 * WIDEST}
    for long in (layout, squeue_letters("%i" + "x" * 20_000)):
        with pytest.raises(Refused, match="at most"):
            long.lines([running()] * 10_000, context())
