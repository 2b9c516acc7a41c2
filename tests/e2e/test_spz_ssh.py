"""`ssh NAME` into clusters: OpenSSH's own client, by what `spz` wrote for it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.service import Service
from tests.e2e.terminal import Terminal

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(SSHD is None or shutil.which("ssh") is None, reason="no OpenSSH here"),
]


@pytest.fixture
def spz(clusters: Service) -> Iterator[Terminal]:
    """At a home that a line of ssh's configuration can name."""
    with TemporaryDirectory(prefix="spz ssh", dir="/tmp") as home:
        yield Terminal(clusters, Path(home))


def ssh(spz: Terminal, name: str, *command: str, given: bytes = b"") -> subprocess.CompletedProcess:  # type: ignore[type-arg]
    """ssh looks for the user's configuration in the home that passwd tells, hence `-F`."""
    argv = ["ssh", "-F", str(spz.home / ".ssh" / "config"), name, *command]
    return subprocess.run(
        argv, env=spz.environ, input=given, capture_output=True, check=False, timeout=60
    )


def test_ssh_reaches_each_node_as_the_user_and_forgets_what_is_gone(spz: Terminal) -> None:
    config = spz.home / ".ssh" / "config"
    config.parent.mkdir()
    config.write_text("Host other\n  User somebody\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    assert spz("status").code == 0
    assert config.read_text().startswith("Host other"), "nothing is written for who has no cluster"
    made = spz("launch", "-y", "-c", "box", "--num-nodes", "2", "--cpus", "2+", "true")
    assert made.code == 0, made
    assert config.read_text().splitlines()[0].startswith("Include ")
    assert "Host other\n  User somebody\n" in config.read_text()

    every = bytes(range(256)) * 4096
    copied = ssh(spz, "box", "cat", given=every)
    assert (copied.returncode, copied.stderr) == (0, b""), copied.stderr
    assert copied.stdout == every
    there = ssh(spz, "box-worker1", "id -u; exit 7")
    assert (there.returncode, there.stdout) == (7, f"{os.getuid()}\n".encode())
    assert [run["id"] for run in spz.json("queue", "box")["box"]] == [1]
    hosts = spz.home / ".skypurza" / "ssh" / "hosts"
    assert "Host box-worker1\n" in hosts.read_text()

    login = subprocess.Popen(
        ["ssh", "-F", str(config), "box", "echo in; exec sleep 20"],
        env=spz.environ,
        stdout=subprocess.PIPE,
    )
    with login:
        assert login.stdout is not None
        assert login.stdout.readline() == b"in\n"
        assert spz("autostop", "-y", "-i", "0", "--down", "box").code == 0
        assert spz.json("status", "box")[0]["status"] == "UP", "a login holds an autostop off"
        waits = ("--wait-for", "jobs")
        assert spz("autostop", "-y", "-i", "0", "--down", *waits, "box").code == 0
        assert login.wait(30) != 0, "it ends with the cluster where jobs alone are waited for"
    assert "box" not in [one["name"] for one in spz.json("status")]
    assert spz("status").code == 0
    assert "Host" not in hosts.read_text()
