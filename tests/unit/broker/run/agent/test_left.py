"""What a setup leaves is told from what the run itself began."""

import os
import subprocess
from typing import Any

import pytest

from broker.run.agent.left import Left, add

SETUP = {"name": "setup"}
PLAIN = {b"PATH": os.environb[b"PATH"]}


@pytest.mark.parametrize(
    ("key", "phase", "may"),
    [("1/1/0", "setup", True), ("1/1/0", "run", False), ("1/1/batch", "setup", False)],
)
def test_only_setup_of_a_run_in_a_cluster_may_leave_anything(
    key: str, phase: str, may: bool
) -> None:
    step: dict[str, Any] = {}
    left = Left(step, key)
    left.enter({"name": phase})
    values: dict[bytes, bytes] = {}
    add(values, step)
    assert (left.may_be(), bool(values)) == (may, may)


def test_it_is_known_by_its_session_or_its_mark_until_the_allocation_ends() -> None:
    step: dict[str, Any] = {}
    left, mark = Left(step, "1/1/0"), dict(PLAIN)
    left.enter(SETUP)
    add(mark, step)
    made = [
        subprocess.Popen(["sleep", "60"], env=env, start_new_session=True)
        for env in (PLAIN, mark, PLAIN)
    ]
    pids = {one.pid for one in made}
    try:
        assert left.among(pids) == set()
        assert left.look({made[0].pid}) == [made[0].pid]
        assert left.among(pids) == {made[0].pid, made[1].pid}
        left.ends = True
        assert left.among(pids) == set()
    finally:
        for one in made:
            one.kill()
            one.wait()


MOVES = "echo ready; read x; exec setsid sh -c 'echo moved; exec sleep 60'"


def test_one_that_lived_then_is_known_in_whatever_session_it_is_later() -> None:
    left = Left({}, "1/1/0")
    with subprocess.Popen(
        ["sh", "-c", MOVES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PLAIN
    ) as one:
        assert one.stdin is not None
        assert one.stdout is not None
        try:
            assert one.stdout.readline() == b"ready\n"
            left.look({one.pid})
            one.stdin.write(b"go\n")
            one.stdin.flush()
            assert one.stdout.readline() == b"moved\n"
            assert os.getsid(one.pid) not in left.sessions
            assert left.among({one.pid}) == {one.pid}
        finally:
            one.kill()
