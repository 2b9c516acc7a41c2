"""The agent with real processes: what it promises holds through signals, kills and odd bytes."""

import base64
import os
import random
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.ports import Place
from broker.run import launch
from broker.run.agent import groups, journal, procs, version, wire
from broker.run.bootstrap import ARCHIVE, bring_up
from broker.run.launch import Phase, Warn
from broker.run.local import LocalChannel
from tests.e2e.agents import PYTHON, RunningAgent, alive, children, order, until, with_argument

STAMP = r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\] error: "
MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
KEY = "1/1/batch"


def exited(agent: RunningAgent, key: str = KEY) -> tuple[object, object, object]:
    record = agent.wait("exited", key)
    return record["code"], record["signal"], record["cause"]


# -------------------------------------------------------------------- running


def test_a_step_runs_and_its_journal_tells_its_life(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "echo hello; echo oops >&2; exit 3"))
    assert exited(agent) == (3, 0, "exit")
    assert (work / "out").read_text() == "hello\noops\n"
    assert [r["kind"] for r in agent.journal()] == ["accepted", "started", "exited"]
    assert [r["seq"] for r in agent.journal()] == [1, 2, 3]
    record = agent.wait("exited", KEY)
    assert record["attempt"] == "1/1"
    assert record["phase"] == "run"
    assert record["started"] <= record["ended"]  # type: ignore[operator]


@pytest.mark.parametrize("off", [-3600, 3600])
def test_instants_of_the_journal_are_the_services(
    agent: RunningAgent, work: Path, off: int
) -> None:
    """Its own clock is an hour behind, or ahead."""
    start = launch.dated(launch.start(KEY, order(work, "sleep 0.2")), time.time() + off)
    assert agent.ask(start)["ok"]
    agent.wait("exited", KEY)
    instants = [float(str(record["at"])) for record in agent.journal()]
    assert instants == sorted(instants)
    assert all(abs(at - time.time() - off) < 10 for at in instants)


def test_peak_memory_is_that_of_the_step(agent: RunningAgent, work: Path) -> None:
    fill = "exec python3 -c 'x = bytearray(60 << 20)'"
    agent.run(KEY, order(work, fill))
    agent.run("2/1/batch", order(work, "sleep 0.5"))
    peak = agent.wait("exited", KEY)["max_rss_kib"]
    assert 60 << 10 < int(str(peak)) < 120 << 10
    small = agent.wait("exited", "2/1/batch")["max_rss_kib"]
    assert 500 < int(str(small)) < 8 << 10


ESCAPES = """exec python3 -c '
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits: no clock but the group has it
if os.fork() == 0:
    os.setsid()
    os.environ.clear()
    while time.process_time() < 0.4: pass
    os._exit(0)
try: os.wait()
except ChildProcessError: pass
'"""


def test_who_left_its_step_and_was_waited_for_by_nobody_is_counted(
    agent: RunningAgent, work: Path
) -> None:
    if not any(os.access(place, os.W_OK) for place in groups.plain_places()):
        pytest.skip("no control group of version 2 may be made here")
    agent.run(KEY, order(work, ESCAPES))
    record = agent.wait("exited", KEY)
    assert int(str(record["user_us"])) + int(str(record["sys_us"])) >= 400_000


def test_what_a_step_reads_and_writes_is_counted_while_it_runs(
    agent: RunningAgent, work: Path
) -> None:
    moves = "head -c 5000000 /dev/zero > big; cat big > /dev/null; sleep 0.8"
    agent.run(KEY, order(work, moves))
    record = agent.wait("exited", KEY)
    assert 10_000_000 <= int(str(record["read"])) < 12_000_000
    assert 10_000_000 <= int(str(record["written"])) < 12_000_000
    assert int(str(record["max_size_kib"])) >= int(str(record["max_rss_kib"]))
    assert int(str(record["pages"])) >= 0


def test_a_second_agent_in_the_folder_says_already(agent: RunningAgent) -> None:
    assert agent.start() == "already"


def test_a_key_starts_once_whatever_happens(agent: RunningAgent, work: Path) -> None:
    step = order(work, "echo once >> count")
    assert agent.run(KEY, step)["already"] is False
    assert agent.run(KEY, step)["already"] is True
    agent.wait("exited", KEY)
    assert agent.run(KEY, step)["already"] is True
    agent.kill_daemon()
    agent.start()
    assert agent.run(KEY, step)["already"] is True
    assert not (agent.home / "steps" / "1.1.batch").exists()
    assert (work / "count").read_text() == "once\n"


def test_bytes_arrive_as_they_were_given(agent: RunningAgent, work: Path) -> None:
    odd = bytes(range(1, 256))
    entries = [b"PATH=/usr/bin:/bin", b"ODD=" + odd, b"EMPTY=", b"BASH_FUNC_f%%=() { :;\n}"]
    entries += [b"BIG%d=" % n + b"x" * 120_000 for n in range(9)]  # 1 MiB in all
    script = b"#!/bin/sh\nfor a; do printf '%s\\0' \"$a\"; done\n"
    words = (odd, b"", b"a b", b"'\"$x\n\\")
    phases = (
        Phase("setup", (b"/bin/cat", b"/proc/self/environ")),
        Phase("run", (None, *words), script),
    )
    environment = b"\0".join(entries)
    agent.run(KEY, order(work, "", phases=phases, environment=environment, stdout=b"out-\xff"))
    assert exited(agent)[0] == 0
    out = Path(os.fsdecode(os.fsencode(work) + b"/out-\xff"))
    assert out.read_bytes() == environment + b"\0" + b"".join(word + b"\0" for word in words)


def test_a_script_of_four_megabytes_runs_as_it_is(agent: RunningAgent, work: Path) -> None:
    line = b"# \xff\xfe'\"$`\\ " + b"x" * 90 + b"\n"
    script = b'#!/bin/sh\ncp "$0" copy\nexit 0\n'
    script += line * ((4 << 20) // len(line))
    agent.run(KEY, order(work, script))
    assert exited(agent) == (0, 0, "exit")
    assert (work / "copy").read_bytes() == script


def test_phases_follow_each_other_until_one_fails(agent: RunningAgent, work: Path) -> None:
    setup = Phase("setup", (None,), b"#!/bin/sh\necho setup; exit 0\n")
    run = Phase("run", (b"/bin/echo", b"run"))
    agent.run(KEY, order(work, "", phases=(setup, run)))
    assert agent.wait("exited", KEY)["phase"] == "run"
    bad = Phase("setup", (None,), b"#!/bin/sh\nexit 7\n")
    agent.run("2/1/batch", order(work, "", phases=(bad, run), stdout=b"out2"))
    record = agent.wait("exited", "2/1/batch")
    assert (record["code"], record["phase"]) == (7, "setup")
    assert (work / "out").read_text() == "setup\nrun\n"
    assert (work / "out2").read_text() == ""


def test_the_shell_knows_its_own_process_id_from_slurms_variable(
    agent: RunningAgent, work: Path
) -> None:
    step = order(work, 'echo "$$ $SLURM_TASK_PID"', environment=b"SLURM_TASK_PID=")
    agent.run(KEY, step)
    agent.wait("exited", KEY)
    mine, told = (work / "out").read_text().split()
    assert mine == told


def test_a_login_shell_on_the_node_gives_what_the_job_was_not_given(
    agent: RunningAgent, work: Path
) -> None:
    (work / ".profile").write_text("export FOO=login BAR=login\n")
    given = b"HOME=%b\0SHELL=/bin/sh\0PATH=/bin\0BAR=job" % bytes(work)
    names = ("HOME", "SHELL", "PATH")
    agent.run(KEY, replace(order(work, "echo $FOO $BAR", environment=given), login=names))
    agent.wait("exited", KEY)
    assert (work / "out").read_text() == "login job\n"


def test_what_a_script_leaves_behind_ends_with_it(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "setsid sleep 300 & sleep 300 & sleep 0.2; echo $! > left; exit 0"))
    assert exited(agent) == (0, 0, "exit")
    assert not alive(int((work / "left").read_text()))


SERVES = """\
sleep 300 & echo $! > plain
(setsid sleep 300 & echo $! > apart)
(setsid env -i sleep 300 & echo $! > bare)
(sleep 0.2; setsid sleep 300 & echo $! > late) &
"""


def test_what_setup_leaves_in_a_cluster_stays_until_its_end_and_what_run_leaves_does_not(
    agent: RunningAgent, work: Path
) -> None:
    setup = Phase("setup", (None,), f"#!/bin/bash\n{SERVES}".encode())
    run = Phase("run", (None,), b"#!/bin/bash\nsleep 0.5; setsid sleep 300 & echo $! > own\nwait\n")
    key, more = "1/1/0", "1/1/1"
    agent.run("1/1/batch", order(work, "", phases=(), hold=True))
    agent.run(key, order(work, "", phases=(setup, run)))
    own = until(lambda: _read(work / "own").strip(), "run")
    agent.ask(launch.kill_step(key, grace=0, cause="cancelled", number=9))
    assert exited(agent, key) == (0, 9, "cancelled")
    served = [int((work / name).read_text()) for name in ("plain", "apart", "bare", "late")]
    agent.kill_daemon()
    agent.start()
    agent.run(more, order(work, "exit 0"))
    agent.ask(launch.kill_step(key, grace=0, cause="cancelled", number=9))
    assert exited(agent, more) == (0, 0, "exit")
    assert [alive(pid) for pid in (int(own), *served)] == [False, True, True, True, True]
    agent.ask(launch.kill("1/1", grace=5, cause="cancelled"))
    agent.wait("gone", "1/1")
    assert not any(map(alive, served))
    assert agent.count("exited", key) == 1
    until(lambda: not list((agent.home / "steps").iterdir()), "steps' folders")


@pytest.mark.parametrize("daemon_too", [False, True])
def test_what_setup_left_ends_with_who_watched_it(
    agent: RunningAgent, work: Path, daemon_too: bool
) -> None:
    setup = Phase("setup", (None,), b"#!/bin/bash\nsetsid sleep 300 & echo $! > served\n")
    agent.run("1/1/0", order(work, "", phases=(setup,)))
    assert exited(agent, "1/1/0") == (0, 0, "exit")
    supervisor = procs.table()[int((work / "served").read_text())].parent
    if daemon_too:
        agent.kill_daemon()
    os.kill(supervisor, signal.SIGKILL)
    if daemon_too:
        agent.start()
    until(lambda: not alive(int((work / "served").read_text())), "its end")
    until(lambda: not list((agent.home / "steps").iterdir()), "steps' folders")
    assert agent.count("exited", "1/1/0") == 1


def test_ignored_signals_are_not_handed_on(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "grep -E 'Sig(Ign|Blk)' /proc/self/status"))
    agent.wait("exited", KEY)
    found = [int(mask, 16) for mask in re.findall(r"\t(\w+)", (work / "out").read_text())]
    own = 0b11 << 31  # signals 32 and 33 are the C library's, which lets nobody set them back
    assert [mask & ~own for mask in found] == [0, 0]


def test_limits_mask_and_niceness_are_the_submitters(agent: RunningAgent, work: Path) -> None:
    step = order(
        work,
        "ulimit -Sn; ulimit -Hn; umask; nice",
        rlimits={"NOFILE": (100, 200), "RLIMIT_CORE": (0, None), "NOSUCH": (1, 1)},
        umask=0o027,
        nice=3,
    )
    agent.run(KEY, step)
    agent.wait("exited", KEY)
    assert (work / "out").read_text().split() == ["100", "200", "0027", "3"]
    assert (work / "out").stat().st_mode & 0o777 == 0o640


# -------------------------------------------------------------------- files


def test_missing_output_folders_are_made(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "echo out; echo err >&2", stdout=b"a/b/o", stderr=b"c/e"))
    agent.wait("exited", KEY)
    assert (work / "a/b/o").read_text() == "out\n"
    assert (work / "c/e").read_text() == "err\n"


def test_output_is_begun_anew_or_added_to(agent: RunningAgent, work: Path) -> None:
    (work / "out").write_text("old\n")
    agent.run(KEY, order(work, "echo new", append=True))
    agent.wait("exited", KEY)
    assert (work / "out").read_text() == "old\nnew\n"
    agent.run("2/1/batch", order(work, "echo newer"))
    agent.wait("exited", "2/1/batch")
    assert (work / "out").read_text() == "newer\n"


def test_two_that_begin_together_keep_each_others_lines_in_one_file(
    agent: RunningAgent, work: Path
) -> None:
    for number in (1, 2):
        agent.run(f"{number}/1/batch", order(work, f"echo {number}", settle=0.5))
    for number in (1, 2):
        agent.wait("exited", f"{number}/1/batch")
    assert sorted((work / "out").read_text().split()) == ["1", "2"]


@pytest.mark.parametrize("changes", [{"stdout": b"/dev/null/x"}, {"stdin": b"no such file"}])
def test_a_file_that_cannot_be_opened_fails_the_launch(
    agent: RunningAgent, work: Path, changes: dict[str, bytes]
) -> None:
    agent.run(KEY, order(work, "touch ran", **changes))
    assert exited(agent) == (0, 53, "launch_failed")
    assert not (work / "ran").exists()
    assert agent.find("started", KEY) is None


def test_a_missing_working_directory_is_told_and_tmp_used(agent: RunningAgent, work: Path) -> None:
    where = os.fsencode(work) + b"/gone"
    agent.run(KEY, order(work, "pwd", cwd=where, stdout=os.fsencode(work / "out")))
    assert exited(agent) == (0, 0, "exit")
    told = re.escape(f"couldn't chdir to `{os.fsdecode(where)}': No such file or directory")
    assert re.fullmatch(f"{STAMP}{told}: going to /tmp instead\n/tmp\n", (work / "out").read_text())


def test_a_missing_interpreter_is_named(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, b"#!/no/such\n"))
    assert exited(agent) == (2, 0, "exit")
    text = r"execve\(\): bad interpreter\(/no/such\): No such file or directory\n"
    assert re.fullmatch(STAMP + text, (work / "out").read_text())


def test_a_missing_command_is_named(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "", phases=(Phase("run", (b"nosuchcommand",)),)))
    assert exited(agent) == (2, 0, "exit")
    text = r"execve\(\): nosuchcommand: No such file or directory\n"
    assert re.fullmatch(STAMP + text, (work / "out").read_text())


# -------------------------------------------------------------------- signals and ends

TRAPS = (
    "trap 'echo got USR1' USR1; trap 'echo got TERM; exit 7' TERM\n"
    "sleep 300 & echo up; while :; do wait; done"
)


def started(agent: RunningAgent, work: Path, script: str = TRAPS, **changes: object) -> None:
    agent.run(KEY, order(work, script, **changes))
    until(lambda: "up" in _read(work / "out"), "the script's first word")


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(("scope", "heard"), [("steps", False), ("batch", True), ("full", True)])
def test_a_signal_reaches_the_script_by_its_scope(
    agent: RunningAgent, work: Path, scope: str, heard: bool
) -> None:
    started(
        agent,
        work,
        "trap 'echo got USR1' USR1; echo up; for i in {1..20}; do :; sleep 0.05 & wait $!; done",
    )
    agent.ask(launch.signal(KEY, int(signal.SIGUSR1), scope))
    agent.wait("exited", KEY)
    assert ("got USR1" in _read(work / "out")) is heard


def test_a_number_that_is_no_signal_does_nothing(agent: RunningAgent, work: Path) -> None:
    started(agent, work)
    agent.ask(launch.signal("1/1", 99, "full"))
    agent.ask(launch.kill("1/1", grace=5, cause="cancelled"))
    assert exited(agent) == (7, 0, "cancelled")


def test_killing_the_batch_shell_is_told_in_its_output(agent: RunningAgent, work: Path) -> None:
    started(agent, work)
    agent.ask(launch.signal(KEY, int(signal.SIGKILL), "batch"))
    assert exited(agent) == (0, 9, "exit")
    line = rf"{STAMP}\*\*\* JOB 1 ON ec2-1 CANCELLED AT {MOMENT} DUE to SIGNAL Killed \*\*\*\n"
    assert re.fullmatch("up\n" + line, _read(work / "out"))


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("cancelled", "DUE to SIGNAL Terminated"),
        ("requeued", "DUE TO JOB REQUEUE"),
        ("preempted", "DUE TO PREEMPTION"),
    ],
)
def test_a_kill_is_told_then_term_is_sent(
    agent: RunningAgent, work: Path, cause: str, words: str
) -> None:
    started(agent, work)
    agent.ask(launch.kill("1/1", grace=10, cause=cause))
    agent.wait("gone", "1/1")
    assert exited(agent) == (7, 0, cause)
    line = rf"{STAMP}\*\*\* JOB 1 ON ec2-1 CANCELLED AT {MOMENT} {words} \*\*\*\n"
    assert re.fullmatch(f"up\n{line}got TERM\n", _read(work / "out"))


def test_who_ignores_term_is_killed_after_the_grace(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "trap '' TERM; (setsid sleep 300 &); echo up; sleep 300; sleep 300")
    begun = time.monotonic()
    agent.ask(launch.kill("1/1", grace=0.5, cause="cancelled"))
    agent.wait("gone", "1/1")
    assert exited(agent) == (0, 9, "cancelled")
    assert time.monotonic() - begun > 0.4


def test_children_have_the_grace_too_when_their_shell_is_gone(
    agent: RunningAgent, work: Path
) -> None:
    script = (
        "(trap 'sleep 0.5; touch saved; exit' TERM; while :; do sleep 0.05; done) & echo up; wait"
    )
    started(agent, work, script)
    agent.ask(launch.kill("1/1", grace=10, cause="cancelled"))
    agent.wait("gone", "1/1")
    assert (work / "saved").exists()


def test_a_stopped_step_ends_as_well(agent: RunningAgent, work: Path) -> None:
    started(agent, work)
    agent.ask(launch.signal(KEY, int(signal.SIGSTOP), "full"))
    agent.ask(launch.kill("1/1", grace=10, cause="cancelled"))
    assert exited(agent) == (7, 0, "cancelled")


def test_a_start_that_comes_after_its_end_is_refused(agent: RunningAgent, work: Path) -> None:
    agent.ask(launch.kill("1/1", grace=30, cause="cancelled"))
    agent.wait("gone", "1/1")
    for restart in (False, True):
        if restart:
            agent.kill_daemon()
            agent.start()
        reply = agent.ask(launch.start(KEY, order(work, "touch ran")))
        assert (reply["ok"], reply["refused"]) == (False, True)
    assert agent.count("refused", KEY) == 1
    assert not (work / "ran").exists()


def test_time_runs_out_with_a_warning_before(agent: RunningAgent, work: Path) -> None:
    started(agent, work, time_limit=2, kill_wait=5, warn=Warn(int(signal.SIGUSR1), 1, batch=True))
    assert exited(agent) == (7, 0, "time_limit")
    line = rf"{STAMP}\*\*\* JOB 1 ON ec2-1 CANCELLED AT {MOMENT} DUE TO TIME LIMIT \*\*\*\n"
    assert re.fullmatch(f"up\ngot USR1\n{line}got TERM\n", _read(work / "out"))


def test_a_step_may_run_over_its_limit_and_is_warned_before_that(
    agent: RunningAgent, work: Path
) -> None:
    warn = Warn(int(signal.SIGUSR1), 1, batch=True)
    begun = time.monotonic()
    started(agent, work, time_limit=2, over_time=1, kill_wait=5, warn=warn)
    assert exited(agent) == (7, 0, "time_limit")
    assert time.monotonic() - begun >= 3
    assert _read(work / "out").startswith("up\ngot USR1\n")


def test_processes_that_outlive_sigkill_are_told_once(agent: RunningAgent, work: Path) -> None:
    """None can be made here that does: the supervisor's word for it is written in its place."""
    started(agent, work, "echo up; sleep 300")
    journal.save(str(agent.home / "steps" / "1.1.batch" / "unkillable"), {"pids": [4711]})
    for _ in range(2):
        wire.poke(str(agent.home / "agent.sock"), KEY)
    assert agent.wait("unkillable", KEY)["pids"] == [4711]
    agent.ask(launch.kill("1/1", grace=0, cause="cancelled"))
    assert exited(agent)[2] == "cancelled"
    assert agent.count("unkillable", KEY) == 1


def test_time_runs_out_though_no_agent_lives(agent: RunningAgent, work: Path) -> None:
    started(
        agent,
        work,
        "trap '' TERM; echo up; while :; do sleep 0.05; done",
        time_limit=1,
        kill_wait=1,
    )
    agent.kill_daemon()
    exit_file = agent.home / "steps" / "1.1.batch" / "exit"
    until(exit_file.exists, "the exit record")
    agent.start()
    assert exited(agent) == (0, 9, "time_limit")
    assert agent.count("exited", KEY) == 1


def test_a_limit_that_is_shortened_ends_a_running_step(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "echo up; sleep 300", time_limit=600, kill_wait=1)
    agent.ask(launch.job_limit("1/1", serial=7, seconds=1, ends=None, paused=False))
    assert exited(agent)[2] == "time_limit"


def test_a_limit_that_is_lengthened_lets_a_running_step_go_on(
    agent: RunningAgent, work: Path
) -> None:
    started(agent, work, "echo up; sleep 2.5; echo end", time_limit=1)
    agent.ask(launch.job_limit("1/1", serial=8, seconds=60, ends=None, paused=False))
    agent.ask(launch.job_limit("1/1", serial=7, seconds=0, ends=None, paused=False))
    assert exited(agent) == (0, 0, "exit")


def test_no_limit_runs_while_a_job_is_suspended(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "echo up; sleep 300", time_limit=1, kill_wait=1)
    agent.run("1/1/0", order(work, "sleep 300", time_limit=1, kill_wait=1))
    agent.wait("started", "1/1/0")
    agent.ask(launch.job_limit("1/1", serial=1, seconds=1, ends=None, paused=True))
    time.sleep(1.5)
    assert not agent.find("exited", "1/1")
    agent.ask(launch.job_limit("1/1", serial=2, seconds=3, ends=None, paused=False))
    assert exited(agent)[2] == "time_limit"
    assert exited(agent, "1/1/0")[2] == "time_limit"


def test_a_notice_is_written_once_into_the_standard_error(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "echo up; sleep 1")
    for _ in range(2):
        agent.ask(launch.notify("1/1", "h\u00e9llo", serial=3))
    exited(agent)
    assert re.fullmatch(f"up\n{STAMP}h\u00e9llo\n", _read(work / "out"))


def test_an_agent_that_is_told_to_leave_makes_room_for_its_successor(
    agent: RunningAgent, work: Path
) -> None:
    started(agent, work, "echo up; sleep 1")
    first = agent.daemon()
    assert agent.ask(launch.leave())["live"] == [KEY]
    assert exited(agent) == (0, 0, "exit")
    until(lambda: not alive(first), "the agent's leaving")
    agent.start()
    agent.run("2/1/batch", order(work, "true"))
    assert exited(agent, "2/1/batch") == (0, 0, "exit")


def test_an_agent_tells_the_archive_it_came_in(agent: RunningAgent) -> None:
    assert agent.ask(launch.ping())["package"] == version.digest(launch.agent_zipapp())


def test_an_idle_agent_of_another_version_is_replaced_and_a_busy_one_kept(
    tmp_path: Path, work: Path
) -> None:
    folder = tmp_path / "node"
    place = Place(LocalChannel(lambda: True), str(folder), PYTHON)
    older = launch.agent_zipapp().replace(b"env python3", b"env pythonX", 1)
    place.channel.put(older, f"{folder}/{ARCHIVE}", 0o755)
    argv = launch.serve_argv(PYTHON, f"{folder}/{ARCHIVE}", folder=str(folder), node="ec2-1")
    assert place.channel.run(argv, timeout=10).code == 0

    def ask(line: bytes) -> dict[str, object]:
        return dict(launch.reply(place.channel.ask(f"{folder}/agent.sock", line, timeout=5)))

    node = Node(NodeName("ec2-1"), 1, NodeState.UP, Tres(), ("ec2",))
    try:
        first = ask(launch.ping())
        ask(launch.start(KEY, order(work, "sleep 1")))
        bring_up(node, place)
        assert ask(launch.ping())["pid"] == first["pid"]
        until(lambda: not alive(int(str(first["pid"]))), "the old agent's leaving")
        bring_up(node, place)
        second = ask(launch.ping())
        assert second["package"] == version.digest(launch.agent_zipapp())
        bring_up(node, place)
        assert ask(launch.ping())["pid"] == second["pid"]
        assert b'"exited"' in (folder / "journal").read_bytes()
    finally:
        ask(launch.halt())


def test_an_allocation_kept_open_lives_until_it_is_ended(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "", phases=(), hold=True))
    agent.wait("started", KEY)
    assert agent.ask(launch.ping())["live"] == [KEY]
    agent.run("1/1/0", order(work, "echo up"))
    assert exited(agent, "1/1/0") == (0, 0, "exit")
    agent.kill_daemon()
    agent.start()
    agent.ask(launch.kill("1/1", grace=30, cause="cancelled"))
    agent.wait("gone", "1/1")
    assert exited(agent) == (0, 15, "cancelled")


def test_halt_ends_all_and_answers_when_nothing_is_left(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "setsid sleep 300 & echo $! > left; echo up; sleep 300")
    agent.ask(launch.halt())
    assert not alive(int((work / "left").read_text()))
    assert exited(agent)[2] == "killed"
    assert agent.find("gone", "1/1")
    assert not (agent.home / "agent.sock").exists()


def test_an_idle_agent_leaves_by_itself(
    agents: Callable[..., RunningAgent], tmp_path: Path, work: Path
) -> None:
    agent = agents(tmp_path, "--idle-exit", "0.5")
    agent.run(KEY, order(work, "sleep 1"))
    pid = agent.daemon()
    agent.wait("exited", KEY)
    assert alive(pid)
    until(lambda: not alive(pid), "the agent's own end")


def test_at_most_so_many_steps_run_at_once(
    agents: Callable[..., RunningAgent], tmp_path: Path, work: Path
) -> None:
    slots = tmp_path / "slots"
    agent = agents(tmp_path, "--slots", str(slots), "--slot-count", "2")
    script = "mkdir $$.on; ls -d *.on 2>/dev/null | wc -l; sleep 0.1; rmdir $$.on"
    for n in range(1, 9):
        agent.run(f"{n}/1/batch", order(work, script, stdout=b"out%d" % n))
    agent.run("9/1/batch", order(work, "echo never", stdout=b"out9"))
    agent.ask(launch.kill("9/1", grace=30, cause="cancelled"))
    agent.wait("gone", "9/1")
    for n in range(1, 9):
        assert exited(agent, f"{n}/1/batch")[0] == 0
    assert {int(_read(work / f"out{n}")) for n in range(1, 9)} <= {1, 2}
    assert _read(work / "out9") in {"", "never\n"}


def test_the_service_is_woken_when_a_step_starts_and_ends(
    agents: Callable[..., RunningAgent], tmp_path: Path, work: Path
) -> None:
    path = work / "gateway.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = os.open(work, os.O_PATH)
    listener.bind(f"/proc/self/fd/{fd}/gateway.sock")
    os.close(fd)
    listener.listen(10)
    listener.settimeout(10)
    agent = agents(tmp_path, "--wake", str(path))
    agent.run(KEY, order(work, "sleep 0.3"))
    for _ in ("started", "exited"):
        caller = listener.accept()[0]
        assert caller.recv(200) == b"POST /agent/ec2-1 HTTP/1.0\r\nContent-Length: 0\r\n\r\n"
        caller.close()
    listener.close()


# -------------------------------------------------------------------- crashes


def test_nothing_is_lost_when_the_daemon_is_killed(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "echo up; sleep 0.5; exit 4")
    agent.kill_daemon()
    agent.start()
    assert exited(agent) == (4, 0, "exit")
    assert [r["kind"] for r in agent.journal()] == ["accepted", "started", "exited"]


def test_a_kill_is_kept_through_the_daemons_end(agent: RunningAgent, work: Path) -> None:
    started(agent, work, "trap '' TERM; echo up; while :; do sleep 0.05; done")
    agent.ask(launch.kill("1/1", grace=1, cause="cancelled"))
    agent.kill_daemon()
    agent.start()
    agent.wait("gone", "1/1")
    assert exited(agent) == (0, 9, "cancelled")


@pytest.mark.parametrize("daemon_too", [False, True])
def test_a_killed_supervisor_takes_its_step_along(
    agent: RunningAgent, work: Path, daemon_too: bool
) -> None:
    script = (
        "sleep 300 & echo $! > one; (setsid sleep 300 & echo $! > two; wait) &\n"
        "sleep 0.3; echo up; wait"
    )
    marks = b"SLURM_JOB_ID=1\0SLURM_JOB_START_TIME=%d\0SLURM_CLUSTER_NAME=t" % time.time_ns()
    started(agent, work, script, environment=b"PATH=/usr/bin:/bin\0" + marks)
    supervisor = agent.supervisor(KEY)
    if daemon_too:
        agent.kill_daemon()
    os.kill(supervisor, signal.SIGKILL)
    if daemon_too:
        agent.start()
    assert exited(agent) == (0, 9, "supervisor_lost")
    left = [int((work / name).read_text()) for name in ("one", "two")]
    assert [alive(pid) for pid in left] == [False, False]


def test_a_torn_last_line_is_cut_off(agent: RunningAgent, work: Path) -> None:
    agent.run(KEY, order(work, "exit 0"))
    agent.wait("exited", KEY)
    agent.kill_daemon()
    with (agent.home / "journal").open("ab") as file:
        file.write(b'{"seq":4,"kind":"gone","att')
    agent.start()
    agent.ask(launch.kill("1/1", grace=1, cause="cancelled"))
    assert agent.wait("gone", "1/1")["seq"] == 4


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steps_run_once_and_end_though_the_daemon_is_killed_at_random(
    agent: RunningAgent, work: Path, seed: int
) -> None:
    dice = random.Random(seed)
    keys = [f"{n}/1/batch" for n in range(1, 9)]
    for n, key in enumerate(keys, 1):
        step = order(work, f"echo ran >> count{n}; sleep 0.{dice.randrange(5)}; exit {n}")
        _insist(agent, launch.start(key, step))
        if dice.random() < 0.6:
            time.sleep(dice.random() / 20)
            agent.kill_daemon()
            agent.start()
    for n, key in enumerate(keys, 1):
        assert exited(agent, key) == (n, 0, "exit")
        assert _read(work / f"count{n}") == "ran\n"
        assert [agent.count(kind, key) for kind in ("accepted", "started", "exited")] == [1, 1, 1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_supervisor_killed_at_random_leaves_no_process_and_one_end(
    agent: RunningAgent, work: Path, seed: int
) -> None:
    dice = random.Random(seed)
    daemon = agent.daemon()
    for n in range(1, 7):
        key = f"{n}/1/batch"
        agent.run(key, order(work, f"(setsid sleep 301.{seed}{n} &) ; sleep 301.{seed}{n}; exit 0"))
        time.sleep(dice.random() / 40)
        for pid in children(daemon):
            os.kill(pid, signal.SIGKILL)
        assert exited(agent, key) == (0, 9, "supervisor_lost")
        assert agent.count("exited", key) == 1
        assert with_argument(f"301.{seed}{n}") == []


def _insist(agent: RunningAgent, line: bytes) -> None:
    try:
        assert agent.ask(line)["ok"]
    except OSError:
        agent.start()
        assert agent.ask(line)["ok"]


def test_the_agent_holds_nothing_of_who_started_it(
    agents: Callable[..., RunningAgent], tmp_path: Path
) -> None:
    mine, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    agent = agents(tmp_path)
    os.close(theirs)
    assert os.read(mine, 1) == b""  # nobody holds the other end
    assert os.getsid(agent.daemon()) != os.getsid(0)


# -------------------------------------------------------------------- wrong requests


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense\n",
        b"[]\n",
        b'{"do":"dance"}\n',
        b'{"do":"start","key":"../../x","step":{}}\n',
        b'{"do":"start","key":"1/1/batch","step":{"phases":[]}}\n',
        b'{"do":"signal","key":"1/1","signal":9,"scope":"all"}\n',
    ],
)
def test_a_wrong_request_is_answered_and_harms_nothing(agent: RunningAgent, line: bytes) -> None:
    assert agent.ask(line)["ok"] is False
    state = agent.ask(launch.ping())
    assert (state["live"], state["journal"]) == ([], 0)


def test_the_archive_talks_for_those_who_cannot_reach_its_socket(agent: RunningAgent) -> None:
    argv = [agent.python, "-IS", str(agent.archive), "ask", "--dir", str(agent.home)]
    done = subprocess.run(argv, input=launch.ping(), capture_output=True, check=True)
    assert launch.reply(done.stdout)["ok"] is True


# -------------------------------------------------------------------- as root


@pytest.mark.root
def test_a_root_agent_runs_steps_as_their_user(
    short_tmp: Path, agents: Callable[..., RunningAgent]
) -> None:
    agent = agents(short_tmp)
    work = short_tmp / "work"
    work.mkdir()
    os.chown(work, 65534, 65534)
    step = order(
        work,
        'id -u; id -g; id -G; stat -c "%U %a" "$0"',
        uid=65534,
        gid=65534,
        groups=(65534, 100),
        stdout=b"made/out",
    )
    agent.run(KEY, step)
    assert exited(agent) == (0, 0, "exit")
    assert (work / "made/out").read_text() == "65534\n65534\n65534 100\nnobody 700\n"
    assert (work / "made").stat().st_uid == 65534


@pytest.mark.root
def test_a_user_cannot_write_where_he_may_not_through_a_root_agent(
    short_tmp: Path, agents: Callable[..., RunningAgent]
) -> None:
    agent = agents(short_tmp)
    work = short_tmp / "roots"
    work.mkdir(mode=0o755)
    agent.run(KEY, order(work, "true", uid=65534, gid=65534, groups=(65534,)))
    assert exited(agent) == (0, 53, "launch_failed")
    assert list(work.iterdir()) == []


def test_base64_is_what_the_wire_carries() -> None:
    line = launch.start(KEY, order(Path("/"), "true", environment=b"A=\xff"))
    assert base64.b64encode(b"A=\xff") in line
