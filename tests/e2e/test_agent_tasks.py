"""Steps of several tasks and text that passes through: what srun stands on, real processes."""

import errno
import hashlib
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from broker.run import launch
from broker.run.launch import RELAYED, Phase, StepOrder, Task
from tests.e2e.agents import RunningAgent, order, until

KEY = "1/1/0"
FRAME = struct.Struct(">cII")
CODES = struct.Struct(">ii")


def step(folder: Path, command: str, *tasks: Task, **changes: object) -> StepOrder:
    """A numbered step whose tasks run `command` by bash."""
    phases = (Phase("run", (b"bash", b"-c", command.encode())),)
    plain = {"phases": phases, "stdout": None, "label": "STEP 1.0", "relay": True}
    return order(folder, "", **{**plain, "tasks": tasks or relayed(1), **changes})


def relayed(count: int) -> tuple[Task, ...]:
    return tuple(
        Task(b"SLURM_PROCID=%d" % rank, None, RELAYED, RELAYED, RELAYED) for rank in range(count)
    )


def frames(agent: RunningAgent, key: str = KEY) -> list[tuple[str, int, bytes]]:
    path = agent.home / "steps" / f"{key.replace('/', '.')}.io"
    data, found = path.read_bytes() if path.exists() else b"", []
    while data:
        stream, rank, length = FRAME.unpack(data[: FRAME.size])
        found.append((stream.decode(), rank, data[FRAME.size : FRAME.size + length]))
        data = data[FRAME.size + length :]
    return found


def text(agent: RunningAgent, stream: str = "o", rank: int | None = None) -> bytes:
    return b"".join(data for s, r, data in frames(agent) if s == stream and rank in (None, r))


def ends(agent: RunningAgent) -> dict[int, tuple[int, int]]:
    return {rank: CODES.unpack(data) for stream, rank, data in frames(agent) if stream == "x"}


def exited(agent: RunningAgent, key: str = KEY) -> tuple[object, object, object]:
    record = agent.wait("exited", key)
    return record["code"], record["signal"], record["cause"]


def test_every_task_has_its_own_variables_and_its_text_its_rank(
    agent: RunningAgent, work: Path
) -> None:
    agent.run(KEY, step(work, "echo I am $SLURM_PROCID; echo no >&2", *relayed(3)))
    assert exited(agent) == (0, 0, "exit")
    for rank in range(3):
        assert text(agent, "o", rank) == b"I am %d\n" % rank
        assert text(agent, "e", rank) == b"no\n"
    assert ends(agent) == {0: (0, 0), 1: (0, 0), 2: (0, 0)}


def test_the_highest_exit_counts_and_a_signal_as_in_a_shell(
    agent: RunningAgent, work: Path
) -> None:
    command = "case $SLURM_PROCID in 1) exit 130;; 2) kill -9 $$;; esac"
    agent.run(KEY, step(work, command, *relayed(3)))
    assert exited(agent) == (0, 9, "exit")
    assert agent.wait("exited", KEY)["tasks"] == [
        {"rank": 0, "code": 0, "signal": 0},
        {"rank": 1, "code": 130, "signal": 0},
        {"rank": 2, "code": 0, "signal": 9},
    ]
    assert ends(agent) == {0: (0, 0), 1: (130, 0), 2: (0, 9)}


def test_tasks_may_run_different_programs(agent: RunningAgent, work: Path) -> None:
    programs = [(b"echo", b"zero"), (b"echo", b"one")]
    tasks = [Task(argv=argv, stdout=RELAYED, stderr=RELAYED) for argv in programs]
    agent.run(KEY, step(work, "", *tasks))
    assert exited(agent) == (0, 0, "exit")
    assert (text(agent, "o", 0), text(agent, "o", 1)) == (b"zero\n", b"one\n")


def test_a_missing_command_is_told_by_every_task(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "", *relayed(2), phases=(Phase("run", (b"nosuchcommand",)),)))
    assert exited(agent) == (2, 0, "exit")
    line = rb"\[[^]]+\] error: execve\(\): nosuchcommand: No such file or directory\n"
    assert re.fullmatch(line * 2, text(agent, "e"))


def test_each_task_writes_the_file_that_is_named_for_it(agent: RunningAgent, work: Path) -> None:
    (work / "both").write_text("old\n")
    tasks = [Task(b"N=%d" % n, None, None, b"out-%d" % n, b"both") for n in range(2)]
    agent.run(KEY, step(work, "echo $N; echo err $N >&2", *tasks))
    assert exited(agent) == (0, 0, "exit")
    assert [(work / f"out-{n}").read_text() for n in range(2)] == ["0\n", "1\n"]
    assert sorted((work / "both").read_text().split("\n")) == ["", "err 0", "err 1"]


def test_lines_in_files_have_their_tasks_number_where_that_is_wished(
    agent: RunningAgent, work: Path
) -> None:
    tasks = [Task(b"N=%d" % n, None, None, b"all", b"err-%d" % n) for n in range(2)]
    command = "echo a $N; printf 'b\\nc' >&2"
    agent.run(KEY, step(work, command, *tasks, numbered=2))
    assert exited(agent) == (0, 0, "exit")
    assert sorted((work / "all").read_text().splitlines()) == [" 0: a 0", " 1: a 1"]
    assert (work / "err-1").read_text() == " 1: b\n 1: c\n"
    assert text(agent) == b""


def test_a_file_that_one_task_cannot_open_fails_all(agent: RunningAgent, work: Path) -> None:
    tasks = (Task(stdout=RELAYED), Task(stdout=b"/proc/no/such"))
    agent.run(KEY, step(work, "echo ran >> ran", *tasks))
    assert exited(agent) == (0, 53, "launch_failed")
    assert not (work / "ran").exists()
    told = [(rank, CODES.unpack(data)) for stream, rank, data in frames(agent) if stream == "n"]
    assert told == [(1, (1, errno.ENOENT))]


def test_lines_are_passed_on_whole_and_at_once(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "printf 'a\\nb'; sleep 0.3; echo c; sleep 60"))
    until(lambda: text(agent) == b"a\nbc\n", "the second line")
    assert [data for stream, _, data in frames(agent) if stream == "o"] == [b"a\n", b"bc\n"]


def test_unbuffered_text_is_passed_on_as_it_comes(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "printf ask; sleep 60", unbuffered=True))
    until(lambda: text(agent) == b"ask", "the prompt")


def test_a_last_line_without_an_end_is_not_lost(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "printf last"))
    exited(agent)
    assert text(agent) == b"last"


def test_input_reaches_every_task_once_however_often_it_is_sent(
    agent: RunningAgent, work: Path
) -> None:
    agent.run(KEY, step(work, "cat", *relayed(2)))
    assert agent.ask(launch.feed(KEY, b"one\n", at=0))["size"] == 4
    assert agent.ask(launch.feed(KEY, b"one\n", at=0))["size"] == 4
    assert agent.ask(launch.feed(KEY, b"far", at=90, eof=True))["size"] == 4
    assert agent.ask(launch.feed(KEY, b"one\ntwo\n", at=0, eof=True))["size"] == 8
    assert exited(agent) == (0, 0, "exit")
    assert [text(agent, "o", rank) for rank in range(2)] == [b"one\ntwo\n"] * 2


def test_input_of_megabytes_passes_while_little_of_it_lies_about(
    agent: RunningAgent, work: Path
) -> None:
    agent.run(KEY, step(work, "sleep 0.2; exec md5sum"))
    data = os.urandom(1 << 20) * 5
    sent = 0
    while sent < len(data):
        size = agent.ask(launch.feed(KEY, data[sent : sent + 300_000], at=sent))["size"]
        assert isinstance(size, int)
        time.sleep(0 if size > sent else 0.01)
        sent = size
    agent.ask(launch.feed(KEY, b"", at=sent, eof=True))
    exited(agent)
    assert text(agent).split()[0].decode() == hashlib.md5(data).hexdigest()


def test_a_task_that_reads_nothing_is_not_waited_for(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "exec 0<&-; sleep 0.3", *relayed(2)))
    for n in range(4):
        agent.ask(launch.feed(KEY, b"x" * 300_000, at=n * 300_000))
    assert exited(agent) == (0, 0, "exit")


def test_that_no_task_reads_any_more_is_told(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "exec 0<&-; echo deaf; sleep 60", *relayed(2)))
    until(lambda: text(agent) == b"deaf\n" * 2, "both")
    assert agent.ask(launch.feed(KEY, b"x", at=0))["ok"]
    until(lambda: agent.ask(launch.feed(KEY, b"", at=1))["shut"] is True, "the word")


def test_a_terminal_has_the_size_of_the_window_and_is_told_when_it_changes(
    agent: RunningAgent, work: Path
) -> None:
    command = "trap 'stty size' WINCH; tty >/dev/null && stty size; while :; do sleep 0.05; done"
    agent.run(KEY, step(work, command, pty=(24, 80)))
    until(lambda: b"24 80\r\n" in text(agent), "the size")
    agent.ask(launch.window(KEY, 50, 132))
    until(lambda: b"50 132\r\n" in text(agent), "the new size")
    keys = count()

    def interrupted() -> bool:
        """A shell whose command ends by itself at that moment goes on: as a user would, again."""
        agent.ask(launch.feed(KEY, b"\x03", at=next(keys)))
        return agent.find("exited", KEY) is not None

    until(interrupted, "its end")
    assert exited(agent) == (0, 2, "exit")


def test_a_shell_on_a_terminal_takes_commands(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "exec bash --norc -i", pty=(24, 80)))
    agent.ask(launch.feed(KEY, b"echo $((6*7)); exit 3\n", at=0))
    assert exited(agent) == (3, 0, "exit")
    assert b"42\r\n" in text(agent)


def test_a_failing_task_ends_the_others_where_that_is_wished(
    agent: RunningAgent, work: Path
) -> None:
    command = "if [ $SLURM_PROCID = 1 ]; then exit 2; fi; sleep 60"
    agent.run(KEY, step(work, command, *relayed(2), kill_on_bad_exit=True))
    assert exited(agent) == (0, 15, "task_failure")
    assert ends(agent) == {1: (2, 0), 0: (0, 15)}
    said = (
        rb"\[[^]]+\] error: \*\*\* STEP 1\.0 ON ec2-1 CANCELLED AT \S+ DUE TO TASK FAILURE \*\*\*\n"
    )
    assert re.fullmatch(said, text(agent, "e"))


def test_others_go_on_where_it_is_not_wished_but_not_beyond_the_wait(
    agent: RunningAgent, work: Path
) -> None:
    command = "if [ $SLURM_PROCID = 1 ]; then exit 2; fi; sleep 0.5"
    agent.run(KEY, step(work, command, *relayed(2)))
    assert exited(agent) == (2, 0, "exit")
    agent.run("1/1/1", step(work, command.replace("0.5", "60"), *relayed(2), wait=1))
    assert exited(agent, "1/1/1") == (0, 9, "wait")


def test_one_step_is_killed_and_the_others_live(agent: RunningAgent, work: Path) -> None:
    for key in ("1/1/batch", KEY):
        agent.run(key, step(work, "sleep 60"))
        agent.wait("started", key)
    request = launch.kill_step(KEY, grace=0, cause="cancelled", number=9)
    assert agent.ask(request)["ok"]
    assert exited(agent) == (0, 9, "cancelled")
    assert b"DUE to SIGNAL Killed" in text(agent, "e")
    assert agent.ask(launch.ping())["live"] == ["1/1/batch"]
    assert agent.ask(request)["ok"]


def test_a_step_that_is_killed_before_it_came_never_starts(agent: RunningAgent, work: Path) -> None:
    agent.ask(launch.kill_step(KEY, grace=0, cause="cancelled", number=9))
    assert agent.ask(launch.start(KEY, step(work, "echo ran > ran")))["refused"]
    assert agent.find("refused", KEY)
    assert not (work / "ran").exists()


def test_a_signal_is_for_the_step_that_is_named(agent: RunningAgent, work: Path) -> None:
    trapping = "trap 'echo got; exit 4' USR1; touch {}; while :; do sleep 0.05; done"
    for key, up in (("1/1/batch", "one"), (KEY, "two")):
        agent.run(key, step(work, trapping.format(up)))
        until((work / up).exists, "the trap")
    agent.ask(launch.signal(KEY, signal.SIGUSR1, "full"))
    assert exited(agent) == (4, 0, "exit")
    assert agent.ask(launch.ping())["live"] == ["1/1/batch"]


def test_the_io_file_stays_until_it_was_read(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "echo kept; sleep 0.5"))
    agent.wait("started", KEY)
    assert agent.ask(launch.forget(KEY))["refused"]
    exited(agent)
    assert text(agent) == b"kept\n"
    assert agent.ask(launch.forget(KEY))["ok"]
    assert frames(agent) == []
    assert agent.ask(launch.forget(KEY))["ok"]


def test_text_that_nobody_reads_goes_after_a_day(agent: RunningAgent, work: Path) -> None:
    for key in (KEY, "1/1/1"):
        agent.run(key, step(work, "echo kept"))
        exited(agent, key)
    day_before = time.time() - 86500
    os.utime(agent.home / "steps" / "1.1.0.io", (day_before, day_before))
    agent.run("1/1/2", step(work, "true"))
    assert sorted(path.name for path in agent.home.glob("steps/*.io"))[0] == "1.1.1.io"


def test_tasks_wait_for_a_reader_that_is_far_behind(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "dd if=/dev/zero bs=1M count=80 2>/dev/null; sleep 60"))
    agent.ask(launch.acknowledge(KEY, 1))
    path = agent.home / "steps" / "1.1.0.io"
    until(lambda: path.exists() and path.stat().st_size > 64 << 20, "a far reader")
    time.sleep(0.3)
    assert path.stat().st_size < 66 << 20
    agent.ask(launch.acknowledge(KEY, path.stat().st_size))
    until(lambda: path.stat().st_size > 80 << 20, "the rest")
    until(lambda: path.stat().st_blocks * 512 < 40 << 20, "room given back")


def test_no_byte_and_no_exit_code_is_lost_when_the_daemon_is_killed(
    agent: RunningAgent, work: Path
) -> None:
    command = "read line; echo got $line; for i in $(seq 200); do echo $i; done; cat; exit 7"
    agent.run(KEY, step(work, command))
    agent.wait("started", KEY)
    agent.ask(launch.feed(KEY, b"hello\n", at=0))
    agent.kill_daemon()
    until(lambda: b"200\n" in text(agent), "text without a daemon")
    agent.start()
    agent.ask(launch.feed(KEY, b"hello\nagain\n", at=0))
    agent.kill_daemon()
    agent.start()
    agent.ask(launch.feed(KEY, b"", at=12, eof=True))
    assert exited(agent) == (7, 0, "exit")
    counted = b"".join(b"%d\n" % n for n in range(1, 201))
    assert text(agent) == b"got hello\n" + counted + b"again\n"


def test_a_kill_of_a_step_is_kept_through_the_daemons_end(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "trap '' TERM; touch up; sleep 60"))
    until((work / "up").exists, "the trap")
    agent.ask(launch.kill_step(KEY, grace=0.5, cause="cancelled", number=15))
    agent.kill_daemon()
    agent.start()
    assert exited(agent) == (0, 9, "cancelled")


def test_many_tasks_run_at_once(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, step(work, "echo $SLURM_PROCID", *relayed(64)))
    assert exited(agent) == (0, 0, "exit")
    assert sorted(int(word) for word in text(agent).split()) == list(range(64))


def test_a_step_in_a_batch_job_takes_no_slot_of_its_own(
    agents: Callable[..., RunningAgent], tmp_path: Path, work: Path
) -> None:
    agent = agents(tmp_path, "--slots", str(tmp_path / "slots"), "--slot-count", "1")
    agent.run("1/1/batch", step(work, "sleep 60"))
    agent.wait("started", "1/1/batch")
    agent.run(KEY, step(work, "echo in", in_batch=True))
    assert exited(agent) == (0, 0, "exit")


def test_a_step_beyond_its_memory_ends_for_want_of_it(agent: RunningAgent, work: Path) -> None:
    """By the kernel where control groups may be had, else by who looks each second."""
    command = f"exec {sys.executable} -c 'import time; x = bytearray(200 << 20); time.sleep(30)'"
    limits = {"memory_limit_mib": 60, "job_memory_mib": 60}
    agent.run(KEY, step(work, command, *relayed(1), **limits))
    assert exited(agent) == (0, 9, "out_of_memory")
    assert b"Detected 1 oom_kill event in StepId=1.0. Some of the step tasks" in text(agent, "e")
    assert ends(agent) == {0: (0, 125)}


def test_a_step_runs_on_its_cpus_alone_so_far_as_they_are_there(
    agent: RunningAgent, work: Path
) -> None:
    first = min(os.sched_getaffinity(0))
    agent.run(KEY, step(work, "nproc", *relayed(1), cpu_ids=(first, 4096)))
    assert exited(agent) == (0, 0, "exit")
    assert text(agent) == b"1\n"
