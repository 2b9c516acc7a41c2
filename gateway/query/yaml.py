"""YAML as Slurm's serializer writes it (25.11): every value with its tag, lists not indented."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.query.shape import INDENT, clean, quoted

PLAIN = re.compile(r"[\w./%=+~(\\<^$][^\x00-\x1f\x7f]*")
BROKEN = re.compile(r": |:$| #|[\x00-\x1f\x7f]")
"""What ends a plain scalar early."""


def document(value: Mapping[str, Any]) -> str:
    """The whole of a document."""
    return "%YAML 1.1\n--- " + "\n".join(_node(value, 0)) + "\n...\n"


def _node(value: Any, depth: int) -> Iterator[str]:
    """Lines, the first without indentation."""
    if isinstance(value, Mapping):
        yield "!!map" if value else "!!map {}"
        for key, below in value.items():
            yield from _below(f"{INDENT * depth}!!str {_scalar(key)}: ", below, depth)
    elif isinstance(value, (list, tuple)):
        yield "!!seq" if value else "!!seq []"
        for below in value:
            yield from _below(f"{INDENT * (depth - 1)}- ", below, depth - 1)
    else:
        yield _tagged(value)


def _below(head: str, value: Any, depth: int) -> Iterator[str]:
    lines = _node(value, depth + 1)
    yield head + next(lines)
    yield from lines


def _tagged(value: Any) -> str:
    if value is None:
        return "!!null null"
    if isinstance(value, bool):
        return f"!!bool {'true' if value else 'false'}"
    if isinstance(value, int):
        return f"!!int {value}"
    if isinstance(value, float):
        return f"!!float {value:f}"
    return f"!!str {_scalar(value)}".rstrip()


def _scalar(text: str) -> str:
    """Plain where it may be, else in quotes."""
    text = clean(text)
    if not text or (PLAIN.fullmatch(text) and not BROKEN.search(text) and text == text.strip()):
        return text
    return quoted(text) if "\n" in text else "'" + text.replace("'", "''") + "'"
