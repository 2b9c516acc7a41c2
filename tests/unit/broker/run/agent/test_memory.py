"""Control groups as files, and a step's memory where there are none."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.run.agent import groups, memory
from broker.run.agent.groups import FIRST, SECOND, Group, Kind

KEY = "7/1/0"


def hierarchy(folder: Path, kind: Kind) -> Path:
    """A place that takes groups, whose files the test sees."""
    (folder / kind.hierarchy[0]).write_text("")
    return folder


@pytest.mark.parametrize("kind", [FIRST, SECOND])
def test_a_step_is_held_to_its_own_memory_and_that_of_its_job(tmp_path: Path, kind: Kind) -> None:
    place = hierarchy(tmp_path, kind)
    group = groups.make(KEY, (50, 600), places=[("/proc/no", kind), (str(place), kind)])
    assert group is not None
    path = Path(group.path)
    assert path.parent.parent == place / "skypurza"
    assert path.name == "0"
    assert (path / kind.limit).read_text() == str(50 << 20)
    assert (path.parent / kind.limit).read_text() == str(600 << 20)
    name, text = kind.hierarchy
    assert (path.parent / name).read_text() == text
    assert group.door == str(path / "cgroup.procs")


def test_where_no_group_may_be_made_there_is_none() -> None:
    assert groups.make(KEY, (50, 50), places=[("/proc/no", SECOND)]) is None
    assert groups.make(KEY, (50, 50), places=[]) is None


@pytest.mark.parametrize(
    ("kind", "text", "kills"),
    [
        (SECOND, "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\n", 2),
        (FIRST, "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1),
        (FIRST, "oom_kill_disable 0\nunder_oom 0\n", 0),
    ],
)
def test_the_kernels_kills_are_counted(tmp_path: Path, kind: Kind, text: str, kills: int) -> None:
    (tmp_path / kind.events).write_text(text)
    assert Group(str(tmp_path), kind).oom_kills() == kills
    assert Group(str(tmp_path / "gone"), kind).oom_kills() == 0


def test_a_group_goes_with_its_last_step(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for step in ("0", "batch"):
        (job / step).mkdir(parents=True)
    Group(str(job / "0"), SECOND).close()
    assert [path.name for path in job.iterdir()] == ["batch"]
    Group(str(job / "batch"), SECOND).close()
    assert not job.exists()


class Alone(memory.Memory):
    """On a host without control groups."""

    def __init__(self, limit_mib: int, pids: set[int], **step: object) -> None:
        super().__init__(step, KEY, everything=lambda: pids)
        self.limit_kib = limit_mib * 1024


@pytest.mark.parametrize("whole", [False, True])
def test_without_groups_the_largest_process_of_too_much_memory_is_killed(whole: bool) -> None:
    program = [sys.executable, "-c", "x = bytearray(60 << 20); print(1, flush=True); input()"]
    with (
        subprocess.Popen(["sleep", "60"]) as small,
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as large,
    ):
        assert large.stdout is not None
        large.stdout.readline()
        held = Alone(40, {small.pid, large.pid}, oom_kill_step=whole)
        assert held.look() <= memory.HELD_PAUSE
        assert large.wait(10) == -signal.SIGKILL
        assert held.oom_kills() == 1
        assert held.peak_kib > 60 << 10
        assert held.whole_is_over() is whole
        if not whole:
            assert small.poll() is None
            small.kill()


def test_a_step_without_a_limit_is_only_looked_at() -> None:
    held = Alone(0, {os.getpid()})
    pauses = [held.look() for _ in range(10)]
    assert pauses[:3] == [0.4, 0.8, 1.6]
    assert pauses[-1] == memory.LONGEST_PAUSE
    assert (held.oom_kills(), held.peak_kib > 0) == (0, True)


@pytest.mark.parametrize(
    ("kills", "words"), [(1, "1 oom_kill event in"), (3, "3 oom_kill events in")]
)
def test_it_is_told_as_slurmstepd_does(kills: int, words: str) -> None:
    text = memory.told(kills, "7.batch", 0).decode()
    assert text.endswith(
        f"error: Detected {words} StepId=7.batch. Some of the step tasks have been OOM Killed.\n"
    )
