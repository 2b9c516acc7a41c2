"""SkyPilot's task YAML: what may be written, and how a mistake is told."""

from itertools import pairwise

import pytest

from gateway.translate import skypilot_values as values
from gateway.translate.skypilot import Git, read, read_file
from tests.unit.gateway.translate.tasks import refusal

KINDS = {
    "empty": "",
    "only a command": "run: echo hi\n",
    "resources left blank": "resources:\nrun: |\n  true\n",
    "a service": (
        "service:\n  readiness_probe: {path: /v1/models, initial_delay_seconds: 900}\n"
        "  replica_policy: {min_replicas: 1, max_replicas: 2}\n"
        "resources: {ports: 8080, any_of: [{use_spot: true}, {use_spot: false}]}\nrun: serve\n"
    ),
    "a pool": "pool: {workers: 2}\nresources: {accelerators: 'H200:1', infra: k8s}\nsetup: x\n",
    "a pipeline": "name: two\n---\nname: a\nrun: one\n---\nname: b\nrun: two\n",
    "an unnamed pipeline": "name: a\nrun: one\n---\nname: b\nrun: two\n",
    "a group": (
        "name: g\nexecution: parallel\nprimary_tasks: [a]\ntermination_delay: 10m\n---\n"
        "name: a\nrun: x\n---\nname: b\nnum_nodes: 2\nrun: y\n"
    ),
    "storage": (
        "file_mounts:\n  /data: s3://bucket/path\n  /out:\n    name: mine\n    store: s3\n"
        "    mode: MOUNT\n  ~/.ssh/key: ~/.ssh/key\n"
    ),
    "git workdir": "workdir:\n  url: https://example.org/x.git\n  ref: main\n",
    "older spellings": (
        "resources:\n  cloud: AWS\n  region: us-east-1\n  gpus: V100:4\n"
        "  spot_recovery: failover\n  use_spot: yes\nexperimental:\n  config_overrides: {x: 1}\n"
    ),
    "a map of images": "resources: {image_id: {us-east-1: ami-1, us-west-2: ami-2}}\n",
    "recovery": "resources:\n  job_recovery: {strategy: FAILOVER, max_restarts_on_errors: 3}\n",
    "a list of secrets": "secrets: [secrets:HF_TOKEN]\nmanaged_secrets: [WANDB]\n",
    "pod config": "config:\n  kubernetes:\n    pod_config: {spec: {containers: []}}\n",
    "internal keys": "_user_specified_yaml: x\nfile_mounts_mapping: {a: b}\nrun: x\n",
    "cost": "inputs: {s3://b: 10}\noutputs: {s3://c: 5}\nresources: {max_hourly_cost: 2.5}\n",
    "the rest of resources": (
        "resources:\n  infra: aws/*/use1-az4\n  instance_type: p4d.24xlarge\n  disk_size: 1TB\n"
        "  disk_tier: best\n  network_tier: best\n  local_disk: nvme:1000+\n"
        "  ports: [8080, 10022-10040]\n  labels: {team: x}\n  autostop: {idle_minutes: 5}\n"
        "  priority: 10\n  accelerator_args: {runtime_version: v2}\n"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_can_be_read(kind: str) -> None:
    assert read(KINDS[kind])


@pytest.mark.parametrize(
    ("pool", "kept"),
    [
        ("{workers: 0}", 0),
        ("{workers: 3}", 3),
        ("{min_workers: 2, max_workers: 4}", 2),
        ("{min_workers: 0, max_workers: 4}", 1),
        ("{max_workers: 4}", 1),
    ],
)
def test_a_pool_keeps_its_workers_or_the_least_of_its_range(pool: str, kept: int) -> None:
    (task,) = read(f"pool: {pool}")
    assert task.pool is not None and task.pool.kept == kept


def test_a_header_is_no_task() -> None:
    assert [one.name for one in read(KINDS["a pipeline"])] == ["a", "b"]
    assert [one.name for one in read(KINDS["a group"])] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nme: x", "nme: no such key|did you mean name?"),
        (
            "name: p\ndependencies: [a]\n---\nrun: x",
            "dependencies: no such key of a header|tasks of a pipeline run one after the other, in "
            "the order of the file; what waits for several is a batch script: sbatch --dependency",
        ),
        ("accelerators: L4", "accelerators: no such key|it stands below resources"),
        (
            "resources: {num_nodes: 2}",
            "resources.num_nodes: no such key|it stands at the top, not in resources",
        ),
        (
            "resources: {accelerator: L4}",
            "resources.accelerator: no such key|did you mean accelerators?",
        ),
        (
            "resources: {any_of: [{regon: x}]}",
            "resources.any_of.0.regon: no such key|did you mean region?",
        ),
        ("service: {replica: 1}", "service.replica: no such key|did you mean replicas?"),
        ("resources: {cpus: lots}", "resources.cpus: 'lots' is no cpus: 4 or 4+|"),
        ("resources: {memory: 12q}", "resources.memory: '12q' is no memory: 16, 16+, 64GB or 4x|"),
        ("resources: {cpus: -1}", "resources.cpus: '-1' is no cpus: more than 0|"),
        ("run: [1]", "run: [1]: not a text|"),
        ("num_nodes: x", "num_nodes: x: not a whole number|"),
        ("num_nodes: 0", "num_nodes: 0: must be greater than or equal to 1|"),
        ("envs: {1a: x}", "envs: '1a' is no name of a variable: letters, digits and _|"),
        ("resources: {region: [1]}", "resources.region: not a single value|"),
        (
            "resources: {accelerators: 'A100:8:1'}",
            "resources.accelerators: 'A100:8:1': an accelerator is NAME or NAME:COUNT, "
            "COUNT more than 0|",
        ),
        (
            "resources: {accelerators: 1}",
            "resources.accelerators: 1: an accelerator is NAME or NAME:COUNT, COUNT more than 0|",
        ),
        ("pool: {}", "pool: a pool needs workers, or min_workers and max_workers|"),
        ("pool: {min_workers: 1}", "pool: a pool needs workers, or min_workers and max_workers|"),
        (
            "pool: {min_workers: 3, max_workers: 1}",
            "pool: min_workers 3 is more than max_workers 1|",
        ),
        ("pool: {workers: 1}\nservice: {replicas: 1}", "service and pool exclude each other|"),
        (
            "execution: parallel\n---\nname: a\nrun: x",
            "the group has no name|write name: in its header",
        ),
        (
            "name: a b\nexecution: parallel\n---\nname: a\nrun: x",
            "name: 'a b' is not taken|in a group letters, digits, - and _ make a name",
        ),
        (
            "name: g\nexecution: parallel\ntermination_delay: {al: 5s}\n---\nname: all\nrun: x",
            "termination_delay: al: no such task|did you mean all?",
        ),
        (
            "name: g\nexecution: parallel\ntermination_delay: soon\n---\nname: a\nrun: x",
            "termination_delay: 'soon' is no duration: seconds, or 10m, 2h, 1d, 1w|",
        ),
        ("run: 'a\n", "line 2, column 1: found unexpected end of stream|this is no YAML"),
        ("run: " + "[" * 5000, "the file is nested too deeply|"),
        ("- a\n", "a task is a list of `key: value` lines|"),
        (
            "resources: {infra: aws, region: us-east-1}",
            "resources: infra holds cloud, region and zone: give it or those, not both|",
        ),
        (
            "resources: {gpus: L4, accelerators: A100}",
            "resources: gpus and accelerators are the same: give one|",
        ),
        (
            "resources: {accelerators: [L4, A100], any_of: [{cpus: 1}]}",
            "resources: a list of accelerators does not go with any_of or ordered|",
        ),
        (
            "resources: {ports: 99999}",
            "resources.ports: 99999 is no port: 1 to 65535, or a range such as 10022-10040|",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_the_way_out(text: str, told: str) -> None:
    error = refusal(text)
    assert f"{error.message}|{error.hint}" == told


def bomb(level: str) -> str:
    """Each of eight levels names the one before ten times."""
    names = "abcdefgh"
    lines = [level.format(new=new, old=old) for old, new in pairwise(names)]
    return "a: &a {k: x}\n" + "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        bomb("{new}: &{new} [" + ", ".join(["*{old}"] * 10) + "]"),
        bomb("{new}: &{new} {{<<: [" + ", ".join(["*{old}"] * 10) + "]}}"),
    ],
    ids=["aliases", "merges"],
)
def test_a_file_that_grows_by_its_aliases_is_refused(text: str) -> None:
    assert "more than 200000 values" in refusal(text).message


def test_a_group_says_how_long_each_task_may_go_on() -> None:
    header = read_file(
        "name: g\nexecution: parallel\nprimary_tasks: [a]\ncolour: red\n"
        "termination_delay: {default: 30, b: 2m}\n---\nname: a\nrun: x\n---\nname: b\nrun: y\n"
    ).header
    assert (header.primary, header.delay("a"), header.delay("b")) == (("a",), 30, 120)
    assert header.notes == ["colour: ignored, it is no key of a group's header"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1, 2]", "[1, 2]"),
        ("{a: 1}", "{'a': 1}"),
        ("true", "True"),
        ("1e-4", "1e-4"),
        ("2024-01-31", "2024-01-31"),
    ],
)
def test_a_variable_is_the_text_that_sky_pilot_makes_of_it(text: str, value: str) -> None:
    (one,) = read(f"envs: {{A: {text}}}")
    assert one.envs == {"A": value}


@pytest.mark.parametrize(
    "text", ["https://git.example.org/x.git", "ssh://git@example.org/x", "git@example.org:team/x"]
)
def test_the_address_of_a_repository_is_a_workdir(text: str) -> None:
    (one,) = read(f"workdir: {text}")
    assert isinstance(one.workdir, Git)
    assert one.workdir.url == text


@pytest.mark.parametrize("text", ["/a:b", "./x@y", "s3", "data"])
def test_other_workdirs_are_folders(text: str) -> None:
    (one,) = read(f"workdir: {text}")
    assert one.workdir == text


def test_all_mistakes_are_told_at_once() -> None:
    error = refusal("resources: {cpus: x, memory: y}\nrnu: 1")
    assert "resources.memory" in error.hint
    assert "rnu" in error.hint


def test_a_secret_is_not_repeated_in_an_error() -> None:
    error = refusal("secrets: {TOKEN: hush}\nenvs: [hush]")
    assert "secrets" not in error.message
    assert "hush" not in refusal("secrets: 'hush'").message


def test_a_file_that_refers_to_itself_is_refused() -> None:
    assert "refers to itself" in refusal("file_mounts: &a {x: *a}").message


def test_what_is_typed_goes_before_what_is_written() -> None:
    (one,) = read(
        "envs: {A: 1, B: 2}\n"
        "resources: {cpus: 4, cloud: gcp, any_of: [{cpus: 2}, {use_spot: true}]}",
        envs={"A": "9"},
        overrides={"cpus": "8+", "infra": "aws", "num_nodes": 1, "name": "other"},
    )
    assert one.envs == {"A": "9", "B": "2"}
    assert one.name == "other"
    assert {c.cpus for c in one.resources.candidates} == {values.Cpus(8, exactly=False)}
    assert {c.place.cloud for c in one.resources.candidates} == {"aws"}


def test_none_clears_what_is_written() -> None:
    (one,) = read("resources: {accelerators: A100:8, cpus: 4}", overrides={"accelerators": "none"})
    assert one.resources.accelerators is None
    assert one.resources.cpus == values.Cpus(4, exactly=True)


def test_variables_are_filled_in_where_sky_pilot_does_and_nowhere_else() -> None:
    (one,) = read(
        "envs: {DIR: data, N: 3}\nworkdir: ./$DIR/${N}/$OTHER\nrun: echo $DIR\n"
        "file_mounts:\n  /x/${N}: s3://$DIR"
    )
    assert one.workdir == "./data/3/$OTHER"
    assert one.file_mounts == {"/x/3": "s3://data"}
    assert one.run == "echo $DIR"


def test_an_alternative_overrides_what_stands_beside() -> None:
    (one,) = read(
        "resources: {infra: aws/us-east-1, labels: {a: 1}, use_spot: true,"
        " any_of: [{infra: aws/us-west-2, labels: {b: 2}}, {use_spot: false}]}"
    )
    first, second = one.resources.candidates
    assert (first.place.region, first.use_spot) == ("us-west-2", True)
    assert first.labels == {"a": "1", "b": "2"}
    assert (second.place.region, second.use_spot) == ("us-east-1", False)
