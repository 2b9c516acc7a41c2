"""The forms of which the schema of task files is made, and what a key says of itself."""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]
WORKS, SENSIBLE, NOTED, REFUSED = "works", "sensible", "noted", "refused"

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
NOTHING: Schema = {"type": "null"}
TREE: Schema = {"type": "object"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "minimum": 0}
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
ANYTHING: Schema = {"type": ["string", "number", "boolean", "null", "array", "object"]}
AMOUNT: Schema = {"type": ["string", "number"]}
INTERNAL: Schema = {"^_": {}}
"""Keys of SkyPilot's own; whatever they hold is passed over."""


def any_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def mapped(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def group(
    keys: Mapping[str, Schema], *, required: tuple[str, ...] = (), closed: bool = True
) -> Schema:
    """A group of keys, and no others but internal ones; a key given as nothing is not given."""
    made: Schema = {
        "type": ["object", "null"],
        "properties": {name: _or_nothing(form) for name, form in keys.items()},
        "patternProperties": INTERNAL,
        "additionalProperties": not closed,
    }
    return made | ({"required": list(required)} if required else {})


def _or_nothing(form: Schema) -> Schema:
    if not form or "$ref" in form or form.get("type") == ["object", "null"]:
        return form
    told: Schema = {key: form[key] for key in ("description", "x-does", "x-note") if key in form}
    bare = {key: value for key, value in form.items() if key not in told}
    return {**told, **any_of(bare, NOTHING)}


def _key(does: str, told: str, form: Schema, *, note: str = "") -> Schema:
    why = {"x-note": note} if note else {}
    return {"description": told, "x-does": does, **why, **form}


def works(told: str, form: Schema) -> Schema:
    return _key(WORKS, told, form)


def sensible(told: str, form: Schema) -> Schema:
    return _key(SENSIBLE, told, form)


def noted(told: str, form: Schema, note: str) -> Schema:
    return _key(NOTED, told, form, note=note)


def refused(told: str, form: Schema, note: str) -> Schema:
    return _key(REFUSED, told, form, note=note)
