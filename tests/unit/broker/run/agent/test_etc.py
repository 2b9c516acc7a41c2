"""Names of nodes in a hosts file, and users that a machine lacks."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.run.agent import etc

ROOT = Path(etc.__file__).parents[3]
KIN = {"nodes": [["ec2-1", "10.0.0.1", 2], ["ec2-2", "10.0.0.2", 2]]}
STEP = {"kin": KIN, "ours": True}
BEFORE = "127.0.0.1 localhost\n10.9.9.9 other # skypurza 8/1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent writes there")
def test_names_stand_in_the_file_as_long_as_the_attempt(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BEFORE)
    for _ in range(2):
        etc.add_hosts(STEP, "7/1", str(hosts))
    assert hosts.read_text().splitlines() == [
        *BEFORE.splitlines(),
        "10.0.0.1 ec2-1 # skypurza 7/1",
        "10.0.0.2 ec2-2 # skypurza 7/1",
    ]
    etc.drop_hosts("7/1", str(hosts))
    assert hosts.read_text() == BEFORE + "\n"


def test_machines_that_are_not_ours_alone_are_left_as_they_are(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(BEFORE)
    etc.add_hosts({**STEP, "ours": False}, "7/1", str(hosts))
    etc.drop_hosts("7/1", str(hosts))
    etc.drop_hosts("7/1", str(tmp_path / "none"))
    assert hosts.read_text() == BEFORE


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({}, False),
        ({"user": "nobody-of-this-name"}, True),
        ({"uid": 54321}, True),
        ({"user": "nobody-of-this-name", "ours": False}, False),
    ],
)
def test_a_user_is_made_only_on_a_machine_of_our_own_that_lacks_him(
    changes: dict[str, object], lacks: bool
) -> None:
    me = pwd.getpwuid(os.geteuid())
    step = {"user": me.pw_name, "uid": me.pw_uid, "ours": True, **changes}
    assert etc.lacks_user(step) is (lacks and os.geteuid() == 0)


ELSEWHERE = """\
cp -a /etc "$1" && mount --bind "$1" /etc && cd "$2" && exec "$3" -c '
import json, sys
from broker.run.agent import etc
step = json.loads(sys.argv[1])
assert etc.make_user(step) and etc.make_user(step) and etc.add_hosts(step, "7/1")
' "$4"
"""


APART = ["unshare", "--mount", "--propagation", "private"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a plain name, as homes have, where this host gives namespaces."""
    if shutil.which("unshare") is None or subprocess.run([*APART, "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    with tempfile.TemporaryDirectory(prefix="spz-etc-") as folder:
        yield Path(folder)


@pytest.mark.root
def test_a_user_is_made_with_uid_group_and_home_and_names_are_known(place: Path) -> None:
    """On a copy of this host's /etc, which nothing else sees."""
    user, home, copy = "spz-made", place / "homes" / "made", place / "etc"
    step = {"user": user, "uid": 54321, "gid": 54322, "group": "spz-group", "home": str(home)}
    told = json.dumps({**STEP, **step, "shell": "/no/such/shell"})
    words = [ELSEWHERE, "sh", str(copy), str(ROOT), sys.executable, told]
    subprocess.run([*APART, "/bin/sh", "-c", *words], check=True, timeout=60)
    rows = (copy / "passwd").read_text().splitlines()
    made = f"{user}:x:54321:54322::{home}:/bin/sh"
    assert [row for row in rows if row.startswith(user)] == [made]
    assert "spz-group:x:54322:" in (copy / "group").read_text().splitlines()
    found = home.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (54321, 54322, 0o700)
    assert "10.0.0.2 ec2-2 # skypurza 7/1" in (copy / "hosts").read_text().splitlines()
    assert user not in Path("/etc/passwd").read_text()
