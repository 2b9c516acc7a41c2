"""Changes of a spec, field by field, as text that fits into an event."""

import json
from collections.abc import Mapping
from typing import Any

from broker.model.errors import BadOption
from broker.model.spec import TaskSpec, Value

OPTIONS = "options."


def patch_of(changes: Mapping[str, object]) -> str:
    """Dotted names of fields with their new values; `options.LONG` is an option's text.

    None takes an option away.
    """
    return json.dumps(changes, default=_plain) if changes else ""


def _plain(value: object) -> object:
    if isinstance(value, Value):
        return value.model_dump()
    raise TypeError(f"{value!r} cannot be kept in a change")


def patched(spec: TaskSpec, patch: str) -> TaskSpec:
    """The spec with the changes of `patch_of`. Raises BadOption for what a field cannot have."""
    data, options = spec.model_dump(), dict(spec.options)
    for path, value in json.loads(patch or "{}").items():
        if path.startswith(OPTIONS) and value is None:
            options.pop(path.removeprefix(OPTIONS), None)
        elif path.startswith(OPTIONS):
            options[path.removeprefix(OPTIONS)] = str(value)
        else:
            _set(data, path, value)
    data["options"] = tuple(sorted(options.items()))
    try:
        return TaskSpec.model_validate(data)
    except ValueError as error:
        raise BadOption("", patch, str(error)) from error


def _set(data: dict[str, Any], path: str, value: object) -> None:
    *above, last = path.split(".")
    for name in above:
        data = data[name]
    data[last] = value
