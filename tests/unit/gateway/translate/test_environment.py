"""Which variables reach a job."""

import pytest

from gateway.translate.environment import exported, pack, unpack

ENVIRON = {"FOO": "old", "BAZ": "1", "SLURM_X": "s", "HOME": "/home/alice"}


@pytest.mark.parametrize(
    ("export", "variables", "login"),
    [
        (None, ENVIRON, False),
        ("ALL", ENVIRON, False),
        ("all", ENVIRON, False),
        ("NIL", {"SLURM_X": "s"}, False),
        ("NONE", {"SLURM_X": "s"}, True),
        ("", {"SLURM_X": "s"}, True),
        ("FOO", {"FOO": "old", "SLURM_X": "s"}, True),
        ("FOO=new,MISSING", {"FOO": "new", "SLURM_X": "s"}, True),
        ("ALL,FOO=new", {**ENVIRON, "FOO": "new"}, True),
        ("FOO=new,ALL", ENVIRON, True),
        ("ALL,A=b=c", {**ENVIRON, "A": "b=c"}, True),
        ('FOO="a,b",BAZ', {"FOO": '"a,b"', "BAZ": "1", "SLURM_X": "s"}, True),
    ],
)
def test_export_says_what_goes_along(
    export: str | None, variables: dict[str, str], login: bool
) -> None:
    found = exported(ENVIRON, export)
    assert (dict(found.variables), found.login) == (variables, login)


def test_variables_of_a_file_lie_below_those_of_the_submitter() -> None:
    assert dict(exported({"A": "1"}, None, {"A": "0", "B": "2"}).variables) == {"A": "1", "B": "2"}


def test_bytes_survive_packing() -> None:
    block = b"A=\xff\xfe\n'\"\0B==x\0junk\0C="
    assert unpack(block) == {"A": "\udcff\udcfe\n'\"", "B": "=x", "C": ""}
    assert pack(unpack(block)) == b"A=\xff\xfe\n'\"\0B==x\0C="
