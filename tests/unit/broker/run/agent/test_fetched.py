"""What the service does not have of a journal's ends is owed."""

import time
from pathlib import Path

import pytest

from broker.run.agent import fetched
from broker.run.agent.keeper import Keeper

BEGIN = b'{"kind":"accepted","key":"1/1/batch"}\n{"kind":"started","key":"1/1/batch"}\n'
END = b'{"kind":"exited","key":"1/1/batch"}\n'
GONE = b'{"kind":"gone","attempt":"1/1"}\n'


@pytest.mark.parametrize(
    ("journal", "read", "owed"),
    [
        (b"", 0, False),
        (BEGIN, 0, False),
        (BEGIN + END, 0, True),
        (BEGIN + GONE, 0, True),
        (BEGIN + END, len(BEGIN), True),
        (BEGIN + END, len(BEGIN + END), False),
        (BEGIN + END + BEGIN, len(BEGIN + END), False),
        (BEGIN + END + END[:9], len(BEGIN + END), False),
    ],
)
def test_an_end_is_owed_until_the_service_stands_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: bytes, read: int, owed: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("journal").write_bytes(journal)
    fetched.note({"fetched": read})
    assert fetched.owed() is owed


@pytest.mark.parametrize(("left", "waits"), [(3600, True), (-1, False), (None, False)])
def test_a_machine_waits_for_who_fetches_until_its_hard_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int | None, waits: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("journal").write_bytes(BEGIN + END)
    deadline = 0.0 if left is None else time.time() + left
    keeper = Keeper(lease=60, deadline=deadline, notices=False)
    assert keeper.owes() is waits
    fetched.note({"fetched": len(BEGIN + END)})
    assert not keeper.owes()


def test_an_earlier_position_takes_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for position in (50, 20, 0, None):
        fetched.note({"fetched": position})
    fetched.note({})
    assert fetched.known() == 50
