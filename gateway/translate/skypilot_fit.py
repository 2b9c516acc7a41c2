"""Whether a value fits a part of the schema: for groups that are taken as they are written."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.config.problems import near, shown
from gateway.translate.skypilot_forms import Schema

TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (Mapping,),
    "array": (list, tuple),
    "null": (type(None),),
}
WORDS = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "a group of keys",
    "array": "a list",
    "null": "nothing",
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """One thing that is wrong; `path` from the group that was looked at."""

    path: str
    text: str
    hint: str = ""


class Unfit(ValueError):
    """A value does not fit; `misfit` is the first thing that is wrong."""

    def __init__(self, misfit: Misfit) -> None:
        super().__init__(f"{misfit.path}: {misfit.text}" if misfit.path else misfit.text)
        self.misfit = misfit


def fitting(schema: Schema) -> Callable[[object], Any]:
    """A reader of such values, as they are. It raises Unfit."""

    def read(value: object) -> object:
        for misfit in misfits(value, schema):
            raise Unfit(misfit)
        return value

    return read


def misfits(value: object, schema: Schema, path: str = "") -> Iterator[Misfit]:
    """Each thing that is wrong, with its place."""
    forms = schema.get("anyOf")
    if forms is not None:
        yield from _of_forms(value, forms, path)
        return
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in _listed(kinds)):
        wanted = " or ".join(WORDS[kind] for kind in _listed(kinds) if kind != "null")
        yield Misfit(path, f"{shown(value)} is not {wanted}")
    elif isinstance(value, Mapping):
        yield from _of_keys(value, schema, path)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from misfits(inner, schema.get("items", {}), f"{path}.{number}".lstrip("."))
    else:
        yield from _of_scalar(value, schema, path)


def _of_forms(value: object, forms: Sequence[Schema], path: str) -> Iterator[Misfit]:
    """Nothing if one form fits; else what is wrong with the form of the value's own kind."""
    found = [list(misfits(value, form, path)) for form in forms]
    if all(found):
        deeper = [told for told in found if told[0].path != path]
        yield from min(deeper or found, key=len)


def _of_keys(value: Mapping[Any, Any], schema: Schema, path: str) -> Iterator[Misfit]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield Misfit(f"{path}.{name}".lstrip("."), "missing")
    for key, inner in value.items():
        name, place = str(key), f"{path}.{key}".lstrip(".")
        if name in known:
            yield from misfits(inner, known[name], place)
        elif others is False and not any(re.match(p, name) for p in schema["patternProperties"]):
            yield Misfit(place, "no such key", near(name, list(known)))
        elif isinstance(others, dict):
            yield from misfits(inner, others, place)


def _of_scalar(value: object, schema: Schema, path: str) -> Iterator[Misfit]:
    if value not in schema.get("enum", (value,)):
        words = schema["enum"]
        yield Misfit(path, f"{shown(value)} is none of {', '.join(words)}", near(str(value), words))
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield Misfit(path, f"{shown(value)} is not written like {schema['examples'][0]}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_range(value, schema, path)


def _of_range(value: float, schema: Schema, path: str) -> Iterator[Misfit]:
    if value < schema.get("minimum", value):
        yield Misfit(path, f"{value} is less than {schema['minimum']}")
    if value > schema.get("maximum", value):
        yield Misfit(path, f"{value} is more than {schema['maximum']}")


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, TYPES[kind])


def _listed(kinds: str | list[str]) -> list[str]:
    return [kinds] if isinstance(kinds, str) else kinds
