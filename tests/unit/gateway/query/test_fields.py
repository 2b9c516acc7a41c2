"""Records to the text of squeue's and scontrol's columns."""

# ruff: noqa: E501 - a row stays on one line

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product

import pytest

from accounting.tres import Tres
from broker.model.ids import StepId
from broker.model.job import (
    ArrayPlace,
    ExitCode,
    Hold,
    Job,
    JobFlag,
    JobState,
    Step,
    StepState,
)
from broker.model.site import Partition
from broker.model.spec import UNLIMITED, Dependency, DependencyKind, Gres, Output, StepSpec
from gateway.query import accounts, texts
from gateway.query.documents import Asker, document
from gateway.query.fields import BY_LETTER, BY_LONG, COLUMNS, EVERY
from gateway.query.restjob import JOB_KIND
from gateway.query.restpast import PAST_KIND
from gateway.query.showjob import show_job
from tests.unit.gateway.query.records import NOON, SITE, context, ended, pending, running

BEGIN = {"reason": "BeginTime", "spec": {"begin": NOON + 3600}}
HELD = {"hold": Hold.USER, "reason": "JobHeldUser", "priority": 0, "eligible": None}


def asking(**resources: object) -> dict[str, object]:
    return {"spec": {"resources": resources}}


def typed(*options: tuple[str, str], **more: object) -> dict[str, object]:
    return {"spec": {"options": options, **more}}


def array(task: int | None, waiting: tuple[int, ...] = (), limit: int | None = None) -> ArrayPlace:
    return ArrayPlace(700001, task, waiting, limit=limit)  # type: ignore[arg-type]


LETTERS = [
    ("a job that waits has no nodes", pending(), "N=|R=(None)|B=n/a|S=N/A|e=N/A|M=0:00|L=1:00:00|t=PD"),
    ("one that runs has", running(), "N=ec2-1|R=ec2-1|B=ec2-1|M=0:30|L=59:30|t=R|T=RUNNING"),
    ("an allocation is where it was asked for", running(spec={"batch": None, "allocator": "salloc"}), "B=localhost|N=ec2-1"),
    ("several are folded", running(nodes=("ec2-1", "ec2-2", "ec2-4")), "N=ec2-[1-2,4]|D=3|B=ec2-1"),
    ("booting hides running", running(flags=JobFlag.CONFIGURING), "t=CF|T=CONFIGURING|R=ec2-1"),
    ("cleaning up hides the end", ended(flags=JobFlag.COMPLETING), "t=CG|T=COMPLETING|R=ec2-1"),
    ("failed jobs say why", ended(state=JobState.FAILED, reason="NonZeroExitCode"), "R=(NonZeroExitCode)|t=F"),
    ("completed ones say where", ended(), "R=ec2-1|t=CD|M=0:20"),
    ("memory exceeded has three letters", ended(state=JobState.OUT_OF_MEMORY, reason="OutOfMemory"), "t=OOM"),
    ("a begin time is a start foreseen", pending(**BEGIN), "S=2026-11-30T13:00:00|e=2026-11-30T14:00:00"),
    ("no limit", running(time_limit=UNLIMITED), "l=UNLIMITED|L=UNLIMITED"),
    ("a limit that is over", running(time_limit=10), "L=INVALID"),
    ("long limits have days", pending(time_limit=93784), "l=1-02:03:04"),
    ("an array that waits", pending(array=array(None, (1, 2, 5), 2)), "i=700001_[1-2,5%2]|K=1-2,5%2|A=700001|F=700001"),
    ("an element", running(700009, array=array(7)), "i=700001_7|K=7|A=700009|F=700001"),
    ("no array", pending(), "i=700001|K=N/A|F=700001"),
    ("partitions asked for", pending(partitions=("debug", "ec2")), "P=debug,ec2"),
    ("default memory of the partition", pending(), "m=1G"),
    ("memory per node", pending(**asking(mem_per_node_mib=1500)), "m=1500M"),
    ("all memory", pending(**asking(mem_per_node_mib="ALL")), "m=0"),
    ("a partition without default memory", pending(want=Tres(1, 0, 1), partitions=("debug",)), "m=0"),
    ("cpus of a task", pending(want=Tres(4, 4096, 1), **asking(tasks=2, cpus_per_task=2)), "C=4|c=2"),
    ("tasks of a node", pending(want=Tres(4, 4096, 2), **asking(min_nodes=2, tasks_per_node=2)), "c=2|D=2"),
    ("more cpus than a node has", pending(want=Tres(17, 17, 1), **asking(tasks=17)), "D=5|C=17"),
    ("no task on more than a node", pending(want=Tres(8, 8, 1), **asking(cpus_per_task=8)), "D=1|C=8"),
    ("tasks of which a node takes one", pending(want=Tres(12, 12, 1), **asking(tasks=4, cpus_per_task=3)), "D=4|C=12"),
    ("tasks that crowd", pending(want=Tres(1, 1, 1), **asking(tasks=5)), "D=2|C=1"),
    ("more than the named nodes", pending(want=Tres(9, 9, 2), **asking(tasks=9, min_nodes=2, nodelist=("ec2-1", "ec2-2"))), "D=3"),
    ("gres as typed", pending(**typed(("gres", "gpu:a10g:1"))), "b=gres/gpu:a10g:1"),
    ("gres of a node in two ways", pending(**typed(("gpus-per-node", "1"), ("gres", "gpu:2"))), "b=gres/gpu:1,gres/gpu:2"),
    ("gres without options, from SkyPilot", pending(**asking(gres=(Gres(name="gpu", type="a10g"),))), "b=gres/gpu:a10g:1"),
    ("gpus of the job are not of a node", pending(**typed(("gpus", "2"))), "b=N/A"),
    ("comment given empty", pending(spec={"comment": ""}), "k="),
    ("no comment", pending(), "k=(null)"),
    ("comment changed later", pending(comment="new", spec={"comment": "old"}), "k=new"),
    ("priority", pending(priority=10664), "Q=10664|p=0.00000248290598"),
    ("geometry", pending(**asking(sockets=1, threads_per_core=2)), "z=1:*:2|H=1|I=*|J=2"),
    ("exclusive", pending(**asking(exclusive=True)), "h=NO"),
    ("exclusive of users", pending(**typed(("exclusive", "user"))), "h=USER"),
    ("shared", pending(**typed(("oversubscribe", ""))), "h=YES"),
    ("nodes wished and not wished", pending(**asking(nodelist=("ec2-2", "ec2-1"), exclude=("ec2-3",))), "n=ec2-[1-2]|x=ec2-3"),
    ("a preference is a feature once it runs", running(**asking(prefer="spot")), "f=spot"),
    ("temporary disk", pending(**asking(tmp_mib=100)), "d=100M"),
    ("a job that ended without a start", pending(state=JobState.CANCELLED, ended=NOON), "S=2026-11-30T12:00:00|M=0:00|R="),
]  # fmt: skip


@pytest.mark.parametrize(("title", "job", "row"), LETTERS, ids=[row[0] for row in LETTERS])
def test_squeue_shows(title: str, job: Job, row: str) -> None:
    wanted = dict(pair.split("=", 1) for pair in row.split("|"))
    shown = {letter: BY_LETTER[letter].squeue()(job, context()) for letter in wanted}
    assert shown == wanted, title


@pytest.mark.parametrize(
    ("reason", "limits", "said"),
    [
        ("AccountNotAllowed", {"allow_accounts": ("chem", "geo")}, "(debug allows chem,geo not physics)"),
        ("AccountNotAllowed", {"deny_accounts": ("physics",)}, "(debug denies physics including physics)"),
        ("QOSNotAllowed", {"allow_qos": ("high",)}, "(debug allows high not normal)"),
        ("QOSNotAllowed", {"deny_qos": ("high", "normal")}, "(debug denies high,normal including normal)"),
    ],
)  # fmt: skip
def test_who_may_not_use_a_partition_is_told_in_a_sentence(
    reason: str, limits: dict[str, tuple[str, ...]], said: str
) -> None:
    noun = "account" if reason.startswith("Account") else "QOS"
    said = f"Job's {noun} not permitted to use this partition {said}"
    known = replace(SITE, partitions=(Partition("ec2"), Partition("debug", **limits)))  # type: ignore[arg-type]
    job, ctx = pending(reason=reason, partitions=("ec2", "debug")), context(site=known)
    assert BY_LETTER["r"].squeue()(job, ctx) == said
    assert BY_LETTER["R"].squeue()(job, ctx) == f"({said})"
    assert f"Reason={said.replace(' ', '_')} " in show_job(job, ctx)


AFTER = Dependency(kind=DependencyKind.AFTEROK, job=700000)
SCONTROL = [
    (
        "no more of a range than tasks",
        pending(**asking(min_nodes=1, max_nodes=4, tasks=3)),
        "NumNodes=1-3 NumCPUs=1 NumTasks=3",
    ),
    (
        "and no more than GPUs",
        pending(**asking(min_nodes=1, max_nodes=4, gpus=(Gres(name="gpu", count=2),))),
        "NumNodes=1-2",
    ),
    ("held and no node count asked for", pending(**HELD), "NumNodes=1-1 NumCPUs=1 NumTasks=1"),
    ("no node count asked for", pending(), "NumNodes=1 NumCPUs=1"),
    (
        "a range of nodes",
        pending(want=Tres(2, 2048, 2), **asking(min_nodes=2, max_nodes=3)),
        "NumNodes=2-3",
    ),
    (
        "tasks that crowd need a cpu",
        pending(spec={"options": (("overcommit", ""),), "resources": {"tasks_per_node": 2}}),
        "MinCPUsNode=1 ",
    ),
    ("a count of nodes", pending(want=Tres(3, 3072, 3), **asking(min_nodes=3)), "NumNodes=3-3"),
    ("one number once it runs", running(**asking(min_nodes=1, max_nodes=2)), "NumNodes=1 "),
    ("held is not eligible", pending(**HELD), "EligibleTime=Unknown\n   AccrueTime=Unknown"),
    ("nothing allocated", pending(), "AllocTRES=(null)"),
    ("billing", running(want=Tres(2, 8192, 1)), "AllocTRES=cpu=2,mem=8G,node=1,billing=4"),
    ("no limit while it runs", running(time_limit=UNLIMITED), "EndTime=Unknown"),
    ("dependency", pending(after=(AFTER,)), "Dependency=afterok:700000(unfulfilled)"),
    (
        "minutes behind a start",
        pending(after=(Dependency(kind=DependencyKind.AFTER, job=5, delay=300),)),
        "Dependency=after:5+5(unfulfilled)",
    ),
    (
        "one of several is enough",
        pending(after=(AFTER, Dependency(kind=DependencyKind.SINGLETON)), spec={"after_any": True}),
        "Dependency=afterok:700000(unfulfilled)?singleton(unfulfilled)",
    ),
    (
        "a condition that cannot hold any more",
        pending(after=(AFTER,), reason="DependencyNeverSatisfied"),
        "Dependency=afterok:700000(failed)",
    ),
    (
        "reasons have underscores for blanks",
        ended(state=JobState.FAILED, reason="RaisedSignal:11(Segmentation fault)"),
        "Reason=RaisedSignal:11(Segmentation_fault)",
    ),
    ("exit code and signal", ended(exit=ExitCode(0, 9)), "ExitCode=0:9"),
    ("memory per cpu by default", pending(), "MinMemoryCPU=1G MinTmpDiskNode=0"),
    ("memory per node", pending(**asking(mem_per_node_mib=100)), "MinMemoryNode=100M "),
    ("memory per gpu", pending(**asking(mem_per_gpu_mib=1024)), "MinMemoryTRES=1G "),
    ("gpus of the job", pending(**typed(("gpus", "a10g:2"))), "\n   TresPerJob=gres/gpu:a10g:2"),
    (
        "cpus of a task are TRES",
        pending(spec={"options": (("cpus-per-task", "2"),), "resources": {"cpus_per_task": 2}}),
        "\n   TresPerTask=cpu=2",
    ),
    ("mail", pending(spec={"mail_types": ("END",)}), "\n   MailUser=alice MailType=END"),
    ("errors go where output goes", pending(), "\n   StdErr=\n"),
    (
        "a file of its own for errors",
        pending(spec={"output": Output(stderr="e-%j.txt")}),
        "StdErr=/home/alice/work/e-700001.txt",
    ),
    (
        "an element's output",
        running(700009, array=array(7)),
        "StdOut=/home/alice/work/slurm-700001_7.out",
    ),
    (
        "an array's output before it starts",
        pending(array=array(None, (1, 2))),
        "StdOut=/home/alice/work/slurm-700001_4294967294.out",
    ),
    (
        "the array's limit",
        pending(array=array(None, (1, 2), 2)),
        "JobId=700001 ArrayJobId=700001 ArrayTaskId=1-2%2 ArrayTaskThrottle=2 JobName=wrap",
    ),
    ("container", pending(**typed(("container", "x"))), "\n   Container=x ContainerID=(null)"),
    ("switches wait", pending(**typed(("switches", "1"))), "\n   Switches=1@00:05:00"),
    ("no longer than they may", pending(**typed(("switches", "2@10"))), "Switches=2@00:05:00"),
    ("as long as they are told", pending(**typed(("switches", "2@1"))), "Switches=2@00:01:00"),
    ("delay of boots", pending(**typed(("delay-boot", "1:30"))), "DelayBoot=00:01:30"),
    ("binding of GPUs", pending(**typed(("gpu-bind", "closest"))), "TresBind=gres/gpu:closest"),
    ("speed of GPUs", pending(**typed(("gpu-freq", "high"))), "TresFreq=gpu:high"),
    ("tasks of a GPU", pending(**typed(("ntasks-per-tres", "2"))), "NtasksPerTRES=2"),
    ("GPUs near by", pending(**typed(("gres-flags", "enforce-binding"))), "GresEnforceBind=Yes"),
    ("GPUs anywhere", pending(**typed(("gres-flags", "disable-binding"))), "GresEnforceBind=No"),
    (
        "speed of cpus",
        pending(**typed(("cpu-freq", "medium"))),
        "\n   CPU_max_freq=Medium Governor=UserSpace\n",
    ),
    ("their governor", pending(**typed(("cpu-freq", "Performance"))), "\n   Governor=Performance"),
    (
        "a range of speeds",
        pending(**typed(("cpu-freq", "1000-high:ondemand"))),
        "CPU_min_freq=1000 CPU_max_freq=High Governor=OnDemand",
    ),
    (
        "nodes that the GPUs need",
        pending(spec={"resources": {"gpus": (Gres(name="gpu", count=5),)}}),
        "NumNodes=3-3 NumCPUs=1 NumTasks=1",
    ),
    (
        "held, with a begin time",
        pending(hold=Hold.USER, spec={"begin": NOON + 600}),
        "EligibleTime=2026-11-30T12:10:00",
    ),
    (
        "waiting for another job, with a begin time",
        pending(after=(AFTER,), spec={"begin": NOON + 600}),
        "StartTime=2026-11-30T12:10:00",
    ),
]


@pytest.mark.parametrize(("title", "job", "line"), SCONTROL, ids=[row[0] for row in SCONTROL])
def test_scontrol_shows(title: str, job: Job, line: str) -> None:
    assert line in show_job(job, context()), title


def test_an_allocation_that_is_kept_open_has_no_output_files() -> None:
    text = show_job(running(spec={"batch": None}), context())
    assert "BatchFlag=0" in text
    assert "StdOut" not in text


def test_details_tell_what_each_node_gives() -> None:
    gpus = Tres(1, 1024, 1, (("gpu", 1), ("gpu:a10g", 1)))
    job = running(want=gpus)
    job = replace(job, shares=tuple(replace(share, gpu_ids=(1,)) for share in job.shares))
    text = show_job(job, context(), details=True)
    assert (
        "\n   JOB_GRES=gpu:a10g:1\n     Nodes=ec2-1 CPU_IDs=0 Mem=1024 GRES=gpu:a10g:1(IDX:1)\n"
        in text
    )
    assert "\n   SLUID=s" in text
    assert "\n   DerivedExitCode=0:0\n" in text


def test_nodes_that_give_the_same_share_a_line() -> None:
    job = running(want=Tres(2, 2048, 1), nodes=("ec2-1", "ec2-2"))
    assert "     Nodes=ec2-[1-2] CPU_IDs=0 Mem=1024 GRES=\n" in show_job(
        job, context(), details=True
    )


def test_one_line_holds_a_whole_record() -> None:
    text = show_job(ended(), context(), oneliner=True)
    assert text.count("\n") == 1
    assert text.startswith("JobId=700001 JobName=wrap UserId=alice(2001) GroupId=alice(2001) ")


def test_no_letter_and_no_name_stands_for_two_columns() -> None:
    letters = Counter(column.letter for column in COLUMNS if column.letter)
    names = Counter(column.long.lower() for column in COLUMNS if column.long)
    keys = Counter(column.key for column in COLUMNS)
    assert max(letters.values()) == max(names.values()) == max(keys.values()) == 1


SHAPES: list[dict[str, object]] = [
    {}, {"cpus_per_task": 2}, {"tasks": 6}, {"tasks_per_node": 2}, {"min_nodes": 1, "max_nodes": 2},
    {"gpus": (Gres(name="gpu", count=3),)}, {"min_nodes": 2, "max_nodes": 2, "cpus_per_task": 2},
    {"gres": (Gres(name="gpu", count=2),)}, {"gpus_per_task": (Gres(name="gpu", count=1),)},
    {"max_nodes": 0}, {"mem_per_node_mib": 9000}, {"mem_per_gpu_mib": 100},
]  # fmt: skip
WANTS = [Tres(1, 1024, 1), Tres(2, 2048, 1), Tres(6, 6144, 2), Tres()]


def lives() -> list[Job]:
    """Jobs of every shape in every part of their lives, also of those that never began."""
    kinds = (
        pending,
        running,
        ended,
        partial(pending, array=array(None, (1, 2))),
        partial(pending, **HELD),
        partial(pending, state=JobState.CANCELLED, ended=NOON),
        partial(pending, last_node_names=("ec2-1",)),
    )
    shapes = [asking(**shape) for shape in SHAPES]
    every = product(kinds, shapes, WANTS)
    return [kind(**shape, want=want) for kind, shape, want in every]


def test_every_column_can_be_written_of_every_kind_of_job() -> None:
    at, jobs = context(), lives()
    of_jobs = [write for one in COLUMNS for write in (one.squeue(), one.shown())]
    for write in [*of_jobs, *(one.of_job() for one in accounts.COLUMNS)]:
        for job in jobs:
            assert isinstance(write(job, at), str)
    for job in jobs:
        assert show_job(job, at)
    for kind in (JOB_KIND, PAST_KIND):
        told = json.loads(document(kind, jobs, at, asker=Asker((), "alice", "alice")))
        assert len(told["jobs"]) == len(jobs)


def test_all_letters_come_small_ones_first() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    assert "".join(EVERY) == "|".join(letters)
    assert "nodelist" in BY_LONG


LINES = [
    ("the other of two names of a container", typed(("container-id", "x")), "Container=(null) ContainerID=x"),
    ("to be removed", {"spec": {"kill_on_invalid_dep": True}}, "KillOnInvalidDependent=Yes"),
    ("to be kept", {"spec": {"kill_on_invalid_dep": False}}, "KillOnInvalidDependent=No"),
    ("cpus of a task as typed", typed(("tres-per-task", "cpu:2")), "TresPerTask=cpu:2"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "changes", "line"), LINES, ids=[row[0] for row in LINES])
def test_lines_of_scontrol_that_only_some_jobs_have(
    what: str, changes: dict[str, object], line: str
) -> None:
    assert what and f"   {line}\n" in show_job(pending(**changes), context())
    assert line.partition("=")[0] not in show_job(pending(), context())


def test_what_was_refused_for_its_nodes_shows_the_partitions_memory() -> None:
    nothing = {"want": Tres(), "ended": NOON, "spec": {"resources": {"max_nodes": 0}}}
    failed = {"state": JobState.FAILED, "reason": "BadConstraints", "partitions": ("ec2",)}
    shown = show_job(pending(**nothing, **failed), context())
    assert "NumNodes=0 NumCPUs=0 NumTasks=N/A" in shown
    assert "ReqTRES=(null)" in shown
    assert "MinCPUsNode=1 MinMemoryCPU=1G" in shown


FILES = [
    (Output(), False, "slurm-%j.out|(null)|/dev/null"),
    (Output(stdout="out-%j", stderr="/e"), False, "/home/alice/work/out-%j|/e|/dev/null"),
    (
        Output(stdout="out-%j", stdin="in"),
        True,
        "/home/alice/work/out-700001|(null)|/home/alice/work/in",
    ),
]


@pytest.mark.parametrize(("files", "expand", "shown"), FILES)
def test_files_are_paths_once_they_are_named(files: Output, expand: bool, shown: str) -> None:
    job, ctx = pending(spec={"output": files}), context(expand_patterns=expand)
    found = [BY_LONG[name].squeue()(job, ctx) for name in ("stdout", "stderr", "stdin")]
    assert "|".join(found) == shown


@pytest.mark.parametrize(
    ("expand", "shown"),
    [(False, "/home/alice/work/s.%s"), (True, "/home/alice/work/s.3")],
)
def test_a_steps_own_files_are_paths_too(expand: bool, shown: str) -> None:
    own = StepSpec(name="one", output=Output(stdout="s.%s"))
    step = Step(id=StepId("3"), name="one", state=StepState.COMPLETED, spec=own)
    get = texts.step_file("stdout")
    assert get(running(), step, context(expand_patterns=expand)) == shown
    assert texts.step_file("stderr")(running(), step, context()) is None


MOMENTS = [
    ("", "2026-11-30T11:59:00"),
    ("standard", "2026-11-30T11:59:00"),
    ("%s", "1796039940"),
    ("%H.%M", "11.59"),
    ("relative", "11:59"),
]


@pytest.mark.parametrize(("form", "shown"), MOMENTS)
def test_slurm_time_format_changes_moments(form: str, shown: str) -> None:
    assert BY_LETTER["V"].squeue()(pending(), context(time_format=form)) == shown


RELATIVE = [
    (-86400, "Ystday 12:00"),
    (86400, "Tomorr 12:00"),
    (3 * 86400, "Thu 12:00"),
    (-30 * 86400, "31 Oct 12:00"),
    (-400 * 86400, "26 Oct 2025"),
]


@pytest.mark.parametrize(("off", "shown"), RELATIVE)
def test_relative_moments_name_near_days(off: int, shown: str) -> None:
    job = pending(submitted=NOON + off)
    assert BY_LETTER["V"].squeue()(job, context(time_format="relative")) == shown


def test_moments_are_in_the_readers_zone() -> None:
    ctx = context(zone=lambda _at: 3 * 3600)
    assert BY_LETTER["V"].squeue()(pending(), ctx) == "2026-11-30T14:59:00"
