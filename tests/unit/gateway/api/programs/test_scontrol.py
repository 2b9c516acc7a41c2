"""scontrol's changes as 25.11.7 answers them."""

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model.commands import SetHold, SetNode, Submit, Target, Update
from broker.model.ids import NodeName
from broker.model.job import Hold, Job, JobState, Owner, Share
from broker.model.site import Site
from broker.model.spec import UNLIMITED, ArraySpec, Gres, Resources, StepSpec, TaskSpec
from gateway.api.desk import Desk
from gateway.api.programs.scontrol import VERBS, program
from gateway.api.programs.scontrol_nodes import VERBS as OF_NODES
from gateway.api.programs.scontrol_spec import Context, reader_of
from gateway.api.programs.scontrol_update import update
from gateway.api.wire import Answer, Call
from gateway.translate.gres import Spelling
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, SITE, START, Office


async def show(desk: Desk, call: Call) -> Answer:
    return Answer(out="shown " + " ".join(call.argv))


RUN = program(show, {**VERBS, **OF_NODES, "update": update})


class Counter(Office):
    """An office with one held job of alice's."""

    def __init__(self, site: Site = SITE) -> None:
        super().__init__(site)
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


def test_quiet_tells_what_is_there_and_no_more(office: Counter) -> None:
    async def unknown(_desk: Desk, _call: Call) -> Answer:
        return Answer(out="some", err="unknown\n", code=1)

    for words in (("show", "job", "1"), ("hold", "1")):
        run = program(unknown, VERBS)
        loud, quiet = (office.run(run, *more, *words, name="scontrol") for more in ((), ("-Q",)))
        assert loud.err
        assert (quiet.out, quiet.err, quiet.code) == (loud.out, "", 1)


def test_a_hold_is_the_users_and_release_takes_it_away(office: Counter) -> None:
    free = office.submit(begin=START + 3600, hold=False)
    for keyword in ("hold", "uhold", "hol"):
        answer = office.scontrol(f"{keyword} {free},JOB")
        assert (answer.err, answer.code) == ("", 0)
        assert office.job(free).hold is Hold.USER
        assert office.scontrol(f"release {free} JOB").code == 0
        assert office.job(free).hold is None
    assert office.scontrol("hold jobname=wrap").code == 0
    assert office.scontrol("hold jobname=nosuch") == Answer()
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


def test_of_several_only_those_that_did_not_complete_are_requeued(office: Counter) -> None:
    jobs = [office.submit() for _ in range(2)]
    for job, state in zip(jobs, (JobState.COMPLETED, JobState.FAILED), strict=True):
        office.change(job, state=state, hold=None, ended=START)
    assert office.scontrol(f"requeue Incomplete {jobs[0]} {jobs[1]}") == Answer()
    assert [office.job(job).restarts for job in jobs] == [0, 1]
    assert office.scontrol(f"requeue {jobs[0]}") == Answer()
    assert office.job(jobs[0]).restarts == 1
    answer = office.scontrol(f"requeuehold State=SpecialExit {jobs[1]}")
    assert answer.err == (
        "scontrol: error: requeuehold State=SpecialExit is not supported by SkyPurza\n"
    )


BY_OPERATORS = (
    "hold JOB",
    "update job=JOB Deadline=now+2hours",
    "update job=JOB Contiguous=1",
    "update job=JOB AdminComment=x",
    "update job=JOB Nice=-5",
    "update job=JOB TimeLimit=9-0",
)


@pytest.mark.parametrize("line", BY_OPERATORS)
def test_operators_change_everybodys_jobs_but_no_nodes(line: str) -> None:
    office = Counter(replace(SITE, operators=frozenset({BOB.uid})))
    assert office.scontrol(line, by=BOB) == Answer()
    assert office.scontrol("update node=ec2-1 state=drain reason=x", by=BOB).code == 1
    held = office.record.hold
    assert held is (Hold.ADMIN if line == "hold JOB" else Hold.USER)


UPDATES = {
    "TimeLimit=5": {"time_limit": 300},
    "job JOB TimeLimit=5": {"time_limit": 300},
    "JobId JOB TimeLimit=5": {"time_limit": 300},
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
    named = "" if " JOB " in words else "JobId=JOB "
    answer = office.scontrol(f"update {named}{words}")
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


UNKNOWN_KEY = "Update of this parameter is not supported: Nosuch=1\nRequest aborted\n"
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
        ("NumCPUs=2-4", "resources.cpus_per_task", 2),
        ("TresPerTask=cpu=2", "resources.cpus_per_task", 2),
        ("TresPerTask=x", "resources.cpus_per_task", None),
        ("CpusPerTres=gres/gpu:2", "resources.cpus_per_gpu", 2),
        ("ReqSockets=1", "resources.sockets", 1),
        (
            "MailType=all,nosuch",
            "mail_types",
            ("INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"),
        ),
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


GPU = (Gres(name="gpu", count=2),)
OF_GPUS = (
    ("tresperjob", "gres/gpu:2", (("resources.gpus", GPU), ("options.gpus", "2"))),
    ("trespernode", "gres/gpu:2", (("resources.gres", GPU), ("options.gres", "gpu:2"))),
    ("trespersocket", "gpu:2", (("resources.gres", GPU), ("options.gres", "gpu:2"))),
    (
        "trespertask",
        "cpu=3,gres/gpu=2",
        (
            ("options.tres-per-task", "cpu=3,gres/gpu=2"),
            ("resources.cpus_per_task", 3),
            ("resources.gpus_per_task", GPU),
        ),
    ),
    ("tresbind", "gres/gpu:closest", (("options.gpu-bind", "closest"),)),
    ("tresfreq", "gpu:low", (("options.gpu-freq", "low"),)),
)


@pytest.mark.parametrize(("key", "text", "fields"), OF_GPUS)
def test_gpus_are_asked_for_anew(office: Counter, key: str, text: str, fields: object) -> None:
    reader = reader_of(key)
    assert reader is not None
    site = office.desk.site
    assert reader(text, Context(office.record, site, Spelling(site))) == fields


FOR_OPERATORS = (
    "OverSubscribe=yes",
    "Shared=1",
    "Contiguous=1",
    "Deadline=now+2hours",
    "CoreSpec=1",
    "ThreadSpec=1",
    "Reboot=1",
    "SiteFactor=5",
)
FIXED = ("SystemComment", "GroupID", "Power", "CPUs", "NtasksPerNode", "Rotate", "Network", "State")
"""Keys of a job's record that nobody changes."""
DENIED = "Access/permission denied for job JOB\n"
NEVER = "Update of this parameter is not supported: {}=1\nRequest aborted\n"


@pytest.mark.parametrize(
    ("words", "path", "value"),
    [
        ("Contiguous=1", "resources.contiguous", True),
        ("OverSubscribe=yes", "options", (("oversubscribe", ""),)),
        ("Shared=0", "options", ()),
        ("Deadline=now+2hours", "deadline", START + 7200),
    ],
)
def test_an_operator_changes_more(office: Counter, words: str, path: str, value: object) -> None:
    assert office.scontrol(f"update job=JOB {words}") != Answer()
    assert office.scontrol(f"update job=JOB {words}", by=ROOT) == Answer()
    found: object = office.record.spec
    for name in path.split("."):
        found = getattr(found, name)
    assert found == value


@pytest.mark.parametrize("word", ["Reboot=1", "SiteFactor=5"])
def test_what_a_job_has_not_here_is_refused_by_name(office: Counter, word: str) -> None:
    answer = office.scontrol(f"update job=JOB {word}", by=ROOT)
    key = word.partition("=")[0]
    said = f"scontrol: error: {key} of a job is not supported by SkyPurza\n"
    assert (answer.err, answer.code) == (said, 1)


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
        ("JobId=JOB Gres=foo:1", "Invalid generic resource (gres) specification for job JOB\n"),
        ("JobId=JOB DelayBoot=x", "scontrol: error: Invalid DelayBoot value\n"),
        (
            "JobId=JOB Nice=2147483646",
            "scontrol: error: Nice value out of range (+/- 2147483645). Value ignored\n",
        ),
        (
            "JobId=JOB Account=",
            "Invalid account or account/partition combination specified for job JOB\n",
        ),
        ("JobId=JOB NumCPUs=0", "scontrol: error: Invalid NumCPUs value: 0\n"),
        ("JobId=JOB NumTasks=0", "Task count specification invalid for job JOB\n"),
        ("JobId=JOB Dependency=afterok:JOB", "Job dependency problem for job JOB\n"),
        *((f"JobId=JOB {word}", DENIED) for word in FOR_OPERATORS),
        ("JobId=JOB Contiguous=x", "scontrol: error: Invalid Contiguous value: x\n"),
        ("JobId=JOB Shared=maybe", "scontrol: error: Invalid OverSubscribe value: maybe\n"),
        ("JobId=JOB Deadline=x", "Invalid time specification (pos=0): x\nNo changes specified\n"),
        ("JobId=JOB StartTime=x", "Invalid time specification (pos=0): x\nNo changes specified\n"),
        ("JobId=JOB EndTime=now+60", "Job is not running for job JOB\n"),
        ("JobId=JOB NumNodes=0", "Node count specification invalid for job JOB\n"),
        ("JobId=JOB NumNodes=3-2", "Node count specification invalid for job JOB\n"),
        ("JobId=JOB Nice=-5 Nosuch=1", UNKNOWN_KEY),
        ("JobId=JOB CoreSpec=1 Nosuch=1", UNKNOWN_KEY),
        (
            "JobId=JOB Nice=-5 StartTime=x",
            "Invalid time specification (pos=0): x\nNo changes specified\n",
        ),
        ("JobId=JOB NumCPUs=4-2", "scontrol: error: Invalid NumCPUs value: 4-2\n"),
        (
            "JobId=JOB BurstBuffer=x",
            "Requested operation not supported on this system for job JOB\n",
        ),
        ("JobId=JOB Clusters=x", "Not a valid federated job for job JOB\n"),
        ("JobId=JOB ClusterFeatures=x", "Not a valid federated job for job JOB\n"),
        (
            "JobId=JOB MemPerTres=gpu:100",
            "Invalid generic resource (gres) specification for job JOB\n",
        ),
        ("JobId=JOB TresBind=x", "Invalid Trackable RESource (TRES) specification for job JOB\n"),
        ("JobId=JOB TresFreq=x", "Invalid Trackable RESource (TRES) specification for job JOB\n"),
        ("JobId=JOB MailType=bogus", "Invalid MailType: bogus\n"),
        (
            "JobId=JOB TimeMin=9-0",
            "Invalid time-min specification (exceeds job's time or other limits) for job JOB\n",
        ),
        ("JobId=JOB Comment=x Exclusive", "Invalid input: Exclusive\nRequest aborted\n"),
        ("JobId=JOB Comment", "Invalid input: Comment\nRequest aborted\n"),
        *((f"JobId=JOB {word}=1", NEVER.format(word)) for word in FIXED),
        ("JobId=JOB AdminComment=x", DENIED),
        ("JobId=JOB Nice=-5", DENIED),
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


def test_no_job_comes_to_wait_for_itself(office: Counter) -> None:
    second, third = office.submit(), office.submit()
    assert office.scontrol(f"update job={second} Dependency=afterok:JOB").code == 0
    assert office.scontrol(f"update job={third} Dependency=afterany:{second}").code == 0
    for other in (second, third):
        answer = office.scontrol(f"update job=JOB Dependency=after:{other}")
        assert answer.err == f"Circular job dependency for job {office.id}\n"
    assert not office.record.after


def test_a_priority_of_nothing_holds_and_the_rest_is_changed(office: Counter) -> None:
    free = office.submit(begin=START + 3600, hold=False)
    assert office.scontrol(f"update job={free} Priority=0 Comment=new").code == 0
    assert (office.job(free).hold, office.job(free).comment) == (Hold.USER, "new")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("update job=ARRAY Partition=x", "ARRAY_1-3: Invalid partition name specified"),
        ("update job=ARRAY_2 Partition=x", "ARRAY_2: Invalid partition name specified"),
        ("update job=ARRAY_[1-2] Partition=x", "ARRAY_1-2: Invalid partition name specified"),
        ("update job=ARRAY_9 QOS=normal", "ARRAY_9: Invalid job id specified"),
        ("hold ARRAY_9", "ARRAY_9: Invalid job id specified"),
        ("release 1_9", "1_9: Invalid job id specified"),
        ("requeue ARRAY", "ARRAY_1-3: Job is pending execution"),
        ("suspend ARRAY_2", "Access/permission denied for job ARRAY_2"),
        ("suspend x", "Invalid job id specified for job x"),
        ("resume x", "Invalid job id specified for job x"),
    ],
)  # fmt: skip
def test_of_an_array_the_tasks_are_named_first(office: Counter, words: str, said: str) -> None:
    array = office.submit(array=ArraySpec(tasks=(1, 2, 3)))
    answer = office.scontrol(words.replace("ARRAY", str(array)))
    assert (answer.err, answer.code) == (said.replace("ARRAY", str(array)) + "\n", 1)


SIZES = [
    ("NumNodes=2", "scontrol: error: Job resizing not supported for job arrays\n"),
    (
        "TimeLimit+=5",
        "scontrol: error: TimeLimit increment/decrement not supported for job arrays\n",
    ),
]


@pytest.mark.parametrize(("word", "said"), SIZES)
def test_an_array_is_resized_while_it_is_one_record(office: Counter, word: str, said: str) -> None:
    array = office.submit(array=ArraySpec(tasks=(1, 2, 3)), time_limit=60)
    assert office.scontrol(f"update job={array} {word}").code == 0
    assert office.scontrol(f"update job={array}_2 Comment=x").code == 0
    answer = office.scontrol(f"update job={array} {word}")
    assert (answer.err, answer.code) == (said, 1)
    assert office.scontrol(f"update job={array}_2 {word}").code == 0


def test_an_end_makes_a_running_jobs_limit(office: Counter) -> None:
    office.change(office.id, state=JobState.RUNNING, hold=None, time_limit=600, started=START - 60)
    assert office.scontrol("update job=JOB EndTime=now+120").code == 0
    assert office.record.time_limit == 180
    answer = office.scontrol("update job=JOB EndTime=now+1hour")
    assert answer.err == f"Access/permission denied for job {office.id}\n"


def test_a_running_job_keeps_the_number_of_its_nodes(office: Counter) -> None:
    share = Share(NodeName("ec2-1"), 0, Tres(cpu=1, node=1))
    office.change(office.id, state=JobState.RUNNING, hold=None, shares=(share,), started=START)
    assert office.scontrol("update job=JOB NumNodes=1").code == 0
    for words, said in (
        ("NumNodes=2", "Requested operation not supported on this system"),
        ("NumCPUs=2", "Job is no longer pending execution"),
    ):
        answer = office.scontrol(f"update job=JOB {words}")
        assert answer.err == f"{said} for job {office.id}\n"


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


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("update job=JOB+1 Nice=7", {1}),
        ("update job=JOB Nice=7", {0, 1}),
        ("release JOB+1", {1}),
        ("release JOB", {0, 1}),
        ("hold JOB+1", set()),
    ],
)
def test_a_component_is_steered_by_its_offset(words: str, changed: set[int]) -> None:
    office = Counter()
    first, second = (TaskSpec(name="a", batch=StepSpec(name="batch"), hold=True) for _ in "ab")
    asked = Submit(spec=first, more=(second,), owner=ALICE, request="gang")
    office.id = office.ask(asked).result()
    before = [office.job(JobId(office.id + n)) for n in (0, 1)]
    assert office.scontrol(words).code == 0
    after = [office.job(one.id) for one in before]
    looks = [[(one.hold, one.spec.nice) for one in both] for both in (before, after)]
    assert {n for n, (was, now) in enumerate(zip(*looks, strict=True)) if was != now} == changed
    assert office.scontrol(words.replace("+1", "").replace("JOB", "JOB+2")).code == 1


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


OF_NODES_WRONG = (
    # what is typed, what is said (or how it begins)
    ("update node=ec2-1", "No changes specified\n"),
    ("update node=ec2-1 state=bogus", "Invalid input: state=bogus\nRequest aborted\nValid states"),
    ("update node=ec2-1 bogus=1", "Update of this parameter is not supported: bogus=1\n"),
    ("update node=ec2-1 state=power_down", "slurm_update error: Invalid node state specified\n"),
    ("update node=ec2-1 state=resume", "slurm_update error: Invalid node state specified\n"),
    ("update node=ec2-1 state=power_up", "scontrol: error: State=power_up of a node is not"),
    ("update node=ec2-1 state=future", "scontrol: error: State=future of a node is not"),
    ("update node=ec2-1 weight=5", "scontrol: error: weight of a node is not supported by Sky"),
    ("update node=ec2-1 Features=a", "scontrol: error: Features of a node is not supported by"),
    ("power", "too few arguments for keyword:power\n"),
    ("power down", "too few arguments for keyword:power\n"),
    ("power bogus ec2-1", "invalid power argument:bogus\n"),
    ("power up ec2-1", "scontrol: error: power up of a node is not supported by SkyPurza"),
    ("power down force ec2-1", "scontrol: error: power down of a node is not supported by Sky"),
    ("power down ec2-1", "slurm_update error: Invalid node state specified\n"),
    ("power down nosuch", "slurm_update error: Invalid node name specified\n"),
)


@pytest.mark.parametrize(("line", "said"), OF_NODES_WRONG)
def test_what_cannot_be_done_to_nodes_is_told(office: Counter, line: str, said: str) -> None:
    answer = office.scontrol(line, by=ROOT)
    assert answer.code == 1
    assert str(answer.err).startswith(said)


def test_a_node_gets_a_reason_and_a_drained_one_is_given_back_in_two_words(office: Counter) -> None:
    assert office.scontrol("update node=ec2-1 reason=looked~at", by=ROOT) == Answer()
    node = next(n for name, n in office.engine.snapshot.nodes.items() if name == "ec2-1")
    assert (node.reason, node.reason_uid, node.drain) == ("looked at", 0, False)
    assert office.scontrol("update node=ec2-1 state=undrain", by=ROOT) == Answer()
    assert office.scontrol("update node=ALL state=drain reason=x", by=ROOT) == Answer()
    assert all(node.drain for node in office.engine.snapshot.nodes.values())
    assert office.scontrol("update node=ALL state=undrain", by=ROOT) == Answer()
    assert not any(node.drain for node in office.engine.snapshot.nodes.values())


@pytest.mark.parametrize("verb", ["hold", "uhold", "release", "update comment=x"])
def test_the_first_component_is_changed_alone_where_it_is_named(office: Counter, verb: str) -> None:
    job = office.submit()
    for word, alone in ((f"{job}+0", True), (str(job), False)):
        office.scontrol(f"{verb} jobid={word}" if " " in verb else f"{verb} {word}")
        command = office.asked[-1]
        assert isinstance(command, SetHold | Update)
        assert command.target == Target(job, alone=alone)


def test_a_number_of_nodes_is_the_least_of_those_asked_for(office: Counter) -> None:
    job = office.submit(resources=Resources(min_nodes=2, max_nodes=3))
    for text, spans in (("NumNodes=1", (1, 3)), ("NumNodes=2-4", (2, 4)), ("NumNodes=3", (3, 4))):
        assert office.scontrol(f"update job={job} {text}").code == 0
        asked = office.job(job).spec.resources
        assert (asked.min_nodes, asked.max_nodes) == spans
    answer = office.scontrol(f"update job={job} NumNodes=5")
    assert answer.err == f"Node count specification invalid for job {job}\n"


def test_with_the_least_time_a_limit_may_be_over_the_partitions() -> None:
    first, *others = SITE.partitions
    office = Counter(replace(SITE, partitions=(replace(first, max_time=3600), *others)))
    assert office.scontrol("update job=JOB TimeLimit=90").code == 1
    assert office.scontrol("update job=JOB TimeLimit=90 TimeMin=1").code == 0
    assert office.scontrol("update job=JOB TimeLimit=80").code == 0
