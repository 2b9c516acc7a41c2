"""Host lists: `ec2-a[01-04,7],x[1-2]y[1-3]` to names and back, as set algebra."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sbatch_shim.grammar.values import MOST_DIGITS, read_digits

MOST_NAMES = 65536
"""A longer list is a slip of the keyboard (Slurm's own bound)."""


class HostlistError(ValueError):
    """Text that is no host list."""


def expand(text: str) -> list[str]:
    """The names in the order given, repeats kept. Raises HostlistError."""
    names: list[str] = []
    for item in _items(text):
        names += _expand_item(item)
        if len(names) > MOST_NAMES:
            raise HostlistError(text)
    return names


def _items(text: str) -> list[str]:
    """The text cut at blanks and commas outside brackets; empty items are left out."""
    items, depth, start = [], 0, 0
    for place, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
        elif char in ", \t\n" and not depth:
            items.append(text[start:place])
            start = place + 1
        if depth not in (0, 1):
            raise HostlistError(text)
    if depth:
        raise HostlistError(text)
    return [item for item in [*items, text[start:]] if item]


def _expand_item(item: str) -> list[str]:
    prefix, bracket, rest = item.partition("[")
    if not bracket:
        return [item]
    inside, _, suffix = rest.partition("]")
    tails = _expand_item(suffix) if suffix else [""]
    numbers: list[str] = []
    for token in inside.split(","):
        numbers += _range(token, item)
        if len(numbers) * len(tails) > MOST_NAMES:
            raise HostlistError(item)
    return [f"{prefix}{number}{tail}" for number in numbers for tail in tails]


def _range(token: str, item: str) -> list[str]:
    first, dash, last = token.partition("-")
    last = last if dash else first
    least, most = read_digits(first), read_digits(last)
    if least is None or most is None or not 0 <= most - least < MOST_NAMES:
        raise HostlistError(item)
    return [f"{number:0{len(first)}d}" for number in range(least, most + 1)]


def fold(names: Iterable[str]) -> str:
    """Slurm's shortest bracket form, sorted: `expand(fold(x))` is `sorted_names(set(x))`."""
    return join(sorted_names(set(names)))


def join(names: Sequence[str]) -> str:
    """Bracket form of the names in the order given, repeats kept (`scontrol show hostlist`)."""
    groups: list[tuple[str, list[str]]] = []
    for name in names:
        prefix, digits = split_name(name)
        if groups and digits and groups[-1][0] == prefix and groups[-1][1][0]:
            groups[-1][1].append(digits)
        else:
            groups.append((prefix, [digits]))
    return ",".join(prefix + _bracket(numbers) for prefix, numbers in groups)


def split_name(name: str) -> tuple[str, str]:
    """A name's prefix and the digits at its end: `ec2-007` is `("ec2-", "007")`."""
    prefix = name.rstrip("0123456789")
    prefix = name[: max(len(prefix), len(name) - MOST_DIGITS)]
    return prefix, name[len(prefix) :]


def sorted_names(names: Iterable[str]) -> list[str]:
    """By prefix, then by number, then by width, as Slurm sorts hosts."""
    return sorted(names, key=_order)


def _order(name: str) -> tuple[str, int, int]:
    prefix, digits = split_name(name)
    return prefix, int(digits or -1), len(digits)


def _bracket(numbers: list[str]) -> str:
    runs: list[list[str]] = []
    for number in numbers:
        if runs and _follows(runs[-1][-1], number):
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return texts[0] if len(runs) == 1 and len(runs[0]) == 1 else f"[{','.join(texts)}]"


def _follows(before: str, after: str) -> bool:
    """Whether a range may run from one to the other: next in number, and padded alike."""
    number = int(before) + 1
    return bool(before) and f"{number:0{len(before)}d}" == after


def union(*texts: str) -> str:
    """Every name that is in any of the lists, folded."""
    return fold(name for text in texts for name in expand(text))


def intersection(left: str, right: str) -> str:
    """Every name that is in both lists, folded."""
    return fold(set(expand(left)) & set(expand(right)))


def difference(left: str, right: str) -> str:
    """Every name of the left list that is not in the right one, folded."""
    return fold(set(expand(left)) - set(expand(right)))
