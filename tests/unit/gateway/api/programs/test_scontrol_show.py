"""What scontrol shows, as a program."""

import json
from pathlib import Path

import pytest

from accounting.tres import Tres
from broker.model.ids import Digest, NodeName
from broker.model.job import Job
from broker.model.node import Node, NodeState
from broker.model.offer import Machine, MachineState, Market
from broker.model.site import Site
from broker.model.spec import Phase, StepSpec
from gateway.api.programs.hostload import host_name
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.scontrol_steps import SHOWN
from gateway.api.wire import Answer
from gateway.config.settings import Config
from gateway.query.siteconfig import KEYS, settings_lines
from tests.unit.gateway.query.desk import Past, ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import CLOUD, NODES, NOON, SITE, node, running
from tests.unit.gateway.query.scene import queue


def scontrol(
    *words: str,
    jobs: list[Job] | None = None,
    nodes: dict[str, Node] | None = None,
    site: Site = SITE,
    environ: dict[str, str] | None = None,
) -> Answer:
    known = nodes if nodes is not None else {str(k): v for k, v in NODES.items()}
    snap = snapshot(queue() if jobs is None else jobs, nodes=known, site=site)
    return ask(Show(entities=SHOWN), desk_of(snap), ["scontrol", *words], environ=environ)


def names(answer: Answer) -> str:
    lines = [line for line in text(answer.out).splitlines() if line.startswith("JobId=")]
    return " ".join(line.split()[0].removeprefix("JobId=70000") for line in lines)


JOBS = [
    (("show", "job", "700001"), "1"),
    (("show", "job=700001"), "1"),
    (("show", "jobid", "700001"), "1"),
    (("sho", "j", "700001"), "1"),
    (("show", "job", "700008"), "8 JobId=700014"),
    (("show", "job", "700008_1"), "JobId=700014"),
    (("show", "job", "700008_3"), "8"),
    (("show", "job", "700014"), "JobId=700014"),
    (
        (
            "show",
            "jobs",
        ),
        "1 2 3 4 5 6 7 8 9 JobId=700010 JobId=700011 JobId=700014",
    ),
]


@pytest.mark.parametrize(("words", "found"), JOBS)
def test_jobs_are_shown_by_id_and_by_element(words: tuple[str, ...], found: str) -> None:
    answer = scontrol(*words)
    assert answer.code == 0
    assert names(answer) == found


TEXTS = [
    (("show", "job", "700008_9"), 1, "Job 700008_9 not found\n", ""),
    (("show", "job", "1"), 1, "", "slurm_load_jobs error: Invalid job id specified\n"),
    (("show", "job", "abc"), 1, "", "scontrol_print_job error: Invalid job id specified\n"),
    (("show", "job", "700001.0"), 1, "", "scontrol_print_job error: Invalid job id specified\n"),
    (("show", "node", "nosuch"), 1, "Node nosuch not found\n", ""),
    (("show", "partition", "nosuch"), 1, "Partition nosuch not found\n", ""),
    (("show",), 1, "", "too few arguments for keyword:show\n"),
    (("show", "users"), 1, "", "invalid entity:users for keyword:show\n"),
    (("foo",), 1, "", "invalid keyword: foo\n"),
    (("show", "hostnames", "a[1-2],b3"), 0, "a1\na2\nb3\n", ""),
    (("show", "hostlist", "b3,a1,a2"), 0, "b3,a[1-2]\n", ""),
    (("show", "hostlistsorted", "c3,c1,c2,a1"), 0, "a1,c[1-3]\n", ""),
    (("show", "hostnames", "a[1-"), 0, "", "Invalid hostlist: a[1-\n"),
    (("show", "hostnames"), 0, "", "scontrol: error: host list is empty\n"),
    (("show", "licenses"), 0, "No licenses configured in Slurm.\n", ""),
    (("show", "daemons"), 0, "slurmctld slurmd\n", ""),
    (("version",), 0, "slurm 25.11.7\n", ""),
    (("-V",), 0, "slurm 25.11.7\n", ""),
    (("ping",), 0, f"Slurmctld(primary) at {host_name()} is UP\n", ""),
]


@pytest.mark.parametrize(("words", "code", "out", "err"), TEXTS)
def test_answers_are_slurms(words: tuple[str, ...], code: int, out: str, err: str) -> None:
    answer = scontrol(*words)
    assert (answer.code, text(answer.out), text(answer.err)) == (code, out, err)


def test_nothing_in_the_queue_is_said() -> None:
    assert text(scontrol("show", "jobs", jobs=[]).out) == "No jobs in the system\n"
    assert text(scontrol("show", "steps", jobs=[]).out) == "No job steps in the system\n"


def test_host_names_come_from_the_job_where_none_are_given() -> None:
    environ = {"SLURM_NODELIST": "ec2-[1-2]"}
    assert text(scontrol("show", "hostnames", environ=environ).out) == "ec2-1\nec2-2\n"


def test_a_declared_node_with_jobs() -> None:
    out = text(scontrol("show", "node", "ec2-1").out)
    assert "   CPUAlloc=4 CPUEfctv=4 CPUTot=4 " in out
    assert "   State=ALLOCATED ThreadsPerCore=1 " in out
    assert "   Partitions=ec2,debug,down,rootonly \n" in out
    assert "   CfgTRES=cpu=4,mem=16000M,billing=15,gres/gpu=2,gres/gpu:a10g=2\n" in out
    assert "   AllocTRES=cpu=4,mem=3272M,gres/gpu=1,gres/gpu:a10g=1\n" in out


def test_a_drained_node_says_why_and_who() -> None:
    nodes = {"ec2-4": node("ec2-4", drain=True, reason="bad disk", reason_at=NOON, reason_uid=0)}
    out = text(scontrol("show", "node", "ec2-4", nodes=nodes, jobs=[]).out)
    assert "   State=IDLE+DRAIN " in out
    assert "   Reason=bad disk [root@2026-11-30T12:00:00]\n" in out


def test_an_elastic_node_tells_of_its_machine() -> None:
    machine = Machine(
        "i-0abc", NodeName("ec2-1"), 1, "token", MachineState.RUNNING, "us-east-1", "use1-az1",
        "g5.xlarge", Market.ON_DEMAND, 1_006_000, NOON, address="10.0.0.7",
    )  # fmt: skip
    bought = Node(
        NodeName("ec2-1"), 1, NodeState.BOOTING, Tres(4, 15000, 1), ("cloud",), machine=machine
    )
    out = text(scontrol("show", "node", "ec2-1", nodes={"ec2-1": bought}, jobs=[], site=CLOUD).out)
    assert "State=IDLE+CLOUD+POWERING_UP " in out
    assert "NodeAddr=10.0.0.7 " in out
    assert "InstanceId=i-0abc InstanceType=g5.xlarge\n" in out
    unused = text(scontrol("show", "node", "ec2-2", nodes={}, jobs=[], site=CLOUD).out)
    assert "State=IDLE+CLOUD+POWERED_DOWN " in unused


def test_a_partition_adds_up_its_nodes() -> None:
    out = text(scontrol("show", "partition", "ec2").out)
    assert "   DefaultTime=01:00:00 DisableRootJobs=NO " in out
    assert "   Nodes=ec2-[1-4]\n" in out
    assert "   State=UP TotalCPUs=16 TotalNodes=4 SelectTypeParameters=NONE\n" in out
    tres = "cpu=16,mem=62.50G,node=4,billing=63,gres/gpu=8,gres/gpu:a10g=8"
    assert f"   TRES={tres}\n   TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=4.0\n" in out
    assert text(scontrol("-o", "show", "partitions").out).count("\n") == 5


def test_the_configuration_has_the_next_job_id() -> None:
    lines = text(scontrol("show", "config").out).splitlines()
    assert lines[0] == "Configuration data as of 2026-11-30T12:00:00"
    assert "NEXT_JOB_ID             = 700100" in lines
    assert "KillWait                = 5 sec" in lines
    assert "MinJobAge               = 300 sec" in lines
    assert "ClusterName             = oracle" in lines
    assert lines[-2:] == ["", f"Slurmctld(primary) at {host_name()} is UP"]


def test_the_configuration_file_has_its_lines() -> None:
    shown = settings_lines(Config(mail_prog="/bin/true"))
    assert shown["MailProg"] == "/bin/true"
    assert set(shown) <= set(KEYS)


def test_hooks_have_a_line_where_they_are_set() -> None:
    shown = settings_lines(Config(prolog="/etc/site/prolog"))
    assert shown["Prolog[0]"] == "/etc/site/prolog"
    assert "Epilog[0]" not in shown
    assert "Prolog[0]" not in text(scontrol("show", "config").out)


def test_the_parameters_are_the_recorded_ones_in_order(shared: Path) -> None:
    golden = json.loads((shared / "conformance/golden/new-in-25.11.json").read_text())
    case = next(c for c in golden["cases"] if c["name"] == "scontrol-config-names")
    recorded = [line for line in case["stdout"].splitlines()[1:] if line and "(" not in line]
    shown = [
        line.partition("=")[0].rstrip()
        for line in text(scontrol("show", "config").out).splitlines()
    ]
    assert [key for key in shown[1:] if key and "(primary)" not in key] == recorded


def test_the_recorded_lines_of_the_configuration(shared: Path) -> None:
    golden = json.loads((shared / "conformance/golden/admin.json").read_text())
    case = next(c for c in golden["cases"] if c["name"] == "scontrol-config-some")
    shown = dict(line.split(" = ", 1) for line in _padded(text(scontrol("show", "config").out)))
    theirs = {"SlurmctldHost[0]", "AccountingStoragePort", "AccountingStorageTRES"}
    of_site = {"AccountingStorageEnforce", "PreemptExemptTime"}
    recorded = [line.split(" = ", 1) for line in case["stdout"].splitlines() if " = " in line]
    for key, value in recorded:
        weight = key.startswith("PriorityWeight")
        if not weight and key.rstrip() not in theirs | of_site:
            assert shown[key] == value, key


def _padded(out: str) -> list[str]:
    return [line for line in out.splitlines() if " = " in line]


def test_the_script_of_a_job_goes_to_its_owner() -> None:
    script = Digest("cd" * 32)
    batch = StepSpec(name="batch", phases=(Phase(script=script),))
    desk = desk_of(snapshot([running(spec={"batch": batch})]), Past(blobs={script: b"#!/bin/sh\n"}))
    words = ["scontrol", "write", "batch_script", "700001", "-"]
    assert text(ask(Show(), desk, words).out) == "#!/bin/sh\n"
    assert text(ask(Show(), desk, words, uid=2002).err) == (
        "job script retrieval failed: Invalid user id\n"
    )
    answer = ask(Show(), desk, words[:-1])
    assert answer.write == ("slurm-700001.sh", b"#!/bin/sh\n")
    assert answer.out == "batch script for job 700001 written to slurm-700001.sh\n"
    assert ask(Show(), desk, [*words[:-1], "a/b"]).write == ("a/b", b"#!/bin/sh\n")


def test_steps_are_shown_with_their_job() -> None:
    out = text(scontrol("show", "step", "700003").out)
    assert out.startswith("StepId=700003.batch UserId=2001 StartTime=2026-11-30T11:59:48 ")
    assert "TRES=cpu=1,gres/gpu:a10g=1,gres/gpu=1,mem=1G,node=1\n" in out
    answer = scontrol("show", "step", "799999")
    assert (answer.code, "799999" in text(answer.err)) == (1, True)
