"""Task and Resources for programs, under SkyPilot's names: what a task file says, as values."""

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from broker.model.errors import BadSpec, Refused
from gateway.sdk import dags
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_documents import RENAMED, Given, merged
from gateway.translate.skypilot_yaml import written

Json = dict[str, Any]
Accelerators = str | Mapping[str, float | None] | Iterable[str]
Variables = Mapping[str, str] | Iterable[tuple[str, str]]
Mounts = Mapping[str, str | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Resources:
    """What each node has to give; every field is a key of `resources` and None is not asked.

    They stand in SkyPilot's order: `Resources(sdk.AWS(), "p4d.24xlarge")`.
    """

    cloud: str | None = None
    instance_type: str | None = None
    cpus: int | float | str | None = None
    memory: int | float | str | None = None
    accelerators: Accelerators | None = None
    accelerator_args: Mapping[str, Any] | None = None
    infra: str | None = None
    use_spot: bool | None = None
    job_recovery: str | Mapping[str, Any] | None = None
    region: str | None = None
    zone: str | None = None
    image_id: str | Mapping[str, str] | None = None
    disk_size: int | str | None = None
    disk_tier: str | None = None
    network_tier: str | None = None
    local_disk: str | None = None
    max_hourly_cost: float | None = None
    ports: int | str | list[int | str] | None = None
    labels: Mapping[str, str] | None = None
    autostop: bool | int | str | Mapping[str, Any] | None = None
    hooks: list[Mapping[str, Any]] | None = None
    priority: int | None = None
    priority_class: str | None = None
    volumes: list[Mapping[str, Any]] | None = None
    any_of: "tuple[Resources, ...]" = ()
    ordered: "tuple[Resources, ...]" = ()

    def __hash__(self) -> int:
        """Equal ones have equal places; maps and lists in the other fields have no hash."""
        return hash((self.infra, self.cloud, self.region, self.zone, self.instance_type))

    def copy(self, **override: Any) -> "Resources":
        """The same with other values. Raises TypeError for a key that is none."""
        return replace(self, **override)

    def to_yaml_config(self) -> Json:
        """As a task file has it."""
        found: Json = {}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in {"any_of", "ordered"}:
                value = [inner.to_yaml_config() for inner in value] or None
            elif one.name == "accelerators" and not isinstance(value, str | Mapping | None):
                kind = dict.fromkeys if isinstance(value, set | frozenset) else list
                value = kind(value)
            if value is not None:
                found[one.name] = dict(value) if isinstance(value, Mapping) else value
        return found

    @classmethod
    def from_yaml_config(
        cls, config: Mapping[str, Any] | None
    ) -> "set[Resources] | list[Resources]":
        """The alternatives, each complete: a list in order of liking, else a set, of one at least.

        Raises BadSpec for a key that is none.
        """
        whole = cls.of_tree(config or {})
        inner = whole.any_of or whole.ordered
        outer = whole.copy(any_of=(), ordered=())
        found = [one for each in inner for one in outer._under(each)._of_each_gpu()]
        found = found or outer._of_each_gpu()
        listed = isinstance(outer.accelerators, list)
        return found if whole.ordered or listed else set(found)

    def _under(self, inner: "Resources") -> "Resources":
        """`inner`, with this for all that it does not say."""
        said = {one.name: getattr(inner, one.name) for one in fields(inner)}
        given = {key: value for key, value in said.items() if value not in (None, ())}
        if inner.labels and self.labels:
            given["labels"] = {**self.labels, **inner.labels}
        here = self.copy(cloud=None, region=None, zone=None) if inner.infra else self
        if self.infra and (inner.cloud or inner.region or inner.zone):
            place = [part if part != "*" else None for part in self.infra.split("/")]
            cloud, region, zone = (*place, None, None)[:3]
            here = self.copy(infra=None, cloud=cloud, region=region, zone=zone)
        return here.copy(**given)

    def _of_each_gpu(self) -> "list[Resources]":
        """One of each accelerator that would do."""
        asked = self.accelerators
        if asked is None or isinstance(asked, str):
            return [self]
        pairs = asked.items() if isinstance(asked, Mapping) else ((name, None) for name in asked)
        texts = [name if count is None else f"{name}:{count}" for name, count in pairs]
        return [self.copy(accelerators=text) for text in texts] or [self]

    @classmethod
    def of_tree(cls, config: Mapping[str, Any]) -> "Resources":
        """With its alternatives inside, older spellings too. Raises BadSpec for another key."""
        given = {RENAMED.get(key, key): value for key, value in config.items()}
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise BadSpec(unknown[0], "", f"resources.{unknown[0]}: no such key")
        for key in ("any_of", "ordered"):
            given[key] = tuple(cls.of_tree(one) for one in given.get(key) or ())
        return cls(**given)


@dataclass(slots=True)
class Task:
    """One task: what runs, on how many nodes, with what."""

    name: str | None = None
    setup: str | None = None
    run: str | None = None
    envs: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    workdir: str | Mapping[str, str] | None = None
    num_nodes: int = 1
    resources: Resources | None = None
    """A set or list of them is taken too."""
    file_mounts: dict[str, str | Mapping[str, Any]] = field(default_factory=dict)
    volumes: Json = field(default_factory=dict)
    event_callback: str | None = None
    api_server_access: bool = True
    others: Json = field(default_factory=dict)
    """Keys of the file that have no field here, as written."""
    best_resources: Resources | None = field(default=None, init=False)
    """What `optimize` chose."""
    storage_mounts: InitVar[Mapping[str, Mapping[str, Any]] | None] = None
    """They stand in `file_mounts`."""
    docker_image: InitVar[str | None] = None
    """It stands in `resources`."""
    blocked_resources: InitVar[Iterable[Resources] | None] = None

    def __post_init__(
        self,
        storage_mounts: Mapping[str, Mapping[str, Any]] | None,
        docker_image: str | None,
        blocked_resources: Iterable[Resources] | None,
    ) -> None:
        """Takes every form that SkyPilot's constructor takes. Raises Refused."""
        if blocked_resources is not None:
            raise Refused("blocked_resources: what is refused is remembered by the service")
        self.envs, self.secrets = dict(self.envs or {}), dict(self.secrets or {})
        self.volumes, self.num_nodes = self.volumes or {}, self.num_nodes or 1
        self.file_mounts = {**(self.file_mounts or {}), **(storage_mounts or {})}
        self.setup, self.run = _script(self.setup), _script(self.run)
        asked: object = self.resources
        if isinstance(asked, set | frozenset | list | tuple):
            self.set_resources(asked)
        if docker_image is not None:
            self.resources = (self.resources or Resources()).copy(image_id=f"docker:{docker_image}")
        if (dag := dags.current()) is not None:
            dag.add(self)

    def __rshift__(self, other: "Task") -> None:
        """`a >> b` in the `with` of a dag: b waits for a. Raises Refused elsewhere."""
        dag = dags.current()
        if dag is None:
            raise Refused(">> stands in a dag", hint="with sdk.Dag() as dag: ...")
        dag.add_edge(self, other)

    @classmethod
    def from_yaml(cls, yaml_path: str | Path) -> "Task":
        """Of a file. Raises BadSpec, Refused."""
        try:
            text = Path(yaml_path).expanduser().read_text(encoding="utf-8")
        except (OSError, RuntimeError, ValueError) as error:
            raise Refused(f"{yaml_path}: {getattr(error, 'strerror', None) or error}") from error
        return cls.from_yaml_str(text)

    @classmethod
    def from_yaml_str(cls, yaml_str: str) -> "Task":
        """Of a text. Raises BadSpec."""
        file = read_file(yaml_str)
        if len(file.tasks) > 1:
            raise BadSpec("", "", f"{len(file.tasks)} tasks, not one")
        tree = dict(file.trees[0])
        if file.tasks[0].secrets:
            tree["secrets"] = {k: v for k, v in file.tasks[0].secrets.items() if v is not None}
        return cls.from_yaml_config(tree)

    @classmethod
    def from_yaml_config(
        cls,
        config: Mapping[str, Any],
        env_overrides: Variables | None = None,
        secrets_overrides: Variables | None = None,
    ) -> "Task":
        """Of a tree, with values of variables that go before its own. Raises BadSpec."""
        over = Given(dict(env_overrides or {}), dict(secrets_overrides or {}), {})
        config = merged(dict(config), over)
        read_file(written([config]))
        known = {one.name for one in fields(cls)} - APART
        given = {key: value for key, value in config.items() if key in known and value is not None}
        asked = config.get("resources")
        others = {k: v for k, v in config.items() if k not in known | {"resources"}}
        try:
            resources = Resources.of_tree(asked) if asked else None
        except BadSpec:
            resources, others = None, {**others, "resources": asked}  # SkyPilot's own keys stay
        return cls(**given, resources=resources, others=others)

    def to_yaml_config(self) -> Json:
        """As a task file has it."""
        found: Json = dict(self.others)
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name not in APART and value not in (None, {}):
                found[one.name] = value
        if not self.api_server_access:
            found["api_server_access"] = False
        if self.resources is not None:
            found["resources"] = self.resources.to_yaml_config()
        if self.file_mounts:
            found["file_mounts"] = {to: _plain(one) for to, one in self.file_mounts.items()}
        if found.get("num_nodes") == 1:
            del found["num_nodes"]
        return found

    def to_yaml_str(self) -> str:
        """Its file."""
        return written([self.to_yaml_config()])

    def set_resources(self, resources: Resources | Iterable[Resources]) -> "Task":
        """One, a set of alternatives (any will do), or a list of them (in order of liking)."""
        if isinstance(resources, Resources):
            self.resources = resources
        elif isinstance(resources, set | frozenset):
            self.resources = Resources(any_of=tuple(resources))
        else:
            self.resources = Resources(ordered=tuple(resources))
        return self

    def set_resources_override(self, override_params: Mapping[str, Any]) -> "Task":
        """Goes before what is asked for, in each alternative too. Raises TypeError."""
        asked = self.resources or Resources()
        inner = {
            key: tuple(one.copy(**override_params) for one in getattr(asked, key))
            for key in ("any_of", "ordered")
        }
        self.resources = asked.copy(**override_params, **inner)
        return self

    def update_envs(self, envs: Variables | None) -> "Task":
        """Adds variables."""
        self.envs.update(dict(envs or {}))
        return self

    def update_secrets(self, secrets: Variables | None) -> "Task":
        """Adds variables that are never shown."""
        self.secrets.update(dict(secrets or {}))
        return self

    def set_file_mounts(self, file_mounts: Mounts | None) -> "Task":
        """What is brought, by where it goes."""
        self.file_mounts = dict(file_mounts or {})
        return self

    def update_file_mounts(self, file_mounts: Mounts) -> "Task":
        """Adds what is brought."""
        self.file_mounts.update(file_mounts)
        return self

    def set_storage_mounts(self, storage_mounts: Mapping[str, Json] | None) -> "Task":
        """Adds buckets by where they go."""
        return self.update_file_mounts(dict(storage_mounts or {}))

    update_storage_mounts = set_storage_mounts

    def set_volumes(self, volumes: Mapping[str, Any]) -> "Task":
        """Disks that outlive machines, by where they go."""
        self.volumes = dict(volumes)
        return self

    def update_volumes(self, volumes: Mapping[str, Any]) -> "Task":
        """Adds such disks."""
        self.volumes.update(volumes)
        return self

    def update_workdir(
        self, workdir: str | None, git_url: str | None, git_ref: str | None
    ) -> "Task":
        """Another folder, or another repository, or only another ref of it."""
        before = self.workdir if isinstance(self.workdir, Mapping) else {}
        told = {"url": git_url, "ref": git_ref}
        given = {key: value for key, value in told.items() if value is not None}
        if workdir is not None or (given and (before or git_url is not None)):
            self.workdir = {**before, **given} if workdir is None else workdir
        return self

    def set_inputs(self, inputs: str, estimated_size_gigabytes: float) -> "Task":
        """Where data comes from; it changes nothing here."""
        self.others["inputs"] = {inputs: estimated_size_gigabytes}
        return self

    def set_outputs(self, outputs: str, estimated_size_gigabytes: float) -> "Task":
        """Where data goes; it changes nothing here."""
        self.others["outputs"] = {outputs: estimated_size_gigabytes}
        return self

    @property
    def envs_and_secrets(self) -> dict[str, str]:
        """All variables; secrets go before."""
        return {**self.envs, **self.secrets}

    def get_resource_config(self) -> Json:
        """What it asks for, as a task file has it."""
        found: Json = self.to_yaml_config().get("resources", {})
        return found

    def validate(self) -> None:
        """Raises BadSpec for what no task file may say."""
        read_file(self.to_yaml_str())

    @property
    def use_spot(self) -> bool:
        """Whether any of what it asks for is spot."""
        asked = self.resources or Resources()
        return any(one.use_spot for one in (asked, *asked.any_of, *asked.ordered))


APART = frozenset({"others", "resources", "api_server_access", "best_resources"})
"""Fields that are no plain keys of a file."""


def _plain(source: str | Mapping[str, Any]) -> str | Json:
    return source if isinstance(source, str) else dict(source)


def _script(text: str | list[str] | None) -> str | None:
    """Lines may be given as a list."""
    return "\n".join(text) if isinstance(text, list) else text
