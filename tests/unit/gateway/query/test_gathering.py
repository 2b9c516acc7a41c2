"""Tasks of an array that wait are one row of squeue, each reason told once."""

from broker.model.job import ArrayPlace, HetPlace, Hold
from gateway.query.select import gather_arrays
from tests.unit.gateway.query.records import pending, running


def place(task: int | None, *waiting: int) -> ArrayPlace:
    return ArrayPlace(base=7, task=task, waiting=waiting, count=4)  # type: ignore[arg-type]


def test_a_task_that_was_held_alone_stays_in_the_arrays_row() -> None:
    base = pending(7, array=place(None, 1, 3), reason="None")
    held = pending(8, array=place(2), reason="JobHeldUser", hold=Hold.USER)
    runs = running(9, array=place(4))
    other = pending(10)
    row, *rest = gather_arrays([base, held, runs, other])
    assert row.array == place(None, 1, 2, 3)
    assert row.reason == "None,JobHeldUser"
    assert rest == [runs, other]


def test_a_task_alone_is_a_row_of_its_own() -> None:
    alone = pending(8, array=place(2))
    assert list(gather_arrays([alone])) == [alone]


def test_components_have_ids_one_after_the_other() -> None:
    assert HetPlace(base=7, offset=1, size=3).ids == (7, 8, 9)  # type: ignore[arg-type]
