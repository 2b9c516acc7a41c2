"""What ssh's client is told of clusters: hosts, the line that includes them, nothing for nobody."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from broker.model.spec import SSH
from gateway.sdk.entering import FOLDER, PROXY, tell_ssh

DEV = {"name": "dev", "status": "UP", "nodes": ["ec2-1", "ec2-2"], "user": "ann", "job": 7}
pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no OpenSSH here")


@pytest.fixture
def plain() -> Iterator[Path]:
    """A home that a line of ssh's configuration can name."""
    with TemporaryDirectory(prefix="spz ssh", dir="/tmp") as home:
        yield Path(home)


def told(home: Path, *found: dict[str, object]) -> str:
    tell_ssh(home, found, commands=lambda folder: None)
    hosts = home / FOLDER / "hosts"
    return hosts.read_text() if hosts.exists() else ""


def test_the_head_has_the_clusters_name_and_the_others_are_workers(plain: Path) -> None:
    home = plain / "50% mine"
    text = told(home, DEV, {**DEV, "name": "off", "status": "STOPPED"})
    assert [line for line in text.splitlines() if line.startswith("Host ")] == [
        "Host dev",
        "Host dev-worker1",
    ]
    assert f"ProxyCommand '{plain}/50%% mine/{FOLDER}/proxy' 7 ec2-2\n" in text
    assert told(home) == "# Written by spz, at each status, launch, start, stop and down.\n\n"


def test_a_session_is_a_step_that_the_broker_knows_as_a_login() -> None:
    assert f' --overlap -N1 -n1 -w "$2" -J {SSH} ' in PROXY


def test_the_users_own_configuration_stays_below_one_line(plain: Path) -> None:
    config = plain / ".ssh" / "config"
    config.parent.mkdir()
    config.write_text("Host x\n")
    config.chmod(0o640)
    for _ in range(2):
        told(plain, DEV)
        told(plain)
    assert config.read_text() == f'Include "{plain}/{FOLDER}/hosts"\n\nHost x\n'
    assert config.stat().st_mode & 0o777 == 0o640


def test_the_line_comes_back_where_the_hosts_are_what_they_were(plain: Path) -> None:
    told(plain, DEV)
    config = plain / ".ssh" / "config"
    for lost in ("", "Host x\n"):
        config.write_text(lost)
        told(plain, DEV)
        assert config.read_text().startswith(f'Include "{plain}/{FOLDER}/hosts"\n')
        assert lost in config.read_text()


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\b"])
def test_a_home_that_no_line_can_name_is_left_alone(tmp_path: Path, name: str) -> None:
    assert told(tmp_path / name, DEV) == ""
    assert not (tmp_path / name).exists()
