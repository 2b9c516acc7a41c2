"""The table of managed jobs."""

import pytest

from broker.model.errors import Refused
from gateway.query.listed import USERS, VERBOSE
from gateway.sdk.managed import must_join_none
from gateway.sdk.show_managed import managed

NOW = 1_800_000_000
JOB = {
    **{
        "id": 7,
        "slurm_id": "7",
        "root": 7,
        "task": 0,
        "tasks": 1,
        "rank": None,
        "name": "fit",
        "whole": "fit",
    },
    **{"user": "ann", "tres": "cpu=2", "submitted": NOW - 60, "started": NOW - 50, "ended": None},
    **{"restarts": 1, "status": "RUNNING", "infra": "AWS (us-east-1/use1-az1)", "detail": ""},
    **{"reason": "None", "cost_micro_usd": 1000, "primary": True},
}
ACT = {**JOB, "id": 8, "root": 8, "tasks": 2, "name": "act", "whole": "rl", "status": "CANCELLED"}
LEARN = {**ACT, "id": 9, "task": 1, "name": "learn", "status": "SUCCEEDED", "ended": NOW}


def heads(text: str) -> str:
    return " ".join(text.splitlines()[0].split())


USUAL = "ID TASK NAME REQUESTED SUBMITTED TOT. DURATION JOB DURATION #RECOVERIES STATUS COST ($)"


@pytest.mark.parametrize(
    ("also", "heading"),
    [
        ((), USUAL),
        ((USERS,), USUAL.replace("NAME", "NAME USER")),
        ((VERBOSE,), USUAL.replace("STATUS", "STATUS STARTED INFRA DETAILS")),
    ],
)
def test_columns_are_sky_pilots_and_the_cost(also: tuple[str, ...], heading: str) -> None:
    assert heads(managed([JOB], NOW, also=frozenset(also))) == heading


def test_one_task_is_one_line() -> None:
    assert managed([JOB], NOW).splitlines()[1].split()[:3] == ["7", "0", "fit"]


@pytest.mark.parametrize(("act_leads", "status"), [(True, "CANCELLED"), (False, "SUCCEEDED")])
def test_a_whole_stands_before_its_tasks_with_the_state_of_the_primary_ones(
    act_leads: bool, status: str
) -> None:
    lines = managed([LEARN, {**ACT, "primary": act_leads}], NOW).splitlines()[1:]
    assert [line.split()[:3] for line in lines] == [
        ["8", "-", "rl"],
        ["↳", "0", "act"],
        ["↳", "1", "learn"],
    ]
    assert f" {status} " in lines[0]
    assert lines[0].endswith("$0.002")


def test_no_jobs_are_told_in_words() -> None:
    assert managed([], NOW) == "No managed jobs."


@pytest.mark.parametrize("group", ["pair", 7])
def test_nothing_joins_a_group_that_runs(group: int | str) -> None:
    must_join_none(None)
    with pytest.raises(Refused, match=f"--job-group {group}: nothing joins a group that runs"):
        must_join_none(group)
