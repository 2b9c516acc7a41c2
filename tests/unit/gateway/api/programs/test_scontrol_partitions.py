"""`scontrol update partition`, with the answers of a real 22.05."""

import pytest

from broker.model.commands import Reconfigure
from broker.model.site import Partition
from broker.model.spec import UNLIMITED
from gateway.api.desk import Desk
from gateway.api.programs.scontrol import VERBS, program
from gateway.api.programs.scontrol_update import update
from gateway.api.wire import Answer, Call
from tests.unit.gateway.api.office import ALICE, ROOT, SITE, Office


async def show(desk: Desk, call: Call) -> Answer:
    return Answer()


RUN = program(show, {**VERBS, "update": update})
NO_SUCH = "slurm_update error: Invalid partition name specified\n"
NO_ERROR = "slurm_update error: No error\n"


def changed(office: Office, line: str, *, by: object = ROOT) -> str:
    """What it says; nothing where it was done."""
    answer = office.run(RUN, "update", *line.split(), name="scontrol", by=by)  # type: ignore[arg-type]
    assert answer.code == int(bool(answer.err))
    return str(answer.err)


def debug(office: Office) -> Partition:
    found = office.engine.site.partition("debug")
    assert found is not None
    return found


FIELDS = {
    "State=DOWN": ("state", "DOWN"),
    "sta=drain": ("state", "DRAIN"),
    "MaxTime=10": ("max_time", 600),
    "MaxTime=0": ("max_time", 0),
    "MaxTime=1-0": ("max_time", 86_400),
    "MaxTime=infinite": ("max_time", UNLIMITED),
    "DefaultTime=0:30": ("default_time", 60),
    "MaxNodes=3": ("max_nodes", 3),
    "MaxNodes=UNLIMITED": ("max_nodes", None),
    "MinNodes=2": ("min_nodes", 2),
    "MaxCPUsPerNode=2": ("max_cpus_per_node", 2),
    "AllowAccounts=chem,lab": ("allow_accounts", ("chem", "lab")),
    "AllowAccounts=ALL": ("allow_accounts", None),
    "DenyAccounts=chem": ("deny_accounts", ("chem",)),
    "DenyAccounts=": ("deny_accounts", ()),
    "AllowQos=High": ("allow_qos", ("high",)),
    "DenyQos=high": ("deny_qos", ("high",)),
    "QOS=normal": ("qos", "normal"),
    "QOS=": ("qos", None),
    "AllowGroups=nosuchgroup": ("allow_groups", ("nosuchgroup",)),
    "AllowGroups=": ("allow_groups", None),
    "PriorityTier=5": ("priority_tier", 5),
    "PriorityJobFactor=7": ("priority_job_factor", 7),
    "Priority=3": ("priority_tier", 3),
    "Hidden=YES": ("hidden", True),
    "RootOnly=yes": ("root_only", True),
    "DisableRootJobs=YES": ("disable_root_jobs", True),
    "ReqResv=YES": ("req_resv", True),
    "ExclusiveUser=YES": ("exclusive_user", True),
    "OverTimeLimit=5": ("over_time", 300),
    "DefMemPerCPU=100": ("def_mem_per_cpu_mib", 100),
    "MaxMemPerCPU=500": ("max_mem_per_cpu_mib", 500),
    "OverSubscribe=EXCLUSIVE": ("whole_nodes", True),
    "Shared=NO": ("whole_nodes", False),
    "PreemptMode=REQUEUE": ("preempt_mode", "requeue"),
    "GraceTime=30": ("grace_time", 30),
    "TRESBillingWeights=CPU=2.0": ("billing_weights", "CPU=2.0"),
}


@pytest.mark.parametrize("word", FIELDS)
def test_a_field_is_changed_and_stays_so_over_a_restart(word: str) -> None:
    office, (field, value) = Office(), FIELDS[word]
    assert changed(office, f"partitionname=debug {word}") == ""
    assert getattr(debug(office), field) == value
    again = Office(store=office.store)
    assert getattr(debug(again), field) == value
    assert again.engine.site.partition("ec2") == SITE.partition("ec2")


def invalid(word: str, *more: str) -> str:
    lines = [f"Invalid input: {word}", *more]
    return "".join(f"scontrol: error: {line}\n" for line in lines) + NO_ERROR


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("partitionname=nosuch state=down", NO_SUCH),
        ("partitionname=debug,ec2 state=up", NO_SUCH),
        ("partitionname= state=up", NO_SUCH),
        ("partitionname=debug", "scontrol: error: No changes specified\n"),
        (
            "partitionname=debug state=bogus",
            invalid("state=bogus", "Acceptable State values are UP, DOWN, DRAIN and INACTIVE"),
        ),
        (
            "partitionname=debug Default=maybe",
            invalid("Default=maybe", "Acceptable Default values are YES and NO"),
        ),
        ("partitionname=debug PreemptMode=bogus", invalid("PreemptMode=bogus")),
        (
            "partitionname=debug OverSubscribe=bogus",
            invalid(
                "OverSubscribe=bogus",
                "Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#",
            ),
        ),
        ("partitionname=debug foo", invalid("foo  Request aborted")),
        (
            "partitionname=debug foo=bar",
            "scontrol: error: Update of this parameter is not supported: foo=bar\n\n"
            f"scontrol: error: Request aborted\n{NO_ERROR}",
        ),
        (
            "partitionname=debug MaxTime=bogus",
            f"scontrol: error: Invalid input MaxTime=bogus\n{NO_ERROR}",
        ),
        (
            "partitionname=debug PriorityTier=70000",
            f"scontrol: error: Invalid PriorityTier value: 70000\n{NO_ERROR}",
        ),
        (
            "partitionname=debug MaxNodes=bogus",
            'scontrol: error: Invalid numeric value "bogus" for MaxNodes.\n',
        ),
        ("partitionname=debug QOS=nosuch", "slurm_update error: Invalid qos specification\n"),
        (
            "partitionname=debug TRESBillingWeights=bogus",
            "slurm_update error: Invalid TRESBillingWeights specification\n",
        ),
        (
            "partitionname=debug Nodes=ec2-1",
            "scontrol: error: Nodes of a partition is the configuration's: change it there, "
            "then scontrol reconfigure\n",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_in_slurms_words(line: str, said: str) -> None:
    office = Office()
    assert changed(office, line) == said
    assert office.engine.site.partitions == SITE.partitions


@pytest.mark.parametrize("name", ["debug", "nosuch"])
def test_only_administrators_change_partitions(name: str) -> None:
    said = changed(Office(), f"partitionname={name} state=down qos=nosuch", by=ALICE)
    assert said == "slurm_update error: Invalid user id\n"


def test_one_partition_is_the_default() -> None:
    office = Office()
    changed(office, "partitionname=debug default=yes")
    assert [part.name for part in office.engine.site.partitions if part.default] == ["debug"]
    changed(office, "partitionname=debug default=no")
    assert office.engine.site.default_partition is None


def test_later_changes_stand_over_earlier_ones_until_the_configuration_is_read_anew() -> None:
    office = Office()
    changed(office, "partitionname=debug state=down maxtime=5")
    changed(office, "partitionname=debug state=drain")
    assert (debug(office).state, debug(office).max_time) == ("DRAIN", 300)
    office.ask(Reconfigure(site=SITE, by=ROOT)).result()
    assert office.engine.site.partitions == SITE.partitions
    assert Office(store=office.store).engine.site.partitions == SITE.partitions
