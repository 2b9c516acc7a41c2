"""What a setup leaves is told from what the run itself began."""

import os
import subprocess
from typing import Any

import pytest

from broker.run.agent.left import Left, add

SETUP = {"name": "setup"}


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
    left, mark = Left(step, "1/1/0"), {b"PATH": os.environb[b"PATH"]}
    left.enter(SETUP)
    add(mark, step)
    plain = {b"PATH": mark[b"PATH"]}
    made = [
        subprocess.Popen(["sleep", "60"], env=env, start_new_session=True)
        for env in (plain, mark, plain)
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
