"""Every column and option of the commands that ask is taken, whatever it is worth here."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gateway.api.programs import sshare
from gateway.query import accounts, factors, fields, sinfo, steps
from sbatch_shim import shim
from sbatch_shim.grammar.options import lookup

Row = dict[str, str]


def rows(shared: Path, name: str) -> list[Row]:
    with (shared / "slurm" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def names(of: Iterable[Row], key: str) -> set[str]:
    return {row[key].strip("%") for row in of if row[key]}


def squeue(kind: str) -> Callable[[Path], set[str]]:
    def missing(shared: Path) -> set[str]:
        asked = [row for row in rows(shared, "squeue_fields.csv") if row["kind"] == kind]
        letters, longs = names(asked, "letter"), {one.lower() for one in names(asked, "long")}
        if kind == "step":
            return (letters - set(steps.LETTER_CELLS)) | (longs - set(steps.NAME_CELLS))
        known = {column.long.lower() for column in fields.COLUMNS}
        return (letters - set(fields.BY_LETTER)) | (longs - known)

    return missing


def of_sinfo(shared: Path) -> set[str]:
    asked = rows(shared, "sinfo_fields.csv")
    longs = {name.lower() for name in names(asked, "long")}
    return (names(asked, "letter") - set(sinfo.BY_LETTER)) | (longs - set(sinfo.NAME_CELLS))


def of_sacct(shared: Path) -> set[str]:
    asked = {name.lower() for name in names(rows(shared, "sacct_fields.csv"), "name")}
    return asked - {column.name.lower() for column in accounts.COLUMNS}


def of_sprio(shared: Path) -> set[str]:
    return names(rows(shared, "sprio_fields.csv"), "letter") - set(factors.CELLS)


def of_sshare(shared: Path) -> set[str]:
    asked = {(row["name"], int(row["width"])) for row in rows(shared, "sshare_fields.csv")}
    return {name for name, _ in asked - {(f.name, abs(f.width)) for f in sshare.fields("c")}}


@pytest.mark.parametrize(
    "missing", [squeue("job"), squeue("step"), of_sinfo, of_sacct, of_sprio, of_sshare]
)  # fmt: skip
def test_every_column_is_known(shared: Path, missing: Callable[[Path], set[str]]) -> None:
    assert missing(shared) == set()


OPTIONS = {
    "sprio": "clusters=M federation help local sibling usage sort=S version=V noheader=h jobs=j "
    "long=l norm=n format=o partition=p user=u verbose=v weights=w",
    "sshare": "accounts=A all=a clusters=M format=o help=h helpformat=e json long=l noheader=n "
    "parsable=p parsable2=P partition=m usage users=u Users=U verbose=v version=V yaml",
}
"""Of each manual page the options, with their letters."""


@pytest.mark.parametrize("program", OPTIONS)
def test_every_option_of_the_manual_is_taken(program: str) -> None:
    known = {(one.long, one.short) for one in lookup(program).by_long.values()}
    wanted = {tuple(name.partition("=")[::2]) for name in OPTIONS[program].split()}
    assert wanted - known == set()


VARIABLES = {
    "squeue": "ACCOUNT ALL ARRAY NAMES FEDERATION FORMAT FORMAT2 LICENSES LOCAL PARTITION PRIORITY "
    "QOS SIBLING SORT STATES USERS",
    "sinfo": "ALL FEDERATION FORMAT LOCAL PARTITION SORT",
    "sacct": "FEDERATION LOCAL",
    "scancel": "ACCOUNT BATCH CTLD FULL HURRY INTERACTIVE NAME PARTITION QOS STATE USER VERBOSE "
    "WCKEY",
    "scontrol": "ALL FEDERATION FUTURE LOCAL SIBLING",
    "sprio": "FEDERATION FORMAT LOCAL SIBLING",
}
"""Of each manual page the variables that stand for options, without the command's name."""


@pytest.mark.parametrize("program", VARIABLES)
def test_every_variable_of_the_manual_stands_for_an_option(program: str) -> None:
    known = {name for name, _ in lookup(program).variables}
    wanted = {f"{program.upper()}_{name}" for name in VARIABLES[program].split()}
    assert wanted - known == set()


@pytest.mark.parametrize("program", [*VARIABLES, "sacctmgr", "sreport", "sshare", "sstat", "sdiag"])
def test_every_variable_that_is_read_is_sent(program: str) -> None:
    read = [name for name, _ in lookup(program).variables]
    assert [name for name in read if not name.encode().startswith(shim.SENT)] == []
