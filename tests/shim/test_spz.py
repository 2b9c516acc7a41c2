"""`spz` as a process: quick help, words instead of tracebacks."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("pydantic", "fastapi", "sqlalchemy", "yaml", "structlog", "httpx", "uvicorn", "rich")


def spz(
    *argv: str, home: Path, cwd: Path | None = None, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """The command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "gateway.cli", *argv],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "SKYPURZA_HOME": f"{home}/s", **environ},
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_help_loads_nothing_heavy(short_tmp: Path) -> None:
    done = spz("--help", home=short_tmp, PYTHONPROFILEIMPORTTIME="1")
    assert "launch" in done.stdout
    loaded = set(re.findall(r"\| +([\w.]+)$", done.stderr, re.M))
    assert [name for name in loaded if name.split(".")[0] in HEAVY] == []


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("status",), "no service answers on"),
        (("launch", "x.yaml"), "x.yaml: No such file or directory"),
        (("launch", "--env", "NOT_SET", "x"), "--env NOT_SET: not set in this shell"),
        (("api", "stop"), "no service runs on"),
        (("api", "logs"), "No such file or directory"),
        (("down",), "no cluster named"),
        (("db", "check"), "no such file"),
        (("shims", "install", "--prefix", "/proc/no"), "No such file or directory"),
    ],
)
def test_a_mistake_is_told_in_words(short_tmp: Path, argv: Sequence[str], told: str) -> None:
    done = spz(*argv, home=short_tmp)
    assert done.returncode == 1
    assert done.stderr.startswith("spz: error: ")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_configuration_is_told_with_all_that_is_wrong(short_tmp: Path) -> None:
    (short_tmp / "s").mkdir()
    (short_tmp / "s" / "config.yaml").write_text("clustr: x\nmin_job_age: soon\n")
    done = spz("serve", home=short_tmp)
    assert done.returncode == 1
    assert done.stderr.count("spz: error:") == 2
    assert "did you mean cluster?" in done.stderr


def test_check_tells_one_line_for_each_thing(short_tmp: Path) -> None:
    done = spz("check", home=short_tmp)
    names = [
        line[6:].split(":")[0] for line in done.stdout.splitlines() if line[:2] in ("ok", "FA")
    ]
    assert names[:3] == ["configuration", "state directory", "disk"]
    assert names[-2:] == ["database", "service"]
    assert done.returncode == 0, done.stdout


def test_the_commands_are_put_on_the_path(short_tmp: Path) -> None:
    line = spz("shims", "env", home=short_tmp).stdout
    done = subprocess.run(
        ["bash", "-c", f"{line}command -v squeue"], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip("\n") == f"{short_tmp}/s/shims/bin/squeue"


def test_the_version_names_ours_and_slurms(short_tmp: Path) -> None:
    assert re.fullmatch(r"skypurza \S+, slurm 25\.11\.7\n", spz("version", home=short_tmp).stdout)
