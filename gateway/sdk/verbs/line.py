"""The rows of the table of verbs; `gateway.cli` has Typer read command lines by them."""

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
    note: str = ""
    """What is said where it is given: it is taken, and changes nothing."""
    choices: tuple[str, ...] = ()
    """In lower case, taken in any; empty: any text."""

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
    """The line is not one that the verb takes."""

    status = 2
    """With which `spz` ends then, as SkyPilot does."""
