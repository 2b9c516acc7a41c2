"""Feature expressions, as `--constraint` writes them, read once and asked of sets of features."""

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product

from broker.model.errors import BadOption

INVALID = "Invalid feature specification"
_TOKEN = re.compile(r"\s*([&|()\[\]]|[^\s&|()\[\]*]+|\*\s*\d{1,7})")
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


@dataclass(frozen=True, slots=True)
class Counted:
    """So many of the nodes at least."""

    of: "Expression"
    count: int


@dataclass(frozen=True, slots=True)
class Same:
    """Of these alternatives one for all nodes together: `[a|b]`."""

    of: Either


Expression = Feature | Both | Either | Counted | Same
_JOINS: dict[str, type[Both] | type[Either]] = {"&": Both, "|": Either}
MOST_TOKENS = 200
"""Features and signs of an expression: it is gone through by recursion."""
MOST_OF_NEEDS = 3 * MOST_TOKENS
"""The same of what is asked of the catalog: `written` has brackets of its own, then come places."""
MOST_WAYS = 64
"""Every bracket more multiplies them."""


def parse(text: str, *, most: int = MOST_TOKENS) -> Expression:
    """The expression of `text`; `&` and `|` bind alike and from the left (Slurm 22.05 to 25.11).

    Counts of one among several features need brackets around all of it (23.11); in brackets every
    feature of `&` is counted, and none of `|` (22.05).
    Raises BadOption.
    """
    tokens = _tokens(text, most)
    expression, rest = _expression(tokens, text)
    if rest or (_counts_one_of_several(tokens) and not _is_bracketed(tokens)):
        raise _invalid(text)
    if _number_of_ways(expression) > MOST_WAYS:
        raise _invalid(text)
    return expression


def of_need(text: str | None) -> Expression | None:
    """What machines are asked for with; None for anything."""
    return parse(text, most=MOST_OF_NEEDS) if text else None


def _counts_one_of_several(tokens: list[str]) -> bool:
    counts = [token for token in tokens if token.startswith("*")]
    return bool(counts) and not _JOINS.keys().isdisjoint(tokens)


def _is_bracketed(tokens: list[str]) -> bool:
    return (tokens[0], tokens[-1], tokens.count("[")) == ("[", "]", 1)


def holds(expression: Expression, features: AbstractSet[str]) -> bool:
    """Whether nodes that all have these (lower-case) features meet the expression."""
    if isinstance(expression, Feature):
        return expression.name in features
    if isinstance(expression, Counted | Same):
        return holds(expression.of, features)
    left = holds(expression.left, features)
    if isinstance(expression, Both):
        return left and holds(expression.right, features)
    return left or holds(expression.right, features)


def kinds(expression: Expression) -> tuple[Counted, ...]:
    """The sorts of nodes that are asked for, each so many times at least: two of `[a*2&b*1]`."""
    return tuple(one for one in _together(expression) if isinstance(one, Counted))


def suits(expression: Expression, features: AbstractSet[str]) -> bool:
    """Whether a node with these features may be one of several that meet the expression.

    Beyond the counts it may be any: `-N4 -C a*2` has two nodes with `a`, and two more (22.05).
    """
    rest = (one for one in _together(expression) if not isinstance(one, Counted))
    return all(holds(one, features) for one in rest)


def _together(expression: Expression) -> Iterator[Expression]:
    """What has to be met all at once."""
    if isinstance(expression, Both):
        yield from _together(expression.left)
        yield from _together(expression.right)
    else:
        yield expression


def names(expression: Expression | None) -> frozenset[str]:
    """Every feature that the expression names, in lower case."""
    if expression is None:
        return frozenset()
    if isinstance(expression, Feature):
        return frozenset((expression.name,))
    if isinstance(expression, Counted | Same):
        return names(expression.of)
    return names(expression.left) | names(expression.right)


def ways(expression: Expression) -> tuple[Expression, ...]:
    """What all nodes may have together, each of them for itself: two of `[a|b]`, one of `a|b`."""
    if isinstance(expression, Same):
        return tuple(_sides(expression.of))
    if isinstance(expression, Both | Either):
        pairs = product(ways(expression.left), ways(expression.right))
        return tuple(type(expression)(left, right) for left, right in pairs)
    return (expression,)


def _number_of_ways(expression: Expression) -> int:
    if isinstance(expression, Same):
        return sum(1 for _ in _sides(expression.of))
    if isinstance(expression, Both | Either):
        return _number_of_ways(expression.left) * _number_of_ways(expression.right)
    return 1


def _sides(expression: Expression) -> Iterator[Expression]:
    if isinstance(expression, Either):
        yield from _sides(expression.left)
        yield from _sides(expression.right)
    else:
        yield expression


def written(expression: Expression) -> str:
    """The expression as text that `parse` reads as the same, counts left out."""
    if isinstance(expression, Feature):
        return expression.name
    if isinstance(expression, Counted | Same):
        return written(expression.of)
    join = next(sign for sign, kind in _JOINS.items() if isinstance(expression, kind))
    return f"({written(expression.left)}{join}{written(expression.right)})"


def _tokens(text: str, most: int) -> list[str]:
    found = _TOKEN.findall(text)
    if "".join("".join(found).split()) != "".join(text.split()):
        raise _invalid(text)
    if len(found) > most:
        raise _invalid(text)
    return [str(token).lower() for token in found]


def _expression(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    left, rest = _operand(tokens, text)
    while rest and rest[0] in _JOINS:
        join = _JOINS[rest[0]]
        right, rest = _operand(rest[1:], text)
        left = join(left, right)
    return left, rest


def _operand(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    operand, rest = _uncounted(tokens, text)
    if not rest or not rest[0].startswith("*"):
        return operand, rest
    count = int(rest[0].removeprefix("*"))
    if not count or tokens[0] == "[":
        raise _invalid(text)
    return Counted(operand, count), rest[1:]


def _uncounted(tokens: list[str], text: str) -> tuple[Expression, list[str]]:
    if not tokens or tokens[0][0] in "&|)]*":
        raise _invalid(text)
    if tokens[0] not in _CLOSING:
        return Feature(tokens[0]), tokens[1:]
    inner, rest = _expression(tokens[1:], text)
    if not rest or rest[0] != _CLOSING[tokens[0]]:
        raise _invalid(text)
    within = tokens[1 : len(tokens) - len(rest)]
    if tokens[0] == "[" and ("[" in within or not _suits_brackets(inner)):
        raise _invalid(text)
    if tokens[0] == "[" and isinstance(inner, Either):
        inner = Same(inner)
    return inner, rest[1:]


def _suits_brackets(inner: Expression) -> bool:
    if isinstance(inner, Either):
        return not any(isinstance(side, Counted) for side in (inner.left, inner.right))
    return isinstance(inner, Feature) or all(isinstance(o, Counted) for o in _together(inner))


def _invalid(text: str) -> BadOption:
    hint = "write features as a, a&b, a|b, [a*2&b*1]"
    return BadOption("constraint", text, INVALID, hint=hint)
