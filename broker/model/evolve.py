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
    fresh: T = _copier(type(record), tuple(changes))(record, *changes.values())  # type: ignore[arg-type]
    return fresh


def finish(fresh: T, **changes: Any) -> T:
    """The same record with some of its fields set; only for one that nobody else has seen yet."""
    _setter(type(fresh), tuple(changes))(fresh, *changes.values())  # type: ignore[arg-type]
    return fresh


def made(kind: type[T], **values: Any) -> T:
    """Like a call of the class, for one with a twin of which thousands are made at once."""
    fresh: T = twin(kind)(**values)  # type: ignore[arg-type]
    fresh.__class__ = kind
    return fresh


@cache
def twin(of: type) -> type:
    """A class with the same slots that is not frozen; the class itself where there is none.

    A frozen one sets each field through a call: an object that is made by its twin, and then given
    the class, costs half of that. What stands on another class has a twin that stands there too.
    """
    if hasattr(of, "__post_init__"):
        return of
    rows = [(each.name, Any, copy(each)) for each in fields(of)]
    bare = make_dataclass(of.__name__, rows, slots=True, repr=False, eq=False)
    if of.__bases__ == (object,):
        return bare
    plain = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    own = {"__slots__": of.__slots__, "__init__": bare.__init__}  # type: ignore[attr-defined, misc]
    return type(of.__name__, of.__bases__, {**own, **plain})


def written(name: str, lines: list[str], **known: Any) -> Callable[..., Any]:
    """The function of that name which the lines define, as `dataclasses` makes its own.

    For what is done for every field of every job: a loop over fields costs many times the work.
    """
    exec("\n".join(lines), known)
    made: Callable[..., Any] = known[name]
    return made


@cache
def _copier(kind: type, names: tuple[str, ...]) -> Callable[..., Any]:
    """What makes another record with the same values but for these. Raises as `_puts`."""
    kept = [each.name for each in fields(kind) if each.name not in names]
    copies = [f"    new.{name} = old.{name}" for name in kept]
    lines = ["    new = make(twin)", *copies, *_puts(kind, names), "    return new"]
    head = f"def copied({', '.join(('old', *_values(names)))}):"
    return written("copied", [head, *lines], make=object.__new__, twin=twin(kind), kind=kind)


@cache
def _setter(kind: type, names: tuple[str, ...]) -> Callable[..., None]:
    """What sets these fields of a record. Raises as `_puts`."""
    head = f"def put({', '.join(('new', *_values(names)))}):"
    lines = [head, "    put_any(new, '__class__', twin)", *_puts(kind, names)]
    return written("put", lines, put_any=object.__setattr__, twin=twin(kind), kind=kind)


def _puts(kind: type, names: tuple[str, ...]) -> list[str]:
    """Lines that set fields of a twin, and make it what it is.

    Raises TypeError for a type with no twin, KeyError for a field that there is not.
    """
    if twin(kind) is kind:
        raise TypeError(f"{kind.__name__} cannot be copied slot by slot")
    unknown = set(names) - {each.name for each in fields(kind)}
    if unknown:
        raise KeyError(*unknown)
    puts = (f"    new.{name} = {value}" for name, value in zip(names, _values(names), strict=True))
    return [*puts, "    new.__class__ = kind"]


def _values(names: tuple[str, ...]) -> list[str]:
    """Parameters for the fields: a field may be called as anything else here is."""
    return [f"value{place}" for place in range(len(names))]
