"""Task and Resources as programs use them."""

from pathlib import Path

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


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(BadSpec, match=r"resources\.cpus"):
        Task.from_yaml_config({"resources": {"cpus": "lots"}})
    with pytest.raises(Refused, match="No such file"):
        Task.from_yaml("/none.yaml")
    with pytest.raises(BadSpec, match="2 tasks, not one"):
        Task.from_yaml_str("run: a\n---\nrun: b")


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
