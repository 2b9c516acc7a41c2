"""Completion, manual pages, module file and snippet, as the programs they are for read them."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sbatch_shim.install import install
from sbatch_shim.login import login_files, tcl
from sbatch_shim.manpages import ABOUT
from sbatch_shim.parts import PROGRAMS

VERSION = "slurm 25.11.7"
BASH = shutil.which("bash") or "/bin/bash"
COMPLETE = """\
source "$1"; shift
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
"_skypurza_$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""
LISTS = {
    "sinfo": "echo ec2; echo cpu; echo 'e$(touch fell)'",
    "squeue": "echo 17; echo 18_3",
    "sacctmgr": "echo physics",
}


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An installation whose commands that are asked are stand-ins."""
    where = tmp_path / "pre fix's"
    install(where, tmp_path / "s", VERSION)
    for name, body in LISTS.items():
        (where / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
    return where


def run(*argv: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=False)


def completed(prefix: Path, *words: str) -> list[str]:
    file = prefix / "share" / "bash-completion" / "completions" / words[0]
    done = run(BASH, "-c", COMPLETE, "bash", str(file), *words)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1] if done.stdout.strip() else []


def test_every_command_has_a_page_and_a_completion() -> None:
    assert set(ABOUT) == set(PROGRAMS)
    names = login_files("/opt/x", VERSION)
    assert {name for name in names if name.endswith(".1")} == {
        f"share/man/man1/{program}.1" for program in PROGRAMS
    }


@pytest.mark.parametrize("program", PROGRAMS)
def test_completion_is_good_bash(program: str, tmp_path: Path) -> None:
    file = tmp_path / program
    text = login_files("/opt/x y", VERSION)[f"share/bash-completion/completions/{program}"]
    file.write_text(text)
    done = run(BASH, "-n", str(file))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("sbatch", "--part"), ["--partition="]),
        (("sbatch", "--partition", "="), ["ec2", "cpu"]),
        (("sbatch", "--partition", "=", "e"), ["ec2"]),
        (("sbatch", "-p", "c"), ["cpu"]),
        (("squeue", "-p", "cpu,ec"), ["cpu,ec2"]),
        (("sbatch", "--mail-type", "=", "ALL,RE"), ["ALL,REQUEUE"]),
        (("squeue", "-t", "RUNNING,PREE"), ["RUNNING,PREEMPTED"]),
        (("scancel", "1"), ["17", "18_3"]),
        (("scancel", "17", ""), ["17", "18_3"]),
        (("scontrol", "requeue"), ["requeue", "requeuehold"]),
        (("scontrol", "show", "requeue"), []),
        (("sacct", "-A", ""), ["physics"]),
        (("sbatch", "--nice", "5"), []),
        (("sbatch", "scri"), []),
        (("sinfo", "--nod"), ["--nodes="]),
    ],
)  # fmt: skip
def test_bash_completes(prefix: Path, words: tuple[str, ...], found: list[str]) -> None:
    assert [word for word in completed(prefix, *words) if "touch" not in word] == found


def test_names_that_the_service_tells_are_text_not_programs(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = completed(prefix, "sbatch", "-p", "e$")
    assert len(found) == 1
    assert run(BASH, "-c", f"printf %s {found[0]}").stdout == "e$(touch fell)"
    assert not (tmp_path / "fell").exists()


@pytest.mark.parametrize(
    ("shell", "data"), [("/bin/sh", ""), (BASH, "{}/share:/usr/local/share:/usr/share")]
)
def test_the_snippet_may_be_read_twice_and_by_any_shell(
    prefix: Path, shell: str, data: str
) -> None:
    file = prefix / "etc" / "profile.d" / "skypurza.sh"
    program = '. "$1"; . "$1"; printf "%s\\0" "$PATH" "${XDG_DATA_DIRS-}"'
    done = run(shell, "-uc", program, "x", str(file), env={"PATH": "/usr/bin"})
    assert done.stderr == ""
    path, found, _ = done.stdout.split("\0")
    assert path == f"{prefix}/bin:/usr/bin"
    assert found == data.format(prefix) or "bash" in os.path.realpath(shell)


def test_bash_completion_finds_the_files_itself(prefix: Path) -> None:
    framework = Path("/usr/share/bash-completion/bash_completion")
    if not framework.exists():
        pytest.skip("bash-completion is not installed")
    program = f'. {framework}; . "$1"; _completion_loader sbatch; complete -p sbatch'
    snippet = str(prefix / "etc" / "profile.d" / "skypurza.sh")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(prefix)}
    assert "_skypurza_sbatch" in run(BASH, "-c", program, "x", snippet, env=env).stdout


MODULES = (Path("/usr/share/modules/init/bash"), Path("/usr/share/lmod/lmod/init/bash"))
"""Of environment-modules and of Lmod."""
LOAD = """\
. "$1"; module use "$2"; module load skypurza
printf '%s\n' "$PATH" "$XDG_DATA_DIRS" "${MANPATH-}"
module unload skypurza
printf '%s\n' "$PATH" "${XDG_DATA_DIRS-}" "${MANPATH-}"
"""


@pytest.mark.parametrize("modules", MODULES, ids=str)
@pytest.mark.parametrize(
    ("data", "pages"), [("", ""), ("/d:/usr/share", "/m:")], ids=["nothing set", "paths set"]
)
def test_the_module_puts_commands_completion_and_pages_first_and_takes_them_back(
    modules: Path, data: str, pages: str
) -> None:
    if not modules.exists():
        pytest.skip(f"no {modules}")
    with TemporaryDirectory(prefix="it-s&a") as made:
        prefix = Path(made)
        install(prefix, prefix / "s", VERSION)
        loads_and_unloads(prefix, modules, data=data, pages=pages)


def loads_and_unloads(prefix: Path, modules: Path, *, data: str, pages: str) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(prefix)}
    env |= {name: value for name, value in (("XDG_DATA_DIRS", data), ("MANPATH", pages)) if value}
    folder = str(prefix / "share" / "modulefiles")
    done = run(BASH, "-c", LOAD, "x", str(modules), folder, env=env)
    path, shared, manual, *after = done.stdout.splitlines()
    assert path == f"{prefix}/bin:{env['PATH']}", done.stderr
    first, *rest = shared.split(":")
    assert first == f"{prefix}/share"
    assert {"/usr/share", "/usr/local/share"} <= set(rest)
    assert manual.startswith(f"{prefix}/share/man:") if pages else not manual
    assert after[:2] == [env["PATH"], data]
    assert after[2].rstrip(":") == pages.rstrip(":")


def test_the_module_file_is_read_by_any_tcl(prefix: Path) -> None:
    text = (prefix / "share" / "modulefiles" / "skypurza").read_text()
    assert text.startswith("#%Module")
    tclsh = shutil.which("tclsh")
    if tclsh is None:
        pytest.skip("no tclsh here")
    stand_ins = (
        "proc module-whatis {x} {}\nproc conflict {x} {}\nproc append-path {n v} {}\n"
        'proc prepend-path {n v} {puts "$n $v"}\n'
    )
    done = subprocess.run(
        [tclsh],
        input=stand_ins + text,
        env={"MANPATH": "/m"},
        capture_output=True,
        text=True,
        check=True,
    )
    share = prefix / "share"
    expected = [f"PATH {prefix}/bin", f"XDG_DATA_DIRS {share}", f"MANPATH {share}/man"]
    assert done.stdout == "".join(f"{line}\n" for line in expected)


def test_tcl_reads_any_path_back() -> None:
    assert tcl('/a b$[x]"{\n}') == "/a\\u0020b\\u0024\\u005bx\\u005d\\u0022\\u007b\\u000a\\u007d"


def page(prefix: Path, program: str) -> str:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man-db is not here")
    file = prefix / "share" / "man" / "man1" / f"{program}.1"
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100"}
    done = run("man", "--warnings", "-P", "cat", "-l", str(file), env=env)
    if not done.stdout:
        pytest.skip(f"man cannot show pages here: {done.stderr.strip()}")
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("before", ["", "/m:"])
def test_the_snippet_adds_pages_where_man_reads_manpath_alone(prefix: Path, before: str) -> None:
    file = prefix / "etc" / "profile.d" / "skypurza.sh"
    program = '. "$1"; . "$1"; printf %s "${MANPATH-}"'
    env = {"PATH": "/usr/bin"} | ({"MANPATH": before} if before else {})
    done = run("/bin/sh", "-uc", program, "x", str(file), env=env)
    assert done.stdout == (f"{prefix}/share/man:{before}" if before else "")


@pytest.mark.parametrize("program", ["sbatch", "scontrol", "seff"])
def test_man_shows_the_pages_without_a_warning(prefix: Path, program: str) -> None:
    text = page(prefix, program)
    assert f"{program} - {ABOUT[program][0]}" in text
    assert VERSION in text


def test_the_page_of_sbatch_tells_names_values_variables_and_classes(prefix: Path) -> None:
    text = page(prefix, "sbatch")
    assert "-p, --partition=value" in text
    assert "--nice[=value]" in text
    assert "SBATCH_PARTITION" in text
    assert "a warning says so" in text
