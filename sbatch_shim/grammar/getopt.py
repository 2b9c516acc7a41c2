"""getopt_long as glibc has it and Slurm uses it: abbreviations, glued letters, attached values."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Sequence

from sbatch_shim.grammar.errors import GrammarError, try_help
from sbatch_shim.grammar.options import Table
from sbatch_shim.grammar.table import NO, OLD, REQ, Opt

Said = namedtuple("Said", "opt text")
"""An option met, as its first spelling's row; text None where none was given."""

Scan = namedtuple("Scan", "said operands")
"""The options in order, and the words that belong to none."""

CURT = frozenset(("sacct", "sstat"))
"""Commands that leave it at getopt's complaint, without a word of --help (22.05)."""


class Reader:
    """Reads the words of one command, option by option; complaints come when their turn comes."""

    def __init__(self, table: Table, words: Sequence[str], code: int, *, old: bool = False) -> None:
        """`old`: an option may have the value that only older releases took."""
        self.barred = (NO,) if old else (NO, OLD)
        self.table = table
        self.words = words
        self.code = code
        self.place = 0

    def leading(self) -> Iterator[Said]:
        """Options up to the first operand, as sbatch, salloc and srun read. Raises GrammarError."""
        while self.place < len(self.words) and self._at_option():
            word = self._take()
            if word == "--":
                return
            yield from self._options(word)

    def everywhere(self, operands: list[str]) -> Iterator[Said]:
        """Options wherever they stand; `--` ends them; other words go to `operands`."""
        while self.place < len(self.words):
            at_option = self._at_option()
            word = self._take()
            if word == "--":
                operands += self.rest()
                return
            if at_option:
                yield from self._options(word)
            else:
                operands.append(word)

    def rest(self) -> list[str]:
        """The words not yet read."""
        return list(self.words[self.place :])

    def _at_option(self) -> bool:
        word = self.words[self.place]
        return len(word) > 1 and word.startswith("-")

    def _take(self) -> str:
        self.place += 1
        return self.words[self.place - 1]

    def _options(self, word: str) -> Iterator[Said]:
        if word.startswith("--"):
            yield self._long(word)
        else:
            yield from self._letters(word)

    def _long(self, word: str) -> Said:
        name, equals, text = word[2:].partition("=")
        opt = self._find(name, word)
        if equals and opt.arg in self.barred:
            raise self._complaint(f"option '--{opt.long}' doesn't allow an argument")
        if equals:
            return self._said(opt, text)
        if opt.arg == REQ:
            return self._said(opt, self._next(f"option '--{opt.long}' requires an argument"))
        return self._said(opt, None)

    def _find(self, name: str, word: str) -> Opt:
        exact: Opt | None = self.table.by_long.get(name)
        if exact is not None:
            return exact
        found = [opt for long, opt in self.table.by_long.items() if long.startswith(name)]
        if not found:
            raise self._complaint(f"unrecognized option '{word}'")
        if len({opt.same or opt.long for opt in found}) > 1:
            names = " ".join(f"'--{opt.long}'" for opt in found)
            raise self._complaint(f"option '{word}' is ambiguous; possibilities: {names}")
        first: Opt = found[0]
        return first

    def _letters(self, word: str) -> Iterator[Said]:
        rest = word[1:]
        while rest:
            letter, rest = rest[0], rest[1:]
            opt = self.table.by_short.get(letter)
            if opt is None:
                raise self._complaint(f"invalid option -- '{letter}'")
            text = None
            if opt.arg != NO:
                text, rest = rest or None, ""
            if text is None and opt.arg == REQ:
                text = self._next(f"option requires an argument -- '{letter}'")
            yield self._said(opt, text)

    def _said(self, opt: Opt, text: str | None) -> Said:
        return Said(self.table.by_long[opt.same] if opt.same else opt, text)

    def _next(self, complaint: str) -> str:
        if self.place >= len(self.words):
            raise self._complaint(complaint)
        return self._take()

    def _complaint(self, text: str) -> GrammarError:
        command = self.table.command
        if command in CURT:
            return GrammarError(f"{command}: {text}\n", self.code)
        return try_help(command, text, self.code)


def scan(
    table: Table, words: Sequence[str], *, code: int, stop: frozenset[str] = frozenset()
) -> Scan:
    """Options up to the first operand; an option whose long name is in `stop` ends the reading."""
    reader = Reader(table, words, code)
    return Scan(_until(reader.leading(), stop), reader.rest())


def scan_all(
    table: Table, words: Sequence[str], *, code: int, stop: frozenset[str] = frozenset()
) -> Scan:
    """Options wherever they stand; an option whose long name is in `stop` ends the reading."""
    operands: list[str] = []
    said = _until(Reader(table, words, code).everywhere(operands), stop)
    return Scan(said, operands)


def _until(options: Iterator[Said], stop: frozenset[str]) -> list[Said]:
    said = []
    for one in options:
        said.append(one)
        if one.opt.long in stop:
            break
    return said
