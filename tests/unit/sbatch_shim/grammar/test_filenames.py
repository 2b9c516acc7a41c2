"""Names of output files."""

import pytest

from sbatch_shim.grammar.filenames import FileJob, absolute, default_pattern, fill

PLAIN = FileJob(700123, None, None, "alice", "sp ace", "ec2-1", 2, "s0000000000000")
ELEMENT = FileJob(700124, 700123, 13, "alice", "job.sh", "ec2-1", 0, "s0000000000000")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%j.out", "slurm-700123.out"),
        ("%x-%u.out", "sp ace-alice.out"),
        ("%N %n-%t-%s", "ec2-1 0-0-batch"),
        ("%J.%A", "700123.700123"),
        ("%a", "4294967294"),
        ("%b-%r-%S", "4-2-s0000000000000"),
        ("a%%b", "a%b"),
        ("%%x%", "%x%"),
        ("%08j|%2n|%5j|%99j", "00700123|00|700123|0000700123"),
        ("%q %-5j %y", "%q %-5j %y"),
        ("%3x", "sp ace"),
        ("%5", "%5"),
        ("\\%j", "%j"),
        ("a\\_%j", "a_%j"),
    ],
)
def test_patterns_of_a_plain_job(pattern: str, name: str) -> None:
    assert fill(pattern, PLAIN) == name


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%A_%a", "700123_13"),
        ("%j", "700124"),
        ("%b", "3"),
        ("%4a", "0013"),
        ("d%a/%3a", "d13/013"),
    ],
)
def test_patterns_of_an_array_element(pattern: str, name: str) -> None:
    assert fill(pattern, ELEMENT) == name


def test_relative_names_lie_in_the_working_directory() -> None:
    assert absolute("a/b", "/home/alice") == "/home/alice/a/b"
    assert absolute("/a", "/home/alice") == "/a"
    assert absolute("none", "/home/alice") == "/dev/null"
    assert absolute("x", "/") == "/x"


def test_arrays_have_a_file_for_each_element() -> None:
    assert default_pattern(False) == "slurm-%j.out"
    assert default_pattern(True) == "slurm-%A_%a.out"


def test_real_files_are_named_as_real_slurm_named_them(wild) -> None:  # type: ignore[no-untyped-def]
    for row in wild("filenames.jsonl"):
        lines = row["directives"].split("\n")
        if len(lines) != 1 or not lines[0].startswith("#SBATCH -o %") or len(row["files"]) != 1:
            continue
        pattern = lines[0].removeprefix("#SBATCH -o ")
        if "%b" in pattern:  # recorded with 22.05, which did not know it
            continue
        (name,) = row["files"]
        expected = name.replace("<JOBID:8>", "00700123").replace("<JOBID>", "700123")
        assert fill(pattern, PLAIN._replace(name="job.sh")) == expected, row
