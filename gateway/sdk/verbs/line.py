"""A command line by a table: words and options in any order, one help text from the same rows.

No library: a command that only asks the service has to be there before its user notices.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from broker.model.errors import Refused

FLAG, TEXT, NUMBER, MANY, PAIR = "flag", "text", "number", "many", "pair"
"""Kinds of options: given or not; a text; a whole number; texts; `--x` and `--no-x`."""
Values = dict[str, Any]


class Opt(NamedTuple):
    """An option: names separated by blanks, the long one last."""

    names: str
    kind: str
    help: str
    metavar: str = ""

    @property
    def key(self) -> str:
        return self.names.split()[-1].removeprefix("--").replace("-", "_")


class Verb(NamedTuple):
    """A command: where what it does stands (`module:function`), its words and options."""

    name: str
    does: str
    help: str
    words: str = ""
    """As shown: `CLUSTER [ID...]`; `!` at the end stops options after the first word."""
    options: tuple[Opt, ...] = ()


class UsageError(Refused):
    """The line does not fit the table."""


HELP = Opt("-h --help", FLAG, "Show this.")


def read(verb: Verb, argv: Sequence[str]) -> Values:
    """Options by key (absent ones None, False or empty) and `words`. Raises UsageError."""
    reader = _Reader(verb, [*argv])
    reader.run()
    _must_fit(verb, reader.words)
    return {**reader.values, "words": reader.words}


class _Reader:
    def __init__(self, verb: Verb, argv: list[str]) -> None:
        self.verb, self.left, self.words = verb, argv, list[str]()
        options = (*verb.options, HELP)
        self.known = {name: opt for opt in options for name in _names(opt)}
        self.values: Values = {opt.key: EMPTY[opt.kind]() for opt in options}

    def run(self) -> None:
        greedy = self.verb.words.endswith("!")
        while self.left:
            word = self.left.pop(0)
            if word == "--" or (greedy and self.words):
                self.words += self.left if word == "--" else [word, *self.left]
                return
            if word.startswith("--"):
                self._long(word)
            elif word.startswith("-") and word != "-":
                self._short(word)
            else:
                self.words.append(word)

    def _long(self, word: str) -> None:
        name, equals, text = word.partition("=")
        opt = self._known(name)
        self._set(opt, name, text if equals else None)

    def _short(self, word: str) -> None:
        name, rest = word[:2], word[2:]
        opt = self._known(name)
        if opt.kind in {FLAG, PAIR}:
            self._set(opt, name, None)
            if rest:
                self._short(f"-{rest}")
        else:
            self._set(opt, name, rest.removeprefix("=") if rest else None)

    def _known(self, name: str) -> Opt:
        if name not in self.known:
            near = get_close_matches(name, self.known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"`spz {self.verb.name} -h` lists them"
            raise UsageError(f"no such option: {name}", hint=hint)
        return self.known[name]

    def _set(self, opt: Opt, name: str, text: str | None) -> None:
        if opt.kind in {FLAG, PAIR}:
            if text is not None:
                raise UsageError(f"option {name} takes no value")
            self.values[opt.key] = not name.startswith("--no-") or opt.kind == FLAG
            return
        if text is None:
            if not self.left:
                raise UsageError(f"option {name} needs a value")
            text = self.left.pop(0)
        if opt.kind == MANY:
            self.values[opt.key].append(text)
        else:
            self.values[opt.key] = _number(name, text) if opt.kind == NUMBER else text


EMPTY: Mapping[str, Any] = {
    FLAG: bool,
    MANY: list,
    TEXT: lambda: None,
    NUMBER: lambda: None,
    PAIR: lambda: None,
}


def _names(opt: Opt) -> list[str]:
    names = opt.names.split()
    long = names[-1].removeprefix("--")
    return [*names, f"--no-{long}"] if opt.kind == PAIR else names


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"option {name}: {text!r} is no whole number") from None


def _must_fit(verb: Verb, words: Sequence[str]) -> None:
    wanted = verb.words.rstrip("!").split()
    needed = [word for word in wanted if not word.startswith("[")]
    many = any(word.rstrip("]").endswith("...") for word in wanted)
    if len(words) < len(needed):
        raise UsageError(f"{needed[len(words)]} is missing", hint=usage(verb))
    if len(words) > len(wanted) and not many:
        raise UsageError(f"{words[len(wanted)]!r} is too much", hint=usage(verb))


def usage(verb: Verb) -> str:
    """One line."""
    return f"Usage: spz {verb.name} [OPTIONS] {verb.words.rstrip('!')}".rstrip()


def help_text(verb: Verb) -> str:
    """What -h prints."""
    rows = [(_shown(opt), opt.help) for opt in (*verb.options, HELP)]
    return "\n".join([usage(verb), "", f"  {verb.help}", "", "Options:", *_columns(rows)])


def _shown(opt: Opt) -> str:
    names = ", ".join(opt.names.split())
    if opt.kind == PAIR:
        long = opt.names.split()[-1]
        names += f"/--no-{long.removeprefix('--')}"
    if opt.kind in {FLAG, PAIR}:
        return names
    return f"{names} {opt.metavar or ('N' if opt.kind == NUMBER else 'TEXT')}"


def _columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    listed = list(rows)
    width = min(34, max(len(left) for left, _ in listed))
    return [f"  {left:{width}}  {right}" for left, right in listed]
