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


def test_an_image_without_them_changes_nothing(place: Path) -> None:
    assert profile.prepare((("/no/such",), ())) == ""
    assert list(place.glob("profile*")) == []
    values: dict[bytes, bytes] = {}
    profile.add(values, {"profile": ""})
    profile.add(values, {})
    assert values == {}


@pytest.mark.parametrize("name", [b"BASH_ENV", b"BASH_FUNC_module%%"])
def test_ways_of_the_submitters_own_are_left(name: bytes) -> None:
    values = {name: b"own"}
    profile.add(values, {"profile": "/profile.sh"})
    assert values == {name: b"own"}
