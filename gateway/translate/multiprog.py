"""`srun --multi-prog`: the file that gives each task its program, as Slurm 22.05 reads it."""

import re
from collections.abc import Iterable, Iterator, Sequence

from broker.model.spec import Program
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed

REST = "*"
MOST_RANKS = 1 << 20
"""A line such as `0-99999999999` must not be written out."""
NUMBER = re.compile(r"\s*[+-]?[0-9]{1,18}")
QUOTED = re.compile(r"(?s)\\(.?)|'([^']*)'|%(.?)|(\s+)|([^\\'%\s]+|')")
"""What is escaped, quoted, replaced, a gap, and other text; double quotes mean nothing."""
KEPT = {"t": "%t", "o": "%o"}
"""Behind `%`; anything else there goes with it."""
INVALID = "Line {} of configuration file {} invalid"
NO_RECORD = "Configuration file {} invalid, no record for task id {}"
STAR_IS_LAST = "Task range specification with asterisk must be last"
BAD_RANGE = "Invalid task range specification"
TURNED = "Invalid task range, {}-{}"
NEGATIVE = "Invalid task id, {} < 0"
TOO_HIGH = "Invalid task id, {} >= ntasks"
TWICE = "Duplicate record for task {}"


class BadRanksError(Exception):
    """What is wrong with the tasks that a line names."""


def read_programs(
    text: str, tasks: int | None, *, name: str = "", more: Sequence[str] = ()
) -> tuple[Program, ...]:
    """Lines of `ranks program arguments`; `*` stands for all ranks that no line before named.

    `tasks` is how many there are to be, None for as many as the file names; `more` are arguments
    that every program gets behind its own. Raises GrammarError, which tells the file's `name`.
    """
    found: list[Program] = []
    behind = tuple(word.replace("%", "%%") for word in more)
    for number, line in _lines(text):
        try:
            found.append(_program(line, found, tasks=tasks, more=behind))
        except BadRanksError as error:
            told = [str(error)] if str(error) else []
            raise _refused(*told, INVALID.format(number, name)) from None
    named = {rank for one in found for rank in one.ranks}
    missing = sorted(set(range(tasks or _as_named(named))) - named)
    if missing:
        raise failed("srun", NO_RECORD.format(name, missing[0]))
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Those that say something, with their numbers; a comment begins its line.

    Behind a backslash a line goes on, and the backslash holds for what comes there.
    """
    for number, line in enumerate(text.replace("\\\n", "\\").splitlines(), 1):
        words = line.lstrip()
        if words and not words.startswith("#"):
            yield number, words


def _program(
    line: str, before: Sequence[Program], *, tasks: int | None, more: tuple[str, ...]
) -> Program:
    head, *rest = line.split(None, 1)
    named = {rank for one in before for rank in one.ranks}
    argv = tuple(words(rest[0])) if rest else ()
    if not argv:
        raise BadRanksError
    if head == REST:
        ranks = sorted(set(range(tasks or _as_named(named))) - named)
        return Program(ranks=tuple(ranks), argv=(*argv, *more), rest=True)
    if any(one.rest for one in before):
        raise BadRanksError(STAR_IS_LAST)
    return Program(ranks=tuple(_ranks(head, named, tasks)), argv=(*argv, *more))


def words(text: str) -> Iterator[str]:
    """The program and its arguments: `%t` and `%o` as they stand, any other `%` doubled."""
    word: str | None = None
    for escaped, quoted, marked, gap, plain in QUOTED.findall(text):
        if gap:
            if word is not None:
                yield word
            word = None
        else:
            literal = (escaped + quoted).replace("%", "%%")
            word = (word or "") + literal + KEPT.get(marked, "") + plain
    if word is not None:
        yield word


def filled(word: str, rank: int, place: int) -> str:
    """A word of a program for the task of that rank, which is at that place of its line's."""
    texts = {"%t": str(rank), "%o": str(place), "%%": "%"}
    return re.sub("%[to%]", lambda found: texts[found.group()], word)


def _ranks(text: str, named: Iterable[int], tasks: int | None) -> list[int]:
    """In their order, which is what `%o` counts."""
    found: list[int] = []
    taken = set(named)
    for piece in filter(None, text.split(",")):
        low, high = _range(piece)
        if high >= (tasks or MOST_RANKS):
            raise BadRanksError(TOO_HIGH.format(high))
        for rank in range(low, high + 1):
            if rank in taken:
                raise BadRanksError(TWICE.format(rank))
            taken.add(rank)
            found.append(rank)
    return found


def _range(piece: str) -> tuple[int, int]:
    """`3`, `3-5`."""
    number = NUMBER.match(piece)
    if number is None:
        raise BadRanksError(f"{BAD_RANGE} ({piece})")
    low, rest = int(number.group()), piece[number.end() :]
    high = NUMBER.fullmatch(rest[1:]) if rest.startswith("-") else None
    if rest and high is None:
        raise BadRanksError(BAD_RANGE)
    last = int(high.group()) if high else low
    if low < 0:
        raise BadRanksError(NEGATIVE.format(low))
    if last < low:
        raise BadRanksError(TURNED.format(low, last))
    return low, last


def _as_named(named: Iterable[int]) -> int:
    """How many tasks there are where nobody said it."""
    return 1 + max(named, default=0)


def _refused(*texts: str) -> GrammarError:
    return GrammarError("".join(error_line("srun", text) for text in texts), FAILURE)
