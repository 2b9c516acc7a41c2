"""What a job sees in its environment."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.ids import NodeName, StepId
from broker.model.job import ArrayPlace, Job, Owner, Share
from broker.model.site import Site
from broker.model.spec import UNLIMITED
from gateway.translate.environment import unpack
from gateway.translate.jobenv import Surroundings, runs, variables
from gateway.translate.sbatch import Submission
from gateway.translate.stepenv import batch_environment, login_names
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.hostlist import expand

from .conftest import NOW, Submit

ALICE = Owner(2001, 2001, "alice", "alice", home="/home/alice", shell="/bin/bash")


def job_of(made: object, *shares: Share, **fields: Any) -> Job:
    assert isinstance(made, Submission)
    usual: dict[str, Any] = {
        "id": JobId(700001),
        "spec": made.spec,
        "owner": ALICE,
        "account": "physics",
        "qos": "normal",
        "partitions": ("ec2",),
        "submitted": NOW,
        "started": NOW + 5,
        "time_limit": 3600,
        "want": Tres(),
        "shares": shares,
    }
    return Job(**{**usual, **fields})


def share(node: str, cpus: int = 1, *, tasks: int = 1, gpus: tuple[int, ...] = ()) -> Share:
    return Share(NodeName(node), 0, Tres(cpu=cpus, mem_mib=1024, node=1), (), gpus, tasks)


def test_equal_counts_are_written_once() -> None:
    assert runs([4, 4, 2]) == "4(x2),2"
    assert runs([1]) == "1"


def test_a_job_on_two_nodes(sbatch: Submit, site: Site) -> None:
    made = sbatch("-n", "3", "-c", "2", "--wrap", "true")
    job = job_of(made, share("ec2-2", 4, tasks=2), share("ec2-3", 2))
    found = variables(job, Surroundings(site, "submithost", "ec2-3"))
    expected = {
        "SLURM_JOB_ID": "700001",
        "SLURM_JOB_NODELIST": "ec2-[2-3]",
        "SLURM_JOB_CPUS_PER_NODE": "4,2",
        "SLURM_TASKS_PER_NODE": "2,1",
        "SLURM_CPUS_ON_NODE": "2",
        "SLURM_NODEID": "1",
        "SLURM_NTASKS": "3",
        "SLURM_CPUS_PER_TASK": "2",
        "SLURM_TRES_PER_TASK": "cpu=2",
        "SLURM_JOB_START_TIME": str(NOW + 5),
        "SLURM_JOB_END_TIME": str(NOW + 3605),
        "SKYPILOT_NUM_NODES": "2",
        "SKYPILOT_NODE_RANK": "1",
        "SKYPILOT_NODE_IPS": "ec2-2\nec2-3",
        "SKYPILOT_TASK_ID": "sky-2026-11-30-01-46-40-000000_job-700001_700001",
    }
    found_of = {name: found.get(name) for name in expected}
    assert found_of | {"SKYPILOT_TASK_ID": ""} == expected | {"SKYPILOT_TASK_ID": ""}
    assert found["SKYPILOT_TASK_ID"].endswith("_job-700001_700001")


def test_an_array_element_knows_its_array(sbatch: Submit, site: Site) -> None:
    place = ArrayPlace(JobId(700001), 7, count=3, first=1, last=9, step=2)
    job = job_of(sbatch("--wrap", "true"), share("ec2-1"), array=place)
    found = variables(job, Surroundings(site, "submithost", "ec2-1"))
    assert [found[f"SLURM_ARRAY_{name}"] for name in ("JOB_ID", "TASK_ID", "TASK_COUNT")] == [
        "700001",
        "7",
        "3",
    ]
    assert [found[f"SLURM_ARRAY_TASK_{name}"] for name in ("MIN", "MAX", "STEP")] == ["1", "9", "2"]


def test_gpus_held_here_are_named(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--gres=gpu:2", "--wrap", "true"), share("ec2-1", gpus=(0, 1)))
    found = variables(job, Surroundings(site, "submithost", "ec2-1"))
    assert found["CUDA_VISIBLE_DEVICES"] == found["SLURM_JOB_GPUS"] == "0,1"
    assert found["SKYPILOT_NUM_GPUS_PER_NODE"] == "2"


def test_a_job_without_a_limit_ends_in_a_year(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--wrap", "true"), share("ec2-1"), time_limit=UNLIMITED)
    found = variables(job, Surroundings(site, "submithost", "ec2-1"))
    assert int(found["SLURM_JOB_END_TIME"]) - int(found["SLURM_JOB_START_TIME"]) == 365 * 86400


def test_restarts_are_told_once_there_are_some(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--wrap", "true"), share("ec2-1"))
    around = Surroundings(site, "submithost", "ec2-1")
    assert "SLURM_RESTART_COUNT" not in variables(job, around)
    assert variables(replace(job, restarts=2), around)["SLURM_RESTART_COUNT"] == "2"


def test_ours_win_over_the_submitters_and_bytes_survive(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--wrap", "true"), share("ec2-1"))
    given = b"SLURM_JOB_ID=5\0SLURM_FOO=x\0B=\xff\0TMPDIR=/scratch"
    block = batch_environment(
        job, Surroundings(site, "submithost", "ec2-1"), given=given, extra=b"B=\xfe"
    )
    entries = block.split(b"\0")
    assert {b"SLURM_JOB_ID=700001", b"SLURM_FOO=x", b"B=\xfe", b"TMPDIR=/scratch"} <= set(entries)
    assert len(entries) == len({entry.partition(b"=")[0] for entry in entries})


def test_a_login_environment_lies_below(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--export=NONE", "--wrap", "true"), share("ec2-1"))
    around = Surroundings(site, "submithost", "ec2-1")
    found = unpack(batch_environment(job, around, given=b"SHELL=/bin/zsh"))
    assert (found["HOME"], found["USER"], found["SHELL"]) == ("/home/alice", "alice", "/bin/zsh")
    assert found["SLURM_GET_USER_ENV"] == "1"
    assert found["SLURM_EXPORT_ENV"] == "NONE"
    bare = job_of(sbatch("--export=NIL", "--wrap", "true"), share("ec2-1"))
    assert "HOME" not in unpack(batch_environment(bare, around))


LOGINS = {
    "none":      (("--export=NONE",), b"", {"HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"}),
    "a list":    (("--export=PATH",), b"PATH=/own", {"HOME", "LOGNAME", "SHELL", "TMPDIR", "USER"}),
    "asked for": (("--get-user-env",), b"PATH=a\0HOME=h\0TMPDIR=t", {"LOGNAME", "SHELL", "USER"}),
    "nothing":   (("--export=NIL",), b"", set()),
    "all":       ((), b"PATH=/own", set()),
}  # fmt: skip


@pytest.mark.parametrize("case", LOGINS)
def test_a_login_shell_may_change_what_the_job_was_not_given(
    sbatch: Submit, site: Site, case: str
) -> None:
    words, given, names = LOGINS[case]
    job = job_of(sbatch(*words, "--wrap", "true"), share("ec2-1"))
    around = Surroundings(site, "submithost", "ec2-1")
    assert set(login_names(job, around, given)) == names
    assert login_names(job, replace(around, step=StepId("3")), given) == ()


def test_a_step_beside_the_batch_step_has_a_number(sbatch: Submit, site: Site) -> None:
    job = job_of(sbatch("--wrap", "true"), share("ec2-1"))
    around = Surroundings(site, "submithost", "ec2-1", StepId("3"))
    found = unpack(batch_environment(job, around))
    assert (found["SLURM_STEP_ID"], found["SLURM_STEP_NODELIST"]) == ("3", "ec2-1")


VOLATILE = {
    "SLURM_CONF",
    "SLURM_TASK_PID",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_END_TIME",
}
SEEN = ("SLURM", "SBATCH", "CUDA", "GPU_")


def _recorded(case: dict[str, Any]) -> dict[str, str] | None:
    """The environment that a recorded job wrote, if it did."""
    for text in (case.get("files_written") or {}).values():
        if "SLURMD_NODENAME=" in text and "ARRAY" not in text and "HET" not in text:
            lines = (line.partition("=") for line in text.splitlines())
            return {name: value for name, _, value in lines}
    return None


def _counts(text: str) -> list[int]:
    pairs = (part.rstrip(")").partition("(x") for part in text.split(","))
    return [int(number) for number, _, times in pairs for _ in range(int(times or 1))]


@pytest.mark.parametrize("area", ["sbatch-options", "sbatch-script", "new-in-25.11"])
def test_a_job_sees_what_it_saw_on_the_recorded_site(
    sbatch: Submit, site: Site, golden: Callable[[str], list[dict[str, Any]]], area: str
) -> None:
    wrong, compared = [], 0
    for case in golden(area):
        recorded = _recorded(case)
        if recorded is None or not case["cmd"].startswith("sbatch ") or ";" in case["cmd"]:
            continue
        files = {name: text.encode() for name, text in case["files"].items()}
        words = shlex.split(case["cmd"])[1:]
        try:
            made = sbatch(*words, files=files, environ=case.get("env"))
        except GrammarError:
            continue
        held = recorded.get("SLURM_JOB_GPUS")
        gpus = tuple(_counts(held)) if held else ()
        shares = [
            share(node, cpus, tasks=tasks, gpus=gpus)
            for node, cpus, tasks in zip(
                expand(recorded["SLURM_JOB_NODELIST"]),
                _counts(recorded["SLURM_JOB_CPUS_PER_NODE"]),
                _counts(recorded["SLURM_TASKS_PER_NODE"]),
                strict=True,
            )
        ]
        named = {"account": recorded["SLURM_JOB_ACCOUNT"], "qos": recorded["SLURM_JOB_QOS"]}
        job = job_of(made, *shares, partitions=(recorded["SLURM_JOB_PARTITION"],), **named)
        assert isinstance(made, Submission)
        assert made.spec.environment is not None
        around = Surroundings(site, "submithost", shares[0].node)
        block = batch_environment(job, around, given=made.blobs[made.spec.environment])
        found = {k: v for k, v in unpack(block).items() if k.startswith(SEEN) and k not in VOLATILE}
        found = {k: v.replace("700001", "J+0000") for k, v in found.items()}
        expected = {k: v for k, v in recorded.items() if k not in VOLATILE}
        compared += 1
        if found != expected:
            differs = {k for k in {*found, *expected} if found.get(k) != expected.get(k)}
            wrong.append((case["name"], case["cmd"], differs))
    assert not wrong
    assert compared
