"""What is wrong with a node, in words."""

import pytest

from broker.run import health

WELL = {"free": 1 << 30, "time": 1000.0}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, ""),
        ({"free": 5 << 20}, "disk of the agent is full: 5 MiB are free"),
        ({"time": 1000.0 + 3600}, "clock is wrong: 3600 s ahead"),
        ({"time": 1000.0 - 61}, "clock is wrong: 61 s behind"),
        ({"time": 1000.0 + 59}, ""),
    ],
)
def test_a_full_disk_and_a_wrong_clock_are_named(said: dict[str, object], words: str) -> None:
    assert health.trouble({**WELL, **said}, 1000.0) == words
    assert health.is_ours(words) is bool(words)


def test_an_agent_that_does_not_say_is_well() -> None:
    assert health.trouble({"ok": True}, 1000.0) == ""


def test_other_figures_say_the_same() -> None:
    full = health.trouble({"free": 1}, 0)
    assert health.same(full, "disk of the agent is full: 31 MiB are free")
    assert not health.same(full, "")
    assert not health.is_ours("bad fan")
