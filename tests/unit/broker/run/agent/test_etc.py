"""Names of nodes in a hosts file, and users that a machine lacks."""

import os
import pwd
from pathlib import Path

import pytest

from broker.run.agent import etc

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
