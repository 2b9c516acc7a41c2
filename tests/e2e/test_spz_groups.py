"""Job groups as processes: one heterogeneous job, whose tasks begin together and end alone."""

import json
import os
import pwd

import pytest

from tests.e2e.agents import until
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.e2e
GROUP = """\
name: pair
execution: parallel
primary_tasks: [learn]
termination_delay: 1
---
name: serve
resources: {cpus: 2}
run: |
  echo "serve of $SKYPILOT_JOBGROUP_NAME"
  sleep 600
---
name: learn
resources: {cpus: 2}
run: |
  echo "learn in a job of $SLURM_HET_SIZE"
  sleep 1
"""


def test_a_group_is_one_job_in_queue_and_past_and_ends_with_its_primary_task(
    spz: Terminal,
) -> None:
    made = spz.json("jobs", "launch", "-y", "-d", spz.file("pair.yaml", GROUP))
    root, jobs = made["root"], made["jobs"]
    assert (made["kind"], jobs, made["primary"]) == ("group", [root + 1, root], [root])
    shown = spz.served.run("squeue", "-h", "-o", "%i %j", "-j", str(root))
    assert sorted(shown.out.splitlines()) == [f"{root}+0 learn", f"{root}+1 serve"]
    spz.served.wait(root, "COMPLETED")
    spz.served.wait(root + 1, "CANCELLED")
    text = spz("jobs", "logs", str(root), "--no-follow")
    assert "learn in a job of 2" in text.out, text
    assert "serve of pair" in spz("jobs", "logs", str(root), "serve", "--no-follow").out
    found = json.loads(spz("jobs", "queue", "-a", "-o", "json").out)
    states = {one["name"]: (one["root"], one["status"]) for one in found}
    assert states == {"learn": (root, "SUCCEEDED"), "serve": (root, "CANCELLED")}


CALLED = """\
name: told
envs: {{MARK: "a b", OUT: {out}}}
resources: {{cpus: 2, priority: 10}}
event_callback: |
  echo "$JOB_STATUS $TASK_NAME $MARK $(id -un)" >> "$OUT"
run: exit 3
"""


def test_a_managed_jobs_script_is_told_of_its_states_in_order(spz: Terminal) -> None:
    told = spz.home / "told"
    task = spz.file("told.yaml", CALLED.format(out=json.dumps(str(told))))
    made = spz.json("jobs", "launch", "-y", "-d", task)
    until(lambda: told.exists() and "FAILED" in told.read_text(), "its last call")
    who = pwd.getpwuid(os.getuid()).pw_name
    lines = told.read_text().splitlines()
    states = ["SUBMITTED", "STARTING", "STARTED", "FAILED"]
    assert lines == [f"{state} told a b {who}" for state in states]
    shown = spz.served.run("scontrol", "show", "job", str(made["root"])).out
    assert " Nice=-10 " in shown


def test_a_group_is_cancelled_as_one(spz: Terminal) -> None:
    task = GROUP.replace("sleep 1\n", "sleep 500\n")
    made = spz.json("jobs", "launch", "-y", "-d", spz.file("long.yaml", task))
    assert spz("jobs", "cancel", "-y", str(made["root"])).code == 0
    for job in made["jobs"]:
        spz.served.wait(job, "CANCELLED")
