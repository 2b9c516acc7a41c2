"""Feature expressions, as `--constraint` writes them, read once and asked of sets of features."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from broker.model.errors import BadOption

INVALID = "Invalid feature specification"
_TOKEN = re.compile(r"\s*([&|()\[\]]|[^\s&|()\[\]*]+|\*\s*\d+)")
_COUNTED = re.compile(r"\s*([^\s&|()\[\]*]+)\s*\*\s*\d+\s*")
_CLOSING = {"(": ")", "[": "]"}


@dataclass(frozen=True, slots=True)
class Feature:
    """One name; compared without regard to case."""

    name: str


@dataclass(frozen=True, slots=True)
class Both:
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Either:
    left: "Expression"
    right: "Expression"


Expression = Feature | Both | Either
_JOINS: dict[str, type[Both] | type[Either]] = {"&": Both, "|": Either}


def parse(text: str) -> Expression:
    """The expression of `text`; `&` and `|` bind alike and from the left (Slurm 22.05 to 25.11).

    `[a|b]`, one of them for all nodes, is read as `(a|b)`: the nodes of one purchase are alike.
    A count of one kind alone (`a*2`) is met by all nodes being of that kind. Raises BadOption for
    anything else, counts of several kinds among it.
    """
    counted = _COUNTED.fullmatch(text)
    tokens = _tokens(counted[1] if counted else text)
    expression, rest = _expression(tokens, text)
    if rest:
        raise _invalid(text)
    return expression


def holds(expression: Expression, features: AbstractSet[str]) -> bool:
    """Whether something with these (lower-case) features meets the expression."""
    if isinstance(expression, Feature):
        return expression.name in features
    left = holds(expression.left, features)
    if isinstance(expression, Both):
        return left and holds(expression.right, features)
    return left or holds(expression.right, features)


def names(expression: Expression | None) -> frozenset[str]:
    """Every feature that the expression names, in lower case."""
    if expression is None:
        return frozenset()
    if isinstance(expression, Feature):
        return frozenset((expression.name,))
    return names(expression.left) | names(expression.right)


def _tokens(text: str) -> list[str]:
    found = _TOKEN.findall(text)
    if "".join(found) != "".join(text.split()):
        raise _invalid(text)
    if any(token.startswith("*") for token in found):
        raise _invalid(text, hint="counts of several kinds are not served: ask for one kind")
    return [str(token).lower() for token in found]


def _expression(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    left, rest = _operand(tokens, text)
    while rest and rest[0] in _JOINS:
        join = _JOINS[rest[0]]
        right, rest = _operand(rest[1:], text)
        left = join(left, right)
    return left, rest


def _operand(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    if not tokens or tokens[0] in "&|)]":
        raise _invalid(text)
    if tokens[0] not in _CLOSING:
        return Feature(tokens[0]), tokens[1:]
    inner, rest = _expression(tokens[1:], text)
    if not rest or rest[0] != _CLOSING[tokens[0]]:
        raise _invalid(text)
    return inner, rest[1:]


def _invalid(text: str, *, hint: str = "") -> BadOption:
    return BadOption("constraint", text, INVALID, hint=hint or "write features as a, a&b, a|b")
