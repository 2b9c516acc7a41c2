"""Where reading of a text that is no point in time stops, as a real Slurm 22.05 told it."""

import pytest

from sbatch_shim.grammar.stopped import stopped


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("x", 0),
        ("25:61", 0),
        ("2030-13-01", 5),
        ("tomorrow+1hour", 8),
        ("now+5x", 4),
        ("now+x", 3),
        ("now5", 3),
        ("nowx", 3),
        ("now+", 3),
        ("now-", 3),
        ("now-1x", 4),
        ("12:60", 3),
        ("12:30:61", 6),
        ("12:3x", 4),
        ("12:", 3),
        ("12", 2),
        ("12345", 2),
        ("16:00:00.5", 8),
        ("13:00pm", 5),
        ("12:30xm", 5),
        ("2030-01-01T10", 13),
        ("2030-1-1", 0),
        ("2030-01", 0),
        ("2030/01/01", 0),
        ("13/01/30", 0),
        ("01/32", 3),
        ("01.02.3x", 7),
        ("todayx", 5),
        ("today+1", 5),
        ("noonx", 4),
        ("noon x", 5),
        ("10:00 x", 6),
        ("fikax", 4),
        ("2030-01-01x", 10),
        ("2030-01-01 x", 11),
        ("-5", 2),
        ("+5", 0),
        ("now + 5 minutesx", 15),
        ("now +5 foo", 6),
        ("jan1", 0),
        ("10am", 2),
        ("25:00", 0),
        ("tomorrow 25:00", 9),
        ("0000", 0),
        ("000000", 0),
        ("99999999", 0),
        ("20301231", 0),
        ("1-1-2030", 1),
        ("²", 0),
    ],
)
def test_the_place_where_reading_stopped_is_told(text: str, position: int) -> None:
    assert stopped(text) == position
