"""scontrol's changes as 25.11.7 answers them."""

import pytest

from broker.model.commands import SetNode, Update
from broker.model.job import Hold, Job, JobState, Owner
from broker.model.spec import UNLIMITED, ArraySpec
from gateway.api.desk import Desk
from gateway.api.programs.scontrol import VERBS, program
from gateway.api.programs.scontrol_update import update
from gateway.api.wire import Answer, Call
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, START, Office


async def show(desk: Desk, call: Call) -> Answer:
    return Answer(out="shown " + " ".join(call.argv))


RUN = program(show, {**VERBS, "update": update})


class Counter(Office):
    """An office with one held job of alice's."""

    def __init__(self) -> None:
        super().__init__()
        self.id = self.submit(time_limit=3600)

    def scontrol(self, line: str, by: Owner = ALICE) -> Answer:
        """`JOB` in a word is the job's id; words are cut at blanks."""
        words = [word.replace("JOB", str(self.id)).replace("~", " ") for word in line.split()]
        return self.run(RUN, *words, name="scontrol", by=by)

    @property
    def record(self) -> Job:
        return self.job(self.id)


@pytest.fixture
def office() -> Counter:
    return Counter()


def test_what_changes_nothing_is_shown_elsewhere(office: Counter) -> None:
    for words in ("show job", "ping", "", "foo", "listpids", "-o show node"):
        assert office.scontrol(words).out == "shown " + words
    assert office.scontrol("--version").out == "slurm 25.11.7\n"


def test_a_hold_is_the_users_and_release_takes_it_away(office: Counter) -> None:
    free = office.submit(begin=START + 3600, hold=False)
    for keyword in ("hold", "uhold", "hol"):
        answer = office.scontrol(f"{keyword} {free},JOB")
        assert (answer.err, answer.code) == ("", 0)
        assert office.job(free).hold is Hold.USER
        assert office.scontrol(f"release {free} JOB").code == 0
        assert office.job(free).hold is None
    assert office.scontrol("hold jobname=wrap").code == 0
    assert office.job(free).hold is office.record.hold is Hold.USER


def test_an_operators_hold_is_not_the_users_to_release(office: Counter) -> None:
    assert office.scontrol("hold JOB", by=ROOT).code == 0
    assert office.record.hold is Hold.ADMIN
    answer = office.scontrol("release JOB")
    assert answer.code == 1
    assert answer.err == (
        f"Access/permission denied for job {office.id}\n"
        "slurm_suspend error:Access/permission denied\n"
    )
    assert office.scontrol("uhold JOB", by=ROOT).code == 0
    assert office.record.hold is Hold.USER


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("update job=JOB TimeLimit=5", "Invalid user id for job JOB\n"),
        ("hold JOB", "Invalid user id for job JOB\nslurm_suspend error:Invalid user id\n"),
        ("release JOB", "Invalid user id for job JOB\nslurm_suspend error:Invalid user id\n"),
        ("requeue JOB", "Access/permission denied for job JOB\n"),
    ],
)
def test_another_users_job_is_left_alone(office: Counter, line: str, err: str) -> None:
    before = office.record
    answer = office.scontrol(line, by=BOB)
    assert (answer.err, answer.code) == (err.replace("JOB", str(office.id)), 1)
    assert office.record == before


@pytest.mark.parametrize(
    ("line", "err"),
    [
        (
            "release 1",
            "Invalid job id specified for job 1\nslurm_suspend error:Invalid job id specified\n",
        ),
        ("requeue 1", "Invalid job id specified for job 1\n"),
        ("requeue JOB", "Job is pending execution for job JOB\n"),
        ("hold", "too few arguments for keyword:hold\n"),
        ("resume JOB", "Access/permission denied for job JOB\n"),
        ("reconfigure", "slurm_reconfigure error:Invalid user id\n"),
        ("-Q requeue 1", ""),
    ],
)
def test_what_cannot_be_done_is_told(office: Counter, line: str, err: str) -> None:
    answer = office.scontrol(line)
    assert (answer.err, answer.code) == (err.replace("JOB", str(office.id)), 1)


@pytest.mark.parametrize("hold", [False, True])
def test_a_running_job_is_requeued_unless_it_does_not_want_to(office: Counter, hold: bool) -> None:
    office.change(office.id, state=JobState.RUNNING, hold=None)
    keyword = "requeuehold" if hold else "requeue"
    assert office.scontrol(f"{keyword} JOB").code == 0
    assert office.record.restarts == 1
    assert (office.record.hold is Hold.USER) is hold
    stays = office.submit(requeue=False)
    office.change(stays, state=JobState.RUNNING, hold=None)
    answer = office.scontrol(f"{keyword} {stays}")
    assert answer.err == f"Requested operation is presently disabled for job {stays}\n"


UPDATES = {
    "TimeLimit=5": {"time_limit": 300},
    "timelimit=+10": {"time_limit": 4200},
    "TimeLimit=-10": {"time_limit": 3000},
    "TimeLimit+=10": {"time_limit": 4200},
    "TimeLimit=5:00:00": {"time_limit": 18000},
    "TimeLimit=UNLIMITED": {"time_limit": UNLIMITED},
    "Partition=debug": {"partitions": ("debug",)},
    "Comment=hello~there": {"comment": "hello there"},
    "Comment=a=b": {"comment": "a=b"},
    "Dependency=": {"after": ()},
}


@pytest.mark.parametrize("words", UPDATES)
def test_an_update_changes_the_job(office: Counter, words: str) -> None:
    answer = office.scontrol(f"update JobId=JOB {words}")
    assert (answer.err, answer.code) == ("", 0)
    changed = {name: getattr(office.record, name) for name in UPDATES[words]}
    assert changed == UPDATES[words]


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("Name=newname", {"name": "newname"}),
        ("JobName=newname", {"name": "newname"}),
        ("Name=", {"name": ""}),
        ("Nice=10", {"nice": 10}),
        ("Nice", {"nice": 100}),
        ("StartTime=now+60", {"begin": START + 60}),
        ("Requeue=0", {"requeue": False}),
    ],
)
def test_an_update_changes_what_was_asked(
    office: Counter, words: str, changed: dict[str, object]
) -> None:
    answer = office.scontrol(f"update job=JOB {words}")
    assert (answer.err, answer.code) == ("", 0)
    spec = office.record.spec
    assert {name: getattr(spec, name) for name in changed} == changed


def test_several_changes_are_one(office: Counter) -> None:
    assert office.scontrol("update JobId=JOB TimeLimit=5 Name=two").code == 0
    (command,) = office.asked
    assert isinstance(command, Update)
    assert (command.time_limit, command.name) == (300, "two")


def test_jobs_are_found_by_name_where_no_id_is_given(office: Counter) -> None:
    other = office.submit(name="upn")
    foreign = office.submit(BOB, name="upn", time_limit=60)
    assert office.scontrol("update JobName=upn TimeLimit=5").code == 0
    limits = [office.job(job).time_limit for job in (other, foreign, office.id)]
    assert limits == [300, 60, 3600]


def test_an_array_is_updated_whole(office: Counter) -> None:
    array = office.submit(array=ArraySpec(tasks=(1, 2, 3)))
    assert office.scontrol(f"update job={array} TimeLimit=5").code == 0
    assert office.job(array).time_limit == 300
    assert office.scontrol(f"hold {array}_2").code == 0
    assert len([j for j in office.states() if j >= array]) == 2


NO_ENTITY = (
    "No valid entity in update command\nInput line must include "
    '"NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"\n'
)


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("NumNodes=2", "resources.min_nodes", 2),
        ("NumNodes=1-2", "resources.max_nodes", 2),
        ("NumTasks=3", "resources.tasks", 3),
        ("NumCPUs=4", "resources.cpus_per_task", 4),
        ("MinCPUsNode=2", "resources.min_cpus_per_node", 2),
        ("MinMemoryNode=300", "resources.mem_per_node_mib", 300),
        ("MinMemoryCPU=1G", "resources.mem_per_cpu_mib", 1024),
        ("ExcNodeList=ec2-1", "resources.exclude", ("ec2-1",)),
        ("ReqNodeList=ec2-[1-2]", "resources.nodelist", ("ec2-1", "ec2-2")),
        ("WCKey=x", "wckey", "x"),
        ("MailUser=x@y", "mail_user", "x@y"),
        ("MailType=end,fail", "mail_types", ("END", "FAIL")),
        ("StdOut=/tmp/zz", "output.stdout", "/tmp/zz"),
        ("StdErr=", "output.stderr", None),
        ("WorkDir=/tmp", "cwd", "/tmp"),
        ("TimeMin=1:00", "time_min", 60),
    ],
)
def test_an_update_changes_what_the_job_asks_for(
    office: Counter, words: str, path: str, value: object
) -> None:
    answer = office.scontrol(f"update job=JOB {words}")
    assert (answer.err, answer.code) == ("", 0)
    found: object = office.record.spec
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


def test_more_nodes_and_tasks_are_wanted_after_an_update(office: Counter) -> None:
    assert office.scontrol("update job=JOB NumNodes=2 NumTasks=3").code == 0
    assert (office.record.want.node, office.record.want.cpu) == (2, 3)


def test_another_partition_leaves_the_memory_that_was_asked(office: Counter) -> None:
    assert office.scontrol("update job=JOB MinMemoryCPU=100").code == 0
    assert office.scontrol("update job=JOB Partition=debug").code == 0
    assert office.record.want.mem_mib == 100


def test_the_throttle_of_an_array_is_set_and_taken_away(office: Counter) -> None:
    array = office.submit(array=ArraySpec(tasks=(1, 2, 3)))
    for number, limit in (("2", 2), ("0", None)):
        assert office.scontrol(f"update job={array} ArrayTaskThrottle={number}").code == 0
        place = office.job(array).array
        assert place is not None
        assert place.limit == limit


@pytest.mark.parametrize(
    ("words", "err"),
    [
        ("TimeLimit=5", NO_ENTITY),
        ("", "too few arguments for update keyword\n"),
        ("JobId=JOB", "No changes specified\n"),
        ("JobId=JOB UserID=bob", "No changes specified\n"),
        (
            "JobId=JOB Foo=1",
            "Update of this parameter is not supported: Foo=1\nRequest aborted\n",
        ),
        ("JobId=JOB TimeLimit=foo", "scontrol: error: Invalid TimeLimit value\n"),
        ("JobId=JOB Partition=nosuch", "Invalid partition name specified for job JOB\n"),
        (
            "JobId=JOB Priority=5",
            "Job is in held state, pending scheduler release for job JOB\n",
        ),
        (
            "JobId=JOB MinMemoryNode=99999",
            "Requested node configuration is not available for job JOB\n",
        ),
        ("JobId=JOB NumTasks=x", "scontrol: error: Invalid NumTasks value: x\n"),
        ("JobId=JOB ExcNodeList=nosuch", "Invalid node name specified for job JOB\n"),
        ("JobId=JOB ReqNodeList=n[", "Invalid node name specified for job JOB\n"),
        ("JobId=JOB Licenses=x", "Invalid license specification for job JOB\n"),
        (
            "JobId=JOB MinCPUsNode=99",
            "Requested partition configuration not available now for job JOB\n",
        ),
        (
            "JobId=JOB NumNodes=99",
            "Requested partition configuration not available now for job JOB\n",
        ),
        ("JobId=JOB Features=nosuch", "Invalid feature specification for job JOB\n"),
        ("JobId=JOB Gres=foo:1", "Invalid generic resource (gres) specification\n"),
        ("JobId=JOB OverSubscribe=yes", "Access/permission denied for job JOB\n"),
        ("JobId=JOB AdminComment=x", "Access/permission denied for job JOB\n"),
        ("JobId=JOB Nice=-5", "Access/permission denied for job JOB\n"),
        ("JobId=1 TimeLimit=5", "Invalid job id specified for job 1\n"),
        ("JobId=x TimeLimit=5", "Invalid job id specified for job x\n"),
        ("partition=ec2 state=down", "slurm_update error: Invalid user id\n"),
        ("node=ec2-1 state=drain reason=x", "slurm_update error: Invalid user id\n"),
    ],
)
def test_an_update_that_cannot_be_changes_nothing(office: Counter, words: str, err: str) -> None:
    before = office.record
    answer = office.scontrol(f"update {words}")
    assert (answer.err, answer.code) == (err.replace("JOB", str(office.id)), 1)
    assert office.record == before


def test_a_running_job_gets_less_time_but_not_more_from_its_user(office: Counter) -> None:
    office.change(office.id, state=JobState.RUNNING, hold=None, time_limit=600)
    assert office.scontrol("update job=JOB TimeLimit=5").code == 0
    answer = office.scontrol("update job=JOB TimeLimit=20")
    assert (answer.err, answer.code) == (f"Access/permission denied for job {office.id}\n", 1)
    assert office.scontrol("update job=JOB TimeLimit=20", by=ROOT).code == 0
    assert office.record.time_limit == 1200


def test_priority_zero_is_a_hold(office: Counter) -> None:
    assert office.scontrol("release JOB").code == 0
    assert office.scontrol("update job=JOB Priority=0").code == 0
    assert office.record.hold is Hold.USER


def test_nodes_are_drained_with_a_reason_and_resumed(office: Counter) -> None:
    answer = office.scontrol("update node=ec2-2 state=drain", by=ROOT)
    assert (answer.err, answer.code) == (
        "You must specify a reason when DOWNING or DRAINING a node. Request denied\n",
        1,
    )
    assert office.scontrol("update NodeName=ec2-[1-2] State=DRAIN Reason=bad~disk", by=ROOT) == (
        Answer()
    )
    asked = [(c.node, c.state, c.reason) for c in office.asked if isinstance(c, SetNode)]
    assert asked == [("ec2-1", "drain", "bad disk"), ("ec2-2", "drain", "bad disk")]
    assert all(node.drain for node in office.engine.snapshot.nodes.values())
    assert office.scontrol("update node=ec2-[1-2] state=resume", by=ROOT).code == 0
    assert not any(node.drain for node in office.engine.snapshot.nodes.values())
    unknown = office.scontrol("update node=nosuch state=resume", by=ROOT)
    assert (unknown.err, unknown.code) == ("slurm_update error: Invalid node name specified\n", 1)
