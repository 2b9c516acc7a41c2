"""What is sent of words that were typed, and beside them the commit that is checked out there."""

import json
import subprocess
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.sdk.sending import commit_of, task_text

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    "words",
    [["echo " + "x" * 300], ["~nobodys/run"], ["~nobodys/run", "y"], ["x" * 300, "y"]],
)
def test_what_names_no_file_is_a_command(words: list[str]) -> None:
    assert json.loads(task_text(words)) == {"run": " ".join(words)}


@pytest.mark.parametrize("name", ["~nobodys/a.yaml", "none.yml", "x" * 300 + ".yaml"])
def test_a_task_file_that_is_not_there_is_told(name: str) -> None:
    with pytest.raises(Refused, match=r"No such file|too long"):
        task_text([name])


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({"HEAD": COMMIT}, COMMIT),
        ({"HEAD": "ref: refs/heads/a", "refs/heads/a": f"{COMMIT}\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/a", "packed-refs": f"# x\n{COMMIT} refs/heads/a\n"}, COMMIT),
        ({"HEAD": "ref: refs/heads/a", "packed-refs": f"{COMMIT} refs/heads/ab\n"}, None),
        ({"HEAD": "ref: refs/heads/new"}, None),
    ],
)
def test_the_commit_is_read_from_gits_files(
    tmp_path: Path, files: dict[str, str], found: str | None
) -> None:
    for name, text in files.items():
        path = tmp_path / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    assert commit_of(below) == found


def test_it_is_the_one_that_git_tells(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    told = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert commit_of(tmp_path) == told.stdout.strip()
