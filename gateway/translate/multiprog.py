"""`srun --multi-prog`: the file that gives each task its program, as Slurm 25.11 reads it."""

import shlex

from broker.model.spec import Program
from sbatch_shim.grammar.errors import GrammarError, failed
from sbatch_shim.grammar.values import read_digits

REST = "*"
MOST_RANKS = 1 << 20
"""A line such as `0-99999999999` must not be written out."""


def read_programs(text: str, tasks: int | None) -> tuple[Program, ...]:
    """Lines of `ranks program arguments`; `*` stands for all ranks that no line before named.

    `tasks` is how many there are to be, None for as many as the file names. Raises GrammarError.
    """
    found: list[Program] = []
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), 1):
        words = _words(line, number)
        if words:
            found.append(_program(words, found, number=number, tasks=tasks))
    named = {rank for one in found for rank in one.ranks}
    missing = sorted(set(range(tasks or 1 + max(named, default=0))) - named)
    if missing:
        raise _wrong(f"Configuration file does not specify a program for task {missing[0]}")
    return tuple(found)


def _words(line: str, number: int) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        raise _wrong(f"Invalid line {number} of configuration file: {line}") from None


def _program(words: list[str], before: list[Program], *, number: int, tasks: int | None) -> Program:
    if len(words) == 1:
        raise _wrong(f"Line {number} of configuration file lacks a program: {words[0]}")
    named = {rank for one in before for rank in one.ranks}
    if words[0] == REST:
        ranks = tuple(
            rank for rank in range(tasks or 1 + max(named, default=-1)) if rank not in named
        )
    else:
        ranks = _ranks(words[0], number)
    doubled = sorted(named.intersection(ranks))
    if doubled:
        raise _wrong(f"Configuration file names task {doubled[0]} twice")
    return Program(ranks=ranks, argv=tuple(words[1:]))


def _ranks(text: str, number: int) -> tuple[int, ...]:
    found: list[int] = []
    for piece in text.split(","):
        low, dash, high = piece.partition("-")
        first, last = read_digits(low), read_digits(high if dash else low)
        if first is None or last is None or last >= MOST_RANKS:
            raise _wrong(f"Invalid task numbers {text!r} in line {number} of configuration file")
        found += range(first, last + 1)
    return tuple(found)


def _wrong(text: str) -> GrammarError:
    return failed("srun", text)
