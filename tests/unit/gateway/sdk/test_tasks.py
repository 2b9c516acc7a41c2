"""Task and Resources as programs use them."""

from pathlib import Path
from typing import Any

import pytest

from broker.model.errors import BadSpec, Refused
from gateway.sdk.sky import body_of
from gateway.sdk.tasks import Resources, Task
from gateway.sdk.verbs.tasks import text_of
from gateway.translate.skypilot import read

FILES = sorted((Path(__file__).parents[3] / "tables" / "skypilot").glob("*.yaml"))
ONE_TASK = [file for file in FILES if "---" not in file.read_text("utf-8")]


@pytest.mark.parametrize("file", ONE_TASK, ids=lambda file: file.stem)
def test_a_file_read_and_written_is_the_same_task(file: Path) -> None:
    text = file.read_text("utf-8")
    if "secrets" not in file.stem:
        assert read(Task.from_yaml(file).to_yaml_str()) == read(text)


def test_accelerators_may_be_a_set_or_a_list() -> None:
    unordered = Resources(accelerators={"L4:1"}).to_yaml_config()
    ordered = Resources(accelerators=("H100:8", "A100:8")).to_yaml_config()
    assert unordered == {"accelerators": {"L4:1": None}}
    assert ordered == {"accelerators": ["H100:8", "A100:8"]}


def test_alternatives_are_a_set_or_a_list_of_resources() -> None:
    spot = Resources(use_spot=True)
    assert Task(run="x").set_resources([spot, spot.copy(use_spot=False)]).to_yaml_config() == {
        "run": "x",
        "resources": {"ordered": [{"use_spot": True}, {"use_spot": False}]},
    }


@pytest.mark.parametrize(
    ("config", "alternatives"),
    [
        (None, {Resources()}),
        ({"cpus": 2}, {Resources(cpus=2)}),
        ({"gpus": "L4:1", "spot_recovery": "FAILOVER"}, {Resources(accelerators="L4:1")}),
        (
            {"cpus": 2, "any_of": [{"use_spot": True}, {"cpus": 4}]},
            {Resources(cpus=2, use_spot=True), Resources(cpus=4)},
        ),
        (
            {"infra": "aws/us-east-1", "ordered": [{"zone": "use1-az4"}, {"infra": "gcp"}]},
            [
                Resources(cloud="aws", region="us-east-1", zone="use1-az4"),
                Resources(infra="gcp"),
            ],
        ),
        (
            {"region": "us-east-1", "any_of": [{"infra": "aws/eu-west-1"}]},
            {Resources(infra="aws/eu-west-1")},
        ),
        (
            {"labels": {"a": "1", "b": "1"}, "any_of": [{"labels": {"b": "2"}}]},
            {Resources(labels={"a": "1", "b": "2"})},
        ),
        (
            {"accelerators": {"L4": 1, "T4": None}},
            {Resources(accelerators="L4:1"), Resources(accelerators="T4")},
        ),
        (
            {"accelerators": ["H100:8", "A100:8"]},
            [Resources(accelerators="H100:8"), Resources(accelerators="A100:8")],
        ),
    ],
)
def test_a_tree_is_read_as_its_alternatives_each_complete(
    config: dict[str, Any] | None, alternatives: set[Resources] | list[Resources]
) -> None:
    found = Resources.from_yaml_config(config)
    assert type(found) is type(alternatives)
    plain = [one.copy(job_recovery=None) for one in found]
    assert all(one in plain for one in alternatives)
    assert len(plain) == len(alternatives)


def test_a_key_that_is_none_is_told() -> None:
    with pytest.raises(BadSpec, match=r"resources\.acelerators: no such key"):
        Resources.from_yaml_config({"any_of": [{"acelerators": "L4"}]})


def test_resources_take_sky_pilots_order_and_lie_in_sets() -> None:
    spot = Resources("aws", "g5.xlarge", 4, labels={"a": "b"}, accelerators={"A10G": 1})
    assert (spot.cloud, spot.instance_type, spot.cpus) == ("aws", "g5.xlarge", 4)
    assert len({spot, spot.copy(), spot.copy(use_spot=True)}) == 2


def test_nothing_given_is_nothing_asked() -> None:
    empty = Task(envs=None, secrets=None, num_nodes=None, file_mounts=None, volumes=None)  # type: ignore[arg-type]
    assert empty.update_envs([("A", "1")]).update_secrets(None).to_yaml_config() == {
        "envs": {"A": "1"}
    }


def test_a_task_is_changed_by_sky_pilots_names() -> None:
    task = Task(run="x", resources=Resources(cpus=2, any_of=(Resources(use_spot=True),)))
    task.set_resources_override({"memory": 8}).set_inputs("s3://in", 2).set_outputs("s3://out", 1)
    task.set_volumes({"/v": "data"}).update_volumes({"/w": "more"})
    task.set_file_mounts({"/a": "a"}).update_file_mounts({"/b": "b"})
    task.update_storage_mounts({"/c": {"name": "c"}})
    task.update_workdir(None, "https://example.org/r.git", "v1").update_workdir(None, None, "v2")
    assert task.use_spot
    task.validate()
    assert task.to_yaml_config() == {
        "run": "x",
        "inputs": {"s3://in": 2},
        "outputs": {"s3://out": 1},
        "volumes": {"/v": "data", "/w": "more"},
        "workdir": {"url": "https://example.org/r.git", "ref": "v2"},
        "file_mounts": {"/a": "a", "/b": "b", "/c": {"name": "c"}},
        "resources": {"cpus": 2, "memory": 8, "any_of": [{"use_spot": True, "memory": 8}]},
    }
    assert task.update_workdir(".", None, None).workdir == "."


def test_values_of_variables_go_before_those_of_a_tree() -> None:
    tree = {"run": "x", "envs": {"A": None, "B": "b"}, "secrets": {"T": None}}
    task = Task.from_yaml_config(tree, env_overrides=[("A", "a")], secrets_overrides={"T": "t"})
    assert (task.envs, task.secrets) == ({"A": "a", "B": "b"}, {"T": "t"})
    assert task.envs_and_secrets == {"A": "a", "B": "b", "T": "t"}
    assert Task.from_yaml_config({"resources": {"cpus": 2}}).get_resource_config() == {"cpus": 2}


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(BadSpec, match=r"resources\.cpus"):
        Task.from_yaml_config({"resources": {"cpus": "lots"}})
    with pytest.raises(Refused, match="No such file"):
        Task.from_yaml("/none.yaml")
    with pytest.raises(BadSpec, match="2 tasks, not one"):
        Task.from_yaml_str("run: a\n---\nrun: b")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"run: \xe9")
    for path in (latin, "~nobodys/a.yaml"):
        with pytest.raises(Refused, match=r"codec|home directory"):
            Task.from_yaml(path)


def test_secrets_travel_beside_the_text() -> None:
    task = Task(run="x").update_secrets({"TOKEN": "hush"}).update_envs({"A": "1"})
    body = body_of(task)
    assert "hush" not in body["task"]
    assert body["secrets"] == {"TOKEN": "hush"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/dev/zero", "more than 8 MiB are no task file"),
        ("~nosuchuser/task.yaml", "Could not determine home directory"),
        ("a\0b", "null byte"),
        ("/", "Is a directory"),
        ("x" * 5000, "File name too long"),
    ],
)
def test_a_path_that_holds_no_task_file_is_refused(path: str, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        text_of(path)
