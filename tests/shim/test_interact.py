"""srun, salloc and sattach as processes, with a service that the test plays."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.api.wire import frame
from tests.shim.conftest import Commands
from tests.shim.stream import StreamService
from tests.shim.test_shim import MODULES_OF, modules

SECONDS = 10


@contextmanager
def started(
    commands: Commands, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    program, *rest = argv
    process = subprocess.Popen(
        [str(commands.prefix / "bin" / program), *rest],
        env=env or {},
        cwd=cwd,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes, int]:
    """What it wrote, and its status; one that does not end by itself is ended."""
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    out, err = process.communicate()
    timer.cancel()
    return out, err, process.returncode


@pytest.mark.parametrize("program", ["salloc", "sattach", "srun"])
def test_an_interactive_command_loads_little(commands: Commands, program: str) -> None:
    bare = modules("import sys; print(*sys.modules, file=sys.stderr)")
    loaded = modules(MODULES_OF, str(commands.prefix / "bin" / program), "--version")
    own = {"shim", "interact", "line", "child", "seldom"}
    assert loaded - bare - {"_socket", "select", "termios"} == own


def test_the_request_comes_first_and_then_how_the_command_comes(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "srun", "-n2", "a") as srun:
        talk = service.accept()
        call, hello = talk.greeted()
        talk.say(b"x", b"3")
        assert end(srun) == (b"", b"", 3)
    assert talk.head.startswith(b"POST /i/srun HTTP/1.1\r\n")
    assert (call.program, call.argv) == ("srun", ("-n2", "a"))
    assert hello == b"\x000\x00"


def test_output_goes_to_its_stream(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "srun", "a") as srun:
        talk = service.accept()
        talk.greeted()
        for kind, data in ((b"o", b"a\xff"), (b"e", b"b"), (b"o", b""), (b"o", b"c" * 300_000)):
            talk.say(kind, data)
        talk.say(b"x", b"0")
        assert end(srun) == (b"a\xff" + b"c" * 300_000, b"b", 0)


def test_input_is_read_when_wanted_and_its_end_is_told(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "srun", "cat") as srun:
        talk = service.accept()
        talk.greeted()
        assert srun.stdin is not None
        srun.stdin.write(b"one\n")
        srun.stdin.close()
        srun.stdin = None
        talk.say(b"i", b"1")
        assert [talk.hear(), talk.hear()] == [(b"i", b"one\n"), (b"z", b"")]
        talk.say(b"x", b"0")
        assert end(srun)[2] == 0


def test_no_more_input_is_on_its_way_than_was_agreed(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "srun", "cat") as srun:
        talk = service.accept()
        talk.greeted()
        talk.say(b"i", b"1")
        assert srun.stdin is not None
        os.set_blocking(srun.stdin.fileno(), False)
        sent = srun.stdin.raw.write(b"x" * 65_536) or 0  # type: ignore[attr-defined]
        got = 0
        while got < sent:
            got += len(talk.hear()[1])
        os.set_blocking(srun.stdin.fileno(), True)
        srun.stdin.write(b"y" * 10)
        srun.stdin.flush()
        talk.say(b"k", b"%d" % got)
        assert talk.hear() == (b"i", b"y" * 10)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGCONT"])
def test_signals_are_the_services_business(commands: Commands, name: str) -> None:
    number = getattr(signal, name)
    with StreamService(commands.socket) as service, started(commands, "srun", "a") as srun:
        talk = service.accept()
        talk.greeted()
        srun.send_signal(number)
        assert talk.hear() == (b"s", b"%d" % number)
        talk.say(b"x", b"7")
        assert end(srun)[2] == 7


def test_a_file_that_is_asked_for_is_sent(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "mp.conf").write_bytes(b"0 echo\n\xff")
    with (
        StreamService(commands.socket) as service,
        started(commands, "srun", "a", cwd=tmp_path),
    ):
        talk = service.accept()
        talk.greeted()
        talk.say(b"a", b"mp.conf")
        assert talk.hear() == (b"f", b"mp.conf\x000\x000 echo\n\xff")
        talk.say(b"a", b"none")
        assert talk.hear() == (b"f", b"none\x002\x00")


def test_a_folder_is_gone_into_and_the_request_stays_the_same(
    commands: Commands, tmp_path: Path
) -> None:
    with (
        StreamService(commands.socket) as service,
        started(commands, "salloc", cwd=tmp_path) as salloc,
    ):
        talk = service.accept()
        first, _ = talk.greeted()
        for folder, code in ((b"no/such", b"2"), (b"..", b"0")):
            talk.say(b"d", folder)
            assert talk.hear() == (b"d", code)
        assert Path(f"/proc/{salloc.pid}/cwd").readlink() == tmp_path.parent
        talk.say(b"p", b"7")
        talk.close()
        again, _ = service.accept().greeted()
        assert again.cwd == first.cwd == str(tmp_path)


def test_after_a_lost_connection_nothing_is_printed_twice_or_missing(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "srun", "a") as srun:
        talk = service.accept()
        first, _ = talk.greeted()
        talk.say(b"o", b"one ")
        talk.say(b"p", b"7.0@10")
        talk.say(b"i", b"1")
        talk.say(b"o", b"two ")
        assert srun.stdin is not None
        srun.stdin.write(b"typed")
        srun.stdin.flush()
        assert talk.hear() == (b"i", b"typed")
        talk.close()
        talk = service.accept()
        again, hello = talk.greeted()
        assert (again.request, hello) == (first.request, b"7.0@10\x000\x00")
        assert talk.hear() == (b"i", b"typed")
        talk.say(b"o", b"two three")
        talk.say(b"x", b"0")
        assert end(srun) == (b"one two three", b"", 0)


def test_a_refusal_is_printed_behind_the_commands_name(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "salloc") as salloc:
        talk = service.accept()
        talk.greeted()
        talk.connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\nnot you\n")
        assert end(salloc) == (b"", b"salloc: error: not you\n", 1)


def test_without_a_service_slurms_words_are_said(commands: Commands) -> None:
    done = subprocess.run(
        [commands.impatient("srun"), "a"], env={}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"srun: error: Unable to allocate resources: "
        b"Unable to contact slurm controller (connect failure)\n"
    )


def run_frame(argv: list[str], variables: dict[str, str]) -> bytes:
    fields = [*argv, *(f"{name}={text}" for name, text in variables.items())]
    return b"%d\0" % len(argv) + b"".join(field.encode() + b"\0" for field in fields)


# fmt: off
ENDS = {
    "its exit status": (["sh", "-c", "echo $A; exit 4"], b"b c\n", b"exit 4"),
    "a signal": (["sh", "-c", "kill -9 $$"], b"", b"signal 9"),
    "no such command": (["nosuchcommand"], b"", b"missing"),
}
# fmt: on


@pytest.mark.parametrize("what", ENDS)
def test_salloc_runs_its_command_and_tells(commands: Commands, what: str) -> None:
    argv, out, told = ENDS[what]
    with StreamService(commands.socket) as service, started(commands, "salloc") as salloc:
        talk = service.accept()
        talk.greeted()
        talk.say(b"r", run_frame(argv, {"A": "b c", "PATH": "/usr/bin:/bin"}))
        assert talk.hear() == (b"q", told)
        talk.say(b"x", b"0")
        assert end(salloc) == (out, b"", 0)


def test_salloc_passes_signals_to_its_command(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "salloc") as salloc:
        talk = service.accept()
        talk.greeted()
        script = "trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done"
        talk.say(b"r", run_frame(["sh", "-c", script], {"PATH": "/usr/bin:/bin"}))
        assert salloc.stdout is not None
        assert salloc.stdout.readline() == b"on\n"
        salloc.send_signal(signal.SIGTERM)
        assert talk.hear() == (b"q", b"exit 9")


def test_a_command_that_ended_while_the_service_was_away_is_told_of(commands: Commands) -> None:
    with StreamService(commands.socket) as service, started(commands, "salloc") as salloc:
        talk = service.accept()
        talk.greeted()
        talk.say(b"r", run_frame(["sh", "-c", "sleep 0.2; exit 5"], {"PATH": "/usr/bin:/bin"}))
        talk.say(b"p", b"12:runs")
        talk.close()
        talk = service.accept()
        assert talk.greeted()[1] == b"12:runs\x000\x00"
        assert talk.hear() == (b"q", b"exit 5")
        talk.say(b"x", b"5")
        assert end(salloc)[2] == 5


@contextmanager
def on_terminal(commands: Commands, *argv: str) -> Iterator[tuple[int, int, int]]:
    """A command with a terminal of 30 rows; its pid, our end, its end."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 30, 100, 0, 0))
    process = subprocess.Popen(
        [str(commands.prefix / "bin" / argv[0]), *argv[1:]],
        env={},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    try:
        yield process.pid, master, slave
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def test_a_terminal_is_made_raw_and_put_back(commands: Commands) -> None:
    with (
        StreamService(commands.socket) as service,
        on_terminal(commands, "srun", "--pty", "a") as (pid, master, slave),
    ):
        talk = service.accept()
        assert talk.greeted()[1] == b"\x000\x0030 100"
        before = termios.tcgetattr(slave)
        talk.say(b"t")
        talk.say(b"i", b"1")
        talk.say(b"o", b"ready")
        assert os.read(master, 100) == b"ready"
        assert not termios.tcgetattr(slave)[3] & (termios.ISIG | termios.ECHO | termios.ICANON)
        os.write(master, b"\x03")
        assert talk.hear() == (b"i", b"\x03")
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        assert talk.hear() == (b"w", b"40 120")
        talk.say(b"x", b"0")
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert termios.tcgetattr(slave)[:4] == before[:4]


def test_frames_cut_anywhere_are_put_together(commands: Commands) -> None:
    data = frame(b"o", b"abc") + frame(b"x", b"2")
    with StreamService(commands.socket) as service, started(commands, "srun", "a") as srun:
        talk = service.accept()
        talk.greeted()
        talk.say(b"e", b"first ")
        for byte in data:
            talk.connection.sendall(b"1\r\n%c\r\n" % byte)
        assert end(srun) == (b"abc", b"first ", 2)
