"""The formats that squeue has by itself, and its lists of columns (25.11.7)."""

from functools import lru_cache

from broker.model.job import Job
from gateway.query.column import Column
from gateway.query.fields import BY_LETTER, BY_LONG, COLUMNS, EVERY
from gateway.query.fits import SQUEUE_FITS
from gateway.query.layout import Cell, Layout, by_letters, by_names
from gateway.query.steps import step_words
from sbatch_shim.grammar.states import JOB_STATES

SQUEUE_DEFAULT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
SQUEUE_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
SQUEUE_START = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
SQUEUE_STATES = "%.18i %.2t"
"""With --only-job-state."""
START_SORT = "S"


def _cell(column: Column) -> Cell[Job]:
    return Cell(column.header, column.squeue(), column.timed, SQUEUE_FITS.get(column.key))


LETTER_CELLS = {letter: _cell(column) for letter, column in BY_LETTER.items()}
NAME_CELLS = {name: _cell(column) for name, column in BY_LONG.items()}


@lru_cache(maxsize=256)
def squeue_letters(text: str) -> Layout[Job]:
    """`squeue -o`, compiled."""
    return by_letters(text, LETTER_CELLS, every=EVERY)


@lru_cache(maxsize=256)
def squeue_names(text: str) -> Layout[Job]:
    """`squeue -O`, compiled."""
    return by_names(text, NAME_CELLS)


def squeue_help_names() -> str:
    """`squeue --helpFormat`: four names to a line, each 20 wide."""
    return _grid([c.long for c in COLUMNS if c.long and c.help], width=20, per_line=4)


def squeue_help_letters() -> str:
    """`squeue --helpformat`: eight letters to a line."""
    letters = [f"%{c.letter}" for c in COLUMNS if c.letter and c.help]
    return _grid(letters, width=6, per_line=8)


def step_help_names() -> str:
    """`squeue -s --helpFormat`."""
    return _grid(step_words(letters=False), width=20, per_line=4)


def step_help_letters() -> str:
    """`squeue -s --helpformat`."""
    return _grid([f"%{letter}" for letter in step_words(letters=True)], width=6, per_line=8)


def job_states() -> list[str]:
    """`squeue --helpstate`: in small letters (24.11)."""
    return [word.lower() for word, _ in JOB_STATES]


def _grid(words: list[str], *, width: int, per_line: int) -> str:
    rows = [words[i : i + per_line] for i in range(0, len(words), per_line)]
    return "".join("".join(f"{word:<{width}}" for word in row) + "\n" for row in rows)
