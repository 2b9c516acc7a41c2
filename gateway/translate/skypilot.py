"""SkyPilot's task YAML (0.14): every key that it has, its value read, or refused by name.

What a key means here is `skypilot_task`'s business; this module only knows what may be written,
which is what `skypilot_schema` says.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from broker.model.errors import BadSpec
from gateway.translate import skypilot_values as values
from gateway.translate.skypilot_documents import (
    RENAMED,
    Given,
    Header,
    Tree,
    headed,
    merged,
    must_be_group,
    must_hold_no_nul,
    redacted,
    substituted,
)
from gateway.translate.skypilot_fit import fitting
from gateway.translate.skypilot_problems import told
from gateway.translate.skypilot_schema import (
    HOOK,
    HOOKS,
    JOB,
    MOUNT_CONFIG,
    PREEMPTION,
    PRESETS,
    SERVICE,
    TPU,
)
from gateway.translate.skypilot_yaml import documents

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MANAGED = "secrets:"
"""Before the name of a secret that a store would hold."""

Text = Annotated[str | None, BeforeValidator(values.scalar)]
Variable = Annotated[str | None, BeforeValidator(values.variable)]
MOST_NODES = 1_000_000
Count = Annotated[int, Field(ge=0, le=MOST_NODES)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _tolerated(raw: object) -> object:
    """Without SkyPilot's internal keys and without what is given as nothing."""
    if not isinstance(raw, Mapping):
        return raw
    kept = {key: value for key, value in raw.items() if value is not None}
    return {key: value for key, value in kept.items() if not str(key).startswith("_")}


class Section(BaseModel):
    """A group of keys; any other is an error."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: object) -> object:
        return _tolerated(raw)


class Candidate(Section):
    """One set of resources that would do."""

    infra: Annotated[values.Place, BeforeValidator(values.place)] | None = None
    cloud: Annotated[str, BeforeValidator(values.cloud)] | None = None
    region: Text = None
    zone: Text = None
    instance_type: str | None = None
    accelerators: Annotated[values.Gpus | None, BeforeValidator(values.gpus)] = None
    accelerator_args: Annotated[Tree, BeforeValidator(fitting(TPU))] | None = None
    cpus: Annotated[values.Cpus, BeforeValidator(values.cpus)] | None = None
    memory: Annotated[values.Memory, BeforeValidator(values.memory)] | None = None
    use_spot: Annotated[bool, BeforeValidator(values.market)] | None = None
    job_recovery: Annotated[values.Recovery | None, BeforeValidator(values.recovery)] = None
    disk_size: Annotated[int, BeforeValidator(values.disk_gib)] | None = None
    ephemeral_storage: Annotated[int, BeforeValidator(values.disk_gib)] | None = None
    disk_tier: Annotated[str, BeforeValidator(values.disk_tier)] | None = None
    network_tier: Annotated[str, BeforeValidator(values.network_tier)] | None = None
    local_disk: Annotated[int, BeforeValidator(values.local_disk_mib)] | None = None
    max_hourly_cost: Annotated[int, BeforeValidator(values.dollars)] | None = None
    image_id: str | dict[str, str] | None = None
    ports: Annotated[tuple[str, ...], BeforeValidator(values.ports)] | None = None
    labels: dict[str, Text] | None = None
    autostop: Annotated[values.Autostop | None, BeforeValidator(values.autostop)] = None
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = None
    priority_class: str | None = None
    volumes: list[Tree] | None = None
    hooks: Annotated[list[Tree], BeforeValidator(fitting(HOOKS))] | None = None
    termination_hook: Annotated[Tree, BeforeValidator(fitting(HOOK))] | None = None
    preemption: Annotated[Tree, BeforeValidator(fitting(PREEMPTION))] | None = None

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
        return {RENAMED.get(key, key): value for key, value in raw.items() if value is not None}

    @model_validator(mode="after")
    def _one_hook(self) -> Self:
        """Raises ValueError where two older keys ask for a hook and not for the same."""
        older, newer = self.autostop, self.termination_hook
        if older is None or older.hook is None or newer is None:
            return self
        if older.hook != (newer.get("command") or newer.get("run")):
            raise ValueError("autostop.hook and termination_hook differ: give one")
        return self

    @property
    def place(self) -> values.Place:
        """Where to buy, in either spelling."""
        if self.infra is not None:
            return self.infra
        return values.Place(self.cloud, self.region, self.zone)


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
        elif {"cloud", "region", "zone"} & set(given) and outer.pop("infra", None) is not None:
            place = self.place
            outer |= {"cloud": place.cloud, "region": place.region, "zone": place.zone}
        return Candidate.model_construct(**{**outer, **given})


_CANDIDATE_KEYS = set(Candidate.model_fields)


class Pool(Section):
    """Workers to be kept up for jobs."""

    workers: Count | None = None
    min_workers: Count | None = None
    max_workers: Count | None = None
    queue_length_threshold: Count | None = None
    upscale_delay_seconds: Seconds | None = None
    downscale_delay_seconds: Seconds | None = None

    @model_validator(mode="after")
    def _sized(self) -> "Pool":
        least, most = self.min_workers, self.max_workers
        if self.workers is None and most is None:
            raise ValueError("a pool needs workers, or min_workers and max_workers")
        if least is not None and most is not None and least > most:
            raise ValueError(f"min_workers {least} is more than max_workers {most}")
        return self

    @property
    def kept(self) -> int:
        """How many are kept up; of a range its least, and one at least."""
        return max(1, self.min_workers or 1) if self.workers is None else self.workers


class Git(Section):
    """A repository as working directory."""

    url: str
    ref: Text = None


class Storage(Section):
    """A bucket as a mount."""

    name: str | None = None
    source: str | list[str] | None = None
    store: Annotated[str, BeforeValidator(values.store)] | None = None
    persistent: bool | None = None
    mode: Annotated[str, BeforeValidator(values.storage_mode)] | None = None
    mount_options: str | None = None
    type: Annotated[str, BeforeValidator(values.one_of(*PRESETS))] | None = None
    config: Annotated[Tree, BeforeValidator(fitting(MOUNT_CONFIG))] | None = None


class Slurm(Section):
    """What goes to Slurm as it is."""

    sbatch_options: Tree | None = None
    quota: Tree | None = None
    cpu_partition: str | None = None
    allowed_clusters: Any = None
    cluster_configs: Any = None
    container_mounts: Any = None
    gpu_partition_map: Any = None
    pricing: Any = None
    prometheus: Any = None
    provision_timeout: Any = None
    submit_as_user: Any = None
    username_map: Any = None


class Docker(Section):
    """How containers are made."""

    run_options: Annotated[tuple[str, ...], BeforeValidator(values.words)] = ()


class Config(Section):
    """Settings for one task; those of other clouds and of plug-ins are not looked into."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    slurm: Slurm | None = None
    docker: Docker | None = None
    hooks: Annotated[list[Tree], BeforeValidator(fitting(HOOKS)), Field(max_length=32)] | None = (
        None
    )


class Experimental(Section):
    """The older place of `config`."""

    config_overrides: Config | None = None


def _names(value: object) -> object:
    """Variables by name. Raises ValueError for what no shell takes as a name."""
    for key in value if isinstance(value, Mapping) else ():
        if not IDENTIFIER.fullmatch(str(key)):
            raise ValueError(f"{key!r} is no name of a variable: letters, digits and _")
    return value


def _secret_names(value: object) -> object:
    """The same, with names in a store among them: those are the ones without a value."""
    if isinstance(value, list):
        if not all(isinstance(one, str) for one in value):
            raise ValueError("names of secrets stand in a list, or NAME: VALUE without one")
        return dict.fromkeys(one.removeprefix(MANAGED) for one in value)
    if isinstance(value, Mapping):
        managed = {str(key) for key in value if str(key).startswith(MANAGED)}
        for key in managed:
            if value[key] is not None:
                name = key.removeprefix(MANAGED)
                raise ValueError(f"{key} is one of a store, without a value here: write {name}")
        kept = {key: text for key, text in value.items() if str(key) not in managed}
        return {**dict.fromkeys(key.removeprefix(MANAGED) for key in managed), **_checked(kept)}
    return value


def _checked(variables: Mapping[Any, Any]) -> Mapping[Any, Any]:
    _names(variables)
    return variables


Variables = Annotated[dict[str, Variable], BeforeValidator(_names)]
Secrets = Annotated[dict[str, Variable], BeforeValidator(_secret_names)]


class Task(Section):
    """One task, as written."""

    name: Text = None
    num_nodes: Annotated[int, Field(ge=1, le=MOST_NODES)] = 1
    workdir: Annotated[str | Git, BeforeValidator(values.repository)] | None = None
    setup: str | None = None
    run: str | None = None
    envs: Variables | None = None
    secrets: Secrets | None = None
    managed_secrets: list[str | Tree] | Tree | None = None
    file_mounts: dict[str, str | Storage] | None = None
    volumes: dict[str, str | Tree] | None = None
    resources: Resources = Field(default_factory=Resources)
    config: Config | None = None
    experimental: Experimental | None = None
    service: Annotated[Tree, BeforeValidator(fitting(SERVICE))] | None = None
    pool: Pool | None = None
    inputs: Annotated[dict[str, float], Field(max_length=1)] | None = None
    outputs: Annotated[dict[str, float], Field(max_length=1)] | None = None
    event_callback: str | None = None
    api_server_access: bool | None = None
    api_access: bool | None = None
    job: Annotated[Tree, BeforeValidator(fitting(JOB))] | None = None
    file_mounts_mapping: Any = None
    volume_mounts: Any = None

    @model_validator(mode="after")
    def _one_purpose(self) -> "Task":
        if self.service is not None and self.pool is not None:
            raise ValueError("service and pool exclude each other")
        return self

    @property
    def docker(self) -> Docker:
        """How its container is made, from either place."""
        old = self.experimental.config_overrides if self.experimental else None
        found = [one.docker for one in (self.config, old) if one is not None and one.docker]
        return found[0] if found else Docker()

    @property
    def slurm(self) -> Slurm:
        """What goes to Slurm as it is, from either place."""
        old = self.experimental.config_overrides if self.experimental else None
        found = [one.slurm for one in (self.config, old) if one is not None and one.slurm]
        return found[0] if found else Slurm()


class VolumeFile(Section):
    """A volume, as `volumes apply` reads it."""

    name: str | None = None
    type: str | None = None
    infra: Annotated[values.Place, BeforeValidator(values.place)] | None = None
    size: Annotated[int, BeforeValidator(values.disk_gib)] | None = None
    labels: dict[str, Text] | None = None
    use_existing: bool | None = None
    config: Tree | None = None


def read_volume_file(text: str, overrides: Mapping[str, Any]) -> VolumeFile:
    """A volume's file with what the command line says. Raises BadSpec."""
    tree, *more = documents(text)
    if more:
        raise BadSpec("", "", "a volume's file is one document")
    try:
        return VolumeFile.model_validate({**tree, **overrides})
    except ValidationError as error:
        raise told(error.errors(include_url=False), "") from error


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a file holds: one task, a pipeline, or a group."""

    tasks: tuple[Task, ...]
    header: Header
    trees: tuple[Tree, ...]
    """As written, with what the command line said; secrets without their values."""

    @property
    def kind(self) -> Literal["task", "pipeline", "group"]:
        if self.header.parallel:
            return "group"
        return "pipeline" if len(self.tasks) > 1 or self.header.name else "task"


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
    return read_file(text, Given(envs or {}, secrets or {}, overrides or {})).tasks


NOT_GIVEN = Given({}, {}, {})


def read_file(text: str, given: Given = NOT_GIVEN) -> TaskFile:
    """The same with what a first document says of the others. Raises BadSpec."""
    header, trees = headed(documents(text))
    several = len(trees) > 1
    try:
        new = [merged(tree, given) for tree in trees]
        filled = [substituted(tree) for tree in new]
        must_hold_no_nul(filled)
    except RecursionError:
        raise BadSpec("", "", "the file refers to itself without end") from None
    tasks = tuple(
        _task(tree, f"task {number}: " if several else "") for number, tree in enumerate(filled, 1)
    )
    must_be_group(header, [task.name for task in tasks])
    return TaskFile(tasks, header, tuple(redacted(tree) for tree in new))


def _task(tree: Tree, place: str) -> Task:
    try:
        return Task.model_validate(tree)
    except ValidationError as error:
        raise told(error.errors(include_url=False), place) from error
