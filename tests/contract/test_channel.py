"""What every channel to a node promises."""

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.ports import Channel
from broker.run.agent import wire
from broker.run.knock import Knocker
from broker.run.local import LocalChannel
from broker.run.ssh import Connections, Target
from tests.contract.sshd import free_port, login, sshd, wait_for


@pytest.fixture(scope="module")
def over_ssh() -> Iterator[Channel]:
    """To a real sshd of this host."""
    port, knocker = free_port(), Knocker()
    with sshd(port):
        wait_for(port, knocker)
        connections = Connections(knocker=knocker)
        yield connections.channel(Target(login=login(port), python=sys.executable))
        connections.close()


@pytest.fixture(params=["local", "ssh"])
def channel(request: pytest.FixtureRequest) -> Channel:
    if request.param == "local":
        return LocalChannel(lambda: True)
    made: Channel = request.getfixturevalue("over_ssh")
    return made


def test_a_program_gets_its_words_and_input_and_gives_all_back(channel: Channel) -> None:
    script = 'cat; printf "%s|" "$@" >&2; exit 7'
    done = channel.run(
        ["/bin/sh", "-c", script, "x", "a b", "", "'$x\n"], stdin=b"\0\xff", timeout=10
    )
    assert (done.code, done.out, done.err) == (7, b"\0\xff", b"a b||'$x\n|")


def test_a_program_that_is_not_there_or_takes_too_long_is_an_os_error(channel: Channel) -> None:
    with pytest.raises(OSError, match="nosuchprogram"):
        channel.run(["nosuchprogram"], timeout=10)
    with pytest.raises(TimeoutError):
        channel.run(["sleep", "10"], timeout=0.2)


def test_what_is_put_is_there_as_a_whole(channel: Channel, tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    channel.put(b"one", str(path), 0o700)
    channel.put(b"\0\xff two", str(path), 0o640)
    assert path.read_bytes() == b"\0\xff two"
    assert path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_reading_begins_at_an_offset(channel: Channel, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    assert channel.read(str(path), 0) == b""
    path.write_bytes(b"one\ntwo\n")
    assert channel.read(str(path), 4) == b"two\n"
    assert channel.read(str(path), 8) == b""
    assert channel.read(str(path), 100) == b""


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[str]:
    """A socket in a deep folder that answers lines with themselves in capitals."""
    folder = tmp_path.joinpath(*["a long name of a folder"] * 8)
    folder.mkdir(parents=True)
    listener = wire.listen(str(folder / "agent.sock"))
    listener.setblocking(True)
    thread = threading.Thread(target=_serve, args=(listener,), daemon=True)
    thread.start()
    yield str(folder / "agent.sock")
    listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    listener.close()


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            caller = listener.accept()[0]
        except OSError:
            return
        with caller, caller.makefile("rwb") as stream:
            line = stream.readline()
            if line != b"silence\n":
                stream.write(line.upper())


def test_a_socket_is_asked_one_line_and_answers_one(channel: Channel, echo: str) -> None:
    assert channel.ask(echo, b"hello\n", timeout=10) == b"HELLO\n"
    assert channel.ask(echo, b"x" * 6_000_000 + b"\n", timeout=10)[-3:] == b"XX\n"


def test_nobody_there_and_no_answer_are_os_errors(
    channel: Channel, echo: str, tmp_path: Path
) -> None:
    with pytest.raises(OSError, match="answer"):
        channel.ask(echo, b"silence\n", timeout=10)
    with pytest.raises(FileNotFoundError):
        channel.ask(str(tmp_path / "nothing.sock"), b"hello\n", timeout=10)


def test_a_local_machine_that_is_not_up_cannot_be_reached(tmp_path: Path) -> None:
    channel = LocalChannel(lambda: False)
    path = str(tmp_path / "x")
    for act in (
        lambda: channel.run(["true"], timeout=1),
        lambda: channel.put(b"", path, 0o600),
        lambda: channel.read(path, 0),
        lambda: channel.ask(path, b"x\n", timeout=1),
    ):
        with pytest.raises(OSError, match="not up"):
            act()
    assert not Path(path).exists()
