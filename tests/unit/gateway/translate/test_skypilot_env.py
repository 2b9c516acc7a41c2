"""SkyPilot's variables in a job, and ours beside them."""

import json
from dataclasses import replace

import pytest

from accounting.ids import JobId
from broker.model.ids import BATCH, NodeName, StepId
from broker.model.job import ArrayPlace, Job, Step
from broker.model.spec import Managed, StepSpec
from gateway.translate.skypilot_env import OLDER, sky_variables, task_id

from .conftest import Submit
from .test_jobenv import job_of, share

PLACE = {"cloud": "AWS", "region": "us-east-1", "zone": "use1-az1"}


@pytest.fixture
def job(sbatch: Submit) -> Job:
    return job_of(sbatch("-N2", "--wrap", "true"), share("ec2-2", gpus=(0, 1)), share("ec2-3"))


def told(job: Job, node: str = "ec2-3", step: StepId = BATCH) -> dict[str, str | None]:
    addresses = {NodeName("ec2-2"): "10.0.0.2", NodeName("ec2-3"): "10.0.0.3"}
    return sky_variables(job, node, step, addresses=addresses, place=PLACE)


def test_a_plain_batch_job_has_them_too_under_both_names(job: Job) -> None:
    found = told(job)
    assert found["SKY_NODE_RANK"] == found["SKYPILOT_NODE_RANK"]
    assert found["SKYPILOT_JOB_ID"] == found["SKYPILOT_RUN_ID"] == found["SKYPILOT_TASK_ID"]
    ours = {name.removeprefix("SKYPURZA_"): text for name, text in found.items() if "PURZA" in name}
    theirs = {
        name.removeprefix("SKYPILOT_"): text
        for name, text in found.items()
        if "PILOT" in name and name not in OLDER
    }
    assert ours == theirs
    assert (ours["NODE_RANK"], ours["NUM_NODES"], ours["NUM_GPUS_PER_NODE"]) == ("1", "2", "2")
    assert ours["NODE_IPS"] == ours["SETUP_NODE_IPS"] == "10.0.0.2\n10.0.0.3"
    assert json.loads(ours["CLUSTER_INFO"] or "") == {"cluster_name": "job-700001", **PLACE}
    assert (ours["JOB_RANK"], ours["NUM_JOBS"]) == ("0", "1")
    assert "MANAGED_JOB_ID" not in ours


def test_a_run_of_a_cluster_is_known_by_its_number(job: Job) -> None:
    spec = job.spec.model_copy(update={"cluster": "dev"})
    step = Step(id=StepId("1"), name="x", asked=1_800_000_000)
    cluster = replace(job, spec=spec, steps=(step,))
    assert task_id(cluster, StepId("1")) == "sky-2027-01-15-08-00-00-000000_dev_2"


def test_a_run_on_a_part_of_its_cluster_counts_its_own_nodes(job: Job) -> None:
    spec = job.spec.model_copy(update={"cluster": "dev"})
    run = StepSpec(name="x", nodes=1)
    step = Step(id=StepId("0"), name="x", spec=run, share=job.shares[1])
    found = told(replace(job, spec=spec, steps=(step,)), step=StepId("0"))
    ours = {name: found[f"SKYPURZA_{name}"] for name in ("NODE_RANK", "NODE_IPS", "NUM_NODES")}
    assert ours == {"NODE_RANK": "0", "NODE_IPS": "10.0.0.3", "NUM_NODES": "1"}
    assert found["SKYPILOT_SETUP_NODE_RANK"] == "1"
    assert found["SKYPILOT_SETUP_NODE_IPS"] == "10.0.0.2\n10.0.0.3"


def test_a_managed_job_keeps_its_id_over_attempts(job: Job) -> None:
    spec = job.spec.model_copy(update={"managed": Managed(), "name": "fit"})
    array = ArrayPlace(JobId(700001), 3, count=4, first=0, last=3, step=1)
    first = replace(job, spec=spec, array=array)
    again = replace(first, attempt=2, restarts=1)
    assert told(first)["SKYPILOT_TASK_ID"] == told(again)["SKYPILOT_TASK_ID"]
    found = told(again)
    assert (found["SKYPILOT_TASK_ID"] or "").endswith("_fit_700001-3")
    assert (found["SKYPILOT_JOB_RANK"], found["SKYPILOT_NUM_JOBS"]) == ("3", "4")
    assert found["SKYPILOT_ROOT_JOB_ID"] == "700001"
    assert found["SKYPILOT_TASK_IDS"] == found["SKYPILOT_TASK_ID"]


def test_tasks_of_a_whole_know_one_another(job: Job) -> None:
    asked = Managed(
        kind="group", name="rl", number=1, tasks=("act", "learn"), root=700000, at=1_800_000_000
    )
    found = told(replace(job, spec=job.spec.model_copy(update={"managed": asked, "name": "learn"})))
    ids = [
        "sky-managed-2027-01-15-08-00-00-000000_rl_act_700000-0",
        "sky-managed-2027-01-15-08-00-00-000000_rl_learn_700000-1",
    ]
    assert found["SKYPILOT_TASK_IDS"] == "\n".join(ids)
    assert found["SKYPURZA_TASK_ID"] == ids[1]
    assert found["SKYPILOT_JOBGROUP_NAME"] == "rl"
    assert found["SKYPILOT_MANAGED_JOB_ID"] == found["SKYPILOT_ROOT_JOB_ID"] == "700000"
    assert json.loads(found["SKYPILOT_CLUSTER_INFO"] or "")["cluster_name"] == "learn-700000"
