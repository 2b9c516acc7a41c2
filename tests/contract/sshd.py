"""A real sshd on a loopback address, for this user, with a host key of ours."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.providers.ec2.keys import KeyPair, SiteKeys
from broker.run.knock import Knocker
from broker.run.ssh import Login

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
KEYS = SiteKeys("0123456789ab", bytes(32))
CONFIG = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxSessions 10
LogLevel ERROR
SetEnv HOME={folder}
"""


def user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name


def login(port: int, *, host_key: str | None = "") -> Login:
    known = KEYS.host("t").public if host_key == "" else host_key
    return Login(
        host="127.0.0.1",
        port=port,
        user=user(),
        private_key=KEYS.login().private,
        host_key=known,
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def sshd(port: int, *, host: KeyPair | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Skips the test, with the way out, where there is no sshd."""
    if SSHD is None:
        pytest.skip("no sshd on this host: apt-get install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="sshd-"))
    try:
        key = folder / "host_key"
        key.touch(mode=0o600)
        key.write_text((host or KEYS.host("t")).private)
        (folder / "authorized_keys").write_text(KEYS.login().public + "\n")
        (folder / "config").write_text(CONFIG.format(port=port, folder=folder))
        process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"])
        try:
            yield process
        finally:
            process.terminate()
            process.wait(10)
    finally:
        shutil.rmtree(folder)


def wait_for(port: int, knocker: Knocker) -> None:
    """Until it answers; by the knocker's own turns, for tests may not sleep."""
    import select

    for _ in range(200):
        if knocker.answers(("127.0.0.1", port)):
            return
        select.select([], [], [], 0.05)
    raise AssertionError(f"no sshd at port {port}")
