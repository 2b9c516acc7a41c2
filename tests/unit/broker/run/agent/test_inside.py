"""Processes that a container's daemon began for a step are found by what only they have."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker.run.agent.inside import Inside


@contextmanager
def shell(*words: str, env: dict[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A shell that has begun a child, and waits."""
    script = "sleep 60 & echo $!; wait"
    argv = ["/bin/sh", "-c", script, *words]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, start_new_session=True) as made:
        try:
            yield made
        finally:
            subprocess.run(["/bin/kill", "-9", "--", f"-{made.pid}"], check=False)


def child(process: "subprocess.Popen[bytes]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_those_with_the_steps_entry_are_inside_and_who_waits_for_them_is_not() -> None:
    step: dict[str, Any] = {"container": {"image": "a"}}
    inside = Inside(step)
    name, _, value = step["inside_entry"].decode().partition("=")
    with (
        shell(env={name: value}) as first,
        shell("sh", f"{name}={value}", env={}) as client,
        shell(env={name: "another's"}) as other,
    ):
        born = child(first)
        child(client)
        child(other)
        assert inside.all() == {first.pid, born}
        assert inside.first() == {first.pid}
        assert inside.waiting() == {client.pid}


def test_those_that_setup_left_are_none_of_the_steps_any_more() -> None:
    step: dict[str, Any] = {"container": {"image": "a"}}
    inside = Inside(step)
    inside.leave()
    name, _, value = step["inside_entry"].decode().partition("=")
    assert "serves" not in step
    with shell(env={name: value}) as served:
        child(served)
        assert served.pid in inside.all()
        inside.leave()
        assert inside.all() == set()
    assert step["serves"]
    assert step["inside_entry"].decode() != f"{name}={value}"


def test_a_step_in_no_container_has_nothing_inside() -> None:
    step: dict[str, Any] = {}
    inside = Inside(step)
    assert inside.all() | inside.first() | inside.waiting() == set()
