"""What of a task is not done: what is refused at launch, and what is left out with a note.

The reasons stand in the schema; here is only what depends on values and on where it is launched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic_core import PydanticUndefined

from broker.model.errors import BadSpec
from gateway.config.problems import shown
from gateway.translate.buckets import RULE, S3, can_be, can_be_made
from gateway.translate.skypilot import Section, Storage, Task
from gateway.translate.skypilot_container import image_of
from gateway.translate.skypilot_files import sources_of, unheard, volume_of
from gateway.translate.skypilot_forms import NOTED, REFUSED
from gateway.translate.skypilot_schema import SECTIONS
from gateway.translate.skypilot_slurm import unread
from gateway.translate.skypilot_supply import served

OTHER_STORES = ("gs://", "r2://", "cos://", "oci://", "nebius://", "cw://", "hf://", "vastdata://")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A key that cannot be served, why, and the way out."""

    path: str
    why: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}"


def refusals(task: Task) -> Iterator[Refusal]:
    """All that would be refused at launch."""
    if task.pool is not None:
        yield Refusal("pool", "workers are no cluster", "`spz jobs pool apply` keeps them up")
    yield from _of_schema(task)
    yield from _of_places(task)
    yield from _of_files(task)
    yield from _of_volumes(task)


def missing(task: Task) -> list[tuple[str, str]]:
    """Variables without a value: the option that gives it, and the name."""
    envs = [("--env", name) for name, value in (task.envs or {}).items() if value is None]
    return envs + [
        ("--secret", name) for name, text in (task.secrets or {}).items() if text is None
    ]


def must_be_possible(task: Task) -> None:
    """Raises BadSpec for the first thing that cannot be done here, or lacks a value."""
    for one in refusals(task):
        raise BadSpec(one.path, "", f"{one.path}: not supported here: {one.why}", hint=one.hint)
    for option, name in missing(task):
        group = "envs" if option == "--env" else "secrets"
        why = "needs a value" if option == "--env" else "needs a value, no store of secrets is here"
        out = f'{option} {name}=VALUE, or "" in the file for an empty one'
        raise BadSpec(f"{group}.{name}", None, f"{group}.{name}: {why}", hint=out)


def notes(task: Task) -> Iterator[str]:
    """One line for each key that changes nothing here, and why."""
    for path, why in _given(task, NOTED):
        yield f"{path}: ignored, {why}"
    yield from autostop_note(task)
    config = task.config or (task.experimental.config_overrides if task.experimental else None)
    others = sorted(config.model_extra or {}) if config else []
    if others:
        yield f"config.{', '.join(others)}: ignored, of config slurm, docker and hooks are read"
    if task.docker.run_options and image_of(task) is None:
        yield "config.docker.run_options: ignored, the task is in no container"
    for target, name in unheard(task):
        yield f"file_mounts.{target}.config.{name}: ignored, this mount has no use for it"
    left = list(unread(task.slurm))
    if left:
        yield f"config.slurm.sbatch_options.{', '.join(left)}: ignored, not an option of tasks here"


def _of_schema(task: Task) -> Iterator[Refusal]:
    for path, why in _given(task, REFUSED):
        yield Refusal(path, why, HINTS.get(path, ""))


HINTS: Mapping[str, str] = {
    "resources.accelerator_args": "name a GPU in accelerators",
}


def autostop_note(task: Task) -> Iterator[str]:
    """Where stopping can only be letting go."""
    for one in task.resources.candidates:
        if one.autostop and not one.autostop.down and one.use_spot:
            yield "resources.autostop: spot machines cannot be stopped, an idle cluster is let go"
            return


def _given(task: Task, does: str) -> Iterator[tuple[str, str]]:
    """The keys of that kind which the task gives, each once."""
    told: dict[str, str] = {}
    for section, group in _groups(task):
        for name in _set(group):
            form = SECTIONS[section]["properties"].get(name, {})
            if form.get("x-does") == does:
                told[f"{section}.{name}".lstrip(".")] = form["x-note"]
    yield from told.items()


def _groups(task: Task) -> Iterator[tuple[str, Section]]:
    yield "", task
    for candidate in served(task) or task.resources.candidates:
        yield "resources", candidate
    for source in (task.file_mounts or {}).values():
        if isinstance(source, Storage):
            yield "file_mounts.PATH", source
    if task.pool is not None:
        yield "pool", task.pool
    yield "config.slurm", task.slurm
    yield "config.docker", task.docker


def _set(group: Section) -> list[str]:
    """Keys with a value, in the schema's order."""
    fields = type(group).model_fields
    return [
        name
        for name in fields
        if name in group.model_fields_set and getattr(group, name, PydanticUndefined) is not None
    ]


def _of_places(task: Task) -> Iterator[Refusal]:
    """Where no alternative is left that EC2 can serve."""
    if not served(task):
        names = ", ".join(sorted({str(one.place.cloud) for one in task.resources.candidates}))
        why = f"{names} is not served, machines come from EC2"
        yield Refusal("resources.infra", why, "leave it out, or write infra: aws (--infra aws)")


def _of_volumes(task: Task) -> Iterator[Refusal]:
    """A disk is with one machine, and is made before it is used."""
    for target, wanted in (task.volumes or {}).items():
        path = f"volumes.{target}"
        if not target.startswith(("/", "~/")):
            yield Refusal(path, "no full path", "write /mnt/data or ~/data")
        elif volume_of(wanted) is None:
            why = "a volume that goes with its cluster is its root disk"
            yield Refusal(path, why, "ask for disk_size, or name one of `spz volumes`")
        elif task.num_nodes > 1:
            yield Refusal(path, "a disk is with one machine at a time", "use a bucket: file_mounts")


def _of_files(task: Task) -> Iterator[Refusal]:
    """Of what can be read already: the value of a variable may still be asked for."""
    unknown = [form for _, name in missing(task) for form in (f"${{{name}}}", f"${name}")]
    for target, source in (task.file_mounts or {}).items():
        texts = [*sources_of(source), (source.name or "") if isinstance(source, Storage) else ""]
        if not any(form in text for form in unknown for text in texts):
            yield from _of_mount(f"file_mounts.{target}", source)


def _of_mount(path: str, source: str | Storage) -> Iterator[Refusal]:
    if isinstance(source, Storage) and source.store not in {None, "s3"}:
        yield Refusal(f"{path}.store", f"{source.store} is not served, only s3 is", "store: s3")
        return
    if isinstance(source, Storage) and source.name is None and source.source is None:
        yield Refusal(path, "a mount needs a source or a name", "write name: BUCKET")
        return
    if isinstance(source, Storage) and source.name is not None and not can_be_made(source.name):
        name = shown(source.name) or "an empty text"
        yield Refusal(f"{path}.name", f"{name} is no name of a bucket", RULE)
    for text in sources_of(source):
        if not text:
            yield Refusal(path, "its source is an empty text", "write a path, or s3://BUCKET")
        if text.startswith(OTHER_STORES) or "blob.core.windows.net" in text:
            yield Refusal(
                path, f"{text}: only s3:// is served", "copy it to S3, or fetch it in setup"
            )
        elif text.startswith(S3) and not can_be(text):
            yield Refusal(path, f"{shown(text)} names no bucket", f"write {S3}BUCKET/KEY")
