"""Records in the shapes of Slurm's data_parser: one tree of keys, to plain values or to JSON text.

A tree is a dictionary of keys to leaves, constants and further trees. For JSON it is compiled once
into a pattern, since listings of ten thousand records are asked for.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Generic, TypeVar

from gateway.query.context import Context
from sbatch_shim.grammar.values import UNLIMITED

R = TypeVar("R")
Get = Callable[[R, Context], Any]
Tree = Mapping[str, Any]
"""Keys in order; values are leaves, trees, or constants."""

INDENT = "  "


@dataclass(frozen=True, slots=True)
class Shape:
    """How a value stands in a record: as a plain value, and (made for a depth) as JSON text."""

    plain: Callable[[Any], Any]
    text: Callable[[int], Callable[[Any], str]]


@dataclass(frozen=True, slots=True)
class Leaf(Generic[R]):
    """A value of a record in its shape."""

    get: Get[R]
    shape: Shape

    def plain(self, record: R, ctx: Context) -> Any:
        return self.shape.plain(self.get(record, ctx))


# ---------------------------------------------------------------- numbers that may not be set


def unset() -> dict[str, Any]:
    """The number that nobody gave."""
    return {"set": False, "infinite": False, "number": 0}


def number(value: float | str | None) -> dict[str, Any]:
    """A number as data_parser has it since 23.11: set, infinite, or neither."""
    if value is None:
        return unset()
    if value == UNLIMITED:
        return {"set": False, "infinite": True, "number": 0}
    return {"set": True, "infinite": False, "number": value}


def zero(value: float | str | None) -> dict[str, Any]:
    """A number that counts as set where it is 0."""
    return number(value or 0)


# ---------------------------------------------------------------- JSON


def clean(text: str) -> str:
    """Without the bytes that are no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def quoted(text: str) -> str:
    """A JSON string; json-c keeps slashes and letters as they are."""
    return encode_basestring(clean(text))


def dump(value: Any, depth: int = 0) -> str:
    """Indented JSON as json-c writes it: also empty lists take two lines."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = [f"{quoted(key)}: {dump(one, depth + 1)}" for key, one in value.items()]
        return block("{}", pairs, depth)
    return block("[]", [dump(one, depth + 1) for one in value], depth)


def block(ends: str, inside: Iterable[str], depth: int) -> str:
    """Pieces between brackets, each on lines of its own."""
    gap = "\n" + INDENT * (depth + 1)
    body = f",{gap}".join(inside)
    return f"{ends[0]}{gap if body else ''}{body}\n{INDENT * depth}{ends[1]}"


KEPT = 4096
"""Texts of values kept by each leaf: jobs that end alike are many."""


def _anything(depth: int) -> Callable[[Any], str]:
    known: dict[str, str] = {}

    def text(value: Any) -> str:
        key = repr(value)
        found = known.get(key)
        if found is None:
            if len(known) >= KEPT:
                known.clear()
            found = known[key] = dump(value, depth)
        return found

    return text


def _text(_: int) -> Callable[[Any], str]:
    return lambda value: '""' if not value else quoted(str(value))


def _count(_: int) -> Callable[[Any], str]:
    return lambda value: str(value or 0)


def _flag(_: int) -> Callable[[Any], str]:
    return lambda value: "true" if value else "false"


def _number_text(make: Callable[[Any], dict[str, Any]]) -> Callable[[int], Callable[[Any], str]]:
    def at(depth: int) -> Callable[[Any], str]:
        head, tail = dump({"set": True, "infinite": False, "number": 1}, depth).split("1")

        others = {word: dump(make(word), depth) for word in (None, UNLIMITED)}

        def text(value: Any) -> str:
            if value.__class__ is int:
                return f"{head}{value}{tail}"
            return others.get(value) or dump(make(value), depth)

        return text

    return at


TEXT = Shape(lambda value: "" if value is None else clean(str(value)), _text)
"""Empty where there is none."""
COUNT = Shape(lambda value: value or 0, _count)
FLAG = Shape(bool, _flag)
NUMBER = Shape(number, _number_text(number))
ZERO = Shape(zero, _number_text(zero))
ANY = Shape(lambda value: value, _anything)
"""Made of plain values already."""

# ---------------------------------------------------------------- trees


def plain(tree: Tree, record: R, ctx: Context) -> dict[str, Any]:
    """The record as plain values."""
    return {key: _plain(node, record, ctx) for key, node in tree.items()}


def _plain(node: Any, record: Any, ctx: Context) -> Any:
    if isinstance(node, Leaf):
        return node.plain(record, ctx)
    return plain(node, record, ctx) if isinstance(node, Mapping) else node


@dataclass(frozen=True, slots=True)
class Compiled(Generic[R]):
    """A tree as a pattern for JSON."""

    pattern: str
    parts: tuple[tuple[Get[R], Callable[[Any], str]], ...]

    def json(self, record: R, ctx: Context) -> str:
        return self.pattern % tuple([text(get(record, ctx)) for get, text in self.parts])


def compiled(tree: Tree, depth: int = 0) -> Compiled[Any]:
    """The tree made ready to be written at this depth."""
    parts: list[tuple[Get[Any], Callable[[Any], str]]] = []
    return Compiled(_pattern(tree, depth, parts), tuple(parts))


def _pattern(node: Any, depth: int, parts: list[tuple[Get[Any], Callable[[Any], str]]]) -> str:
    if isinstance(node, Leaf):
        parts.append((node.get, node.shape.text(depth)))
        return "%s"
    if isinstance(node, Mapping):
        pairs = [f"{_key(key)}: {_pattern(below, depth + 1, parts)}" for key, below in node.items()]
        return block("{}", pairs, depth)
    return dump(node, depth).replace("%", "%%")


def _key(text: str) -> str:
    return quoted(text).replace("%", "%%")
