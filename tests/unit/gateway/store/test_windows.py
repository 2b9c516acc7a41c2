"""Which jobs a window need not ask the database for."""

import pytest

from accounting.ids import JobId
from gateway.store.windows import stretch


@pytest.mark.parametrize(
    ("ids", "first", "last"),
    [
        ((), 1, 0),
        ((7,), 7, 7),
        ((3, 2, 1), 1, 3),
        ((1, 5, 6, 7, 9), 5, 7),
        ((1, 2, 4, 5), 1, 2),
        ((10, 12, 14), 10, 10),
    ],
)
def test_the_longest_row_of_ids_is_left_out(ids: tuple[int, ...], first: int, last: int) -> None:
    assert stretch([JobId(one) for one in ids]) == (first, last)
