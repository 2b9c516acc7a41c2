"""The one table of options."""

import csv
import os
from pathlib import Path

import pytest

from sbatch_shim.grammar import table
from sbatch_shim.grammar.check import READERS
from sbatch_shim.grammar.options import BY_LONG, OPTIONS, lookup

ROOT = Path(__file__).parents[4]


def test_every_row_is_written_in_the_words_of_the_table() -> None:
    classes = {table.CORE, table.ACCEPTED, table.IGNORED, table.REFUSED}
    for opt in OPTIONS:
        assert opt.kind in READERS, opt
        assert opt.arg in {table.NO, table.REQ, table.OPT, table.OLD}, opt
        assert opt.cls in classes, opt
        assert opt.help, opt
        assert len(opt.env_in.split("/")) <= len(opt.cmds), opt


def test_another_spelling_names_a_row_of_the_same_commands() -> None:
    for opt in OPTIONS:
        for command in opt.cmds if opt.same else ():
            same = BY_LONG[command, opt.same]
            assert (same.arg, same.same) == (opt.arg, ""), opt


def test_a_letter_means_one_option_of_a_command() -> None:
    for command in {command for command, _ in BY_LONG}:
        letters = [
            opt.short for opt in lookup(command).by_long.values() if opt.short and not opt.same
        ]
        assert len(letters) == len(set(letters)), command


def test_flags_take_no_text_and_texts_do() -> None:
    for opt in OPTIONS:
        assert (opt.kind == table.FLAG) <= (opt.arg != table.REQ), opt


def test_the_table_has_every_option_of_the_recorded_list() -> None:
    recorded = Path(os.environ.get("SKYPURZA_SHARED", ROOT.parent / "shared"))
    recorded = recorded / "slurm" / "sbatch_options.csv"
    if not recorded.exists():
        pytest.skip(f"no recorded list of options at {recorded}")
    with recorded.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["removed_in"]]
    for row in rows:
        for command in ("sbatch", "salloc", "srun"):
            if row[command] == "y":
                opt = BY_LONG[command, row["long"]]
                arg = table.NO if opt.arg == table.OLD else opt.arg
                assert (opt.short, arg) == (row["short"], row["arg"]), row["long"]
                names = table.env_names(opt, command)
                assert names == row[f"env_{command}"].split(), row["long"]
