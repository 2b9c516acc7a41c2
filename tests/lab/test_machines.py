"""Machines of the box that can be reached: real sshd, real processes, none that stays behind."""

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import Running, running

pytestmark = pytest.mark.e2e
AL2023 = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
PATIENCE = 20.0


def key() -> tuple[str, str]:
    """Private and public, as OpenSSH writes them."""
    made, coding = Ed25519PrivateKey.generate(), serialization.Encoding
    private = made.private_bytes(
        coding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = made.public_key().public_bytes(coding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


def until(found: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {PATIENCE} s: {what}")


class Node:
    """A machine, and ssh to it that trusts only the key that user data handed over."""

    def __init__(self, lab: Running, folder: Path, *commands: str, **asked: Any) -> None:
        self.lab, self.folder = lab, folder
        host, host_public = key()
        login, login_public = key()
        (folder / "login").write_text(login)
        (folder / "login").chmod(0o600)
        config = {
            "ssh_keys": {"ed25519_private": host, "ed25519_public": host_public},
            "ssh_authorized_keys": [login_public],
            "runcmd": list(commands),
        }
        self.ec2 = lab.client()
        name = lab.client("ssm").get_parameter(Name=AL2023)["Parameter"]["Value"]
        (made,) = self.ec2.run_instances(
            ImageId=name,
            InstanceType="m7i.large",
            MinCount=1,
            MaxCount=1,
            InstanceInitiatedShutdownBehavior="terminate",
            UserData="#cloud-config\n" + yaml.safe_dump(config),
            **asked,
        )["Instances"]
        self.id, self.address = made["InstanceId"], made["PrivateIpAddress"]
        (folder / "known").write_text(f"[{self.address}]:{lab.ssh_port} {host_public}\n")

    @property
    def state(self) -> str:
        return next(str(m["state"]) for m in self.lab.machines() if m["id"] == self.id)

    def ssh(self, command: str) -> subprocess.CompletedProcess[str]:
        options = ("UserKnownHostsFile=known", "StrictHostKeyChecking=yes", "BatchMode=yes")
        argv = ["ssh", "-F", "none", "-i", "login", "-p", str(self.lab.ssh_port)]
        argv += [word for option in options for word in ("-o", option)]
        return subprocess.run(
            [*argv, f"{self.lab.ssh_user}@{self.address}", command],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def up(self) -> "Node":
        until(lambda: self.ssh("true").returncode == 0, "ssh to a new machine")
        return self


@pytest.fixture
def folder(short_tmp: Path) -> Path:
    return short_tmp


def processes(mark: str) -> list[int]:
    """Of which the words of the command hold `mark`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def test_ssh_reaches_a_new_machine_by_the_host_key_of_its_user_data(
    lab: Running, folder: Path
) -> None:
    node = Node(lab, folder, "echo booted > ~/booted").up()
    done = node.ssh('cat ~/booted; echo "$HOME"; command -v shutdown')
    place = f"{lab.state}/m/{_number(node)}"
    assert done.stdout.split() == ["booted", f"{place}/home", f"{place}/bin/shutdown"]
    assert node.state == "running"


def _number(node: Node) -> int:
    return next(int(m["number"]) for m in node.lab.machines() if m["id"] == node.id)


def test_another_key_is_not_let_in(lab: Running, folder: Path) -> None:
    node = Node(lab, folder).up()
    (folder / "login").write_text(key()[0])
    assert "Permission denied" in node.ssh("true").stderr


def test_daemons_end_with_their_machine(lab: Running, folder: Path) -> None:
    node = Node(lab, folder).up()
    node.ssh("setsid sh -c 'sleep 4711.25 & sleep 4711.5' < /dev/null > /dev/null 2>&1 &")
    until(lambda: len(processes("4711.")) >= 2, "two sleepers")
    node.ec2.terminate_instances(InstanceIds=[node.id])
    until(lambda: node.state == "terminated", "the end")
    assert processes("4711.") == []


@pytest.mark.parametrize("command", ["shutdown -h now", "poweroff"])
def test_a_shutdown_inside_terminates_the_machine(lab: Running, folder: Path, command: str) -> None:
    node = Node(lab, folder).up()
    node.ssh(command)
    until(lambda: node.state == "terminated", "the end")
    (found,) = node.ec2.describe_instances(InstanceIds=[node.id])["Reservations"][0]["Instances"]
    assert found["StateReason"]["Code"] == "Client.InstanceInitiatedShutdown"


def test_a_timer_of_user_data_ends_the_machine(lab: Running, folder: Path) -> None:
    node = Node(lab, folder, ["shutdown", "-h", "+0"])
    until(lambda: node.state == "terminated", "the end")


def test_no_process_outlives_a_killed_box(folder: Path) -> None:
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "30") as lab:
        node = Node(lab, folder).up()
        node.ssh("setsid sleep 4712.5 < /dev/null > /dev/null 2>&1 &")
        until(lambda: processes("4712.5"), "the sleeper")
        lab.process.send_signal(signal.SIGKILL)
        until(lambda: not processes("4712.5") + processes(f"{lab.state}/m/"), "none left")


def test_what_a_killed_supervisor_left_is_ended(lab: Running, folder: Path) -> None:
    node = Node(lab, folder).up()
    (supervisor,) = (p for p in processes(f"{lab.state}/m/{_number(node)}") if _is_python(p))
    os.kill(supervisor, signal.SIGKILL)
    until(lambda: node.state == "terminated", "the end")
    until(lambda: not processes(f"{lab.state}/m/{_number(node)}/"), "none left")


def _is_python(pid: int) -> bool:
    return b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
def nobodys() -> Iterator[pwd.struct_passwd]:
    for entry in pwd.getpwall():
        if entry.pw_uid >= 1000 and entry.pw_shell.endswith("sh") and Path(entry.pw_dir).is_dir():
            yield entry
            return
    pytest.skip("no ordinary user with a shell and a home on this host")


@pytest.mark.root
def test_an_ordinary_user_can_run_it(nobodys: pwd.struct_passwd, folder: Path) -> None:
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "30", user=nobodys.pw_name) as lab:
        done = Node(lab, folder).up().ssh("id -un")
    assert done.stdout.split() == [nobodys.pw_name]
