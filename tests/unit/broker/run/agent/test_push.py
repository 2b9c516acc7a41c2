"""Letters to the service: what is in them, and what an agent does with each answer."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.run.agent import journal
from broker.run.agent.posting import TOLD
from broker.run.agent.push import FIRST_PAUSE, LONGEST_PAUSE, MOST, PIECE, PULSE, SOON, Line, Pusher

WHERE = {"url": "https://service/", "pin": "00", "ca": "", "token": "secret"}
SAID = {"ok": True}


class Wire(Line):
    """Answers as it is told to, and keeps what it was sent."""

    def __init__(self, *answers: tuple[int, dict[str, Any]] | OSError) -> None:
        super().__init__(WHERE)
        self.answers = list(answers)
        self.sent: list[bytes] = []

    def post(self, body: bytes) -> tuple[int, dict[str, Any]]:
        self.sent.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer


@pytest.fixture
def pusher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pusher]:
    monkeypatch.chdir(tmp_path)
    journal.save(TOLD, WHERE)
    Path("journal").write_bytes(b"one\ntwo\nhalf")
    made = Pusher()
    yield made
    made.news.close()


def said_to(pusher: Pusher, *answers: tuple[int, dict[str, Any]] | OSError) -> Wire:
    pusher.line = wire = Wire(*answers)
    return wire


def test_the_first_letter_asks_where_the_service_stands_and_the_next_goes_on_there(
    pusher: Pusher,
) -> None:
    wire = said_to(pusher, (200, {"position": 4}), (200, {"position": 8}), (200, {"position": 8}))
    assert pusher.turn(SAID) == (0.0, False)
    assert pusher.turn(SAID) == (0.0, False)
    assert pusher.turn(SAID) == (PULSE, False)
    heads = [json.loads(body.split(b"\n")[0]) for body in wire.sent]
    assert [head["at"] for head in heads] == [None, 4, 8]
    assert [body.partition(b"\n")[2] for body in wire.sent] == [b"", b"two\n", b""]


@pytest.mark.parametrize(
    ("answer", "position", "rest"),
    [
        ((202, {"position": 4}), 4, (SOON, True)),
        ((409, {"position": 0}), 0, (0.0, False)),
        ((409, {"position": 8}), 8, (0.0, False)),
        ((409, {"position": 4}), 4, None),
        ((413, {"position": 8}), 8, None),
        ((403, {"error": "no"}), 4, None),
        ((410, {}), 4, None),
        ((503, {}), 4, None),
        ((200, {"position": "x"}), 4, (PULSE, False)),
        ((302, {}), 4, None),
        (OSError("refused"), 4, None),
    ],
)
def test_an_answer_says_where_to_go_on_and_a_no_is_waited_out(
    pusher: Pusher,
    answer: tuple[int, dict[str, Any]] | OSError,
    position: int,
    rest: tuple[float, bool] | None,
) -> None:
    said_to(pusher, answer)
    pusher.position = 4
    seconds, deaf = pusher.turn(SAID)
    assert pusher.position == position
    if rest is not None:
        assert (seconds, deaf) == rest
    else:
        assert deaf
        assert FIRST_PAUSE / 2 <= seconds <= FIRST_PAUSE


def test_pauses_double_with_some_chance_in_them_and_end_with_a_yes(pusher: Pusher) -> None:
    wire = said_to(pusher, *([OSError("silent")] * 12), (200, {"position": 0}))
    pauses = [pusher.turn(SAID)[0] for _ in range(12)]
    for number, pause in enumerate(pauses):
        whole = min(FIRST_PAUSE * 2**number, LONGEST_PAUSE)
        assert whole / 2 <= pause <= whole
    pusher.turn(SAID)
    assert pusher.pause == FIRST_PAUSE
    assert not wire.answers


def test_a_letter_holds_a_piece_of_the_journal_or_one_long_line(pusher: Pusher) -> None:
    pusher.position = 0
    line = b"x" * 1023 + b"\n"
    Path("journal").write_bytes(line * 1024)
    assert pusher.lines() == line * (PIECE // 1024)
    Path("journal").write_bytes(b"x" * (2 * PIECE) + b"\n" + line)
    assert pusher.lines() == b"x" * (2 * PIECE) + b"\n" + line
    Path("journal").write_bytes(b"x" * (2 * MOST) + b"\n")
    assert pusher.lines() == b"", "nobody would take it: it is read over SSH"


def test_a_position_that_cannot_be_is_waited_out(pusher: Pusher) -> None:
    for position in (-5, 1 << 70):
        said_to(pusher, (200, {"position": position}), (200, {"position": 4}))
        pusher.position = 4
        pusher.turn(SAID)
        assert pusher.turn(SAID)[1], "it tries again later"


def test_a_full_disk_takes_no_log_and_ends_nothing(
    pusher: Pusher, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_to(pusher, OSError("silent"), (200, {"position": 4}))
    with Path("/dev/full").open("w", encoding="ascii") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert pusher.turn(SAID)[1]
        monkeypatch.undo()
        with contextlib.suppress(OSError):
            full.close()
