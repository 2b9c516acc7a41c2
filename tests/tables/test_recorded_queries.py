"""What squeue, sinfo, sacct and scontrol print of records made like the recorder's jobs.

The records stand in for the scenes of the shared answers, so that the text is compared without a
service. What depends on the moment or the machine is made alike on both sides.
"""

import json
import platform
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.model.job import Job
from gateway.api.programs.sacct import sacct
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.scontrol_steps import SHOWN
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.squeue import Squeue
from tests.unit.gateway.query.desk import UIDS, Past, Program, ask, desk_of, snapshot, text
from tests.unit.gateway.query.history import history
from tests.unit.gateway.query.scene import queue

FIRST = 700001
PROGRAMS: dict[str, Callable[[], Program]] = {
    "squeue": Squeue,
    "sinfo": Sinfo,
    "sacct": lambda: sacct,
    "scontrol": lambda: Show(entities=SHOWN),
}
SCENES: dict[str | None, Callable[[], list[Job]]] = {
    "queue": queue,
    "history": history,
    "idle": list,
}

ALIKE = (
    (r"J\+(\d{4})", lambda found: str(FIRST + int(found[1]))),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|YYYY-MM-DDThh:mm:ss", "<moment>"),
    (r"\bs[0-9A-Za-z]{13}\b", "<sluid>"),
    (r"(?m)^\w{3} \w{3} \d\d [\d:]+ \d{4}$", "<date>"),
    (r"\b00:00:(SS|\d\d)\b", "00:00:SS"),
    (r"\b00:(SS|\d\d)\.(mmm|\d{3})\b", "00:SS.mmm"),
    (r"(?<![\d:])(\d{1,2}|M):(SS|\d\d)\b(?!:)", "M:SS"),
    (r"\b1:59:(SS|\d\d)\b", "1:59:SS"),
    (r"\(None\)", "(Resources)"),
    (r"0\.0000\d{10}", "<share>"),
    (r"\|(106\d\d|10700)\|", "|<priority>|"),
    (r"(?<![\d.])(<f>(-<f>)?|\d+\.\d\d)(?=[|\n])", "<load>"),
    (
        r"\b(NodeHostName|Port|OS|CPULoad|FreeMem|BootTime|SlurmdStartTime|LastBusyTime)=\S+",
        r"\1=-",
    ),
    (r"\b(RunTime|LastSchedEval|Scheduler|AllocNode:Sid|Priority|SrunHost:Pid)=\S+", r"\1=-"),
    (r"(?m)^.*\b7000\d\d\+[01]\b.*\n", ""),  # the heterogeneous job
    (r"(?m)^70001[23] .*\n", ""),
)


def alike(words: str) -> str:
    """The text with what cannot be the same made the same."""
    for pattern, new in ALIKE:
        words = re.sub(pattern, new, words)
    return words.replace(platform.node().partition(".")[0], "submithost")


NOT_YET = re.compile(
    r"--json|--yaml|J11|\bupdate\b|\breconfigure\b|\bgetent\b|\blist(jobs|pids|steps)\b"
)
"""Commands of a later issue, of the heterogeneous job, or that change something."""
DIFFERENT = {
    "squeue": {
        "start": "no forecast of starts yet",
        "format-mix-9": "a slip of the recorded version",
        "Format-associd": "associations have no numbers here",
        "Format-priority": "priorities differ",
        "env-relative": "the time of day",
    },
    "sacct": {
        "batch-script": "no script is kept of the records",
        "field-SubmitLine": "steps of srun come later",
        "field-SystemCPU": "usage differs",
        "field-UserCPU": "usage differs",
        "timeformat-env": "the moment",
    },
    "admin": {
        "sinfo-N": "order of partitions within a node varies",
        "sinfo-Nl": "order of partitions within a node varies",
        "sinfo-Format-all": "a slip of the recorded version",
        "sinfo-Format-port": "the machine's",
    },
    "new-in-25.11": {
        "squeue-only-job-state-j": "a job named twice is listed once",
        "squeue-running-under": "other nodes",
        "squeue-known-and-unknown": "other nodes",
        "sacct-fields-new": "how long the jobs had waited",
        "sacct-B": "no script is kept of the records",
        "scontrol-show-job": "other nodes",
        "scontrol-show-step": "other nodes",
        "scontrol-show-job-gpu": "other options in SubmitLine",
        "scontrol-show-job-d": "other options in SubmitLine",
    },
}
HIDDEN = "<volatile>"
LATER = re.compile(r"^squeue-O-")
"""Recorded when the scene's big job had run."""


def cases(folder: Path, area: str) -> Iterator[dict[str, Any]]:
    """The recorded cases that records can stand in for."""
    for case in json.loads((folder / f"{area}.json").read_text())["cases"]:
        command = case["cmd"].replace("; echo rc=$?", "")
        bare = re.sub(r"'[^']*'", "", command)
        known = bare.split(" ")[0] in PROGRAMS and case.get("scene") in SCENES
        plain = not re.search(r"[|;]", bare) and (
            "scontrol" in bare or HIDDEN not in case["stdout"]
        )
        if known and plain and not NOT_YET.search(command) and not LATER.search(case["name"]):
            yield {**case, "cmd": command}


def recorded(case: dict[str, Any]) -> tuple[str, str, int]:
    found = re.search(r"rc=(\d+)\n$", case["stdout"])
    out = case["stdout"][: found.start()] if found else case["stdout"]
    return alike(out), case["stderr"], int(found[1]) if found else case["exit"]


def answered(case: dict[str, Any]) -> tuple[str, str, int]:
    command = re.sub(r"\$\{?J(\d+)\}?", lambda found: str(FIRST + int(found[1])), case["cmd"])
    argv = shlex.split(command)
    jobs = SCENES[case.get("scene")]()
    live = [job for job in jobs if job.id > 700008] if case["scene"] == "history" else jobs
    desk = desk_of(snapshot(live), Past(jobs if case["scene"] == "history" else ()))
    answer = ask(PROGRAMS[argv[0]](), desk, argv, uid=UIDS[case["as"]], environ=case.get("env"))
    return alike(text(answer.out)), text(answer.err), answer.code


def same(left: tuple[str, str, int], right: tuple[str, str, int], area: str) -> bool:
    """Equal; order of lines aside where priorities make it."""
    if area in {"squeue", "new-in-25.11"}:
        lines = sorted(left[0].split("\n")) == sorted(right[0].split("\n"))
    else:
        lines = left[0] == right[0]
    errors = alike(left[1]) == alike(right[1])
    return lines and errors and left[2] == right[2]


@pytest.mark.parametrize(
    ("area", "least"), [("squeue", 175), ("sacct", 105), ("admin", 90), ("new-in-25.11", 40)]
)
def test_records_like_the_recorders_give_the_recorded_text(
    shared: Path, area: str, least: int
) -> None:
    wrong, right = [], 0
    for case in cases(shared / "conformance" / "golden", area):
        if case["name"] in DIFFERENT[area]:
            continue
        got, want = answered(case), recorded(case)
        right += same(got, want, area)
        if not same(got, want, area):
            wrong.append(
                f"{case['name']}: {case['cmd']}\n--- recorded\n{want}\n--- answered\n{got}"
            )
    assert not wrong, "\n".join(wrong)
    assert right >= least


def test_the_usual_job_has_the_recorded_lines(shared: Path) -> None:
    from gateway.query.showjob import show_job
    from tests.unit.gateway.query.records import context, ended

    golden = json.loads((shared / "conformance/golden/sbatch-options.json").read_text())
    case = next(case for case in golden["cases"] if case["name"] == "args-pos")
    shown = show_job(ended(spec={"submit_line": "sbatch --wrap true"}), context())
    assert alike(shown) == alike(case["scontrol_show_job"][0]) + "\n\n"


def test_the_usual_job_has_the_recorded_fields(shared: Path) -> None:
    from gateway.query.fields import BY_LETTER
    from tests.unit.gateway.query.records import context, ended

    golden = json.loads((shared / "conformance/golden/sbatch-options.json").read_text())
    case = next(case for case in golden["cases"] if case["name"] == "args-pos")
    fields = dict(case["squeue_fields"][0])
    del fields["Q"]
    job, ctx = ended(), context()
    shown = {letter: BY_LETTER[letter].squeue()(job, ctx) for letter in fields}
    left = {"L": "59:40"}
    assert {k: alike(v) for k, v in shown.items()} == {
        k: alike(left.get(k, v)) for k, v in fields.items()
    }
