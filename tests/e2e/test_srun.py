"""srun, salloc and sattach on a real service: text, input, signals, terminals, ends, restarts."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import MARK, Preloaded, Service, service

SECONDS = 20.0


@contextmanager
def started(served: Service, *argv: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command under way, its standard input open."""
    process = subprocess.Popen(
        [str(served.bin / argv[0]), *argv[1:]],
        env={MARK: served.mark, "PATH": f"{served.bin}:/usr/bin:/bin"},
        cwd=served.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: "subprocess.Popen[bytes]") -> tuple[str, str, int]:
    out, err = process.communicate(timeout=SECONDS)
    return out.decode(), err.decode(), process.returncode


def line(process: "subprocess.Popen[bytes]") -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def on_path(served: Service) -> dict[str, str]:
    """Variables with which scripts find the commands."""
    return {"PATH": f"{served.bin}:/usr/bin:/bin"}


def running(served: Service) -> list[tuple[int, str]]:
    """Jobs that hold something, and their states."""
    done = served.run("squeue", "-h", "-o", "%i %T")
    return [(int(word.split()[0]), word.split()[1]) for word in done.out.splitlines()]


# --- text and ends


def test_tasks_write_to_their_own_streams(served: Service) -> None:
    ran = served.run("srun", "-n2", "-l", "bash", "-c", "echo out $SLURM_PROCID; echo err >&2")
    assert sorted(ran.out.splitlines()) == ["0: out 0", "1: out 1"]
    assert sorted(ran.err.splitlines()) == ["0: err", "1: err"]
    assert ran.code == 0


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("exit 5", 5, "task 0: Exited with exit code 5\n"),
        ("kill -9 $$", 137, "task 0: Killed\nsrun: Force Terminated StepId="),
        ("kill -ALRM $$; # others are not told so", 142, "task 0: Alarm clock\n"),
        ("exit 255", 255, "task 0: Exited with exit code 255\n"),
    ],
)
def test_the_exit_status_is_the_tasks(served: Service, command: str, code: int, said: str) -> None:
    ran = served.run("srun", "bash", "-c", command)
    assert ran.code == code
    assert said in ran.err


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("-o/dev/null/x", ["Could not open stdout file: Not a directory"]),
        ("-e/dev/null/x", ["Could not open stderr file: Not a directory"]),
        ("-ino/such", ["Could not open stdin file: No such file or directory"]),
        ("-o.", ["Could not open stdout file: Is a directory"]),
        (
            "-e/dev/null/%t",
            [f"task {rank} launch failed: Slurmd could not connect IO" for rank in (0, 1)],
        ),
    ],
)
def test_a_file_that_cannot_be_opened_is_told_and_no_task_runs(
    served: Service, option: str, said: list[str]
) -> None:
    ran = served.run("srun", "-n2", option, "touch", "begun")
    assert ran.err == "".join(f"srun: error: {text}\n" for text in said)
    assert (ran.out, ran.code) == ("", 1)
    assert not (served.work / "begun").exists()


def test_tasks_are_held_to_the_cpus_that_are_named_and_told_so(served: Service) -> None:
    cpu = min(os.sched_getaffinity(0))
    show = "taskset -cp $$ | sed 's/.*: //'; echo $SLURM_CPU_BIND"
    ran = served.run("srun", f"--cpu-bind=v,map_cpu:{cpu}", "bash", "-c", show)
    assert ran.out == f"{cpu}\nverbose,map_cpu:{cpu}\n"
    mask = re.escape(hex(1 << cpu))
    told = rf"cpu-bind=MAP  - own-\d, task  0  0 \[\d+\]: mask {mask} set\n"
    assert re.fullmatch(told, ran.err)


def test_cpus_that_are_not_there_are_told_and_the_task_runs(served: Service) -> None:
    ran = served.run("srun", "--cpu-bind=map_cpu:4000", "echo", "on")
    assert (ran.out, ran.code) == ("on\n", 0)
    assert "error: sched_setaffinity(" in ran.err


def test_the_worst_task_counts(served: Service) -> None:
    ran = served.run("srun", "-n3", "bash", "-c", "exit $SLURM_PROCID")
    assert ran.code == 2
    assert "task 1: Exited with exit code 1\n" in ran.err
    assert "task 2: Exited with exit code 2\n" in ran.err


def test_input_reaches_all_tasks_whole(served: Service) -> None:
    content = os.urandom(3 << 20).replace(b"\n", b" ")
    ran = served.run("srun", "-n2", "md5sum", stdin=content)
    assert [one.split()[0] for one in ran.out.splitlines()] == 2 * [md5(content).hexdigest()]


def test_much_output_comes_whole(served: Service) -> None:
    ran = served.run("srun", "bash", "-c", "seq 1 400000")
    assert ran.out == "".join(f"{number}\n" for number in range(1, 400_001))


def test_an_allocation_ends_with_its_srun(served: Service) -> None:
    with started(served, "srun", "bash", "-c", "echo on; sleep 60") as srun:
        assert line(srun) == b"on\n"
        assert [state for _, state in running(served)] == ["RUNNING"]
        srun.kill()
        until(lambda: running(served) == [], "the job's end")


# --- signals


def test_two_interrupts_end_the_step(served: Service) -> None:
    with started(served, "srun", "bash", "-c", "echo on; sleep 60") as srun:
        assert line(srun) == b"on\n"
        srun.send_signal(signal.SIGINT)
        assert srun.stderr is not None
        assert srun.stderr.readline() == b"srun: interrupt (one more within 1 sec to abort)\n"
        assert srun.stderr.readline().endswith(b" task 0: running\n")
        srun.send_signal(signal.SIGINT)
        _, err, code = end(srun)
    assert "srun: sending Ctrl-C to StepId=" in err
    assert code != 0
    until(lambda: running(served) == [], "the job's end")


def test_other_signals_go_to_the_tasks(served: Service) -> None:
    script = "trap 'echo got; exit 3' USR1; echo on; while :; do sleep 0.05; done"
    with started(served, "srun", "bash", "-c", script) as srun:
        assert line(srun) == b"on\n"
        srun.send_signal(signal.SIGUSR1)
        out, _, code = end(srun)
    assert (out.splitlines()[-1], code) == ("got", 3)


# --- in a job


def test_plain_steps_of_a_job_run_one_after_the_other(served: Service) -> None:
    both = "srun sh -c 'echo in; sleep 0.5; echo out' & srun sh -c 'echo in; sleep 0.5; echo out'"
    job = served.wrap(f"{both}; wait", "-o", "steps.out", env=on_path(served))
    served.wait(job, "COMPLETED")
    lines = [one for one in served.file("steps.out").splitlines() if not one.startswith("srun:")]
    assert lines == ["in", "out", "in", "out"]


def test_a_step_that_may_not_wait_is_refused_and_leaves_no_trace(served: Service) -> None:
    """One of a longer patience is asked for again meanwhile."""
    script = (
        "srun sh -c 'touch held; until [ -e go ]; do sleep 0.05; done' & "
        "until [ -e held ]; do sleep 0.05; done; srun --immediate true; echo $?; touch go; "
        "srun --immediate=20 echo late; wait; "
        "scontrol show step $SLURM_JOB_ID.2"
    )
    ran = served.run("salloc", "-Q", "bash", "-c", script, env=on_path(served))
    assert ran.out.splitlines() == ["1", "late"]
    refused, missing = ran.err.splitlines()
    assert re.fullmatch(
        r"srun: error: Unable to create step for job \d+: Requested nodes are busy", refused
    )
    assert missing.endswith(".2) failed: Invalid job id specified")


def test_exact_steps_run_beside_each_other(served: Service) -> None:
    step = "srun -n1 --exact sh -c 'echo in; sleep 1; echo out'"
    job = served.wrap(f"{step} & {step} & wait", "-n2", "-o", "exact.out", env=on_path(served))
    served.wait(job, "COMPLETED")
    assert served.file("exact.out").splitlines() == ["in", "in", "out", "out"]


def test_an_overlapping_step_runs_beside_one_that_has_all(served: Service) -> None:
    """Each waits for a file that the other makes."""
    holder = "touch a; until [ -e b ]; do sleep 0.05; done"
    sharer = "until [ -e a ]; do sleep 0.05; done; touch b"
    steps = f"srun -n4 bash -c '{holder}' & srun --overlap bash -c '{sharer}'; wait"
    ran = served.run("salloc", "-n4", "bash", "-c", steps, env=on_path(served))
    assert (ran.out, ran.code) == ("", 0)


def test_a_step_hears_its_signal_before_its_own_limit(served: Service) -> None:
    command = "trap 'echo heard; exit 3' USR1; while :; do sleep 0.05; done"
    words = ("srun", "-t1", "--signal=USR1@58", "bash", "-c", command)
    ran = served.run("salloc", *words, env=on_path(served))
    assert (ran.out, ran.code) == ("heard\n", 3)


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("-K0", 3, ["task 0: Exited with exit code 3"]),
        ("-K1", 143, ["task 0: Exited with exit code 3", "task 1: Terminated"]),
    ],
)
def test_other_tasks_end_with_a_failed_one_where_that_is_wished(
    served: Service, option: str, code: int, said: list[str]
) -> None:
    command = "[ $SLURM_PROCID = 0 ] && exit 3; exec sleep 0.$((SLURM_PROCID * 5))"
    if option == "-K1":
        command = command.replace("0.$((SLURM_PROCID * 5))", "60")
    ran = served.run("srun", "-n2", option, "bash", "-c", command)
    told = [line for line in ran.err.splitlines() if ": task" in line]
    assert [line.partition(": error: ")[2].partition(": ")[2] for line in told] == said
    assert ran.code == code


def test_tasks_are_not_waited_for_long_after_the_first(served: Service) -> None:
    ran = served.run("srun", "-n2", "-W1", "bash", "-c", "[ $SLURM_PROCID = 0 ] || exec sleep 60")
    assert "srun: First task exited 1s ago\n" in ran.err
    assert re.search(
        r"srun: StepId=\d+\.0 task 1: running\nsrun: StepId=\d+\.0 task 0: exited\n", ran.err
    )
    assert ran.code == 137


def test_each_task_may_have_a_program_of_its_own(served: Service) -> None:
    (served.work / "mp.conf").write_text("0,2 echo %t of %o\n* bash -c 'exit 4'\n")
    ran = served.run("srun", "-n3", "-l", "--multi-prog", "mp.conf")
    assert sorted(ran.out.splitlines()) == ["0: 0 of 0", "2: 2 of 1"]
    assert ran.code == 4


def test_a_step_too_large_for_the_job_is_refused(served: Service) -> None:
    job = served.wrap("srun -n 500 true", "-o", "large-step.out", env=on_path(served))
    served.wait(job, "FAILED")
    assert served.file("large-step.out") == (
        f"srun: error: Unable to create step for job {job}: "
        "More processors requested than permitted\n"
    )


# --- salloc and sattach


def test_salloc_runs_its_command_here_with_the_jobs_variables(served: Service) -> None:
    with started(served, "salloc", "bash", "-c", "srun sh -c 'echo $SLURM_JOB_ID'; exit 4") as one:
        out, err, code = end(one)
    job = int(out)
    assert code == 4
    assert err == (
        f"salloc: Granted job allocation {job}\n"
        f"salloc: Nodes {served.job(job).last_node_names[0]} are ready for job\n"
        f"salloc: Relinquishing job allocation {job}\n"
    )
    served.wait(job, "FAILED")


def test_salloc_goes_into_the_folder_that_is_named(served: Service) -> None:
    (served.work / "below").mkdir()
    command = 'pwd; echo "$SLURM_SUBMIT_DIR"; srun pwd'
    ran = served.run("salloc", "-D", "below", "bash", "-c", command, env=on_path(served))
    below = str(served.work / "below")
    assert (ran.out, ran.code) == (f"{below}\n{served.work}\n{below}\n", 0)


def test_salloc_asks_for_nothing_where_the_folder_is_not_there(served: Service) -> None:
    ran = served.run("salloc", "--chdir=/no/such", "true")
    said = "salloc: error: chdir(/no/such): No such file or directory\n"
    assert (ran.out, ran.err, ran.code) == ("", said, 1)


def test_an_allocation_without_a_shell_stays(served: Service) -> None:
    ran = served.run("salloc", "--no-shell", "-t1")
    ((job, state),) = running(served)
    assert (ran.code, state) == (0, "RUNNING")
    inside = served.run("srun", f"--jobid={job}", "echo", "in")
    assert inside.out == "in\n"
    served.run("scancel", str(job))
    served.wait(job, "CANCELLED")


def test_sattach_sees_what_is_written_from_now_on(served: Service) -> None:
    script = "echo before; until [ -e attached ]; do sleep 0.05; done; echo after"
    with started(served, "srun", "bash", "-c", script) as srun:
        assert line(srun) == b"before\n"
        ((job, _),) = running(served)
        with started(served, "sattach", f"{job}.0") as looking:
            time.sleep(0.5)
            (served.work / "attached").touch()
            assert end(looking)[0] == "after\n"
        assert end(srun)[0] == "after\n"


def test_what_no_waiting_helps_is_refused_at_once_where_that_was_asked(served: Service) -> None:
    for words in (("-N9",), ("-n99",)):
        ran = served.run("srun", "-I5", "-p", "own", *words, "true")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == (
            "srun: error: Unable to allocate resources: "
            "Requested partition configuration not available now\n"
        )


def test_hosts_are_read_from_a_file_before_an_allocation(served: Service) -> None:
    (served.work / "hosts").write_text("own-2\n")
    assert served.run("srun", "-F", "hosts", "-n1", "printenv", "SLURMD_NODENAME").out == "own-2\n"
    missing = served.run("srun", "-F", "nosuch", "true")
    assert missing.code == 255
    assert missing.err.startswith("srun: error: slurm_allocate_resources error opening file nosuch")


def test_sattach_tells_why_there_is_no_step_to_look_at(served: Service) -> None:
    waiting = served.run("sbatch", "--parsable", "-H", "--wrap", "true").out.strip()
    ended = served.run("sbatch", "--parsable", "-W", "--wrap", "true").out.strip()
    no_info = "error: Could not get job step info:"
    usage = "Usage: sattach [options] <jobid.stepid>\n"
    for words, out, err in (
        ((f"{waiting}.0",), "", f"{no_info} Job is pending execution"),
        ((f"{ended}.7",), "", f"{no_info} Job/step already completing or completed"),
        (("99999.0",), "", f"{no_info} Invalid job id specified"),
        (("99999.x",), "", "fatal: Bad step specified: 99999"),
        (("x",), usage, "error: Failed to parse stepid from command line options"),
        ((), usage, "error: too many parameters"),
    ):
        ran = served.run("sattach", *words)
        assert (ran.code, ran.out, ran.err) == (1, out, f"sattach: {err}\n")
    served.run("scancel", waiting)


# --- a terminal


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, served: Service, *argv: str) -> None:
        self.master, slave = pty.openpty()
        self.resize(30, 100)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", str(served.bin / argv[0]), *argv[1:]],
            env={MARK: served.mark, "PATH": "/usr/bin:/bin", "TERM": "dumb"},
            cwd=served.work,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def type(self, data: bytes) -> None:
        os.write(self.master, data)

    def wait_for(self, text: bytes) -> None:
        """Until that is seen, behind what was waited for before."""
        limit = time.monotonic() + SECONDS
        while text not in self.seen:
            assert time.monotonic() < limit, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        self.seen = self.seen.partition(text)[2]

    def interrupt(self) -> None:
        """Ctrl-C, once the shell's command has the terminal: a shell that is just handing it over
        may lose it for good, without us as well.
        """
        until(lambda: self._foreground() not in {"bash", ""}, "a command in the foreground")
        self.type(b"\x03")
        self.wait_for(b"bash-")

    def _foreground(self) -> str:
        try:
            return Path(f"/proc/{os.tcgetpgrp(self.master)}/comm").read_text().strip()
        except OSError:
            return ""

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def test_a_shell_on_a_terminal_has_its_size_and_its_interrupts(served: Service) -> None:
    shell = Terminal(served, "srun", "--pty", "bash", "--norc", "-i")
    try:
        shell.type(b"stty size; tty | head -c 5\r")
        shell.wait_for(b"30 100\r")
        shell.wait_for(b"/dev/")
        shell.resize(40, 120)
        shell.type(b"sleep 0.3; stty size\r")
        shell.wait_for(b"40 120")
        shell.type(b"echo is-$((1+1)); sleep 60\r")
        shell.wait_for(b"is-2")
        shell.interrupt()
        shell.type(b"echo still-$((2+2))\r")
        shell.wait_for(b"still-4")
        shell.type(b"exit 7\r")
        assert shell.process.wait(SECONDS) == 7
    finally:
        shell.close()


def test_salloc_gives_its_terminal_to_its_command(served: Service) -> None:
    shell = Terminal(served, "salloc", "bash", "--norc", "-i")
    try:
        shell.wait_for(b"ready for job")
        shell.type(b"echo in-${SLURM_JOB_ID:+job}; sleep 60\r")
        shell.wait_for(b"in-job")
        shell.interrupt()
        shell.type(b"exit 0\r")
        shell.wait_for(b"Relinquishing job allocation")
        assert shell.process.wait(SECONDS) == 0
    finally:
        shell.close()


# --- a service that goes away


def test_a_step_outlives_the_service_and_no_byte_is_lost(preloaded: Preloaded) -> None:
    script = "for n in $(seq 1 40); do echo $n; sleep 0.1; done; cat; exit 6"
    with service(preloaded) as own, started(own, "srun", "bash", "-c", script) as srun:
        assert [line(srun) for _ in range(5)] == [b"%d\n" % n for n in range(1, 6)]
        own.kill()
        assert srun.stdin is not None
        srun.stdin.write(b"typed while it was away\n")
        srun.stdin.flush()
        time.sleep(1)
        own.start()
        out, _, code = end(srun)
        expected = [*map(str, range(6, 41)), "typed while it was away"]
        assert (out.splitlines(), code) == (expected, 6)


def test_salloc_comes_again_with_what_its_command_did(preloaded: Preloaded) -> None:
    with service(preloaded) as own, started(own, "salloc", "sh", "-c", "sleep 1; exit 3") as one:
        assert one.stderr is not None
        assert one.stderr.readline().startswith(b"salloc: Granted")
        own.kill()
        time.sleep(1.5)
        own.start()
        _, err, code = end(one)
        assert (err.splitlines()[-1].split(" allocation")[0], code) == (
            "salloc: Relinquishing job",
            3,
        )
