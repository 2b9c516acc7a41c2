"""A journal comes from a machine that jobs share: nothing in it is believed to be of its form."""

import json

import pytest

from broker.run.records import records

EXITED = {"at": 1.5, "kind": "exited", "key": "4711/1/batch", "attempt": "4711/1", "seq": 3}


def line(**facts: object) -> bytes:
    return json.dumps({**EXITED, **facts}).encode() + b"\n"


def test_half_a_line_of_the_journal_is_left_for_later() -> None:
    data = line(seq=1) + line(seq=2) + b'{"se'
    found, taken = records(data)
    assert [record["seq"] for record in found] == [1, 2]
    assert data[taken:] == b'{"se'
    assert records(b'{"se') == ((), 0)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"code": 0, "phase": "run", "tasks": []},
        {"tasks": [{"rank": 0, "code": 1, "signal": 0}], "gpu_util": 12.5},
        {"kind": "one of tomorrow's", "more": {"of": ["it"]}},
    ],
)
def test_lines_of_agents_are_taken_whatever_else_they_say(facts: dict[str, object]) -> None:
    assert records(line(**facts))[0] == ({**EXITED, **facts},)


@pytest.mark.parametrize("name", ["at", "key", "attempt", "code", "tasks"])
def test_what_is_null_is_missing(name: str) -> None:
    assert records(line(**{name: None}))[0] == ({n: v for n, v in EXITED.items() if n != name},)


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"nonsense\n",
        b"[]\n",
        b'"exited"\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'{"seq": 1}\n',
        line(kind=7),
        line(key=7),
        line(key="4711/1"),
        line(key="²/1/batch"),
        line(key="4711/1/../x"),
        line(attempt="²/1"),
        line(attempt=["4711", 1]),
        line(at="soon"),
        line(at=float("nan")),
        line(at=1e300),
        line(code="x"),
        line(code=10**30),
        line(signal=[9]),
        line(tasks=7),
        line(tasks=["x"]),
        line(tasks=[{"rank": 0, "code": 0}]),
        line(tasks=[{"rank": 0, "code": "x", "signal": 0}]),
        line(max_rss_kib={}),
        line(cause=7),
        line(cause="x" * 5000),
        line(kind="notice", when=[1]),
    ],
)
def test_what_no_agent_writes_is_refused_by_its_line(data: bytes) -> None:
    with pytest.raises(ValueError, match="no line of a journal"):
        records(line() + data)
