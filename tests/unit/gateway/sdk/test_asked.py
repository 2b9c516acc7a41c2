"""Requests by id, streams of text, and which managed jobs are meant."""

import io

import pytest

from broker.model.errors import Refused, Unknown
from broker.model.job import JobState
from gateway.api.managed import STATES
from gateway.sdk import managed, sky
from gateway.sdk.asked import RequestId, stream_of
from gateway.sdk.client import Told
from gateway.sdk.clouds import AWS
from gateway.sdk.records import (
    JobStatus,
    ManagedJobStatus,
    cluster_record,
    cost_record,
    managed_record,
)
from gateway.sdk.tasks import Resources, Task

JOBS = [
    {"id": 7, "root": 7, "whole": "fit", "name": "fit", "task": 0},
    {"id": 8, "root": 8, "whole": "rl", "name": "act", "task": 0},
    {"id": 9, "root": 8, "whole": "rl", "name": "learn", "task": 1},
]


def test_a_request_comes_to_its_result_whenever_it_is_asked() -> None:
    request = RequestId.done([1])
    assert (sky.get(request), sky.stream_and_get(request), len(request)) == ([1], [1], 32)


def test_text_goes_to_streams_of_text_and_of_bytes() -> None:
    text, data = io.StringIO(), io.BytesIO()
    for out in (stream_of(text), stream_of(data)):
        for part in ("é".encode()[:1], "é".encode()[1:]):
            out.write(part)
        out.flush()
    assert (text.getvalue(), data.getvalue().decode()) == ("é", "é")


@pytest.mark.parametrize(
    ("job", "task", "found"),
    [(None, None, 8), (8, None, 8), (8, 1, 9), (8, "learn", 9), (9, None, 9), (7, None, 7)],
)
def test_a_managed_job_is_meant_by_its_own_id_or_that_of_the_whole(
    job: int | None, task: int | str | None, found: int
) -> None:
    assert managed.one_of(JOBS, job, task=task)["id"] == found


def test_names_are_those_of_tasks_and_of_wholes() -> None:
    ids = [[one["id"] for one in managed.of_name(JOBS, name)] for name in ("rl", "act", None)]
    assert ids == [[8, 9], [8], [7, 8, 9]]


@pytest.mark.parametrize("ids", [[6], [7, 6]])
def test_an_unknown_managed_job_is_refused(ids: list[int]) -> None:
    with pytest.raises(Unknown, match="no managed job 6"):
        managed.of_ids(JOBS, ids)


class Ending:
    """A service in which some jobs are over, and one is another user's."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def persist(self, route: str, /) -> dict[str, object]:
        self.asked.append(route)
        if "/8/" in route or "/9/" in route:
            status = 409 if "/9/" in route else 403
            raise Told("no", hint="", kind="", status=status)
        return {}


def test_what_waits_for_others_is_ended_first_and_what_is_over_is_passed_by() -> None:
    service = Ending()
    assert managed.end(service, [JOBS[0], JOBS[2]]) == [9, 7]
    assert service.asked == ["/v1/jobs/9/cancel", "/v1/jobs/7/cancel"]
    with pytest.raises(Told):
        managed.end(service, [JOBS[1]])


def test_states_are_words_and_know_when_they_are_final() -> None:
    assert (JobStatus("FAILED_SETUP").is_terminal(), JobStatus.RUNNING.is_terminal()) == (
        True,
        False,
    )
    assert ManagedJobStatus.FAILED_SETUP.is_terminal()
    assert not ManagedJobStatus.RECOVERING.is_terminal()
    assert JobStatus.RUNNING == "RUNNING"


@pytest.mark.parametrize(
    ("seconds", "stops", "autostop", "down"),
    [(None, False, -1, False), (600, True, 10, False), (600, False, 10, True)],
)
def test_a_cluster_has_sky_pilots_keys(
    seconds: int | None, stops: bool, autostop: int, down: bool
) -> None:
    told = cluster_record(
        {
            **{"name": "dev", "job": 3, "status": "UP", "submitted": 5, "user": "ann", "uid": 7},
            **{"addresses": ["10.0.0.1"], "nodes": ["ec2-1"], "resources": "1x(m5.large)"},
            **{"idle_seconds": seconds, "idle_stops": stops},
            **{"infra": "AWS (us-east-1/use1-az4)"},
        }
    )
    assert (told["cloud"], told["region"], told["nodes"]) == ("AWS", "us-east-1", 1)
    assert (told["autostop"], told["to_down"], told["launched_at"]) == (autostop, down, 5)
    assert told["handle"].get_cluster_name() == "dev"
    assert (told["handle"].head_ip, told["status"].value) == ("10.0.0.1", "UP")


@pytest.mark.parametrize(
    ("over", "stopped", "ended", "status", "lasted", "tres", "nodes"),
    [
        (True, False, 70, "TERMINATED", 60, "cpu=2,mem=4G,node=3,gres/gpu=1", 3),
        (False, True, None, "STOPPED", 90, None, 1),
        (False, False, None, "UP", 90, "cpu=2,node=1", 1),
    ],
)
def test_what_a_cluster_costs_has_sky_pilots_keys(
    over: bool,
    stopped: bool,
    ended: int | None,
    status: str,
    lasted: int,
    tres: str | None,
    nodes: int,
) -> None:
    told = cost_record(
        {
            **{"cluster": "dev", "over": over, "stopped": stopped, "submitted": 5, "started": 10},
            **{"ended": ended, "tres": tres, "uid": 7, "user": "ann"},
            "cost_micro_usd": 2_500_000,
        },
        100,
    )
    assert (told["status"], told["duration"], told["launched_at"]) == (status, lasted, 5)
    assert (told["num_nodes"], told["total_cost"]) == (nodes, 2.5)


@pytest.mark.parametrize("label", ["CONFIGURING", "STOPPED", *(one.label for one in JobState)])
def test_a_managed_job_in_any_state_has_one_of_sky_pilots(label: str) -> None:
    assert ManagedJobStatus(STATES[label])


def test_a_managed_job_has_sky_pilots_keys() -> None:
    told = managed_record(
        {
            **JOBS[2],
            **{"status": "RUNNING", "submitted": 1, "started": 2, "ended": 9, "restarts": 3},
            **{"user": "ann", "tres": "cpu=2", "kind": "group"},
        }
    )
    shown = {key: told[key] for key in ("job_id", "task_id", "job_name", "task_name")}
    assert shown == {"job_id": 8, "task_id": 1, "job_name": "rl", "task_name": "learn"}
    assert (told["job_duration"], told["recovery_count"], told["is_job_group"]) == (7, 3, True)


def test_a_task_takes_what_sky_pilots_constructor_takes() -> None:
    task = Task(
        "t",
        run=["echo a", "echo b"],
        resources={Resources(cloud=AWS(), cpus=2), Resources(cpus=4)},  # type: ignore[arg-type]
        storage_mounts={"/out": {"name": "mine"}},
        docker_image="debian",
    )
    tree = task.to_yaml_config()
    assert (tree["run"], tree["file_mounts"]) == ("echo a\necho b", {"/out": {"name": "mine"}})
    assert len(tree["resources"]["any_of"]) == 2
    assert tree["resources"]["image_id"] == "docker:debian"
    with pytest.raises(Refused, match="blocked_resources"):
        Task(blocked_resources=[])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: sky.launch(Task(run="x"), clone_disk_from="a"), "disks are not copied"),
        (lambda: sky.exec(Task(run="x")), "no cluster named"),
        (lambda: sky.autostop("dev", 5, hook="echo"), "hooks stand in the task"),
    ],
)
def test_what_cannot_be_is_refused_at_once(call: object, why: str) -> None:
    with pytest.raises(Refused, match=why):
        call()  # type: ignore[operator]


def test_what_changes_nothing_is_told() -> None:
    with pytest.warns(UserWarning, match="tail is ignored"):
        sky.stream_and_get(RequestId.done(1), tail=5)
