"""--json and --yaml of the commands that read: versions, filters, who asked."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.api.programs import scontrol_steps
from gateway.api.programs.sacct import sacct
from gateway.api.programs.scontrol_list import LISTS
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.squeue import Squeue
from gateway.api.wire import Answer, Call, Peer
from gateway.query.documents import PIECE
from tests.unit.gateway.query.desk import Past, Program, ask, desk_of, snapshot, text
from tests.unit.gateway.query.history import history
from tests.unit.gateway.query.records import pending
from tests.unit.gateway.query.scene import queue

PROGRAMS: dict[str, Callable[[], Program]] = {
    "squeue": Squeue,
    "sinfo": Sinfo,
    "sacct": lambda: sacct,
    "scontrol": lambda: Show(lists=LISTS, entities=scontrol_steps.SHOWN),
}


def said(line: str) -> Answer:
    words = line.split()
    jobs = history() if words[0] == "sacct" else queue()
    desk = desk_of(snapshot(jobs), Past(jobs))
    desk.names = lambda uid: OWNERS[uid]
    return ask(PROGRAMS[words[0]](), desk, words)


OWNERS = {job.owner.uid: job.owner for job in (*queue(), *history())}


def told(line: str) -> dict[str, Any]:
    answer = said(line)
    assert answer.err == ""
    found: dict[str, Any] = json.loads(text(answer.out))
    return found


def test_filters_hold_for_json_too() -> None:
    assert sorted(job["name"] for job in told("squeue --json -u bob")["jobs"]) == ["dep", "run2"]
    (job,) = told("sacct --json -j 700001")["jobs"]
    assert job["job_id"] == 700001


def test_a_job_named_behind_a_bare_option_is_taken_out_of_the_command() -> None:
    command = told("squeue --json -j 700001")["meta"]["command"]
    assert command == ["squeue", "--json", "-j"]
    assert told("squeue --json -u bob")["meta"]["command"] == ["squeue", "--json", "-u", "bob"]


def test_the_list_of_versions_says_in_which_there_are_answers() -> None:
    answer = said("squeue --json=list")
    assert text(answer.out).splitlines()[-1] == "data_parser/v0.0.44"
    assert (answer.err, answer.code) == ("Possible data_parser plugins:\n", 0)
    for line in text(answer.out).splitlines():
        version = line.removeprefix("data_parser/")
        plugin = told(f"squeue --json={version}")["meta"]["plugin"]
        assert plugin["data_parser"] == line


@pytest.mark.parametrize("program", ["squeue", "sinfo", "sacct"])
def test_a_version_that_is_not_there_is_refused(program: str) -> None:
    answer = said(f"{program} --json=v9")
    assert answer.code == 1
    assert text(answer.err).startswith(
        f"{program}: error: load_plugins: unable to find plugin: data_parser/v9\n"
    )


def test_sinfo_keeps_apart_nodes_that_differ() -> None:
    lines = told("sinfo --json -p ec2")["sinfo"]
    assert sorted(name for line in lines for name in line["nodes"]["nodes"]) == [
        "ec2-1", "ec2-2", "ec2-3", "ec2-4",
    ]  # fmt: skip
    assert all(line["partition"]["name"] == "ec2" for line in lines)


def test_scontrol_shows_jobs_nodes_and_partitions() -> None:
    (job,) = told("scontrol show job 700001 --json")["jobs"]
    assert job["name"] == "run1"
    assert {one["name"] for one in told("scontrol show jobs --json")["jobs"]} >= {"run1", "run2"}
    (node,) = told("scontrol --json show node ec2-2")["nodes"]
    assert node["features"] == ["spot", "g5"]
    assert [part["name"] for part in told("scontrol show part ec2 --json")["partitions"]] == ["ec2"]


def test_scontrol_shows_steps_licenses_and_processes_as_records() -> None:
    steps = told("scontrol show step --json")["steps"]
    (batch,) = told("scontrol show step 700001.batch --json")["steps"]
    assert batch in steps
    assert (batch["id"], batch["state"], batch["user"]) == ("700001.batch", ["RUNNING"], "alice")
    assert batch["array"] == {"job_id": 0, "task_id": 0xFFFFFFFE}
    assert batch["time"]["limit"] == {"set": False, "infinite": True, "number": 0}
    assert batch["task"] == {"distribution": "Unknown"}
    assert "stdout_expanded" not in told("scontrol show step --json=v0.0.42")["steps"][0]
    assert told("scontrol show licenses --json")["licenses"] == []
    assert told("scontrol listpids --json")["pids"] == []
    unknown = said("scontrol show step 5 --json")
    assert (json.loads(text(unknown.out))["steps"], unknown.code) == ([], 1)


def test_yaml_begins_as_slurms_does() -> None:
    lines = text(said("squeue --yaml -j 700001").out).splitlines()
    assert lines[:4] == ["%YAML 1.1", "--- !!map", "!!str jobs: !!seq", "- !!map"]
    assert lines[-1] == "..."


def test_steps_of_a_job_of_the_past_have_their_own_records() -> None:
    jobs = told("sacct --json")["jobs"]
    steps = [step for job in jobs for step in job["steps"]]
    assert steps
    assert all(step["step"]["id"].split(".")[0].startswith("7000") for step in steps)


def test_a_long_listing_comes_in_parts_that_are_one_document() -> None:
    jobs = [pending(700001 + number) for number in range(3 * PIECE)]
    desk = desk_of(snapshot(jobs))
    desk.names = lambda uid: OWNERS[uid]
    call = Call(
        program="squeue", argv=("--json",), peer=Peer(2001, 2001), request="0" * 16, environ={}
    )

    async def parts() -> list[str]:
        answer = await Squeue()(desk, call)
        found = [text(answer.out)]
        while answer.rest is not None:
            answer = await answer.rest
            found.append(text(answer.out))
        return found

    found = asyncio.run(parts())
    assert len(found) > 3
    assert len(json.loads("".join(found))["jobs"]) == len(jobs)
