"""Reservations as an operator makes them and jobs meet them, in Slurm's words."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import replace

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.engine import Engine
from broker.model.errors import SpzError
from broker.model.ids import NodeName
from broker.model.job import Owner
from broker.model.site import DeclaredNode
from broker.optimize.cooldown import Cooldown
from broker.quotes import Quotes
from broker.world import World
from gateway.api.programs import scontrol
from gateway.api.programs.scontrol_reservations import VERBS, show
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.scontrol_update import update
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.squeue import Squeue
from gateway.api.wire import Answer
from tests.unit.gateway.api.office import ALICE, BOB, ROOT, SITE, START, Office

RUN = scontrol.program(
    Show(entities={"reservations": (1, show)}), {**scontrol.VERBS, **VERBS, "update": update}
)
AWAY = "ReqNodeNotAvail, May be reserved for other job"
HOUR = 3600


class Room(Office):
    """Two declared nodes; UTC."""

    def scontrol(self, line: str, by: Owner = ROOT) -> Answer:
        return self.run(RUN, *line.split(), name="scontrol", by=by, environ={"TZ": "UTC"})

    def create(self, line: str) -> Answer:
        return self.scontrol("create reservation " + line)

    def made(self, line: str) -> None:
        answer = self.create(line)
        assert answer.code == 0, answer.err

    def wait(self, seconds: int = 0) -> None:
        self.clock.at += seconds
        self.engine.step([], self.clock.at, full_pass=True)

    def start(self, owner: Owner = ALICE, **fields: object) -> JobId:
        job = self.submit(owner, hold=False, **fields)
        self.wait()
        return job

    def stands(self, job: JobId) -> tuple[str, str]:
        """State and reason, or state and nodes."""
        found = self.job(job)
        nodes = ",".join(share.node for share in found.shares)
        return found.state.label, nodes or found.reason


@pytest.fixture
def room() -> Room:
    return Room()


def test_nothing_is_reserved_at_first(room: Room) -> None:
    assert room.scontrol("show res").out == "No reservations in the system\n"
    assert room.run(Sinfo(), "-T", name="sinfo").out == "No reservations in the system\n"
    assert room.scontrol("show res x") == Answer(out="Reservation x not found\n", code=1)


def test_what_is_made_is_shown(room: Room) -> None:
    words = "starttime=now+1hour duration=90 users=alice,bob nodes=ec2-[1-2] flags=maint,daily"
    assert room.create(f"res=one {words}").out == "Reservation created: one\n"
    assert room.scontrol("show reservation one").out == (
        "ReservationName=one StartTime=2023-11-14T23:13:20 EndTime=2023-11-15T00:43:20"
        " Duration=01:30:00\n"
        "   Nodes=ec2-[1-2] NodeCnt=2 CoreCnt=2 Features=(null) PartitionName=(null)"
        " Flags=MAINT,DAILY,SPEC_NODES\n"
        "   TRES=cpu=8\n"
        "   Users=alice,bob Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE"
        " BurstBuffer=(null)\n"
        "   MaxStartDelay=(null)\n\n"
    )
    listed = room.run(Sinfo(), "-T", name="sinfo", environ={"TZ": "UTC"}).out
    assert str(listed).splitlines() == [
        "RESV_NAME     STATE           START_TIME             END_TIME     DURATION  NODELIST",
        "one        INACTIVE  2023-11-14T23:13:20  2023-11-15T00:43:20     01:30:00  ec2-[1-2]",
    ]
    assert '"name": "one"' in str(room.scontrol("show reservations --json").out)


# fmt: off
BAD = [
    ("", "scontrol: error: A start time must be given.  No reservation created.\n"),
    ("starttime=now users=root nodes=ec2-1", "scontrol: error: An end time or duration must be given.  No reservation created.\n"),
    ("starttime=now duration=5 nodes=ec2-1", "scontrol: error: Either Users/Groups and/or Accounts must be specified.  No reservation created.\n"),
    ("starttime=now duration=5 users=root", "scontrol: error: CoreCnt, Nodes, NodeCnt, BurstBuffer or Licenses must be specified.  No reservation created.\n"),
    ("starttime=xx duration=5 users=root nodes=ec2-1", "Invalid time specification (pos=0): xx\nscontrol: error: Invalid start time starttime=xx.  No reservation created.\n"),
    ("starttime=now duration=xx users=root nodes=ec2-1", "scontrol: error: Invalid duration duration=xx.  No reservation created.\n"),
    ("starttime=now duration=5 users=root nodes=ec2-1 flags=nosuch", "scontrol: error: Error parsing flags nosuch.  No reservation created.\n"),
    ("starttime=now duration=5 users=root nodes=ec2-1 color=red", "scontrol: error: Unknown parameter color=red.  No reservation created.\n"),
    ("starttime=now duration=5 users=root nodecnt=x", "scontrol: error: Invalid node count x\n"),
    ("starttime=now endtime=now-1hour users=root nodes=ec2-1", "scontrol: error: Start time cannot be after end time.  No reservation created.\n"),
    ("starttime=now duration=5 users=root groups=root nodes=ec2-1", "scontrol: error: Users and Groups are mutually exclusive.  You can have one or the other, but not both.  No reservation created.\n"),
    ("starttime=now duration=5 users=ghost nodes=ec2-1", "Error creating the reservation: Invalid user id\n"),
    ("starttime=now duration=5 accounts=ghost nodes=ec2-1", "Error creating the reservation: Invalid account or account/partition combination specified\n"),
    ("starttime=now duration=5 users=root nodes=ghost", "Error creating the reservation: Invalid node name specified\n"),
    ("starttime=now duration=5 users=root nodes=ec2-1 partition=ghost", "Error creating the reservation: Invalid partition name specified\n"),
    ("starttime=now-1hour duration=5 users=root nodes=ec2-1", "Error creating the reservation: Invalid time specified\n"),
    ("starttime=now duration=5 users=root licenses=x", "Error creating the reservation: Invalid license specification\n"),
]
# fmt: on


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_is_refused_in_slurms_words(room: Room, words: str, said: str) -> None:
    answer = room.create(words)
    assert (answer.out, answer.err, answer.code) == ("", said, 1)


def test_names_follow_whom_it_is_for_and_times_do_not_overlap(room: Room) -> None:
    words = "starttime=now duration=60 nodes=ec2-1"
    assert room.create(f"{words} users=root").out == "Reservation created: root_1\n"
    said = (
        "Error creating the reservation: Requested reservation overlaps with another reservation\n"
    )
    assert room.create(f"{words} users=alice").err == said
    assert room.create(f"{words} users=alice flags=overlap").out == "Reservation created: alice_2\n"
    busy = room.create("starttime=now duration=60 users=alice nodecnt=2")
    assert busy.err.startswith("Error creating the reservation: Requested nodes are busy\nNote, ")
    assert room.create("starttime=now duration=60 users=bob nodecnt=1").code == 0
    assert "Nodes=ec2-2 NodeCnt=1" in str(room.scontrol("show res bob_3").out)


def test_only_administrators_make_change_and_delete(room: Room) -> None:
    room.made("res=one starttime=now duration=5 users=alice nodes=ec2-1")
    words = "starttime=now duration=5 users=alice nodes=ec2-2"
    create = room.scontrol(f"create reservation {words}", by=ALICE)
    assert create.err == "Error creating the reservation: Invalid user id\n"
    change = room.scontrol("update reservationname=one duration=9", by=ALICE)
    assert change.err == (
        "Error updating the reservation: Invalid user id\nslurm_update error: Invalid user id\n"
    )
    gone = room.scontrol("delete reservation one", by=ALICE)
    assert gone.err == "delete_reservation reservation: Invalid user id\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("delete", "too few arguments for delete keyword\n"),
        ("delete xx=yy", "Invalid deletion entity: xx=yy\n"),
        (
            "delete reservation",
            "scontrol: error: Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'\n",
        ),
        ("delete res=x", "delete_reservation res=x: Requested reservation is invalid\n"),
        (
            "update res=x duration=5",
            "Error updating the reservation: Requested reservation is invalid\n"
            "slurm_update error: Requested reservation is invalid\n",
        ),
        (
            "update res=one color=red",
            "scontrol: error: Unknown parameter color=red.  No reservation update.\n"
            "slurm_update error: No error\n",
        ),
        (
            "update res=one starttime=now+1hour",
            "Error updating the reservation: Reservation already started\n"
            "slurm_update error: Reservation already started\n",
        ),
    ],
)
def test_changes_and_deletions_are_refused_in_slurms_words(
    room: Room, words: str, said: str
) -> None:
    room.made("res=one starttime=now duration=5 users=alice nodes=ec2-1")
    answer = room.scontrol(words)
    assert (answer.err, answer.code) == (said, 1)


FILE = "is not supported by SkyPurza: change the configuration, then scontrol reconfigure\n"
OF_THE_FILE = (
    # the words, what administrators are told, what others are (None: the same)
    ("create x=1", "scontrol: error: Invalid creation entity: x=1\n", None),
    ("delete bogus x", "Invalid deletion entity: bogus\n", None),
    (
        "create PartitionName=p",
        f"scontrol: error: creating a partition {FILE}",
        "Error creating the partition: Invalid user id\n",
    ),
    (
        "create NodeName=n",
        f"scontrol: error: creating a node {FILE}",
        "Error creating the node(s): Invalid user id\n",
    ),
    (
        "delete PartitionName=down",
        f"scontrol: error: deleting a partition {FILE}",
        "delete_partition PartitionName=down: Invalid user id\n",
    ),
)


@pytest.mark.parametrize(("words", "told", "others"), OF_THE_FILE)
def test_partitions_and_nodes_are_the_configurations(
    room: Room, words: str, told: str, others: str | None
) -> None:
    answer = room.scontrol(words)
    assert (answer.err, answer.code) == (told, 1)
    assert room.scontrol(words, by=ALICE).err == (others or told)


def test_updates_add_and_take_away(room: Room) -> None:
    room.made("res=one starttime=now+1hour duration=30 users=alice nodes=ec2-1")
    for words in ("users+=bob", "users-=alice", "flags=flex", "starttime=now+2hours", "nodes=ALL"):
        assert room.scontrol(f"update res=one {words}").out == "Reservation updated.\n"
    (found,) = room.engine.snapshot.reservations.values()
    assert (found.users, found.start, found.end) == (
        ("bob",),
        START + 2 * HOUR,
        START + 2 * HOUR + 1800,
    )
    assert "Flags=FLEX,SPEC_NODES,ALL_NODES" in str(room.scontrol("show res").out)


def test_a_flag_without_effect_is_told(room: Room) -> None:
    answer = room.create("starttime=now duration=5 users=root nodes=ec2-1 flags=magnetic")
    assert answer.err == "scontrol: warning: flag MAGNETIC has no effect here\n"
    assert answer.code == 0


# ---------------------------------------------------------------- jobs


def test_nodes_of_a_reservation_are_given_to_its_jobs_alone(room: Room) -> None:
    room.made("res=one starttime=now duration=60 users=alice nodes=ec2-1")
    assert room.stands(room.start()) == ("RUNNING", "ec2-2")
    assert room.stands(room.start(reservation="one")) == ("RUNNING", "ec2-1")
    named = room.start(resources={"nodelist": ("ec2-1",)})
    assert room.stands(named) == ("PENDING", AWAY)
    assert room.scontrol("delete res=one").err == (
        "delete_reservation res=one: Requested reservation is in use\n"
    )


def test_a_job_that_would_run_into_a_reservation_waits_and_a_short_one_does_not(room: Room) -> None:
    room.made("res=one starttime=now+30minutes duration=60 users=bob nodes=ec2-[1-2]")
    assert room.stands(room.start(time_limit=HOUR)) == ("PENDING", AWAY)
    assert room.stands(room.start(time_limit=600)) == ("RUNNING", "ec2-1")
    later = room.start(BOB, reservation="one")
    assert room.stands(later) == ("PENDING", "Reservation")
    room.wait(1800)
    assert room.stands(later)[0] == "RUNNING"


def test_one_that_comes_every_day_keeps_long_jobs_away_too(room: Room) -> None:
    room.made("res=one starttime=now+30minutes duration=10 users=bob nodes=ALL flags=daily")
    room.wait(1800 + 600)
    assert room.engine.snapshot.reservations["one"].start == START + 1800 + 86_400
    assert room.stands(room.start(time_limit=2 * 86_400)) == ("PENDING", AWAY)
    assert room.stands(room.start(time_limit=HOUR))[0] == "RUNNING"


def test_what_is_over_or_not_used_goes(room: Room) -> None:
    room.made("res=one starttime=now duration=10 users=alice nodes=ec2-1")
    room.made("res=two starttime=now duration=10:00:00 users=alice nodes=ec2-2 flags=purge_comp=5")
    room.wait(299)
    assert set(room.engine.snapshot.reservations) == {"one", "two"}
    room.wait(1)
    assert set(room.engine.snapshot.reservations) == {"one"}
    room.wait(300)
    assert not room.engine.snapshot.reservations
    waits = room.submit(hold=True)
    room.change(waits, spec=replace_reservation(room, waits), hold=None)
    room.wait()
    assert room.stands(waits) == ("PENDING", "ReservationDeleted")


def replace_reservation(room: Room, job: JobId) -> object:
    return room.job(job).spec.model_copy(update={"reservation": "one", "hold": False})


@pytest.mark.parametrize(
    ("owner", "fields", "said"),
    [
        (ALICE, {"reservation": "nosuch"}, "Requested reservation is invalid"),
        (BOB, {"reservation": "one"}, "Access denied to requested reservation"),
        (ROOT, {"reservation": "one"}, "Access denied to requested reservation"),
        (
            ALICE,
            {"reservation": "one", "resources": {"min_nodes": 2}},
            "Requested node configuration is not available",
        ),
        (
            ALICE,
            {"reservation": "one", "resources": {"nodelist": ("ec2-2",)}},
            "Requested node configuration is not available",
        ),
    ],
)
def test_who_may_not_use_it_is_refused(
    room: Room, owner: Owner, fields: dict[str, object], said: str
) -> None:
    room.made("res=one starttime=now duration=10 users=alice nodes=ec2-1")
    with pytest.raises(SpzError, match=said):
        room.submit(owner, hold=False, **fields)


def test_running_jobs_stand_in_the_way_unless_they_are_ignored(room: Room) -> None:
    room.start(time_limit=HOUR)
    words = "starttime=now+10minutes duration=10 users=bob nodes=ec2-1"
    assert room.create(words).err.startswith(
        "Error creating the reservation: Requested nodes are busy\n"
    )
    assert room.create(f"{words} flags=ignore_jobs").code == 0


def test_states_of_nodes_and_columns_tell_of_it(room: Room) -> None:
    room.made("res=one starttime=now duration=60 users=alice nodes=ec2-1 flags=maint")
    room.made("res=two starttime=now duration=60 users=alice nodes=ec2-2")
    room.wait()
    lines = room.run(Sinfo(), "-hN", "-p", "ec2", "-o%N/%T/%t/%i", name="sinfo").out
    assert str(lines).split() == ["ec2-1/maint/maint/one", "ec2-2/reserved/resv/two"]
    assert (
        room.run(Sinfo(), "-h", "-t", "maint", "-o%N", "-p", "ec2", name="sinfo").out == "ec2-1\n"
    )
    shown = str(room.scontrol("show node ec2-1").out)
    assert "State=IDLE+MAINTENANCE+RESERVED" in shown
    assert "   ReservationName=one\n" in shown
    job = room.start(reservation="two")
    lines = room.run(Squeue(), "-h", "-R", "two", "-o%i %v", name="squeue").out
    assert lines == f"{job} two\n"


def test_a_waiting_job_is_moved_to_another_reservation(room: Room) -> None:
    room.made("res=one starttime=now+1hour duration=60 users=alice nodes=ec2-1")
    room.made("res=two starttime=now duration=60 users=alice nodes=ec2-2")
    job = room.start(reservation="one")
    assert room.stands(job) == ("PENDING", "Reservation")
    refused = room.scontrol(f"update jobid={job} reservationname=nosuch", by=ALICE)
    assert refused.err == f"Requested reservation is invalid for job {job}\n"
    assert room.scontrol(f"update jobid={job} reservationname=two", by=ALICE).err == ""
    room.wait()
    assert room.stands(job) == ("RUNNING", "ec2-2")


def test_reservations_survive_a_restart(room: Room) -> None:
    room.made("res=one starttime=now duration=60 users=alice nodes=ec2-1")
    room.made("res=two starttime=now duration=60 users=alice nodes=ec2-2")
    room.scontrol("delete res=two")
    again = Engine.recovered(
        world=World(SITE),
        store=room.engine.store,
        market=Quotes({}, Cooldown()),
        epoch=1,
        now=room.clock.at,
    )
    assert again.snapshot.reservations == room.engine.snapshot.reservations
    assert set(again.snapshot.reservations) == {"one"}


def test_features_choose_among_nodes(room: Room) -> None:
    whole = Tres(cpu=4, mem_mib=16000, node=1)
    nodes = tuple(
        DeclaredNode(NodeName(f"ec2-{n}"), whole, features=(word,))
        for n, word in ((1, "spot"), (2, "fixed"))
    )
    other = Room(replace(SITE, nodes=nodes))
    other.made("res=one starttime=now duration=60 users=alice nodecnt=1 features=fixed")
    assert other.engine.snapshot.reservations["one"].nodes == ("ec2-2",)
