"""The manual's table of task files, made from the schema."""

from collections.abc import Mapping

from gateway.translate.skypilot_forms import NOTED, REFUSED, SENSIBLE, WORKS, Schema
from gateway.translate.skypilot_schema import described

WORDS = {
    WORKS: "works",
    SENSIBLE: "as far as EC2 has it",
    NOTED: "noted",
    REFUSED: "refused at launch",
}
FORMS: Mapping[str, str] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "map",
    "array": "list",
}


def keys_page() -> str:
    """Markdown: each key, its forms, and what is done with it."""
    lines = ["| key | forms | here | what |", "| --- | --- | --- | --- |"]
    for path, form in described():
        note = form.get("x-note", "")
        told = form["description"] + (f" {note[0].upper()}{note[1:]}." if note else "")
        does = WORDS[form["x-does"]]
        lines.append(f"| `{path}` | {forms_of(form)} | {does} | {_cell(told)} |")
    return "\n".join(lines)


def forms_of(form: Schema) -> str:
    """`text or list`."""
    found = [word for one in _forms(form) for word in _words(one)]
    return " or ".join(dict.fromkeys(found)) or "anything"


def _forms(form: Schema) -> list[Schema]:
    if "$ref" in form:
        return [{"type": "object"}]
    return [inner for one in form.get("anyOf", ()) for inner in _forms(one)] or [form]


def _words(form: Schema) -> list[str]:
    if "enum" in form:
        return [f"`{word}`" for word in form["enum"]]
    kinds = form.get("type", [])
    return [FORMS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind in FORMS]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
