"""SkyPilot's task YAML (0.14): every key that it has, its value read, or refused by name.

What a key means here is `skypilot_task`'s business; this module only knows what may be written.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from broker.model.errors import BadSpec
from gateway.config.problems import UNFIT, near, shown
from gateway.translate import skypilot_values as values

LONGEST = 1 << 20
MOST_VALUES = 200_000
LONG_TEXT = 64
"""Characters of a text that count as one value more."""
"""Characters of a task file."""
HEADER_KEYS = {"name", "execution", "primary_tasks", "termination_delay", "inter_connection"}
"""All that the first of several documents has when it is no task itself."""
RENAMED = {"gpus": "accelerators", "spot_recovery": "job_recovery"}
"""Older spellings in `resources`."""
SUBSTITUTED = ("workdir", "file_mounts", "service", "volumes")
"""Keys in which `$NAME` and `${NAME}` are replaced by `envs`."""
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")

Path = tuple[str | int, ...]
Tree = dict[str, Any]
Text = Annotated[str | None, BeforeValidator(values.scalar)]


def _tolerated(raw: object) -> object:
    """Without SkyPilot's internal keys and without what is given as nothing."""
    if not isinstance(raw, Mapping):
        return raw
    kept = {key: value for key, value in raw.items() if value is not None}
    return {key: value for key, value in kept.items() if not str(key).startswith("_")}


class Section(BaseModel):
    """A group of keys; any other is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Candidate(Section):
    """One set of resources that would do."""

    infra: Annotated[values.Place, BeforeValidator(values.place)] | None = None
    cloud: str | None = None
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    accelerators: Annotated[values.Gpus, BeforeValidator(values.gpus)] | None = None
    accelerator_args: Tree | None = None
    cpus: Annotated[values.Cpus, BeforeValidator(values.cpus)] | None = None
    memory: Annotated[values.Memory, BeforeValidator(values.memory)] | None = None
    use_spot: Annotated[bool, BeforeValidator(values.market)] | None = None
    job_recovery: str | Tree | None = None
    disk_size: Annotated[int, BeforeValidator(values.disk_gib)] | None = None
    ephemeral_storage: Annotated[int, BeforeValidator(values.disk_gib)] | None = None
    disk_tier: str | None = None
    network_tier: str | None = None
    local_disk: Annotated[int, BeforeValidator(values.local_disk_mib)] | None = None
    max_hourly_cost: Annotated[int, BeforeValidator(values.dollars)] | None = None
    image_id: str | Tree | None = None
    ports: Annotated[tuple[str, ...], BeforeValidator(values.ports)] | None = None
    labels: dict[str, Text] | None = None
    autostop: Annotated[values.Autostop | None, BeforeValidator(values.autostop)] = None
    priority: int | None = None
    priority_class: str | None = None
    volumes: list[Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _spelling(cls, raw: object) -> object:
        """Older names to today's. Raises ValueError where both are given."""
        if not isinstance(raw, Mapping):
            return raw
        for old, new in RENAMED.items():
            if raw.get(old) is not None and raw.get(new) is not None:
                raise ValueError(f"{old} and {new} are the same: give one")
        if raw.get("infra") is not None and any(raw.get(k) for k in ("cloud", "region", "zone")):
            raise ValueError("infra holds cloud, region and zone: give it or those, not both")
        named = {RENAMED.get(key, key): value for key, value in raw.items() if value is not None}
        return _tolerated(named)

    @property
    def place(self) -> values.Place:
        """Where to buy, in either spelling."""
        if self.infra is not None:
            return self.infra
        return values.Place(self.cloud.lower() if self.cloud else None, self.region, self.zone)


class Resources(Candidate):
    """What each node has to give; the alternatives override what stands beside them."""

    any_of: tuple[Candidate, ...] | None = None
    ordered: tuple[Candidate, ...] | None = None

    @model_validator(mode="after")
    def _one_order(self) -> "Resources":
        listed = self.accelerators is not None and self.accelerators.ordered
        if self.any_of and self.ordered:
            raise ValueError("any_of and ordered exclude each other")
        if listed and (self.any_of or self.ordered):
            raise ValueError("a list of accelerators does not go with any_of or ordered")
        return self

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every alternative, complete."""
        return tuple(self._over(inner) for inner in self.any_of or self.ordered or ()) or (self,)

    def _over(self, inner: Candidate) -> Candidate:
        given = {key: getattr(inner, key) for key in inner.model_fields_set}
        if inner.labels and self.labels:
            given["labels"] = {**self.labels, **inner.labels}
        outer = {key: getattr(self, key) for key in self.model_fields_set & _CANDIDATE_KEYS}
        if "infra" in given:
            outer = {k: v for k, v in outer.items() if k not in {"cloud", "region", "zone"}}
        return Candidate.model_construct(**{**outer, **given})


_CANDIDATE_KEYS = set(Candidate.model_fields)


class Service(Section):
    """A service to be kept up (SkyServe)."""

    readiness_probe: str | Tree | None = None
    replicas: int | None = None
    replica_policy: Tree | None = None
    load_balancing_policy: str | None = None
    ports: int | str | None = None
    tls: Tree | None = None
    load_balancer: Tree | None = None
    pool: bool | None = None
    workers: int | None = None


class Pool(Section):
    """Workers to be kept up for jobs."""

    workers: int | None = None
    min_workers: int | None = None
    max_workers: int | None = None
    queue_length_threshold: int | None = None
    upscale_delay_seconds: int | None = None
    downscale_delay_seconds: int | None = None


class Git(Section):
    """A repository as working directory."""

    url: str
    ref: Text = None


def _names(value: object) -> object:
    """Variables by name. Raises ValueError for what no shell takes as a name."""
    for key in value if isinstance(value, Mapping) else ():
        if not IDENTIFIER.fullmatch(str(key)):
            raise ValueError(f"{key!r} is no name of a variable: letters, digits and _")
    return value


Variables = Annotated[dict[str, Text], BeforeValidator(_names)]


class Task(Section):
    """One task, as written."""

    name: Text = None
    num_nodes: int = 1
    workdir: str | Git | None = None
    setup: str | None = None
    run: str | None = None
    envs: Variables | None = None
    secrets: Variables | list[str] | None = None
    managed_secrets: list[Any] | Tree | None = None
    file_mounts: dict[str, str | Tree] | None = None
    volumes: Tree | None = None
    resources: Resources = Resources()
    config: Tree | None = None
    experimental: Tree | None = None
    service: Service | None = None
    pool: Pool | None = None
    inputs: Tree | None = None
    outputs: Tree | None = None
    event_callback: str | None = None
    api_server_access: bool | None = None
    file_mounts_mapping: Any = None
    volume_mounts: Any = None

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: object) -> object:
        return _tolerated(raw)

    @model_validator(mode="after")
    def _counts(self) -> "Task":
        if self.num_nodes < 1:
            raise ValueError(f"num_nodes is {self.num_nodes}: at least 1")
        return self


KNOWN: Mapping[str, type[BaseModel]] = {
    "": Task,
    "resources": Resources,
    "any_of": Candidate,
    "ordered": Candidate,
    "service": Service,
    "pool": Pool,
    "workdir": Git,
}
MESSAGES = UNFIT | {
    "extra_forbidden": "no such key",
    "dict_type": "not a group of keys",
    "model_type": "not a group of keys",
    "list_type": "not a list",
}


def read(
    text: str,
    *,
    envs: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> tuple[Task, ...]:
    """The tasks of a file: one, or those of a pipeline or a group.

    `envs` and `secrets` go before the file's, `overrides` are keys of `resources`, `num_nodes`,
    `name` or `workdir`, of which the value `none` clears. Raises BadSpec.
    """
    trees = _documents(text)
    if len(trees) > 1 and set(trees[0]) <= HEADER_KEYS:
        trees = trees[1:]
    several = len(trees) > 1
    try:
        changed = [
            _changed(tree, envs or {}, secrets=secrets or {}, overrides=overrides or {})
            for tree in trees
        ]
    except RecursionError:
        raise BadSpec("", "", "the file refers to itself without end") from None
    return tuple(
        _task(tree, f"task {number}: " if several else "") for number, tree in enumerate(changed, 1)
    )


def _documents(text: str) -> list[Tree]:
    if len(text) > LONGEST:
        raise BadSpec("", "", f"a task file of {len(text)} characters; {LONGEST} are taken")
    try:
        found = [tree for tree in _bounded(text) if tree is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        told = getattr(error, "problem", None) or str(error)
        raise BadSpec("", "", f"{where}{told}", hint="this is no YAML") from error
    except RecursionError:
        raise BadSpec("", "", "the file is nested too deeply") from None
    for tree in found:
        if not isinstance(tree, dict):
            raise BadSpec("", shown(tree), "a task is a list of `key: value` lines")
    return found or [{}]


def _bounded(text: str) -> Iterator[Tree | None]:
    """Each document. Raises YAMLError, RecursionError, BadSpec where aliases make it too much."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and _values(node, {}) > MOST_VALUES:
                told = f"with its aliases written out the file has more than {MOST_VALUES} values"
                raise BadSpec("", "", told, hint="use fewer aliases (*name)")
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many there are with each alias written out; what refers to itself counts once."""
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value) // LONG_TEXT
    if id(node) not in known:
        known[id(node)] = 1
        pairs = isinstance(node, yaml.MappingNode)
        inner = [one for pair in node.value for one in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_values(one, known) for one in inner)
    return known[id(node)]


def _changed(
    tree: Tree, envs: Mapping[str, str], *, secrets: Mapping[str, str], overrides: Mapping[str, Any]
) -> Tree:
    """The task with what the command line says."""
    tree = dict(tree)
    for key, given in (("envs", envs), ("secrets", secrets)):
        if given and isinstance(tree.get(key), dict | None):
            tree[key] = {**(tree.get(key) or {}), **given}
    plain = {key: value for key, value in overrides.items() if key in Task.model_fields}
    tree.update({key: _cleared(value) for key, value in plain.items()})
    resources = {key: _cleared(v) for key, v in overrides.items() if key not in plain}
    if resources:
        tree["resources"] = _overridden(tree.get("resources") or {}, resources)
    return _substituted(tree)


def _cleared(value: Any) -> Any:
    return None if isinstance(value, str) and value.lower() == "none" else value


def _overridden(resources: Any, given: Tree) -> Any:
    """What the command line says goes before every alternative."""
    if not isinstance(resources, dict):
        return resources
    kept = {key: value for key, value in resources.items() if RENAMED.get(key, key) not in given}
    if "infra" in given:
        kept = {key: v for key, v in kept.items() if key not in {"cloud", "region", "zone"}}
    for key in ("any_of", "ordered"):
        if isinstance(kept.get(key), list):
            kept[key] = [_overridden(inner, given) for inner in kept[key]]
    return {**kept, **given}


def _substituted(tree: Tree) -> Tree:
    envs = tree.get("envs")
    known = {k: str(v) for k, v in envs.items() if v is not None} if isinstance(envs, dict) else {}
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


def _task(tree: Tree, place: str) -> Task:
    try:
        return Task.model_validate(tree)
    except ValidationError as error:
        raise _told(error.errors(include_url=False), place) from error


def _told(details: Sequence[ErrorDetails], place: str) -> BadSpec:
    """The first thing that is wrong, and after it the others."""
    first, *others = [_problem(detail, place) for detail in _most_telling(details)]
    if others:
        first.hint = "; ".join(filter(None, [first.hint, *(f"also {o.message}" for o in others)]))
    return first


def _most_telling(details: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """One for each place: pydantic tells every branch of a union that did not fit."""
    found: dict[Path, ErrorDetails] = {}
    for detail in details:
        found.setdefault(_path(detail["loc"]), detail)
    deeper = {path[:end] for path in found for end in range(len(path))}
    return [detail for path, detail in found.items() if path not in deeper]


def _problem(detail: ErrorDetails, place: str) -> BadSpec:
    path, kind, value = _path(detail["loc"]), detail["type"], detail["input"]
    cause = detail.get("ctx", {}).get("error")
    message = MESSAGES.get(kind) or detail["msg"].replace("Input should", "must")
    if isinstance(cause, ValueError):
        message = str(cause)
    hint = near(str(path[-1]), _known(path[:-1])) if kind == "extra_forbidden" else ""
    name = ".".join(map(str, path))
    bare = isinstance(cause, ValueError) or kind in {"extra_forbidden", "missing"}
    told = [name, "" if bare or path[:1] == ("secrets",) else shown(value), message]
    return BadSpec(name, shown(value), place + ": ".join(filter(None, told)), hint=hint)


def _path(loc: Path) -> Path:
    """Without the names of types that pydantic puts in for the branches of a union."""
    tags = re.compile(r"function-.*|dict\[.*|list\[.*|str|int|constrained-.*|Git|nullable\[.*")
    return tuple(
        part
        for number, part in enumerate(loc)
        if number == 0 or not isinstance(part, str) or not tags.fullmatch(part)
    )


def _known(path: Path) -> list[str]:
    group = next((part for part in reversed(path) if isinstance(part, str)), "")
    model = KNOWN.get(group)
    return list(model.model_fields) if model else []
