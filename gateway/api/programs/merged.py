"""One listing of our jobs and the site's: what both sides print, and by what its lines are sorted.

Each side prints the values to sort by in columns in front, which the command on the login node
takes away again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gateway.api.programs.reading import Finished, Options
from gateway.api.programs.squeue_look import FORMATS, check_formats, own_format
from gateway.passthrough.lines import options_of
from gateway.query import views
from gateway.query.fields import BY_LETTER
from gateway.query.select import DEFAULT_SORT, sort_letters
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.parse import Query, parse_query

WIDTH = 40
"""Characters of each column in front."""
BY_NUMBER = {"i": "A", "p": "Q"}
"""Letters of `--sort`, and the column that has what they mean."""
BY_ID = "i"
"""The order of steps, and of sacct: the site's ids are below ours."""
NODES_FIRST = "N,#P"
"""The order of `sinfo -N`."""
EVERY = "%all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Words of each side, and how many lines of ours are headline."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    headline: int
    dated: bool = False
    """Whether the date stands above ours, as `squeue -l` has it."""
    keys: tuple[bool, ...] = ()
    """Of each column in front whether it counts downwards; none: the site's lines come first."""

    @property
    def width(self) -> int:
        """Of the columns in front together."""
        return WIDTH * len(self.keys)

    @property
    def spec(self) -> str:
        """As the command on the login node reads it."""
        places = (
            f"{at * WIDTH}:{(at + 1) * WIDTH}:{int(down)}" for at, down in enumerate(self.keys)
        )
        return " ".join((str(self.headline), str(self.width), *places))


def merged(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> Listing | None:
    """How both list in one order; None where they follow each other."""
    try:
        query = parse_query(name, argv, environ)
    except GrammarError:
        return None
    if name == "sacct":
        return _sacct(argv, query)
    if name == "sinfo":
        return _sinfo(query)
    if name != "squeue" or "only-job-state" in query.given:
        return None
    return _steps(argv, query) if "steps" in query.given else _squeue(query)


def _steps(argv: Sequence[str], query: Query) -> Listing | None:
    """Steps stand in the order of ids, unless they are asked for in another."""
    if "long" in query.given or _sort_of(query, BY_ID) != BY_ID:
        return None
    headline = 0 if "noheader" in query.given else 1
    return Listing(ours=tuple(argv), theirs=("-h", *argv), headline=headline)


def _sort_of(query: Query, usual: str) -> str:
    return (query.given["sort"].text if "sort" in query.given else None) or usual


def _sinfo(query: Query) -> Listing | None:
    """Lines of formats of one's own, by columns that those have anyway, or of single nodes.

    Other columns in front would take apart what is one line; partitions stay apart, ours first.
    """
    options = Options(query)
    text = options.text("format")
    if not text or options.has("Format") or options.has("list-reasons"):
        return None
    words = _sort_of(query, NODES_FIRST if options.has("Node") else "").split(",")
    if words[-1] == "#P" and len(words) > 1:
        words.pop()
    keys = [(word[-1:], word.startswith("-")) for word in words if len(word.lstrip("+-")) == 1]
    shown = {piece.lstrip(".0123456789")[:1] for piece in text.split("%")[1:]}
    known = shown | ({"N"} if options.has("Node") else set())
    if len(keys) != len(words) or not {letter for letter, _ in keys} <= known:
        return None
    front = "".join(f"%{WIDTH}{letter}" for letter, _ in keys)
    return _sorted_by(query, f"--format={front}{text}", [down for _, down in keys])


def _sorted_by(query: Query, form: str, keys: Sequence[bool]) -> Listing:
    kept = (*options_of(query, *FORMATS, "noheader", "long"), form, *query.operands)
    bare = ("--noheader",) if "noheader" in query.given else ()
    return Listing(
        ours=(*bare, *kept),
        theirs=("--noheader", *kept),
        headline=0 if bare else 1,
        keys=tuple(keys),
    )


def _sacct(argv: Sequence[str], query: Query) -> Listing:
    """In the order of ids: the site's are below ours."""
    lines = 1 if query.given.keys() & {"parsable", "parsable2"} else 2
    headline = 0 if "noheader" in query.given else lines
    return Listing(ours=tuple(argv), theirs=("-n", *argv), headline=headline)


def _squeue(query: Query) -> Listing | None:
    sort = _sort_of(query, views.START_SORT if "start" in query.given else DEFAULT_SORT)
    letters = [(BY_NUMBER.get(letter, letter), down) for letter, down in sort_letters(sort)]
    form = _format(query, [letter for letter, _ in letters])
    if form is None or not letters or any(letter not in BY_LETTER for letter, _ in letters):
        return None
    listing = _sorted_by(query, form, [down for _, down in letters])
    if form.endswith(views.SQUEUE_LONG) and listing.headline:
        return replace(listing, dated=True, headline=2)
    return listing


USUAL = (("start", views.SQUEUE_START), ("long", views.SQUEUE_LONG))
"""Options that have formats of their own."""


def _format(query: Query, letters: Sequence[str]) -> str | None:
    """The format that counts, with the columns to sort by in front."""
    options = Options(query)
    try:
        check_formats(options)
    except Finished:
        return None
    typed, names = own_format(options)
    usual = next((form for long, form in USUAL if long in query.given), views.SQUEUE_DEFAULT)
    text = next((text for text in (typed, names) if text is not None), usual)
    if not text or EVERY in text or any(letter not in BY_LETTER for letter in letters):
        return None
    if names is None:
        return f"--format={''.join(f'%{WIDTH}{letter}' for letter in letters)}{text}"
    front = ",".join(f"{BY_LETTER[letter].long}:{WIDTH}" for letter in letters)
    return f"--Format={front},{text}"
