"""What an installation leaves on disk."""

import os
import subprocess
from pathlib import Path

import pytest

from sbatch_shim.install import PROGRAMS, InstallError, install
from tests.shim.conftest import BARE

VERSION = "slurm 25.11.7"


def files(prefix: Path) -> dict[str, int]:
    found = (path for path in prefix.rglob("*") if path.is_file())
    return {str(path.relative_to(prefix)): path.stat().st_mode & 0o777 for path in found}


def test_commands_are_real_files_for_everybody_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        made = install(tmp_path / "new" / "prefix", tmp_path / "s", VERSION)
    finally:
        os.umask(before)
    prefix = tmp_path / "new" / "prefix"
    assert made == [prefix / "bin" / program for program in PROGRAMS]
    modes = files(prefix)
    assert {name for name, mode in modes.items() if mode == 0o755} == {
        f"bin/{program}" for program in PROGRAMS
    }
    others = {name: mode for name, mode in modes.items() if not name.startswith("bin/")}
    modules = [name for name in others if name.startswith("lib/")]
    assert {name.split("/")[-1].split(".")[0] for name in modules} == {
        "shim",
        "interact",
        "line",
        "child",
        "seldom",
        "offline",
        "prompt",
        "hostlist",
        "values",
    }
    assert len(modules) == 18
    assert {name.split("/")[0] for name in others} == {"lib", "share", "etc"}
    assert set(others.values()) == {0o644}
    folders = [path for path in [prefix.parent, *prefix.parent.rglob("*")] if path.is_dir()]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o755}


def test_a_first_line_is_the_bare_interpreter(tmp_path: Path) -> None:
    for path in install(tmp_path, tmp_path / "s", VERSION):
        assert path.read_text().splitlines()[0] == f"#!{BARE} -IS"


def test_installing_again_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    install(tmp_path, tmp_path / "old", VERSION)
    before = files(tmp_path)
    install(tmp_path, tmp_path / "new", "slurm 1.2.3")
    assert files(tmp_path) == before
    done = subprocess.run(
        [tmp_path / "bin" / "squeue", "-V"], env={}, capture_output=True, check=True
    )
    assert done.stdout == b"slurm 1.2.3\n"


def test_byte_code_of_another_interpreter_is_passed_over(tmp_path: Path) -> None:
    install(tmp_path, tmp_path / "s", VERSION)
    (code,) = tmp_path.glob("lib/skypurza/__pycache__/shim.*.pyc")
    code.write_bytes(b"\0\0\r\n" + code.read_bytes()[4:])
    done = subprocess.run(
        [tmp_path / "bin" / "squeue", "-V"], env={}, capture_output=True, check=True
    )
    assert (done.stdout, done.stderr) == (b"slurm 25.11.7\n", b"")


@pytest.mark.parametrize(
    ("socket", "interpreter", "words"),
    [
        ("x" * 200, BARE, ["has", "bytes", "--socket"]),
        ("s", "python3", ["absolute path", BARE]),
        ("s", "/opt/my python/bin/python3", ["without blanks"]),
        ("s", "/nowhere/python3", ["/nowhere/python3: No such file", "another interpreter"]),
        ("s", "/bin/false", ["/bin/false"]),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    tmp_path: Path, socket: str, interpreter: str, words: list[str]
) -> None:
    with pytest.raises(InstallError) as refused:
        install(tmp_path, Path("/tmp") / socket, VERSION, interpreter=interpreter)
    assert [word for word in words if word not in str(refused.value)] == []
    assert not (tmp_path / "bin" / "squeue").exists()
