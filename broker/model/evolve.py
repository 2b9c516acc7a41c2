"""A frozen record with some of its fields changed, at less than half the cost of `replace`."""

from collections import deque
from functools import cache
from itertools import repeat
from operator import attrgetter, call
from typing import Any, TypeVar

T = TypeVar("T")


def evolved(record: T, **changes: Any) -> T:
    """Like `dataclasses.replace` for a dataclass with slots and nothing to do after its making.

    A job has over forty fields, and every event makes a new one: here each is copied from slot to
    slot, without a look at its definition. Raises KeyError for a field that there is not.
    """
    kind: type = type(record)
    get, puts = _slots(kind)
    new: T = object.__new__(kind)
    deque(map(call, puts.values(), repeat(new), get(record)), 0)  # a loop, but for the interpreter
    return finish(new, **changes)


def finish(fresh: T, **changes: Any) -> T:
    """The same record with some of its fields set; only for one that nobody else has seen yet."""
    kind: type = type(fresh)
    _, puts = _slots(kind)
    for name, value in changes.items():
        puts[name](fresh, value)
    return fresh


@cache
def _slots(kind: type) -> tuple[Any, dict[str, Any]]:
    """What reads all slots of a type, and what writes each."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
    return attrgetter(*names), {name: getattr(kind, name).__set__ for name in names}
