"""Whole scripts, file name patterns and heads of scripts as people write them, really run.

What each gave on a real Slurm is recorded; where 25.11 does otherwise than the recorder's 22.05,
`NEWER` says what it does.
"""

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conformance.run import USERS, make_user
from tests.e2e.agents import until
from tests.e2e.service import ROOT, Preloaded, Ran, Service, User, script, service

pytestmark = pytest.mark.e2e

WILD = Path(os.environ.get("SKYPURZA_SHARED") or ROOT.parent / "shared") / "wild"
SITE = ROOT / "tests" / "conformance" / "site.yaml"
SCRIPTS = sorted(path.stem for path in WILD.glob("scripts/*.sh")) or ["none"]
OVER = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL"}
NEWER: dict[str, tuple[str, dict[str, str]]] = {
    "#SBATCH -o nodir/a.txt": ("COMPLETED 0:0", {"nodir/a.txt": "OUT\nERR\n"}),
    "#SBATCH -o %b.txt": ("COMPLETED 0:0", {"4.txt": "OUT\nERR\n"}),
    "#SBATCH -a 13\n#SBATCH -o %b.txt": ("COMPLETED 0:0", {"3.txt": "OUT\nERR\n"}),
}
"""25.11 makes the folders of output files, and `%b` is the index modulo 10."""


@pytest.fixture(scope="module")
def recorded() -> Path:
    if not WILD.is_dir():
        pytest.skip(f"no recorded scripts at {WILD}; SKYPURZA_SHARED names the place of wild/")
    return WILD


@pytest.fixture(scope="module")
def somebody() -> User:
    """An ordinary user, as far as one can be had."""
    if os.geteuid() != 0 or shutil.which("useradd") is None:
        return User.present()
    name, uid = next(iter(USERS.items()))
    make_user(name, uid)
    return User.named(name)


class Desk:
    """A service, and the user who asks it."""

    def __init__(self, served: Service, user: User) -> None:
        self.served = served
        self.user = user
        self.environ = {"PATH": f"{served.bin}:/usr/bin:/bin", "FROM_SUBMITTER": "hello"}

    def folder(self, name: str) -> Path:
        """An empty one of the user's."""
        made = self.served.root / name
        made.mkdir()
        os.chown(made, self.user.uid, self.user.gid)
        return made

    def run(self, *words: str, cwd: Path | None = None) -> Ran:
        program, *argv = words
        return self.served.run(program, *argv, cwd=cwd, user=self.user, env=self.environ)

    def submit(self, folder: Path, text: bytes, arguments: Sequence[str] = ()) -> str:
        """The id of a script that lies in the folder as `job.sh`."""
        script(folder, "job.sh", text)
        ran = self.run("sbatch", "--parsable", "job.sh", *arguments, cwd=folder)
        assert ran.code == 0, ran
        return ran.out.strip()

    def ends(self, job: str) -> list[str]:
        """State and exit code of the job, or of each of its array's elements."""

        def over() -> list[str]:
            told = self.run("sacct", "-X", "-n", "-P", "-o", "State,ExitCode", "-j", job).out
            rows = [row.split("|") for row in told.splitlines()]
            return [" ".join(row) for row in rows] if {state for state, _ in rows} <= OVER else []

        return until(over, f"the end of {job}", 60.0)


@pytest.fixture(scope="module")
def desk(recorded: Path, preloaded: Preloaded, somebody: User) -> Iterator[Desk]:
    """A service with the nodes of the recorded site, for everybody."""
    site = yaml.safe_load(SITE.read_text())
    config = {name: site[name] for name in ("cluster", "nodes", "partitions")}
    config["partitions"] = config["partitions"][:1]
    config["scheduling"] = {"requeue_delay": 3600}
    with service(preloaded, json.dumps(config)) as served:
        yield Desk(served, somebody)


@pytest.fixture(scope="module")
def submitted(desk: Desk, recorded: Path) -> dict[str, tuple[str, Path]]:
    """All scripts at once: id and folder of each."""
    made = {}
    for path in sorted(recorded.glob("scripts/*.sh")):
        words = path.with_suffix(".args")
        arguments = shlex.split(words.read_text()) if words.exists() else []
        folder = desk.folder(path.stem)
        made[path.stem] = desk.submit(folder, path.read_bytes(), arguments), folder
    return made


def checked(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("CHECK ")]


def expectation(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """The ends and the lines to be compared of each file."""
    head, *files = text.split("== ")
    _, state, code, *tasks = head.split()
    count = int(tasks[1]) if tasks else 1
    bodies = (file.partition("\n") for file in files)
    return [f"{state} {code}"] * count, {name: checked(body) for name, _, body in bodies}


def start_at_once(desk: Desk, job: str) -> None:
    """Not after the delay that a requeued job waits."""

    def waits() -> bool:
        told = desk.run("squeue", "-h", "-o", "%T %r", "-j", job).out
        return told.strip() == "PENDING BeginTime"

    until(waits, f"{job} in the queue again", 20.0)
    assert desk.run("scontrol", "update", f"JobId={job}", "StartTime=now").code == 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_whole_script_does_what_it_did_on_slurm(
    desk: Desk, submitted: dict[str, tuple[str, Path]], recorded: Path, name: str
) -> None:
    job, folder = submitted[name]
    if "scontrol requeue" in (folder / "job.sh").read_text():
        start_at_once(desk, job)
    ends, files = expectation((recorded / "expected" / f"{name}.txt").read_text())
    assert desk.ends(job) == ends
    assert {file: checked((folder / file).read_text()) for file in files} == files


def test_patterns_name_the_files_that_they_named_on_slurm(desk: Desk, recorded: Path) -> None:
    rows = [json.loads(line) for line in (recorded / "filenames.jsonl").read_text().splitlines()]
    jobs = []
    for number, row in enumerate(rows):
        folder = desk.folder(f"pattern {number}")
        (folder / "sub").mkdir()
        os.chown(folder / "sub", desk.user.uid, desk.user.gid)
        jobs.append((row, folder, desk.submit(folder, _pattern_script(row["directives"]))))
    wrong = []
    for row, folder, job in jobs:
        found = desk.ends(job)[0], _written(folder)
        if found != _expected(row, job, desk.user.name):
            wrong.append((row, found))
    assert not wrong


def _pattern_script(directives: str) -> bytes:
    head = "#!/bin/bash\n#SBATCH --mem=10\n"
    return f"{head}{directives}\n#SBATCH --time=1\necho OUT; echo ERR >&2\n".encode()


def _written(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "job.sh")
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def _expected(row: dict[str, Any], job: str, user: str) -> tuple[str, dict[str, str]]:
    state, files = NEWER.get(row["directives"], (row["state"], row["files"]))
    marks = {"<JOBID>": job, "<JOBID:8>": job.zfill(8), "alice": user}
    for mark, text in marks.items():
        files = {name.replace(mark, text): body for name, body in files.items()}
    return state, files


def test_heads_of_scripts_are_taken_or_refused_as_by_slurm(desk: Desk, recorded: Path) -> None:
    folder, wrong = desk.folder("heads"), []
    for line in (recorded / "placement.jsonl").read_text().splitlines():
        row = json.loads(line)
        script(folder, "job.sh", row["script"])
        ran = desk.run("sbatch", "--test-only", "job.sh", cwd=folder)
        told = ran.err.rstrip("\n") if row["rc"] else ""
        if (ran.code, told) != (row["rc"], row["error"]):
            wrong.append((row["name"], ran))
    assert not wrong
