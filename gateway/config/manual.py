"""The manual's pages about the configuration, made from the settings themselves."""

from collections.abc import Iterator
from decimal import Decimal
from typing import get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator, SecretStr
from pydantic.fields import FieldInfo

from accounting.tres import GresCounts
from gateway.config.fields import AnyOf, Form, OneOf
from gateway.config.settings import Config
from sbatch_shim.grammar.values import show_long

Group = type[BaseModel]
PLAIN = {
    int: "whole number",
    bool: "true or false",
    str: "text",
    Decimal: "number",
    SecretStr: "text",
}
SECOND_FORMS = ("time", "time or UNLIMITED")


def settings_page() -> str:
    """Markdown: each group of settings with a table of its names, forms, defaults and meanings."""
    return "\n\n".join(_section(path, group) for path, group in groups(Config))


def groups(group: Group, path: str = "") -> Iterator[tuple[str, Group]]:
    """Every group with the path that leads to it; `[]` marks a list."""
    yield path, group
    for name, field in group.model_fields.items():
        inner, listed = group_in(field.annotation), get_origin(field.annotation) is tuple
        if inner is not None:
            yield from groups(inner, f"{path}.{name}".lstrip(".") + ("[]" if listed else ""))


def group_in(annotation: object) -> Group | None:
    """The group of settings inside `tuple[Group, ...]` or `Group | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(group_in, get_args(annotation))), None)


def _section(path: str, group: Group) -> str:
    title = f"## `{path}`" if path else "## At the top"
    own_first = sorted(group.model_fields, key=lambda name: name not in group.__annotations__)
    rows = [_row(name, group.model_fields[name]) for name in own_first]
    head = "| setting | value | default | meaning |\n| --- | --- | --- | --- |"
    return "\n".join([title, "", group.__doc__ or "", "", head, *rows])


def _row(name: str, field: FieldInfo) -> str:
    form = "settings below" if group_in(field.annotation) else form_of(field)
    cells = [f"`{name}`", form, _default(field, form), field.description or ""]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def form_of(field: FieldInfo) -> str:
    """How the value is written, in words."""
    marks = [*field.metadata, *_marks(field.annotation)]
    for mark in marks:
        if isinstance(mark, Form):
            return mark.text
        if isinstance(mark, BeforeValidator) and isinstance(mark.func, OneOf | AnyOf):
            joined = ", ".join(f"`{word}`" for word in mark.func.words)
            return joined if isinstance(mark.func, OneOf) else f"any of {joined}"
    return _plain(field.annotation) + _bounds(marks)


def _marks(annotation: object) -> list[object]:
    """Annotations inside of `Annotated[...] | None`."""
    inner = [mark for part in get_args(annotation) for mark in _marks(part)]
    return [*getattr(annotation, "__metadata__", ()), *inner]


def _plain(annotation: object) -> str:
    found = [PLAIN[part] for part in (annotation, *get_args(annotation)) if part in PLAIN]
    found += [_plain(part) for part in get_args(annotation) if get_args(part)]
    named = get_origin(annotation) is dict
    return f"`name: {found[-1]}` lines" if named and found else next(filter(None, found), "")


def _bounds(marks: list[object]) -> str:
    low = next((mark.ge for mark in marks if isinstance(mark, Ge)), None)
    high = next((mark.le for mark in marks if isinstance(mark, Le)), None)
    if low is not None and high is not None:
        return f", {low} to {high}"
    return f" from {low}" if low else ""


def _default(field: FieldInfo, form: str) -> str:
    value = field.default
    if field.is_required():
        return "required"
    if value is None or group_in(field.annotation) or value in ((), {}, ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and form in SECOND_FORMS:
        return f"`{show_long(value)}`"
    return f"`{_list_text(value) if isinstance(value, tuple) else value}`"


def _list_text(value: tuple[str, ...] | GresCounts) -> str:
    return ",".join(map(str, value))
