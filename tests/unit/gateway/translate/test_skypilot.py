"""SkyPilot's task YAML: what may be written, what it means, what is refused and how."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

import pytest

from broker.model.errors import BadSpec
from broker.model.spec import ALL, Checkpoint, Gres, Mount, Resources, Where
from gateway.translate import skypilot_values as values
from gateway.translate.environment import unpack
from gateway.translate.skypilot import Git, read, read_file
from gateway.translate.skypilot_run import Origin, Within, run_of
from gateway.translate.skypilot_task import Translated, translate

ORIGIN = Origin(
    cwd="/home/ann/project",
    home="/home/ann",
    logs="/home/ann/sky_logs",
    environ={"PATH": "/bin", "LC_ALL": "C", "EDITOR": "ed", "AWS_SECRET_ACCESS_KEY": "x"},
    host="login1",
)


def task(text: str, origin: Origin = ORIGIN, **given: Mapping[str, str]) -> Translated:
    (one,) = read(text, **given)
    return translate(one, origin, cluster="dev")


def refusal(text: str, **given: Mapping[str, str]) -> BadSpec:
    with pytest.raises(BadSpec) as caught:
        task(text, **given)
    return caught.value


# --- values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4", values.Cpus(4, exactly=True)),
        (4, values.Cpus(4, exactly=True)),
        ("4+", values.Cpus(4, exactly=False)),
        (0.5, values.Cpus(1, exactly=False)),
        ("0.5+", values.Cpus(1, exactly=False)),
    ],
)
def test_cpus_are_exact_unless_a_plus_follows(text: object, expected: values.Cpus) -> None:
    assert values.cpus(text) == expected


@pytest.mark.parametrize(
    ("text", "mib", "per_cpu", "exactly"),
    [
        (32, 32768, 0, True),
        ("32+", 32768, 0, False),
        ("64GB", 65536, 0, True),
        ("64GiB+", 65536, 0, False),
        ("1024MB", 1024, 0, True),
        ("16Gi+", 16384, 0, False),
        ("1tb", 1 << 20, 0, True),
        ("4x", 0, 4096, False),
        ("4x+", 0, 4096, False),
        (0.1, 103, 0, True),
    ],
)
def test_memory_is_read_in_every_form(text: object, mib: int, per_cpu: int, exactly: bool) -> None:
    assert values.memory(text) == values.Memory(mib, per_cpu, exactly)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A10G", [("A10G", 1)]),
        ("A100:8", [("A100", 8)]),
        ("V100:0.5", [("V100", 1)]),
        ({"A100": 8}, [("A100", 8)]),
        ({"A100:1": None, "L4:1": None}, [("A100", 1), ("L4", 1)]),
        ("80GB", [("80GB", 1)]),
        ("80GB+", [("80GB+", 1)]),
        ("80GB:4", [("80GB", 4)]),
        ("nvidia:80GB", [("nvidia:80GB", 1)]),
        ("nvidia:80GB+:2", [("nvidia:80GB+", 2)]),
        ("A100:2+", [("A100", 2)]),
    ],
)
def test_accelerators_are_read_in_every_form(
    value: object, expected: list[tuple[str, int]]
) -> None:
    found = values.gpus(value)
    assert [(gpu.name, gpu.count) for gpu in found.choices] == expected
    assert not found.ordered


def test_a_list_of_accelerators_is_in_order_of_liking() -> None:
    assert values.gpus(["H100:8", "A100:8"]).ordered


def test_an_accelerator_by_memory_is_told_from_one_by_name() -> None:
    by_memory = [
        gpu.by_memory for gpu in values.gpus(["80GB", "A100-80GB", "nvidia:40GB+"]).choices
    ]
    assert by_memory == [True, False, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aws", values.Place("aws")),
        ("AWS/us-east-1", values.Place("aws", "us-east-1")),
        ("aws/us-east-1/use1-az4", values.Place("aws", "us-east-1", "use1-az4")),
        ("*/us-east-1", values.Place(None, "us-east-1")),
        ("aws/*/use1-az4", values.Place("aws", None, "use1-az4")),
        ("k8s/my-context", values.Place("kubernetes")),
        ("slurm/site/part", values.Place("slurm")),
    ],
)
def test_infra_is_cloud_region_zone(text: str, expected: values.Place) -> None:
    assert values.place(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8080, ("8080",)),
        ("8080, 9090", ("8080", "9090")),
        (["10022-10040", 80, None], ("10022-10040", "80")),
    ],
)
def test_ports_are_read_in_every_form(value: object, expected: tuple[str, ...]) -> None:
    assert values.ports(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, values.Autostop(300)),
        (False, None),
        (10, values.Autostop(600)),
        ("2h", values.Autostop(7200)),
        ({"idle_minutes": 5, "down": True}, values.Autostop(300, down=True)),
    ],
)
def test_autostop_is_read_in_every_form(value: object, expected: values.Autostop | None) -> None:
    assert values.autostop(value) == expected


@pytest.mark.parametrize(
    ("text", "mib"),
    [("nvme", 102400), ("ssd:500", 512000), ("nvme:1000+", 1024000), ("1000+", 1024000)],
)
def test_local_disk_is_a_size_of_all_disks_together(text: str, mib: int) -> None:
    assert values.local_disk_mib(text) == mib


# --- reading


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
    "a key given twice": "envs: {A: 1}\nworkdir: .\nenvs: {B: 2}\n",
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


def test_a_header_is_no_task() -> None:
    assert [one.name for one in read(KINDS["a pipeline"])] == ["a", "b"]
    assert [one.name for one in read(KINDS["a group"])] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nme: x", "nme: no such key|did you mean name?"),
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
        ("file_mounts: {/x: {}}", "file_mounts./x: a mount needs a source or a name|"),
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


# --- meaning


def resources(text: str) -> Resources:
    return task(text).spec.resources


ONE = {"min_nodes": 1, "max_nodes": 1, "exclusive": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"min_cpus_per_node": 8, "mem_per_node_mib": 31129}),
        (
            "resources: {cpus: 4}",
            {"min_cpus_per_node": 4, "cpus_exactly": 4, "mem_per_node_mib": 15564},
        ),
        ("resources: {cpus: 2+, memory: 64+}", {"min_cpus_per_node": 2, "mem_per_node_mib": 62259}),
        ("resources: {memory: 8x}", {"min_cpus_per_node": 8, "mem_per_node_mib": 62259}),
        ("resources: {memory: 16+}", {"mem_per_node_mib": 15564}),
        (
            "resources: {accelerators: A10G:2}",
            {"mem_per_node_mib": ALL, "gres": (Gres(name="gpu", type="A10G", count=2),)},
        ),
        (
            "resources: {accelerators: {A100:1, L4:2}}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=1),),
                "any_of": (
                    Where(gpu=Gres(name="gpu", type="A100")),
                    Where(gpu=Gres(name="gpu", type="L4", count=2)),
                ),
            },
        ),
        (
            "resources: {accelerators: [H100:8, A100:8]}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=8),),
                "any_of": (
                    Where(gpu=Gres(name="gpu", type="H100", count=8)),
                    Where(gpu=Gres(name="gpu", type="A100", count=8)),
                ),
                "ordered": True,
            },
        ),
        (
            "resources: {accelerators: 80GB+:4}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=4),),
                "any_of": (Where(gpu=Gres(name="gpu", type="80GB+", count=4)),),
            },
        ),
        (
            "resources: {instance_type: g5.xlarge, use_spot: true, infra: aws/us-east-1,"
            " max_hourly_cost: 2.5}",
            {
                "mem_per_node_mib": ALL,
                "any_of": (
                    Where(
                        instance_type="g5.xlarge",
                        market="spot",
                        region="us-east-1",
                        max_micro_usd_per_hour=2_500_000,
                    ),
                ),
            },
        ),
        (
            "resources: {accelerators: L4, any_of: [{use_spot: true}, {use_spot: false}]}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", type="L4"),),
                "any_of": (
                    Where(market="spot", gpu=Gres(name="gpu", type="L4")),
                    Where(market="on-demand", gpu=Gres(name="gpu", type="L4")),
                ),
            },
        ),
        (
            "resources: {cpus: 2+, local_disk: 'nvme:100+', infra: aws/us-east-1/use1-az4}",
            {
                "min_cpus_per_node": 2,
                "mem_per_node_mib": 7782,
                "tmp_mib": 102400,
                "any_of": (Where(region="us-east-1", zone="use1-az4"),),
            },
        ),
    ],
)
def test_resources_become_what_each_node_must_give(
    text: str, expected: Mapping[str, object]
) -> None:
    assert resources(text) == Resources.model_validate({**ONE, **expected})


def test_a_cluster_is_a_machine_kept_open_with_the_run_in_it() -> None:
    made = task("name: train\nsetup: |\n  one\nrun: |\n  two 'x' $Y\nenvs: {Y: 1}\nworkdir: src")
    spec = made.spec
    assert (spec.batch, spec.cluster, spec.name) == (None, "dev", "train")
    (step,) = spec.steps
    assert [(p.name, made.blobs[p.script or ""]) for p in step.phases] == [  # type: ignore[index]
        ("setup", b"one\n"),
        ("run", b"two 'x' $Y\n"),
    ]
    assert step.phases[1].argv == ("/bin/bash", None)
    assert unpack(made.blobs[step.environment or ""]) == {"Y": "1"}  # type: ignore[index]
    assert spec.cwd == "/home/ann/project/src"
    assert spec.output.stdout == "/home/ann/sky_logs/dev-%j.%s.log"
    assert (spec.requeue, spec.submit_host) == (False, "login1")


def test_setup_runs_again_only_if_it_or_its_variables_changed(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_START_TIME": "1",
        "SLURMD_NODENAME": "n1",
    }
    said = []
    for text in (
        "setup: exit 3",
        "setup: echo ran",
        "setup: echo ran",
        "setup: echo ran\nenvs: {A: 1}",
        "setup: echo other",
    ):
        made = task(text)
        (phase,) = made.spec.steps[0].phases
        script = tmp_path / "script"
        script.write_bytes(made.blobs[phase.script or ""])  # type: ignore[index]
        argv = [str(script) if word is None else word for word in phase.argv]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        said.append((done.returncode, done.stdout.strip()))
    left_out = "spz: setup is as it was and is left out"
    assert said == [(3, ""), (0, "ran"), (0, left_out), (0, "ran"), (0, "other")]


def test_bytes_are_kept_under_their_own_hash() -> None:
    made = task("run: echo é")
    assert {sha256(content).hexdigest() for content in made.blobs.values()} == set(made.blobs)
    assert "echo é".encode() in made.blobs.values()


def test_only_what_a_shell_needs_of_the_submitters_variables_goes_along() -> None:
    made = task("run: x")
    assert unpack(made.blobs[made.spec.environment or ""]) == {"PATH": "/bin", "LC_ALL": "C"}  # type: ignore[index]


def test_secrets_reach_the_run_as_variables() -> None:
    made = task("envs: {A: 1}\nsecrets: {T: null}\nrun: x", secrets={"T": "hush"})
    (step,) = made.spec.steps
    assert unpack(made.blobs[step.environment or ""]) == {"A": "1", "T": "hush"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "cwd"),
    [
        ("run: x", "/home/ann/sky_workdir"),
        ("workdir: .", "/home/ann/project"),
        ("workdir: ~/data", "/home/ann/data"),
        ("workdir: /srv/x/", "/srv/x"),
    ],
)
def test_scripts_start_in_the_workdir(text: str, cwd: str) -> None:
    assert task(text).spec.cwd == cwd


def test_a_task_without_setup_and_run_only_keeps_a_machine() -> None:
    assert task("resources: {cpus: 2}").spec.steps == ()


def test_setup_can_be_left_out() -> None:
    (one,) = read("setup: a\nrun: b")
    assert [
        phase.name
        for phase in run_of(one, cluster="dev", origin=ORIGIN, with_setup=False).step.phases
    ] == ["run"]


def test_a_run_elsewhere_than_its_cluster_changes_folder_without_a_shell_of_ours() -> None:
    (one,) = read("run: b")
    (phase,) = run_of(one, cluster="dev", origin=ORIGIN, where=Within("/a b; rm x")).step.phases
    assert phase.argv == ("/usr/bin/env", "--chdir=/a b; rm x", "/bin/bash", None)


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


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("[{cpus: 2}, {cpus: 4}]", 2), ("[{cpus: 4+}, {cpus: 2+}]", 2), ("[{cpus: 4}, {}]", 8)],
)
def test_alternatives_that_differ_in_size_ask_for_the_least(text: str, cpus: int) -> None:
    made = task(f"resources: {{any_of: {text}}}")
    assert made.spec.resources.min_cpus_per_node == cpus
    assert made.notes[0].startswith("resources.cpus: differs between alternatives")


def test_a_variable_without_a_value_has_to_be_given() -> None:
    text = "envs: {TOKEN: null}\nrun: x"
    assert refusal(text).hint == '--env TOKEN=VALUE, or "" in the file for an empty one'
    assert task(text, envs={"TOKEN": ""}).spec.steps
    assert task('envs: {TOKEN: ""}\nrun: x').spec.steps


@pytest.mark.parametrize("text", ["secrets: {T: null}", "secrets: ['secrets:T']"])
def test_a_secret_without_a_value_has_to_be_given(text: str) -> None:
    assert refusal(text).hint.startswith("--secret T=VALUE")


def test_a_mount_of_what_is_there_under_that_name_is_no_mount() -> None:
    assert task("file_mounts: {/home/ann/x: ~/x}")


@pytest.mark.parametrize(
    ("workdir", "source", "comes"),
    [
        (".", "./data", None),
        ("src", "src/data", None),
        ("~/src", "~/src/data", None),
        (".", "../data", "/home/ann/data"),
        ("src", "srcs/data", "/home/ann/project/srcs/data"),
        (".", "/data", "/data"),
        (".", "s3://b", None),
    ],
)
def test_what_lies_outside_of_the_workdir_is_brought_beside_it_elsewhere(
    workdir: str, source: str, comes: str | None
) -> None:
    text = f"workdir: {workdir}\nfile_mounts: {{/to: '{source}'}}\nrun: x"
    assert task(text).spec.files == ()
    found = task(text, replace(ORIGIN, provider="ec2"))
    assert found.spec.files == ((Mount(source=comes, target=comes),) if comes else ())


def test_what_opens_a_private_repository_comes_from_the_shell_and_on_no_command_line() -> None:
    keys = {"GIT_TOKEN": "s3cret", "GIT_SSH_KEY_PATH": "~/.ssh/deploy", "OTHER": "x"}
    far = replace(ORIGIN, provider="ec2", environ={**ORIGIN.environ, **keys})
    made = task("workdir: {url: https://x/y}\nrun: x", far)
    assert [mount.source for mount in made.spec.files] == ["/home/ann/.ssh/deploy"]
    (step,) = made.spec.steps
    assert step.environment is not None
    variables = made.blobs[step.environment].split(b"\0")
    assert {b"GIT_TOKEN=s3cret", b"GIT_SSH_KEY_PATH=~/.ssh/deploy"} <= set(variables)
    assert not any(one.startswith(b"OTHER") for one in variables)
    scripts = [made.blobs[phase.script] for phase in step.phases if phase.script in made.blobs]
    assert not any(b"s3cret" in text for text in scripts)
    plain = task("workdir: .\nrun: x", far)
    assert not any(b"s3cret" in text for text in plain.blobs.values())


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


def test_options_of_sbatch_and_its_quota_are_fields_of_the_spec() -> None:
    made = task(
        "config: {slurm: {quota: {account: lab, queue: long}, sbatch_options:"
        " {time: '1:00:00', constraint: gpu, exclusive: true, comment: null}}}"
    )
    spec = made.spec
    assert (spec.account, spec.qos, spec.time_limit, spec.comment) == ("lab", "long", 3600, None)
    assert spec.resources.constraint == "gpu"
    assert [note for note in made.notes if "exclusive" in note]


def test_the_older_place_of_settings_is_read() -> None:
    made = task("experimental: {config_overrides: {slurm: {sbatch_options: {qos: fast}}}}")
    assert made.spec.qos == "fast"


def test_autostop_is_the_time_that_a_cluster_may_idle() -> None:
    assert task("resources: {autostop: {idle_minutes: 10, down: true}}").spec.idle_seconds == 600
    assert task("resources: {autostop: true}").spec.idle_seconds == 300
    assert task("resources: {autostop: true}").spec.idle_stops
    assert not task("resources: {autostop: {idle_minutes: 10, down: true}}").spec.idle_stops
    assert task("resources: {autostop: false}").spec.idle_seconds is None
    limited = task("resources: {autostop: {idle_minutes: 60, wait_for: none}}").spec
    assert (limited.idle_seconds, limited.time_limit) == (None, 3600)


@pytest.mark.parametrize(
    ("text", "where", "part"),
    [
        ("run: x", Within(None, 48, 4), {"overlap": True}),
        ("resources: {accelerators: A10G:2}\nrun: x", Within(None, 48, 4), {"cpus": 24, "gpus": 2}),
        (
            "resources: {accelerators: 'A10G:0.5'}\nrun: x",
            Within(None, 8, 8),
            {"cpus": 1, "gpus": 1},
        ),
        ("resources: {accelerators: A10G:4}\nrun: x", Within(), {"cpus": None, "gpus": 4}),
    ],
)
def test_runs_that_ask_for_gpus_wait_for_them_and_others_for_nobody(
    text: str, where: Within, part: Mapping[str, object]
) -> None:
    (one,) = read(text)
    step = run_of(one, cluster="dev", origin=ORIGIN, where=where).step
    gpus = sum(gres.count for gres in step.gres or ())
    found = {"overlap": True} if step.overlap else {"cpus": step.cpus_per_task, "gpus": gpus}
    assert found == part
    assert step.exact == (step.cpus_per_task is not None)


def test_several_nodes_are_asked_for_whole_with_one_task_on_each() -> None:
    spec = task("num_nodes: 3\nrun: x").spec
    (step,) = spec.steps
    assert (spec.resources.min_nodes, spec.resources.max_nodes) == (3, 3)
    assert (step.nodes, step.tasks, step.tasks_per_node) == (3, 3, 1)


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


def test_files_travel_and_checkpoints_are_kept_as_a_batch_script_says_it() -> None:
    spec = task("run: |\n  #SPZ stage-in=data checkpoint=ckpt every=2\n  python fit.py\n").spec
    cwd = "/home/ann/sky_workdir"
    assert [mount.source for mount in spec.files] == [f"{cwd}/data"]
    assert spec.checkpoint == Checkpoint(folder=f"{cwd}/ckpt", every=120)


def test_a_bad_line_about_files_is_refused_with_its_place() -> None:
    told = refusal("run: |\n  #SPZ chekpoint=ckpt\n  python fit.py\n").message
    assert told.startswith("run: line 1: #SPZ chekpoint=ckpt")
    assert told.endswith("did you mean checkpoint?")
