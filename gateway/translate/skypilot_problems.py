"""What is wrong with a task file, from pydantic's findings to one text with the way out."""

import re
from collections.abc import Sequence

from pydantic_core import ErrorDetails

from broker.model.errors import BadSpec
from gateway.config.problems import UNFIT, near, shown
from gateway.translate.skypilot_fit import Unfit
from gateway.translate.skypilot_schema import SECTIONS, keys_of

Path = tuple[str | int, ...]
MESSAGES = UNFIT | {
    "extra_forbidden": "no such key",
    "dict_type": "not a group of keys",
    "model_type": "not a group of keys",
    "list_type": "not a list",
}
SPELLED = {"any_of": "resources", "ordered": "resources", "file_mounts": "file_mounts.PATH"}
"""Groups whose keys are told elsewhere."""
HIDDEN = ("secrets", "envs")
"""Groups whose values are never told."""
_TAGS = re.compile(
    r"function-.*|dict\[.*|list\[.*|str|int|bool|float|constrained-.*|Git|Storage|nullable\[.*"
)


def told(details: Sequence[ErrorDetails], place: str) -> BadSpec:
    """The first thing that is wrong, and after it the others."""
    first, *others = [_problem(detail, place) for detail in _most_telling(details)]
    if others:
        first.hint = "; ".join(filter(None, [first.hint, *(f"also {o.message}" for o in others)]))
    return first


def _most_telling(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """One for each place: pydantic tells every branch of a union that did not fit.

    That something is no text says the least.
    """
    found: dict[Path, ErrorDetails] = {}
    for detail in details:
        path = _path(detail["loc"])
        if path not in found or found[path]["type"] == "string_type":
            found[path] = detail
    deeper = {path[:end] for path in found for end in range(len(path))}
    return [detail for path, detail in found.items() if path not in deeper]


def _problem(detail: ErrorDetails, place: str) -> BadSpec:
    path, kind, value = _path(detail["loc"]), detail["type"], detail["input"]
    cause = detail.get("ctx", {}).get("error")
    message = MESSAGES.get(kind) or detail["msg"].replace("Input should", "must")
    if isinstance(cause, ValueError):
        message = str(cause)
    hint = _out(path) if kind == "extra_forbidden" else ""
    name = ".".join(map(str, path))
    if isinstance(cause, Unfit):
        name = f"{name}.{cause.misfit.path}".rstrip(".")
        message, hint = cause.misfit.text, cause.misfit.hint
    bare = isinstance(cause, ValueError) or kind in {"extra_forbidden", "missing"}
    parts = [name, "" if bare or path[:1] in {(one,) for one in HIDDEN} else shown(value), message]
    return BadSpec(name, shown(value), place + ": ".join(filter(None, parts)), hint=hint)


def _out(path: Path) -> str:
    """Where a key belongs, or which it was meant to be."""
    name = str(path[-1])
    if len(path) == 1 and name in SECTIONS["resources"]["properties"]:
        return "it stands below resources"
    if path[0] == "resources" and name in SECTIONS[""]["properties"]:
        return "it stands at the top, not in resources"
    return near(name, _known(path[:-1]))


def _path(loc: Path) -> Path:
    """Without the names of types that pydantic puts in for the branches of a union."""
    return tuple(
        part
        for number, part in enumerate(loc)
        if number == 0 or not isinstance(part, str) or not _TAGS.fullmatch(part)
    )


def _known(path: Path) -> list[str]:
    """Keys of the innermost group that has a list of them."""
    words = [str(part) for part in path if isinstance(part, str)]
    if not words:
        return keys_of("")
    for start in range(len(words)):
        section = ".".join(words[start:])
        if section in SECTIONS:
            return keys_of(section)
    spelled = [SPELLED[word] for word in words if word in SPELLED]
    return keys_of(spelled[-1]) if spelled else []
