"""The `ssh` command against a real sshd: in with our key, and to no host but the one we know."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.run.knock import Knocker
from broker.run.openssh import MOST_FILES, OpenSsh
from broker.run.ssh import Target
from tests.contract.sshd import SSHD, free_port, login, sshd, wait_for

HOME = "/some/home"
NASTY = ["a b", "'\"$(x)\n", "~/of home", "~else"]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    if SSHD is None or shutil.which("ssh") is None:
        pytest.skip("apt-get install openssh-server openssh-client")
    port = free_port()
    with sshd(port):
        wait_for(port, Knocker())
        yield Target(login=login(port))


def run(
    target: Target, argv: list[str], stdin: bytes = b""
) -> "subprocess.CompletedProcess[bytes]":
    words = OpenSsh().command(target, HOME, argv)
    assert words is not None
    return subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=30)


def test_a_command_gets_its_words_and_its_streams(target: Target) -> None:
    done = run(target, ["/bin/sh", "-c", 'printf "%s|" "$@"; cat; exit 7', "sh", *NASTY], b"\xff\0")
    assert done.stdout == b"a b|'\"$(x)\n|/some/home/of home|~else|\xff\0"
    assert done.returncode == 7


def test_another_host_key_is_not_entered(target: Target) -> None:
    other = replace(target, login=replace(target.login, host_key=f"ssh-ed25519 {'A' * 68}"))
    done = run(other, ["true"])
    assert done.returncode == 255
    assert b"erification failed" in done.stderr


@pytest.mark.parametrize("blind", ["no ssh", "bastion", "no host key", "no home"])
def test_where_it_cannot_be_used_there_is_no_command(target: Target, blind: str) -> None:
    made = OpenSsh(None) if blind == "no ssh" else OpenSsh()
    if blind == "bastion":
        target = replace(target, bastion=target.login)
    if blind == "no host key":
        target = replace(target, login=replace(target.login, host_key=None))
    home = "" if blind == "no home" else HOME
    assert made.command(target, home, ["true"]) is None


def test_keys_of_many_hosts_do_not_pile_up(target: Target) -> None:
    made = OpenSsh()
    for number in range(MOST_FILES + 9):
        one = replace(target, login=replace(target.login, host_key=f"ssh-ed25519 {number}"))
        made.command(one, HOME, ["true"])
    assert len(made._files) == MOST_FILES
