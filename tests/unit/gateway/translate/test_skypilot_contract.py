"""The contract of task files: the schema, the models and the corpus say the same."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from broker.model.errors import BadSpec
from gateway.translate.skypilot import Git, Pool, Resources, Slurm, Storage, Task, read_file
from gateway.translate.skypilot_documents import RENAMED
from gateway.translate.skypilot_manual import keys_page
from gateway.translate.skypilot_schema import (
    CONFIG,
    HEADER,
    SCHEMA,
    SECTIONS,
    Schema,
    described,
)
from gateway.translate.skypilot_summary import summary
from tests.unit.gateway.translate.tasks import SUPPLY

CORPUS = Path(__file__).parents[3] / "tables" / "skypilot"
FILES = sorted(CORPUS.glob("*.yaml"))
TASK = Draft202012Validator(SCHEMA)
OF_HEADER = Draft202012Validator(HEADER)


def documents(text: str) -> list[Any]:
    return [tree for tree in yaml.safe_load_all(text) if tree is not None]


def fits(text: str) -> bool:
    """Whether every document is a task, or the first of several a header."""
    trees = documents(text)
    headed = len(trees) > 1 and OF_HEADER.is_valid(trees[0])
    return all(TASK.is_valid(tree) for tree in (trees[1:] if headed else trees))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert len(FILES) >= 100


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_of_the_corpus_fits_the_schema_and_is_told_in_one_line(file: Path) -> None:
    text = file.read_text("utf-8")
    assert fits(text)
    assert "\n" not in summary(read_file(text), SUPPLY)


def given(tree: Any, schema: Schema, path: str = "") -> Iterator[str]:
    """Paths of the schema's keys that a document has."""
    for form in forms(schema):
        if isinstance(tree, Mapping):
            known = form.get("properties", {})
            others = form.get("additionalProperties")
            for key, inner in tree.items():
                if key in known:
                    yield f"{path}.{key}"
                    yield from given(inner, known[key], f"{path}.{key}")
                elif isinstance(others, Mapping):
                    yield from given(inner, dict(others), f"{path}.*")
        elif isinstance(tree, list):
            for inner in tree:
                yield from given(inner, form.get("items", {}), path)


def forms(schema: Schema) -> list[Schema]:
    if "$ref" in schema:
        return forms(SECTIONS["resources"])
    found = [inner for form in schema.get("anyOf", ()) for inner in forms(form)]
    return found or [schema]


def every(schema: Schema, path: str = "") -> Iterator[str]:
    for form in forms(schema):
        for key, inner in form.get("properties", {}).items():
            yield f"{path}.{key}"
            yield from every(inner, f"{path}.{key}")
        others = form.get("additionalProperties")
        if isinstance(others, Mapping):
            yield from every(dict(others), f"{path}.*")
        if "items" in form:
            yield from every(form["items"], path)


OF_ALTERNATIVES = (
    *(".resources.any_of.", ".resources.ordered.", ".resources.candidates."),
    ".experimental.config_overrides.",
)
"""Their keys are those of `resources` and `config`."""


def test_each_key_of_the_schema_is_in_a_file_of_the_corpus() -> None:
    used = {
        path
        for file in FILES
        for tree in documents(file.read_text("utf-8"))
        for path in [*given(tree, SCHEMA), *(f"header{p}" for p in given(tree, HEADER))]
    }
    wanted = {*every(SCHEMA), *(f"header{path}" for path in every(HEADER))}
    missing = {path for path in wanted - used if not path.startswith(OF_ALTERNATIVES)}
    assert missing == set()


MODELS: Mapping[str, type[BaseModel]] = {
    "": Task,
    "resources": Resources,
    "file_mounts.PATH": Storage,
    "workdir": Git,
    "pool": Pool,
    "config.slurm": Slurm,
}
"""By the sections of the schema that they read."""


@pytest.mark.parametrize("section", MODELS)
def test_a_model_has_the_keys_of_its_part_of_the_schema(section: str) -> None:
    keys = set(SECTIONS[section]["properties"])
    fields = set(MODELS[section].model_fields)
    assert fields == keys - set(RENAMED if section == "resources" else ())


def test_each_key_that_does_nothing_says_why() -> None:
    idle = {path: form for path, form in described() if form["x-does"] in {"noted", "refused"}}
    assert len(idle) >= 20
    assert [path for path, form in idle.items() if not form.get("x-note")] == []


def test_settings_of_plug_ins_pass() -> None:
    assert CONFIG["additionalProperties"] is True


BAD = (
    "nme: x",
    "resources: {accelerator: L4}",
    "resources: {infra: awss}",
    "resources: {cloud: amazon}",
    "resources: {cpus: lots}",
    "resources: {use_spot: maybe}",
    "resources: {disk_tier: fast}",
    "resources: {network_tier: premium}",
    "resources: {priority: 5000}",
    "resources: {autostop: {idle: 5}}",
    "resources: {autostop: {idle_minutes: 5, wait_for: never}}",
    "resources: {job_recovery: {recover_on_exit_codes: 300}}",
    "resources: {job_recovery: {max_restarts_on_errors: -1}}",
    "resources: {labels: [a]}",
    "resources: {any_of: {cpus: 2}}",
    "resources: {any_of: [{cpus: 2}], candidates: [{cpus: 3}]}",
    "resources: {autostop: {hook: a}, termination_hook: {command: b}}",
    "resources: {preemption: {hook_timeout: 3}}",
    "resources: [cpus]",
    "run: [a]",
    "run: {a: b}",
    "envs: [A]",
    "envs: {A-B: c}",
    "secrets: {A B: c}",
    "file_mounts: {/a: {name: b, mode: LINK}}",
    "file_mounts: {/a: {nam: b}}",
    "file_mounts: {/a: {name: b, type: DATASET}}",
    "file_mounts: {/a: {name: b, config: {mont: {}}}}",
    "file_mounts: {/a: {name: b, config: {mount_cached: {transfers: 0}}}}",
    "file_mounts: {/a: {name: b, config: {mount_cached: {buffer_size: much}}}}",
    "secrets: [{A: b}]",
    "secrets: {'secrets:A': b}",
    "config: {hooks: [{run: x, timeout: 0}]}",
    "file_mounts: [/a]",
    "workdir: {ref: main}",
    "workdir: {url: x, branch: main}",
    "num_nodes: 0",
    "num_nodes: many",
    "service: {replicas: many}",
    "service: {readiness_probe: {initial_delay_seconds: 1}}",
    "service: {replica_policy: {max_replicas: 1}}",
    "service: {replica_policy: {min_replicas: 1, targt_qps_per_replica: 1}}",
    "pool: {worker: 1}",
    "pool: {workers: -1}",
    "inputs: {a: 1, b: 2}",
    "config: {hooks: [{ran: x}]}",
    "config: {slurm: {sbatch_option: {}}}",
    "api_server_access: perhaps",
    "name: a\nexecution: paralel\n---\nrun: x",
    "name: a\nexecution: parallel\n---\nrun: x\n---\nrun: y",
    "name: a\nexecution: parallel\n---\nname: b\nrun: x\n---\nname: b\nrun: y",
    "name: a\nexecution: parallel\nprimary_tasks: [c]\n---\nname: b\nrun: x\n---\nname: d\nrun: y",
    "name: a\nexecution: serial\n",
    "name: a\nexecution: serial\nextra: 1\n---\nrun: x",
    "just words",
    "- a\n- b",
    "a: [",
)


@pytest.mark.parametrize("text", BAD)
def test_a_bad_file_is_refused_with_the_place(text: str) -> None:
    with pytest.raises(BadSpec) as caught:
        read_file(text)
    assert caught.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("resources: {infra: awss}", "resources.infra: 'awss' is no cloud; did you mean aws?"),
        (
            "service: {readiness_probe: {pth: /}}",
            "service.readiness_probe.path: missing",
        ),
        (
            "service: {replica_policy: {min_replicas: 1, min_replica: 2}}",
            "service.replica_policy.min_replica: no such key",
        ),
        ("file_mounts: {/a: {nam: b}}", "file_mounts./a.nam: no such key"),
        (
            "file_mounts: {/a: {name: b, config: {mount_cached: {vfs_write_back: soon}}}}",
            "file_mounts./a.config.mount_cached.vfs_write_back: soon is not written like 5s",
        ),
        (
            "secrets: {'secrets:A': b}",
            "secrets: secrets:A is one of a store, without a value here: write A",
        ),
        ("labels: {1: x}\n'labels': {}", "line 2: labels is there already, in line 1"),
        ("envs: {1: x}", "envs: '1' is no name of a variable: letters, digits and _"),
        ("run: x\n---\nnme: b", "task 2: nme: no such key"),
        ("name: a\nexecution: paralel\n---\nrun: x", "execution: paralel: serial or parallel"),
        ("secrets: {T-1: hush}", "secrets: 'T-1' is no name of a variable: letters, digits and _"),
        ("run: x\nenvs: {A: 1}\nrun: y", "line 3: run is there already, in line 1"),
        ("envs: {A: 1, A: 2}", "line 1: A is there already, in line 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(BadSpec) as caught:
        read_file(text)
    assert caught.value.message == told


def test_the_manual_has_a_line_for_each_key() -> None:
    lines = keys_page().splitlines()[2:]
    assert len(lines) == len(list(described()))
    assert "| `num_nodes` | whole number | works | Nodes, all alike; all or none. |" in lines
    noted = next(line for line in lines if line.startswith("| `inputs`"))
    assert noted.endswith("| noted | Where data comes from. Egress is not in the estimate. |")
