"""What a job has of its own on a node, read by the programs that it is for."""

import base64
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.run.agent import kit

ME = pwd.getpwuid(os.geteuid())
KEY = """\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACCVNO4GiKAVVoHQnhSVyKEuMMlmvoIt2xbEt3Y9WuAuzAAAAJDnF2JE5xdi
RAAAAAtzc2gtZWQyNTUxOQAAACCVNO4GiKAVVoHQnhSVyKEuMMlmvoIt2xbEt3Y9WuAuzA
-----END OPENSSH PRIVATE KEY-----
"""
STEP: dict[str, Any] = {
    "user": ME.pw_name,
    "uid": ME.pw_uid,
    "gid": ME.pw_gid,
    "env": base64.b64encode(b'SLURM_JOB_ID=7\0SKYPURZA_TOKEN=7a1x\0OTHER=1\0SLURM_JOB_NODELIST="'),
    "kin": {
        "key": KEY,
        "public": "ssh-ed25519 AAAA",
        "port": 12345,
        "here": "ec2-2",
        "nodes": [["ec2-1", "10.0.0.1", 2], ["ec2-2", "10.0.0.2", 3]],
    },
}


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where machines have it names are plain: ssh's files know no quotes within quotes."""
    with tempfile.TemporaryDirectory(prefix="spz kit ") as place:
        monkeypatch.chdir(place)
        assert kit.lay_out(STEP, "7/1")
        yield Path(place) / "kits" / "7.1"


def test_the_folder_is_the_users_alone_and_made_once(folder: Path) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert (folder / "hostfile").read_text() == "ec2-1 slots=2\nec2-2 slots=3\n"
    (folder / "hostfile").write_text("changed")
    assert kit.lay_out(STEP, "7/1")
    assert (folder / "hostfile").read_text() == "changed"
    kit.discard("7/1")
    assert not folder.exists()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs ssh")
@pytest.mark.parametrize("name", ["ec2-1", "10.0.0.1"])
def test_ssh_understands_how_nodes_are_entered(folder: Path, name: str) -> None:
    done = subprocess.run(
        ["ssh", "-F", folder / "ssh_config", "-G", name], capture_output=True, text=True, check=True
    )
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    assert (said["hostname"], said["port"]) == ("10.0.0.1", "12345")
    assert said["user"] == ME.pw_name
    assert said["identityfile"] == f"{folder}/key"
    assert said["userknownhostsfile"] == f"{folder}/known_hosts"
    assert said["stricthostkeychecking"] == "true"


def test_sessions_see_the_jobs_own_variables_that_fit_a_line(folder: Path) -> None:
    config = (folder / "sshd_config").read_text()
    (line,) = [line for line in config.splitlines() if line.startswith("SetEnv")]
    assert '"SLURM_JOB_ID=7"' in line
    assert '"SKYPURZA_TOKEN=7a1x"' in line
    assert '"SLURMD_NODENAME=ec2-2"' in line
    assert "OTHER" not in line
    assert "NODELIST" not in line
    assert "ListenAddress 10.0.0.2\nPort 12345\n" in config


def test_own_commands_come_before_all_others(folder: Path) -> None:
    step = dict(STEP)
    kit.complete(step, "7/1", ours=False)
    values = {b"PATH": b"/usr/bin"}
    kit.prefixed(values, step)
    own = os.fsencode(folder)
    assert values == {b"PATH": own + b"/bin:/usr/bin", b"SKYPURZA_HOSTFILE": own + b"/hostfile"}


def test_a_job_of_one_node_has_nothing_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    step: dict[str, Any] = {**STEP, "kin": None}
    assert kit.lay_out(step, "7/1")
    kit.complete(step, "7/1", ours=True)
    values = {b"PATH": b"/usr/bin"}
    kit.prefixed(values, step)
    assert values == {b"PATH": b"/usr/bin"}
    assert not list(tmp_path.iterdir())
