"""Batch scripts: which ones sbatch takes, and the directives at their head.

The text of a script is `str` decoded with surrogateescape, so that every byte survives.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence

from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, fatal, warning_line

MOST_BYTES = 4 * 1024 * 1024
"""max_script_size of a site that sets none."""
BLANKS = " \t\n\v\f\r"
QUOTES = "\"'"
ENDS = BLANKS + "#"
SEPARATORS = ("hetjob", "packjob")
MOST_NON_COMMENTS = 100
"""Lines other than comments after which #PBS and #BSUB are no longer looked for."""

Head = namedtuple("Head", "parts notes")
"""The words of each job component, and what is said about the lines (whole lines)."""


def check_script(text: str, program: str) -> None:
    """Refuses what is no batch script, in Slurm's words. Raises GrammarError."""
    if not text:
        raise _refusal(program, "Batch script is empty!")
    if not text.startswith("#!"):
        raise _refusal(
            program,
            "This does not look like a batch script.  The first",
            "line must start with #! followed by the path to an interpreter.",
            "For instance: #!/bin/sh",
        )
    if "\0" in text:
        raise _refusal(
            program,
            "The Slurm controller does not allow scripts that",
            "contain a NULL character '\\0'.",
        )
    if "\r\n" in text:
        raise _refusal(
            program,
            "Batch script contains DOS line breaks (\\r\\n)",
            "instead of expected UNIX line breaks (\\n).",
        )


def _refusal(program: str, *lines: str) -> GrammarError:
    return GrammarError("".join(error_line(program, line) for line in lines), FAILURE)


def read_head(text: str, name: str, program: str) -> Head:
    """The words of the #SBATCH lines, cut where a heterogeneous job begins its next component.

    Reading ends at the first line that is neither blank nor a comment. `name` is the script's,
    for messages. Raises GrammarError for an open quote or a lone colon.
    """
    parts: list[list[str]] = [[]]
    notes: list[str] = []
    for place, mark, rest in marked(text, MARKS, name, program=program):
        _directive(rest.lstrip(BLANKS), parts, notes, place=place)
        if mark == OLD_MARK and OLD_NOTE not in "".join(notes):
            notes.append(error_line(program, OLD_NOTE))
    return Head(parts, notes)


def marked(
    text: str, marks: Sequence[str], name: str, *, program: str
) -> Iterator[tuple[Place, str, str]]:
    """Lines at the head of a script that begin with a mark: where, which, and what follows."""
    for number, line in enumerate(text.split("\n"), 1):
        mark = next((mark for mark in marks if line.startswith(mark)), None)
        if mark is not None:
            yield Place(program, name, number), mark, line[len(mark) :]
        elif line.lstrip(BLANKS)[:1] not in ("", "#"):
            return


Place = namedtuple("Place", "program name line")
MARKS = ("#SBATCH", "#SLURM")
OLD_MARK = "#SLURM"
OLD_NOTE = "Change from #SLURM to #SBATCH in your script and verify the options are valid in sbatch"
PACKJOB = 'The "packjob" component separator is deprecated. Please use "hetjob" instead.'


def _directive(rest: str, parts: list[list[str]], notes: list[str], *, place: Place) -> None:
    word = next((word for word in SEPARATORS if rest.lower().startswith(word)), None)
    if word is None:
        parts[-1] += words_of(rest, place)
        return
    parts.append([])
    if word == "packjob":
        notes.append(warning_line(place.program, PACKJOB))


def read_foreign(text: str, mark: str, name: str, *, program: str) -> list[str]:
    """The words of all lines that begin with `mark` (#PBS, #BSUB), wherever they stand.

    Slurm gives up after a hundred lines that are no comments.
    """
    words: list[str] = []
    others = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(mark):
            words += words_of(line[len(mark) :], Place(program, name, number))
        elif not line.startswith("#"):
            others += 1
        if others > MOST_NON_COMMENTS:
            break
    return words


def words_of(rest: str, place: Place) -> list[str]:
    """The words of a directive: quotes group, a backslash protects any character, `#` ends.

    An empty word ends the line too, as in Slurm.
    """
    words: list[str] = []
    while True:
        word, length = _word(rest, place)
        if not word:
            return words
        words.append(word)
        rest = rest[length:]


def _word(rest: str, place: Place) -> tuple[str, int]:
    """The first word, and how much of the text it took with the blanks before it."""
    end = len(rest) - len(rest.lstrip(BLANKS))
    if rest.startswith(":", end):
        raise _fatal(place, "Unexpected `:`", rest)
    chars, quote = [], ""
    while end < len(rest):
        char = rest[end]
        end += 1
        if char == "\\":
            chars.append(rest[end : end + 1])
            end += 1
        elif char == quote or (not quote and char in QUOTES):
            quote = "" if quote else char
        elif not quote and char in ENDS:
            end -= 1
            break
        else:
            chars.append(char)
    if quote:
        raise _fatal(place, f"Unmatched `{quote}`", rest)
    return "".join(chars), end


def _fatal(place: Place, what: str, rest: str) -> GrammarError:
    return fatal(place.program, f"{place.name}: line {place.line}: {what} in [{rest}]")
