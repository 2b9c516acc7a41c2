"""A frozen record with some of its fields changed, at a small part of the cost of `replace`."""

from collections.abc import Callable
from copy import copy
from dataclasses import fields, make_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def evolved(record: T, **changes: Any) -> T:
    """Like `dataclasses.replace` for a dataclass with slots and nothing to do after its making.

    A job has over forty fields, and every event makes a new one: here each is copied from slot to
    slot, without a look at its definition. Raises KeyError for a field that there is not.
    """
    fresh: T = _copier(type(record))(record)  # type: ignore[arg-type]
    return finish(fresh, **changes)


def finish(fresh: T, **changes: Any) -> T:
    """The same record with some of its fields set; only for one that nobody else has seen yet."""
    puts = _puts(type(fresh))  # type: ignore[arg-type]
    for name, value in changes.items():
        puts[name](fresh, value)
    return fresh


@cache
def twin(of: type) -> type:
    """A class with the same slots that is not frozen; the class itself where there is none.

    A frozen one sets each field through a call: an object that is made by its twin, and then given
    the class, costs half of that. What stands on another class has slots of that one.
    """
    if of.__bases__ != (object,) or hasattr(of, "__post_init__"):
        return of
    rows = [(each.name, Any, copy(each)) for each in fields(of)]
    return make_dataclass(of.__name__, rows, slots=True, repr=False, eq=False)


def written(name: str, lines: list[str], **known: Any) -> Callable[..., Any]:
    """The function of that name which the lines define, as `dataclasses` makes its own.

    For what is done for every field of every job: a loop over fields costs many times the work.
    """
    exec("\n".join(lines), known)
    made: Callable[..., Any] = known[name]
    return made


@cache
def _copier(kind: type) -> Callable[[Any], Any]:
    """What makes another record with the same values. Raises TypeError for a type with no twin."""
    if twin(kind) is kind:
        raise TypeError(f"{kind.__name__} cannot be copied slot by slot")
    puts = [f"    new.{field.name} = old.{field.name}" for field in fields(kind)]
    lines = ["def copied(old):", "    new = make(twin)", *puts, "    new.__class__ = kind"]
    return written(
        "copied", [*lines, "    return new"], make=object.__new__, twin=twin(kind), kind=kind
    )


@cache
def _puts(kind: type) -> dict[str, Any]:
    """What writes each slot of a type."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]
    return {name: getattr(kind, name).__set__ for name in names}
