"""sbcast: what it becomes, and what it refuses as Slurm does."""

import subprocess
from pathlib import Path

import pytest

from gateway.api.programs.sbcast import SENDS, SHELL, TAKES, sbcast
from tests.unit.gateway.api.office import BOB, Office


@pytest.fixture
def office() -> Office:
    return Office()


def test_it_becomes_a_shell_that_runs_a_step_on_every_node(office: Office) -> None:
    job = office.submit(hold=False)
    inside = {"SLURM_JOB_ID": str(job)}
    answer = office.run(sbcast, "-f", "a file", "/tmp/x", environ=inside)
    assert answer.exec is not None
    assert answer.exec[:5] == (SHELL, "-c", SENDS, "sbcast", "a file")
    assert answer.exec[5:10] == ("-Q", "--overlap", f"--jobid={job}", "-N1", "-n1")
    assert answer.exec[-7:] == (SHELL, "-c", TAKES, "sbcast", "/tmp/x", "x", "")
    other = office.run(sbcast, "-p", "-j", f"{job}.0", "a", "/x")
    assert other.exec is not None
    assert other.exec[-2:] == ("", "x")


def test_a_name_without_a_folder_is_of_where_it_was_typed(office: Office) -> None:
    job = str(office.submit(hold=False))
    answer = office.run(sbcast, "-j", job, "a", "x")
    assert answer.exec is not None
    assert answer.exec[-3] == "/home/alice/x"


def test_a_compression_that_there_is_not_is_told_and_done_without(office: Office) -> None:
    job = str(office.submit(hold=False))
    answer = office.run(sbcast, "--compress=foo", "-j", job, "a", "/x")
    assert answer.exec is not None
    assert answer.err == (
        "sbcast: error: Compression type 'foo' unknown, disabling compression support.\n"
    )
    assert office.run(sbcast, "-C", "-j", job, "a", "/x").err == ""


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("a", "/x"), "sbcast: error: Need a job id to run this command."),
        (("-j", "99", "a", "/x"), "sbcast: error: Slurm job ID 99 lookup error: Invalid job id"),
        (("a",), 'Need two file names, have 1 names\nTry "sbcast --help" for more information\n'),
        (("-j", "{}", "a", "/x/"), "sbcast: error: Target filename cannot be a directory.\n"),
    ],
)
def test_refusals(office: Office, argv: tuple[str, ...], text: str) -> None:
    job = office.submit(hold=False)
    answer = office.run(sbcast, *(word.format(job) for word in argv))
    assert (answer.code, answer.exec) == (1, None)
    assert answer.err.startswith(text)  # type: ignore[union-attr, arg-type]


def test_a_job_that_waits_or_is_anothers_is_unknown(office: Office) -> None:
    waiting, running = office.submit(), office.submit(hold=False)
    for job, by in ((waiting, None), (running, BOB)):
        how = {} if by is None else {"by": by}
        answer = office.run(sbcast, "-j", str(job), "a", "/x", **how)  # type: ignore[arg-type]
        assert "lookup error" in str(answer.err)


# fmt: off
UNWRITABLE: dict[str, tuple[str, str, str, int]] = {
    "a folder":              ("folder",      "x", "Is a directory",            21),
    "a folder, not forced":  ("folder",      "",  "File exists",               17),
    "a file that is there":  ("file",        "",  "File exists",               17),
    "in no folder":          ("no: such/x",  "x", "No such file or directory", 2),
    "below a file":          ("file/x",      "x", "Not a directory",           20),
}
# fmt: on


@pytest.mark.parametrize("what", UNWRITABLE)
def test_what_a_node_cannot_write_is_told_with_the_errors_number(what: str, tmp_path: Path) -> None:
    dest, force, text, code = UNWRITABLE[what]
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("old")
    argv = (SHELL, "-c", TAKES, "sbcast", str(tmp_path / dest), force, "", "644", "0", "", "")
    env = {"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": "n1", "LC_ALL": "C.UTF-8"}
    ran = subprocess.run(argv, input=b"new", capture_output=True, env=env, check=False)
    assert ran.stderr.decode() == f"sbcast: error: REQUEST_FILE_BCAST(n1): {text}\n"
    assert ran.returncode == code
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "old"
