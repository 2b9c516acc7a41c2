"""The file of `srun --multi-prog` as a real Slurm 22.05 read it."""

# ruff: noqa: E501 - a row stays on one line

import pytest

from gateway.translate.multiprog import filled, read_programs
from sbatch_shim.grammar.errors import GrammarError

# fmt: off
WRONG = {
    "a gap":              ("0 a\n2 b\n",     3,    ["Configuration file mp invalid, no record for task id 1"]),
    "nothing":            ("",               2,    ["Configuration file mp invalid, no record for task id 0"]),
    "twice":              ("0-1 a\n1-2 b\n", 3,    ["Duplicate record for task 1", "Line 2 of configuration file mp invalid"]),
    "twice in a line":    ("0,0 a\n",        2,    ["Duplicate record for task 0", "Line 1 of configuration file mp invalid"]),
    "too high":           ("0-7 a\n",        3,    ["Invalid task id, 7 >= ntasks", "Line 1 of configuration file mp invalid"]),
    "far too high":       ("0-99999999999 a", None, ["Invalid task id, 99999999999 >= ntasks", "Line 1 of configuration file mp invalid"]),
    "without end":        ("9" * 5000 + " a", None, ["Invalid task range specification", "Line 1 of configuration file mp invalid"]),
    "another's digits":   ("\u0663 a",       9,    ["Invalid task range specification (\u0663)", "Line 1 of configuration file mp invalid"]),
    "no number":          ("# c\n\na b\n",   2,    ["Invalid task range specification (a)", "Line 3 of configuration file mp invalid"]),
    "brackets":           ("[0-1] a\n",      2,    ["Invalid task range specification ([0-1])", "Line 1 of configuration file mp invalid"]),
    "behind the number":  ("0-1x a\n",       2,    ["Invalid task range specification", "Line 1 of configuration file mp invalid"]),
    "turned":             ("1-0 a\n",        2,    ["Invalid task range, 1-0", "Line 1 of configuration file mp invalid"]),
    "below zero":         ("-1 a\n",         2,    ["Invalid task id, -1 < 0", "Line 1 of configuration file mp invalid"]),
    "no program":         ("0-1\n",          2,    ["Line 1 of configuration file mp invalid"]),
    "star first":         ("* a\n1 b\n",     3,    ["Task range specification with asterisk must be last", "Line 2 of configuration file mp invalid"]),
}
RANKS = {
    "a star is what is left": ("1 a\n* b\n",        4,    [(1,), (0, 2, 3)]),
    "of a second nothing":    ("1 a\n* b\n* c\n",   2,    [(1,), (0,), ()]),
    "alone it is one":        ("* a\n",             None, [(0,)]),
    "as many as are named":   ("0-1 a\n2 b\n",      None, [(0, 1), (2,)]),
    "commas at the end":      ("0,1, a\n",          2,    [(0, 1)]),
    "in their order":         ("2-3,1 a\n 0\tb\n",  4,    [(2, 3, 1), (0,)]),
}
WORDS = {
    "1:% 2:%% 3:%x":     ["1:2:", "3:"],
    "a%tb %%%t %t%o":    ["a0b", "0", "01"],
    "%2t %%t %%%%t":     ["t", "t", "t"],
    r"'%t' \%t '%%'":    ["%t", "%t", "%%"],
    '"%t" "q r"':        ['"0"', '"q', 'r"'],
    r"'a b' a\ b \\":   ["a b", "a b", "\\"],
    "x'y'z  '' $HOME #": ["xyz", "", "$HOME", "#"],
    "a \\\n b\\\nc":   ["a", " bc"],
}
# fmt: on


@pytest.mark.parametrize("what", WRONG)
def test_a_file_of_programs_that_is_wrong_is_refused(what: str) -> None:
    text, tasks, lines = WRONG[what]
    with pytest.raises(GrammarError) as refused:
        read_programs(text, tasks, name="mp")
    assert refused.value.stderr.splitlines() == [f"srun: error: {line}" for line in lines]


@pytest.mark.parametrize("what", RANKS)
def test_lines_name_their_tasks(what: str) -> None:
    text, tasks, ranks = RANKS[what]
    assert [one.ranks for one in read_programs(text, tasks)] == ranks


@pytest.mark.parametrize("text", WORDS)
def test_words_are_quoted_and_filled(text: str) -> None:
    (program,) = read_programs(f"0 {text}\n", 1)
    assert [filled(word, 0, 1) for word in program.argv] == WORDS[text]


def test_what_stands_behind_the_file_is_for_all_programs() -> None:
    (program,) = read_programs("* echo %t\n", 1, more=["%t", "x"])
    assert [filled(word, 0, 0) for word in program.argv] == ["echo", "0", "%t", "x"]


def test_a_star_counts_by_rank() -> None:
    assert [one.rest for one in read_programs("0 a\n* b %o\n", 2)] == [False, True]
