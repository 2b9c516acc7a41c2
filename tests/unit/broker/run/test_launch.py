"""The agent's archive and the lines that are spoken with it."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from broker.run import launch
from broker.run.launch import Phase, StepOrder, Warn


def test_the_archive_is_the_same_each_time_and_holds_every_module() -> None:
    made = launch.agent_zipapp()
    launch.agent_zipapp.cache_clear()
    assert launch.agent_zipapp() == made
    names = set(zipfile.ZipFile(io.BytesIO(made)).namelist())
    folder = Path(launch.__file__).parent / "agent"
    assert {f"spz_agent/{path.name}" for path in folder.glob("*.py")} < names
    assert "__main__.py" in names


def test_an_order_says_all_there_is_to_say() -> None:
    order = StepOrder(
        uid=7,
        gid=8,
        user="u",
        groups=(8, 9),
        umask=0o27,
        rlimits={"NOFILE": (1, None)},
        nice=2,
        cwd=b"/w\xff",
        phases=(Phase("run", (None, b"\xfe"), b"#!x\n"),),
        environment=b"A=\xff\0B=",
        stdout=b"o",
        append=True,
        time_limit=60,
        kill_wait=5,
        warn=Warn(10, 60, batch=True),
        label="JOB 1",
    )
    line = launch.start("1/1/batch", order)
    assert line.isascii()
    assert line.count(b"\n") == 1
    step = json.loads(line)["step"]
    assert step["cwd"].encode("utf-8", "surrogateescape") == b"/w\xff"
    assert step["phases"][0]["argv"] == [None, "\udcfe"]
    assert step["rlimits"] == {"NOFILE": [1, None]}
    assert (step["stdin"], step["stderr"], step["open_mode"]) == (None, None, "append")
    assert step["warn"] == {"signal": 10, "before": 60, "batch": True, "own": False}


@pytest.mark.parametrize("line", [b"", b'{"ok":true}', b"[]\n", b"nonsense\n"])
def test_an_answer_that_is_none_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        launch.reply(line)


def test_a_request_may_bear_the_services_time() -> None:
    line = launch.dated(launch.leave(), 12.5)
    assert json.loads(line) == {"do": "leave", "now": 12.5}
    assert line.endswith(b"\n")
