"""The agent comes by user data once, as whom it shall run, where nothing was before."""

import getpass
import subprocess
from pathlib import Path

import pytest

from broker.run.arrival import ARRIVE, Arrival

WORDS = ("url", "digest", "pin", "n1,n2", "--lease", "600")


def boot(tmp_path: Path, folder: str, user: str) -> str:
    """What the interpreter was started with."""
    python, said = tmp_path / "python", tmp_path / "said"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "${0%/*}/said"\n')
    python.chmod(0o755)
    argv = ["/bin/sh", "-c", ARRIVE, "sh", folder, user, "exit 0", "FETCH", str(python), *WORDS]
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return said.read_text() if said.exists() else ""


@pytest.mark.parametrize("folder", ["{}/node", "~/node"])
def test_the_archive_is_fetched_into_the_agents_folder(tmp_path: Path, folder: str) -> None:
    said = boot(tmp_path, folder.format(tmp_path), getpass.getuser())
    told = [f"{tmp_path}/python", *WORDS]
    whole = f"{tmp_path}/node"
    assert said == "\n".join(["-IS", "-c", "FETCH", whole, *told, ""])


def test_nothing_comes_where_an_agent_was_before(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    assert boot(tmp_path, "~/node", getpass.getuser()) == ""


def test_nothing_comes_as_another_user(tmp_path: Path) -> None:
    assert boot(tmp_path, "~/node", "somebody-else") == ""


def test_words_stay_words() -> None:
    made = Arrival(
        url="https://s/agent/0?a=b&c='d'",
        digest="0",
        names=["n1", "n2"],
        folder="/var/lib/it's here",
        python="/usr/bin/python3",
        user="root",
        options=("--commands", "slurm 25.11.7"),
    )
    words = made.argv()
    assert words[:2] == ["/bin/sh", "-c"]
    for word in (made.url, made.folder, "slurm 25.11.7", "n1,n2"):
        assert word in words
