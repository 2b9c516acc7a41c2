"""Jobs and clusters by our own routes, on a real engine and a cloud in memory, in virtual time."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model.events import SignalAsked
from broker.schedule.accrued import accrued
from tests.api.house import BOB, BOSS, RUN_SECONDS, House, Past, refusal

# --- ending


def test_down_ends_a_cluster(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    assert house.call("POST", "/v1/clusters/dev/down")[0] == 200
    house.wait(60)
    assert house.call("GET", "/v1/clusters")[1] == {"clusters": []}
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "CANCELLED"


def test_a_run_is_cancelled_and_its_cluster_stays(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    assert house.call("POST", "/v1/clusters/dev/cancel")[1]["runs"] == [1]
    (asked,) = (e for _, e in house.sim.store.events if isinstance(e, SignalAsked))
    assert (asked.signal.number, asked.signal.step) == (15, "0")
    house.wait(RUN_SECONDS)
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert cluster["status"] == "UP"
    assert refusal(house.call("POST", "/v1/clusters/dev/cancel"))[0] == 409
    assert refusal(house.call("POST", "/v1/clusters/dev/cancel?run=7"))[0] == 404


def test_one_of_several_runs_is_cancelled_alone(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    house.launch("run: y")
    house.wait(5)
    assert house.call("POST", "/v1/clusters/dev/cancel?run=2")[1]["runs"] == [2]
    (asked,) = (e for _, e in house.sim.store.events if isinstance(e, SignalAsked))
    assert asked.signal.step == "1"


def test_autostop_is_set_on_a_cluster_that_is_up(house: House) -> None:
    house.launch("run: x")
    house.wait(50)
    told = house.call("POST", "/v1/clusters/dev/autostop", {"idle_seconds": 60})[1]
    assert told == {"cluster": "dev", "job": 1, "idle_seconds": 60}
    (cluster,) = house.call("GET", "/v1/clusters")[1]["clusters"]
    assert cluster["idle_seconds"] == 60
    house.wait(RUN_SECONDS + 130)
    assert house.call("GET", "/v1/clusters")[1] == {"clusters": []}
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "COMPLETED"


def test_what_became_of_a_request_is_told(house: House) -> None:
    body = house.body("run: x")
    house.call("POST", "/v1/launch", body)
    told = house.call("GET", f"/v1/requests/{body['request']}")[1]
    assert (told["job"], told["cluster"], told["run"]) == (1, "dev", 1)
    assert refusal(house.call("GET", "/v1/requests/none"))[0] == 404


def managed(house: House, task: str, **more: Any) -> Any:
    body = house.body(task)
    del body["cluster"]
    return house.call("POST", "/v1/managed", {**body, **more})


def test_a_pipeline_is_a_chain_of_jobs_and_a_failure_skips_the_rest(house: House) -> None:
    told = managed(house, "name: chain\n---\nname: a\nrun: x\n---\nname: b\nrun: y")[1]
    assert (told["kind"], told["jobs"], told["tasks"]) == ("pipeline", [1, 2], ["a", "b"])
    jobs = {one["id"]: one for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert (jobs[2]["status"], jobs[2]["reason"]) == ("PENDING", "Dependency")
    assert [(one["root"], one["task"], one["tasks"]) for one in jobs.values()] == [
        (1, 1, 2),
        (1, 0, 2),
    ]
    assert (jobs[1]["whole"], jobs[1]["name"]) == ("chain", "a")
    house.call("POST", "/v1/jobs/1/cancel")
    house.wait(200)
    jobs = {one["id"]: one for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert [jobs[1]["status"], jobs[2]["status"]] == ["CANCELLED", "CANCELLED"]


def test_several_jobs_of_one_task_are_an_array(house: House) -> None:
    told = managed(house, "run: x", num_jobs=3)[1]
    assert len(told["jobs"]) == 1
    house.wait(100)
    ranks = {one["rank"] for one in house.call("GET", "/v1/managed")[1]["jobs"]}
    assert ranks >= {0, 1, 2}


def test_a_dry_run_of_a_managed_job_leaves_nothing(house: House) -> None:
    told = managed(house, "run: x", dry_run=True)[1]
    assert (told["jobs"], bool(told["candidates"])) == ([], True)
    assert house.call("GET", "/v1/managed")[1]["jobs"] == []
    assert refusal(managed(house, "setup: x\n---\nrun: x", num_jobs=2))[0] == 400
    assert refusal(managed(house, ""))[:2] == (400, "run: nothing to run")


def test_a_job_is_cancelled_by_its_id(house: House) -> None:
    house.launch("run: x")
    assert house.call("POST", "/v1/jobs/1/cancel") == (200, {"job": 1})
    assert refusal(house.call("POST", "/v1/jobs/9/cancel"))[0] == 404


@pytest.mark.parametrize("route", ["clusters/dev/down", "clusters/dev/cancel", "jobs/1/cancel"])
def test_nobody_touches_what_is_somebody_elses_but_administrators(house: House, route: str) -> None:
    house.launch("run: x")
    house.wait(50)
    assert refusal(house.call("POST", f"/v1/{route}", by=BOB))[0] == 403
    assert house.call("POST", f"/v1/{route}", by=BOSS)[0] == 200


# --- looking


def test_why_names_the_choice_and_the_runner_up(house: House) -> None:
    house.launch("resources: {accelerators: 'A10G:1'}\nrun: x")
    house.wait(60)
    _, told = house.call("GET", "/v1/jobs/1/why")
    first, second = told["choice"][:2]
    assert first["instance_type"] == "g5.xlarge"
    assert first["expected_micro_usd"] <= second["expected_micro_usd"]
    assert told["lines"][0] == "Job 1 (dev): RUNNING on ec2-1"
    assert told["lines"][1].startswith("  chosen: g5.xlarge in us-east-1 (any of ")
    assert told["lines"][2].startswith("  because: least expected cost (price of ")
    assert "), $1.0" in told["lines"][2]
    assert any(line.startswith("  runner-up: g5.xlarge in ") for line in told["lines"])


def test_what_a_job_has_cost_so_far_is_told_from_the_first_second(house: House) -> None:
    house.launch("resources: {accelerators: 'A10G:1'}\nrun: x")
    house.wait(40)
    told = []
    for _ in range(30):
        house.wait(1)
        told.append(house.call("GET", "/v1/clusters")[1]["clusters"][0]["cost_micro_usd"])
    steps = {after - before for before, after in pairwise(told)}
    assert told[0] > 0 and min(steps) > 0 and max(steps) - min(steps) <= 2
    posted = Past(house.sim).costs([JobId(1)]).get(JobId(1), 0)
    seen = house.sim.engine.snapshot
    assert posted + accrued(seen.jobs.values(), seen.nodes, house.desk.now())[JobId(1)] == told[-1]


def test_a_launch_goes_by_the_partition_that_its_task_names(house: House) -> None:
    body = {"config": {"slurm": {"sbatch_options": {"partition": "nowhere"}}}}
    told = refusal(house.launch("run: x", overrides=body, dry_run=True))
    assert told[:2] == (400, "invalid partition specified: nowhere")


def test_why_tells_how_a_job_ended_and_what_it_cost(house: House) -> None:
    house.launch("run: x")
    house.wait(60)
    house.call("POST", "/v1/clusters/dev/down", by=BOSS)
    house.wait(400)
    _, told = house.call("GET", "/v1/jobs/1/why")
    assert f"  ended: CANCELLED, exit 0:0, asked by uid {BOSS.uid}" in told["lines"]
    assert told["cost_micro_usd"] > 0
    assert told["lines"][-1].startswith("  cost: $0.0")


def test_a_job_of_the_past_is_found_in_history(house: House) -> None:
    house.launch("run: x")
    house.call("POST", "/v1/jobs/1/cancel")
    house.wait(1000)
    assert house.call("GET", "/v1/jobs")[1]["jobs"] == []
    assert house.call("GET", "/v1/jobs/1")[1]["state"] == "CANCELLED"
    assert refusal(house.call("GET", "/v1/jobs/99"))[:2] == (404, "no job 99")


def test_the_log_of_a_run_is_read_by_its_owner(house: House, tmp_path: Path) -> None:
    house.launch("run: x", logs=str(tmp_path))
    assert house.call("GET", "/v1/jobs/1/log?run=1") == (200, b"")
    house.wait(60)
    path = house.call("GET", "/v1/clusters/dev/queue")[1]["runs"][0]["log"]
    assert path == f"{tmp_path}/dev-1.0.log"
    Path(path).write_bytes(b"first\n\xff")
    assert house.call("GET", "/v1/jobs/1/log?run=1") == (200, b"first\n\xff")
    assert refusal(house.call("GET", "/v1/jobs/1/log?run=1", by=BOB))[0] == 403
    assert refusal(house.call("GET", "/v1/jobs/1/log?run=5"))[0] == 404
    there_is_none = refusal(house.call("GET", "/v1/jobs/1/log?run=1&rank=2"))
    assert there_is_none[:2] == (404, "job 1 has no text of a node 2")


def test_the_service_opens_no_files_of_other_users(house: House) -> None:
    house.launch("run: x", by=BOB)
    house.wait(60)
    status, message, _ = refusal(house.call("GET", "/v1/jobs/1/log?run=1", by=BOB))
    assert (status, message) == (400, "the service does not open files of bob")


def test_a_log_is_followed_until_its_run_is_over(house: House, tmp_path: Path) -> None:
    house.launch("run: x", logs=str(tmp_path))
    house.wait(100)
    Path(tmp_path, "dev-1.0.log").write_bytes(b"all of it")
    assert house.call("GET", "/v1/jobs/1/log?run=1&follow=true") == (200, b"all of it")
