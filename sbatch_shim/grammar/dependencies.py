"""`--dependency`: `afterok:12_3:14,singleton` to conditions and back."""

from __future__ import annotations

from collections import namedtuple

from sbatch_shim.grammar.values import MINUTE, read_digits

Condition = namedtuple("Condition", "kind job task delay")
"""One wait: `task` is an index, `"*"` for the whole array, or None; `delay` in seconds."""

Conditions = namedtuple("Conditions", "all any_one")
"""The conditions, and whether one of them is enough (`?` between them)."""

KINDS = ("after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer")
UNSUPPORTED = ("expand",)


class DependencyError(ValueError):
    """Text that is no list of dependencies (Slurm: Job dependency problem)."""


class UnsupportedKindError(DependencyError):
    """A kind that Slurm once had (Slurm: Requested operation not supported on this system)."""


def read_dependencies(text: str) -> Conditions:
    """Raises DependencyError. Empty text is no dependency at all.

    A bare id means afterany; the kind may be in any case.
    """
    if not text:
        return Conditions((), False)
    if "," in text and "?" in text:
        raise DependencyError(text)
    separator = "?" if "?" in text else ","
    found = [condition for token in text.split(separator) for condition in _token(token)]
    return Conditions(tuple(_each_once(found)), separator == "?")


def _each_once(found: list[Condition]) -> list[Condition]:
    """The first of those alike in kind and job, whatever their delays (22.05)."""
    first: dict[tuple[object, ...], Condition] = {}
    for one in found:
        first.setdefault((one.kind, one.job, one.task), one)
    return list(first.values())


def _token(token: str) -> list[Condition]:
    kind, colon, refs = token.partition(":")
    kind = kind.lower()
    if kind == "singleton" and not colon:
        return [Condition("singleton", None, None, 0)]
    if kind in UNSUPPORTED:
        raise UnsupportedKindError(token)
    if not colon and kind[:1].isdigit():
        return [_reference("afterany", kind, token)]
    if kind not in KINDS:
        raise DependencyError(token)
    return [_reference(kind, ref, token) for ref in refs.split(":")]


def _reference(kind: str, ref: str, token: str) -> Condition:
    name, plus, minutes = ref.partition("+")
    job, underscore, task = name.partition("_")
    number, index = read_digits(job), "*" if task == "*" else read_digits(task)
    delay = read_digits(minutes) if plus else 0
    wrong = not number or (underscore and index is None) or delay is None
    if wrong or (plus and kind != "after"):
        raise DependencyError(token)
    return Condition(kind, number, index if underscore else None, (delay or 0) * MINUTE)
