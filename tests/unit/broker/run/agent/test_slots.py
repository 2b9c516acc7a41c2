"""Room on this host is given to so many, then to those that wait, oldest first."""

import os
from pathlib import Path

from broker.run.agent import wire
from broker.run.agent.slots import Slots


def waiting(folder: Path, name: str) -> tuple[Slots, int]:
    door = folder / name
    os.mkfifo(door)
    return Slots(str(folder), 2, str(door)), os.open(door, os.O_RDWR | os.O_NONBLOCK)


def test_those_who_wait_are_woken_in_their_order(tmp_path: Path) -> None:
    made = [waiting(tmp_path, f"door{number}") for number in range(4)]
    assert [slots.take() for slots, _door in made] == [True, True, False, False]
    assert made[3][0].take() is False
    made[0][0].release()
    assert os.read(made[2][1], 100) == wire.encode({"do": "turn"})
    assert made[2][0].take() is True
    made[3][0].release()  # it gave up while it waited
    made[1][0].release()
    made[2][0].release()
    assert not any((tmp_path / "waiting").iterdir())
    for _slots, door in made:
        os.close(door)


def test_a_waiter_that_is_gone_is_passed_over(tmp_path: Path) -> None:
    made = [waiting(tmp_path, f"door{number}") for number in range(4)]
    for slots, _door in made:
        slots.take()
    os.close(made[2][1])
    (tmp_path / "door2").unlink()
    made[0][0].release()
    assert os.read(made[3][1], 100) == wire.encode({"do": "turn"})
    for number in (0, 1, 3):
        os.close(made[number][1])
