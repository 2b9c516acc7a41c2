"""Bringing an agent up on a node: also where there is no Python yet."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.node import Node, NodeState
from broker.ports import Done, Place
from broker.run.bootstrap import FIND_PYTHON, bring_up
from broker.run.launch import agent_package

NODE = Node(NodeName("n1"), 0, NodeState.BOOTING, Tres(cpu=1), ("ec2",))
USABLE, OLD = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"


@pytest.fixture
def bin(tmp_path: Path) -> Iterator[Path]:
    """All that is on PATH there."""
    with tempfile.TemporaryDirectory(prefix="spz-bin-") as folder:
        for name in ("mkdir", "ln"):
            (Path(folder) / name).symlink_to(shutil.which(name) or name)
        yield Path(folder)


def put(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def found(bin: Path, wanted: Path) -> "subprocess.CompletedProcess[str]":
    argv = ["/bin/sh", "-c", FIND_PYTHON, "sh", str(wanted)]
    environ = {"PATH": str(bin)}
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)


def test_one_that_will_do_is_left_as_it_is(bin: Path) -> None:
    wanted = put(bin / "wanted", USABLE)
    assert found(bin, wanted).returncode == 0
    assert wanted.read_text() == USABLE


@pytest.mark.parametrize("name", ["python3", "python3.11", "python3.6"])
def test_another_that_is_there_gets_the_name(bin: Path, name: str) -> None:
    put(bin / "python3", OLD)
    put(bin / name, USABLE)
    wanted = bin / "below" / "python3"
    assert found(bin, wanted).returncode == 0
    assert wanted.resolve() == (bin / name).resolve()


@pytest.mark.parametrize("manager", ["apt-get", "dnf", "yum", "zypper", "apk"])
def test_where_there_is_none_the_systems_packages_are_asked(bin: Path, manager: str) -> None:
    put(
        bin / manager,
        f'#!/bin/sh\necho "$@" >> {bin}/asked\n: > {bin}/python3\nchmod +x {bin}/python3\n',
    )
    (bin / "chmod").symlink_to(shutil.which("chmod") or "chmod")
    done = found(bin, bin / "wanted")
    assert done.returncode == 0, done.stderr
    assert (bin / "asked").read_text().endswith("python3\n")


def test_where_none_can_be_had_it_is_said(bin: Path) -> None:
    put(bin / "apt-get", OLD)
    done = found(bin, bin / "wanted")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "there is no Python 3.6 or newer, and none could be installed"
    )


@dataclass
class Channel:
    """A node without a Python until one is looked for."""

    finds: Done
    python: bool = False
    served: bool = False
    ran: list[str] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        self.ran.append(argv[0])
        if argv[0] == "/bin/sh":
            self.python = self.finds.code == 0
            return self.finds
        if not self.python:
            raise FileNotFoundError(2, "No such file or directory", argv[0])
        self.served = True
        return Done(0, b"ready\n", b"")

    def put(self, data: bytes, path: str, mode: int) -> None:
        """Taken."""

    def read(self, path: str, offset: int) -> bytes:
        return b""

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        if not self.served:
            raise ConnectionError("nobody")
        return b'{"ok": true, "package": "%b"}\n' % agent_package().encode()


def test_an_agent_is_started_once_a_python_was_found() -> None:
    channel = Channel(Done(0, b"", b""))
    assert bring_up(NODE, Place(channel, "/n"))["ok"] is True
    assert channel.ran == ["/usr/bin/python3", "/bin/sh", "/usr/bin/python3"]


def test_a_node_that_can_have_none_will_not_do() -> None:
    channel = Channel(Done(1, b"", b"noise\nthere is no Python\n"))
    with pytest.raises(ValueError, match="n1: there is no Python"):
        bring_up(NODE, Place(channel, "/n"))
