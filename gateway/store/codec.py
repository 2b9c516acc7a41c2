"""How frozen records become JSON values and back, compiled once per type from its annotations.

Fields that equal their defaults are left out, so a record written before a field existed still
loads. Enums go by name, flags by names joined with `|`, tuples as lists.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, Flag, StrEnum
from functools import cache, reduce
from operator import attrgetter, methodcaller, or_
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from broker.model.evolve import twin, written
from broker.model.spec import TaskSpec, Value

Turn = Callable[[Any], Any]
"""From a value to its JSON form, or back."""

PLAIN = (str, int, bool, float, type(None))
APART = TaskSpec
"""Kept in a table of their own, once for all jobs that share one: not dumped with the record."""


@dataclass(frozen=True, slots=True)
class Codec:
    """Both ways of one type; None where the JSON value is the value itself."""

    dump: Turn | None = None
    load: Turn | None = None

    @property
    def plain(self) -> bool:
        return self.dump is None and self.load is None


AS_IS = Codec()
CONTAINERS: dict[Any, Codec] = {
    Mapping: Codec(dict, None),
    dict: Codec(dict, None),
    frozenset: Codec(sorted, frozenset),
}
"""Of plain keys and values."""


@cache
def codec(of: Any) -> Codec:
    """The codec of a type. Raises TypeError for a type that has no JSON form here."""
    if isinstance(of, NewType):
        return codec(of.__supertype__)
    if of in PLAIN or of is APART or get_origin(of) is Literal:
        return AS_IS
    if get_origin(of) in {Union, UnionType}:
        return _optional(of)
    if get_origin(of) is tuple:
        return _tuple(get_args(of))
    if get_origin(of) in CONTAINERS:
        return CONTAINERS[get_origin(of)]
    for kind, make in MAKERS:
        if isinstance(of, type) and kind(of):
            return make(of)
    raise TypeError(f"no JSON form for {of!r}")


def record(of: type) -> Codec:
    """The codec of a dataclass: to and from a dict, which loading uses up."""
    types = get_type_hints(of)
    defaults = {field.name: _default(field) for field in fields(of)}
    inner = {name: codec(types[name]) for name in defaults if types[name] is not APART}
    loads = tuple((name, each.load) for name, each in inner.items() if each.load is not None)
    rows = tuple((name, defaults[name], each.dump) for name, each in inner.items())
    return Codec(_dump_fields(rows), _load_fields(of, loads))


def _part(of: type) -> Codec:
    """A record within another: those written together often share one, as jobs do an owner."""
    whole = record(of)
    last: tuple[Any, Any] = (MISSING, None)

    def dump(value: Any) -> Any:
        nonlocal last
        known = last
        if known[0] is not value:
            last = known = value, whole.dump(value) if whole.dump else value
        return known[1]

    return Codec(dump, whole.load)


def _default(field: Field[Any]) -> object:
    """MISSING where there is none."""
    return field.default if field.default_factory is MISSING else field.default_factory()


def _dump_fields(rows: tuple[tuple[str, object, Turn | None], ...]) -> Turn:
    known: dict[str, Any] = {}
    lines = ["def dump(record):", "    doc = {}"]
    for nth, (name, default, turn) in enumerate(rows):
        known |= {f"default{nth}": default, f"turn{nth}": turn}
        value = "value" if turn is None else f"turn{nth}(value)"
        lines += [
            f"    value = record.{name}",
            f"    if value is not default{nth} and value != default{nth}:",
            f"        doc[{name!r}] = {value}",
        ]
    return written("dump", [*lines, "    return doc"], **known)


def _load_fields(of: type, loads: tuple[tuple[str, Turn], ...]) -> Turn:
    bare = twin(of)

    def load(doc: dict[str, Any]) -> Any:
        for name, turn in loads:
            if name in doc:
                doc[name] = turn(doc[name])
        made = bare(**doc)
        if bare is not of:
            made.__class__ = of
        return made

    return load


def _value(of: type[Value]) -> Codec:
    return Codec(methodcaller("model_dump", exclude_defaults=True), of.model_validate)


def _optional(of: Any) -> Codec:
    """Of a union only one member may be more than plain, as in `Machine | None`."""
    inner = [each for each in map(codec, get_args(of)) if not each.plain]
    if not inner:
        return AS_IS
    if len(inner) > 1 or type(None) not in get_args(of) or len(get_args(of)) > 2:
        raise TypeError(f"no JSON form for {of!r}: more than one member needs one")
    return Codec(_or_none(inner[0].dump), _or_none(inner[0].load))


def _or_none(turn: Turn | None) -> Turn | None:
    return None if turn is None else lambda value: None if value is None else turn(value)


def _tuple(of: tuple[Any, ...]) -> Codec:
    if of[-1] is Ellipsis:
        inner = codec(of[0])
        return Codec(_each(list, inner.dump), _each(tuple, inner.load) or tuple)
    inners = [codec(each) for each in of]
    if all(each.plain for each in inners):
        return Codec(None, tuple)
    return Codec(
        _places(list, [each.dump for each in inners]),
        _places(tuple, [each.load for each in inners]),
    )


def _each(build: Callable[[Any], Any], turn: Turn | None) -> Turn | None:
    return None if turn is None else lambda values: build(map(turn, values))


def _places(build: Callable[[Any], Any], turns: Sequence[Turn | None]) -> Turn:
    """A turn of its own for each place."""
    return lambda values: build(
        value if turn is None else turn(value) for turn, value in zip(turns, values, strict=True)
    )


def _flag(of: type[Flag]) -> Codec:
    @cache
    def load(text: str) -> Flag:
        return reduce(or_, (of[name] for name in text.split("|")))

    return Codec(attrgetter("name"), load)


def _text_enum(of: type[StrEnum]) -> Codec:
    return Codec(None, {member.value: member for member in of}.__getitem__)


def _enum(of: type[Enum]) -> Codec:
    return Codec(attrgetter("name"), of.__members__.__getitem__)


MAKERS: tuple[tuple[Callable[[type], bool], Callable[[Any], Codec]], ...] = (
    (lambda of: issubclass(of, Flag), _flag),
    (lambda of: issubclass(of, StrEnum), _text_enum),
    (lambda of: issubclass(of, Enum), _enum),
    (lambda of: issubclass(of, Value), _value),
    (is_dataclass, _part),
)
