"""What of a task is refused, left out with a note, or has to be given."""

import json
from collections.abc import Mapping

import pytest

from broker.model.errors import BadSpec
from broker.model.spec import Gres, Where
from gateway.translate.skypilot import read
from gateway.translate.skypilot_task import translate
from tests.unit.gateway.translate.tasks import ORIGIN, refusal, task

DISK = "a volume that goes with its cluster is its root disk"


@pytest.mark.parametrize(
    ("text", "path", "why"),
    [
        ("pool: {workers: 1}", "pool", "workers are no cluster"),
        ("volumes: {/x: {size: 5Gi}}", "volumes./x", DISK),
        ("volumes: {x: y}", "volumes.x", "no full path"),
        ("{num_nodes: 2, volumes: {/x: y}}", "volumes./x", "a disk is with one machine at a time"),
        ("file_mounts: {/data: gs://b}", "file_mounts./data", "gs://b: only s3:// is served"),
        (
            "file_mounts: {/d: {name: b, store: gcs}}",
            "file_mounts./d.store",
            "gcs is not served, only s3 is",
        ),
        ("file_mounts: {/d: {mode: MOUNT}}", "file_mounts./d", "a mount needs a source or a name"),
        ("file_mounts: {/d: ''}", "file_mounts./d", "its source is an empty text"),
        (
            "file_mounts: {/d: {name: ''}}",
            "file_mounts./d.name",
            "an empty text is no name of a bucket",
        ),
        ("file_mounts: {/d: s3://../k}", "file_mounts./d", "s3://../k names no bucket"),
        *(
            (
                f"file_mounts: {{/d: {{name: '{name}'}}}}",
                "file_mounts./d.name",
                f"{name} is no name of a bucket",
            )
            for name in (
                *("../evil", "ab", "Abc", "a_b", "-abc", "abc-", "a..b", "abc/d", "a b", "a" * 64),
                *("192.168.5.4", "xn--abc", "sthree-abc", "abc-s3alias", "abc--x-s3"),
            )
        ),
        (
            "resources: {accelerators: tpu-v5e-8, accelerator_args: {tpu_vm: true}}",
            "resources.accelerator_args",
            "EC2 has no TPUs",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(text: str, path: str, why: str) -> None:
    error = refusal(text)
    assert (error.path, error.message) == (path, f"{path}: not supported here: {why}")


@pytest.mark.parametrize("infra", ["gcp", "k8s", "ssh/mine", "azure/eastus", "slurm"])
def test_other_clouds_are_refused_by_name(infra: str) -> None:
    error = refusal(f"resources: {{infra: {infra}}}")
    assert "is not served, machines come from EC2" in error.message


def test_alternatives_on_other_clouds_are_left_out_with_a_note() -> None:
    made = task("resources: {any_of: [{infra: gcp}, {infra: aws/us-east-1}]}")
    assert made.spec.resources.any_of == (Where(region="us-east-1"),)
    assert made.notes == ("resources.infra: alternatives on gcp are left out",)


def test_what_an_alternative_on_another_cloud_asks_for_refuses_no_other() -> None:
    text = "{infra: gcp, accelerators: tpu-v4-8, accelerator_args: {tpu_vm: true}}"
    made = task(f"resources: {{any_of: [{text}, {{accelerators: H100:8}}]}}")
    assert made.spec.resources.gres == (Gres(name="gpu", type="H100", count=8),)


def test_a_variable_without_a_value_has_to_be_given() -> None:
    text = "envs: {TOKEN: null}\nrun: x"
    assert refusal(text).hint == '--env TOKEN=VALUE, or "" in the file for an empty one'
    assert task(text, envs={"TOKEN": ""}).spec.steps
    assert task('envs: {TOKEN: ""}\nrun: x').spec.steps


@pytest.mark.parametrize(
    "mount", ["{name: $BOX}", "'s3://${BOX}/in'", "{source: 's3://${BOX}'}", "gs://$BOX"]
)
def test_what_a_variable_names_is_judged_once_it_has_a_value(mount: str) -> None:
    text = f"envs: {{BOX: null}}\nfile_mounts: {{/data: {mount}}}\nrun: x"
    assert refusal(text).hint.startswith("--env BOX=VALUE")


@pytest.mark.parametrize("text", ["secrets: {T: null}", "secrets: ['secrets:T']"])
def test_a_secret_without_a_value_has_to_be_given(text: str) -> None:
    assert refusal(text).hint.startswith("--secret T=VALUE")


def test_what_is_ignored_is_told_once() -> None:
    made = task(
        "resources: {disk_size: 100, ports: 80, autostop: 10, memory: 16, use_spot: true}\n"
        "inputs: {s3://b: 1}\nconfig: {gcp: {}, hooks: [{run: x}]}\nservice: {replicas: 2}"
    )
    told = [note.split(":")[0] for note in made.notes]
    assert told == [
        "service",
        "inputs",
        "resources.autostop",
        "config.gcp",
        "resources.memory",
        "resources.disk_size, ports",
    ]


def test_settings_that_no_program_of_the_mount_takes_are_told() -> None:
    cached = "{source: s3://b, mode: MOUNT_CACHED, config: {mount: {read_only: true}}}"
    plain = "{source: s3://b, config: {mount: {read_only: true}, disk_size: 10}}"
    told = task(f"file_mounts: {{/a: {cached}, /b: {plain}}}").notes
    assert [note.split(":")[0] for note in told] == [
        "file_mounts./a.config.mount",
        "file_mounts./b.config.disk_size",
    ]


def test_a_plain_task_has_no_notes() -> None:
    assert task("resources: {accelerators: A10G:1}\nrun: x").notes == ()


@pytest.mark.parametrize("name", ["", "1a", "a_", "a b", "a/b", "-a", "é"])
def test_a_bad_name_of_a_cluster_is_refused(name: str) -> None:
    (one,) = read("run: x")
    with pytest.raises(BadSpec, match="is no name of a cluster"):
        translate(one, ORIGIN, cluster=name)


@pytest.mark.parametrize(
    ("tree", "path"),
    [
        ({"envs": {"A": "x\0y"}}, "envs.A"),
        ({"run": "echo \0"}, "run"),
        ({"setup": "\0"}, "setup"),
        ({"file_mounts": {"/a": {"source": ["/b\0"]}}}, "file_mounts./a.source"),
        ({"file_mounts": {"/a\0": "/b"}}, "file_mounts"),
    ],
)
def test_a_nul_is_refused_wherever_it_stands(tree: Mapping[str, object], path: str) -> None:
    error = refusal(json.dumps({"run": "x", **tree}))
    assert (error.path, error.message) == (path, f"{path}: holds a NUL character ('\\0')")


def test_a_bad_line_about_files_is_refused_with_its_place() -> None:
    told = refusal("run: |\n  #SPZ chekpoint=ckpt\n  python fit.py\n").message
    assert told.startswith("run: line 1: #SPZ chekpoint=ckpt")
    assert told.endswith("did you mean checkpoint?")
