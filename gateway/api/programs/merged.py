"""One listing of our jobs and the site's: what both sides print, and by what its lines are sorted.

Each side prints the values to sort by in columns in front, which the command on the login node
takes away again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.api.programs.reading import Finished, Options
from gateway.api.programs.squeue_look import FORMATS, check_formats, own_format
from gateway.query import views
from gateway.query.fields import BY_LETTER
from gateway.query.select import DEFAULT_SORT, sort_letters
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.parse import Query, parse_query

WIDTH = 40
"""Characters of each column in front."""
BY_NUMBER = {"i": "A", "p": "Q"}
"""Letters of `--sort`, and the column that has what they mean."""
NOT_MERGED = frozenset(("long", "only-job-state", "start", "steps"))
"""Listings of squeue that have an order or a headline of their own."""
EVERY = "%all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Words of each side, and how many lines of ours are headline."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    headline: int
    keys: tuple[bool, ...] = ()
    """Of each column in front whether it counts downwards; none: the site's lines come first."""

    @property
    def spec(self) -> str:
        """As the command on the login node reads it."""
        width = WIDTH * len(self.keys)
        places = (
            f"{at * WIDTH}:{(at + 1) * WIDTH}:{int(down)}" for at, down in enumerate(self.keys)
        )
        return " ".join((str(self.headline), str(width), *places))


def merged(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Listing | None:
    """How both list in one order; None where they follow each other."""
    try:
        query = parse_query(name, argv, environ)
    except GrammarError:
        return None
    if name == "sacct":
        return _sacct(argv, query)
    return _squeue(query) if name == "squeue" and not NOT_MERGED & query.given.keys() else None


def _sacct(argv: Sequence[str], query: Query) -> Listing:
    """In the order of ids: the site's are below ours."""
    lines = 1 if query.given.keys() & {"parsable", "parsable2"} else 2
    headline = 0 if "noheader" in query.given else lines
    return Listing(ours=tuple(argv), theirs=("-n", *argv), headline=headline)


def _squeue(query: Query) -> Listing | None:
    sort = query.given["sort"].text if "sort" in query.given else DEFAULT_SORT
    letters = [(BY_NUMBER.get(letter, letter), down) for letter, down in sort_letters(sort or "")]
    form = _format(query, [letter for letter, _ in letters])
    if form is None or not letters or any(letter not in BY_LETTER for letter, _ in letters):
        return None
    kept = (*_others(query), form, *query.operands)
    bare = ("--noheader",) if "noheader" in query.given else ()
    return Listing(
        ours=(*bare, *kept),
        theirs=("--noheader", *kept),
        headline=0 if bare else 1,
        keys=tuple(down for _, down in letters),
    )


def _others(query: Query) -> Iterator[str]:
    for one in query.said:
        if one.opt.long not in (*FORMATS, "noheader"):
            yield f"--{one.opt.long}" if one.text is None else f"--{one.opt.long}={one.text}"


def _format(query: Query, letters: Sequence[str]) -> str | None:
    """The format that counts, with the columns to sort by in front."""
    options = Options(query)
    try:
        check_formats(options)
    except Finished:
        return None
    typed, names = own_format(options)
    text = next((text for text in (typed, names) if text is not None), views.SQUEUE_DEFAULT)
    if not text or EVERY in text or any(letter not in BY_LETTER for letter in letters):
        return None
    if names is None:
        return f"--format={''.join(f'%{WIDTH}{letter}' for letter in letters)}{text}"
    front = ",".join(f"{BY_LETTER[letter].long}:{WIDTH}" for letter in letters)
    return f"--Format={front},{text}"
