"""`module` and conda for scripts, read by bash itself."""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.run.agent import profile

BASH = "/bin/bash"


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A node's folder, and an image's files; bash expands what BASH_ENV says."""
    with tempfile.TemporaryDirectory(prefix="spz profile ") as folder:
        monkeypatch.chdir(folder)
        Path("modules.sh").write_text("module() { echo module $*; }\n")
        Path("conda.sh").write_text("conda() { echo conda $*; }\nfalse\n")
        yield Path(folder)


def test_scripts_find_what_the_image_has_and_their_children_read_nothing_more(place: Path) -> None:
    kinds = (("/no/such", f"{place}/modules.sh", "/no/other"), (f"{place}/conda.sh",))
    path = profile.prepare(kinds)
    assert Path(path).stat().st_mode & 0o777 == 0o644
    script = "set -e; module load gcc; conda activate x; echo [$BASH_ENV$spz_one]"
    values: dict[bytes, bytes] = {}
    profile.add(values, {"profile": path})
    done = subprocess.run(
        [BASH, "-c", script], env=values, capture_output=True, text=True, check=True
    )
    assert done.stdout == "module load gcc\nconda activate x\n[]\n"
    assert profile.prepare(kinds) == path


def test_what_a_setup_put_into_its_users_home_is_found_once_it_is_there(place: Path) -> None:
    path = profile.prepare((("/no/such",), ()))
    ask = "set -e; [ $# = 0 ]; type -t conda || :; own || :; echo $PATH"
    env = {"BASH_ENV": path, "HOME": str(place), "PATH": "/usr/bin"}

    def said() -> list[str]:
        argv = [BASH, "-c", ask]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert said() == ["/usr/bin"]
    for name, text in (
        ("miniforge3/etc/profile.d/conda.sh", "conda() { :; }\n"),
        (".local/bin/own", "#!/bin/sh\necho own\n"),
    ):
        (place / name).parent.mkdir(parents=True)
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    assert said() == ["function", "own", f"/usr/bin:{place}/.local/bin"]


@pytest.mark.parametrize(
    ("key", "ours", "relay", "wanted"),
    [
        ("1/1/batch", True, False, True),
        ("1/1/batch", False, False, False),
        ("1/1/0", False, False, True),
        ("1/1/0", True, True, False),
        ("1/1/extern", True, False, False),
    ],
)
def test_batch_scripts_on_machines_of_ours_read_it_and_runs_of_clusters_everywhere(
    key: str, ours: bool, relay: bool, wanted: bool
) -> None:
    assert profile.wanted({"relay": relay}, key, ours=ours) is wanted


def test_who_is_told_of_none_gets_none() -> None:
    values: dict[bytes, bytes] = {}
    profile.add(values, {})
    assert values == {}


@pytest.mark.parametrize("name", [b"BASH_ENV", b"BASH_FUNC_module%%"])
def test_ways_of_the_submitters_own_are_left(name: bytes) -> None:
    values = {name: b"own"}
    profile.add(values, {"profile": "/profile.sh"})
    assert values == {name: b"own"}
