"""The trees of a task file before they are read: header, what the command line says, variables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.model.errors import BadSpec
from gateway.config.problems import near
from gateway.translate.skypilot_schema import HEADER, TASK
from gateway.translate.skypilot_values import duration

Tree = dict[str, Any]
HEADER_KEYS = frozenset(HEADER["properties"])
TASK_KEYS = frozenset(TASK["properties"])
ANNOUNCING = frozenset({"execution", "primary_tasks", "dependencies"})
"""Keys that only a header has."""
ELSEWHERE = {
    "dependencies": "tasks of a pipeline run one after the other, in the order of the file; "
    "what waits for several is a batch script: sbatch --dependency"
}
EXECUTIONS = ("serial", "parallel")
DEFAULT = "default"
SAFE = re.compile(r"[\w-]+")
"""Names in a group: they become names of hosts and files."""
RENAMED = {"gpus": "accelerators", "spot_recovery": "job_recovery", "candidates": "any_of"}
"""Older spellings in `resources`."""
SUBSTITUTED = ("workdir", "file_mounts", "service", "volumes")
"""Keys in which `$NAME` and `${NAME}` are replaced by `envs` and `secrets`."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


@dataclass(frozen=True, slots=True)
class Header:
    """What the first of several documents says of the others."""

    name: str | None = None
    parallel: bool = False
    primary: tuple[str, ...] = ()
    """Tasks whose end ends the group; empty: all are waited for."""
    delays: Mapping[str, int] = field(default_factory=dict)
    """How long the others may go on then, by task, `default` for the rest; seconds."""
    unread: tuple[str, ...] = ()
    """Keys that say nothing here, nor to SkyPilot."""

    @property
    def notes(self) -> list[str]:
        """What of it is not done, a line each."""
        return [f"{key}: ignored, it is no key of a group's header" for key in self.unread]

    def delay(self, name: str) -> int:
        """Seconds that a task may go on after the primary ones."""
        return self.delays.get(name, self.delays.get(DEFAULT, 0))


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says: it goes before the file."""

    envs: Mapping[str, str]
    secrets: Mapping[str, str]
    overrides: Mapping[str, Any]


def headed(trees: Sequence[Tree]) -> tuple[Header, Sequence[Tree]]:
    """The header, and the documents that are tasks. Raises BadSpec."""
    first = trees[0]
    announced = not ANNOUNCING.isdisjoint(first)
    if not announced and (len(trees) < 2 or set(first) != {"name"}):
        return Header(), trees
    way = str(first.get("execution") or "serial").lower()
    if way not in EXECUTIONS:
        raise BadSpec(
            "execution", way, f"execution: {way}: serial or parallel", hint=near(way, EXECUTIONS)
        )
    unknown = sorted(set(map(str, first)) - HEADER_KEYS)
    if unknown and way == "serial":
        hint = ELSEWHERE.get(unknown[0]) or near(unknown[0], sorted(HEADER_KEYS))
        raise BadSpec(unknown[0], "", f"{unknown[0]}: no such key of a header", hint=hint)
    if len(trees) < 2:
        raise BadSpec("", "", "a header without tasks", hint="write them behind it, after ---")
    name = first.get("name")
    header = Header(
        None if name is None else str(name),
        way == "parallel",
        _primary(first.get("primary_tasks") or ()),
        _delays(first.get("termination_delay")),
        tuple(unknown),
    )
    return header, trees[1:]


def _primary(value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise BadSpec("primary_tasks", value, "primary_tasks: not a list")
    return tuple(map(str, value))


def _delays(value: object) -> dict[str, int]:
    """Seconds by task. Raises BadSpec."""
    given = value if isinstance(value, dict) else {} if value is None else {DEFAULT: value}
    try:
        return {str(name): duration(one, bare=1) for name, one in given.items()}
    except ValueError as error:
        raise BadSpec("termination_delay", value, f"termination_delay: {error}") from error


def must_be_group(header: Header, names: Sequence[str | None]) -> None:
    """Raises BadSpec where a group's tasks cannot be told apart, or a task named is none."""
    if not header.parallel:
        return
    _must_be_names(header.name, names)
    for number, name in enumerate(names, 1):
        if name is None or list(names).count(name) > 1:
            told = "has no name" if name is None else f"is called {name} as another is"
            raise BadSpec(
                "name", name, f"task {number} {told}", hint="tasks of a group need their own"
            )
    _must_be_known(header, [one for one in names if one is not None])


def _must_be_names(group: str | None, names: Sequence[str | None]) -> None:
    if group is None:
        raise BadSpec("name", None, "the group has no name", hint="write name: in its header")
    for named in (group, *names):
        if named is not None and not SAFE.fullmatch(named):
            hint = "in a group letters, digits, - and _ make a name"
            raise BadSpec("name", named, f"name: {named!r} is not taken", hint=hint)


def _must_be_known(header: Header, known: Sequence[str]) -> None:
    asked = [("primary_tasks", name) for name in header.primary]
    asked += [("termination_delay", name) for name in header.delays if name != DEFAULT]
    for key, name in asked:
        if name not in known:
            raise BadSpec(key, name, f"{key}: {name}: no such task", hint=near(name, known))


def merged(tree: Tree, given: Given) -> Tree:
    """The task with what the command line says."""
    tree = dict(tree)
    for key, values in (("envs", given.envs), ("secrets", given.secrets)):
        if values and isinstance(tree.get(key), dict | None):
            tree[key] = {**(tree.get(key) or {}), **values}
        elif values and isinstance(tree.get(key), list):
            kept = [name for name in tree[key] if str(name).removeprefix("secrets:") not in values]
            tree[key] = {**dict.fromkeys(kept), **values}
    plain = {key: value for key, value in given.overrides.items() if key in TASK_KEYS}
    tree.update({key: _cleared(value) for key, value in plain.items()})
    resources = {key: _cleared(v) for key, v in given.overrides.items() if key not in plain}
    if resources:
        tree["resources"] = _overridden(tree.get("resources") or {}, resources)
    return tree


REDACTED = "<redacted>"


def redacted(tree: Tree) -> Tree:
    """Without the values of secrets; one without a value stays one."""
    secrets = tree.get("secrets")
    if not isinstance(secrets, dict):
        return tree
    hidden = {name: None if text is None else REDACTED for name, text in secrets.items()}
    return {**tree, "secrets": hidden}


def must_hold_no_nul(value: object, path: str = "") -> None:
    """No script, variable or path has one, as with sbatch. Raises BadSpec for the first."""
    if isinstance(value, str) and "\0" in value:
        raise BadSpec(path, "", f"{path}: holds a NUL character ('\\0')", hint="take it out")
    if isinstance(value, dict):
        for key, one in value.items():
            must_hold_no_nul(str(key), path or "a key")
            must_hold_no_nul(one, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list | tuple | set):
        for one in value:
            must_hold_no_nul(one, path)


def _cleared(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "none" else value


def _overridden(resources: Any, given: Tree) -> Any:
    """What the command line says goes before every alternative."""
    if not isinstance(resources, dict):
        return resources
    named = {RENAMED.get(key, key): value for key, value in resources.items()}
    kept = {key: value for key, value in named.items() if key not in given}
    if "infra" in given:
        kept = {key: v for key, v in kept.items() if key not in {"cloud", "region", "zone"}}
    for key in ("any_of", "ordered"):
        if isinstance(kept.get(key), list):
            kept[key] = [_overridden(inner, given) for inner in kept[key]]
    return {**kept, **given}


def substituted(tree: Tree) -> Tree:
    """With variables replaced where SkyPilot does; secrets too, so it is not to be shown."""
    known: dict[str, str] = {}
    for key in ("envs", "secrets"):
        values = tree.get(key)
        if isinstance(values, dict):
            known |= {str(k): str(v) for k, v in values.items() if v is not None}
    found = {key: _filled(tree[key], known) for key in SUBSTITUTED if key in tree}
    return {**tree, **found}


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda m: known.get(m[1] or m[2], m[0]), value)
    if isinstance(value, dict):
        return {_filled(key, known): _filled(inner, known) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, known) for inner in value]
    return value
