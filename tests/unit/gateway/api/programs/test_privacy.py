"""PrivateData: who sees what in every command, as a real 22.05 answered with the same accounts."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.change import Change, changed
from broker.model.ids import NodeName
from broker.model.job import Job, Owner
from broker.model.reservation import Reservation
from broker.model.site import Site, with_book
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs import scontrol_steps
from gateway.api.programs.sacct import sacct
from gateway.api.programs.sacctmgr import Sacctmgr
from gateway.api.programs.scancel import run as scancel
from gateway.api.programs.scontrol_assoc import AssocMgr
from gateway.api.programs.scontrol_list import LISTS
from gateway.api.programs.scontrol_reservations import show as show_reservations
from gateway.api.programs.scontrol_show import Show
from gateway.api.programs.seff import seff
from gateway.api.programs.sinfo import Sinfo
from gateway.api.programs.sprio import Sprio
from gateway.api.programs.squeue import Squeue
from gateway.api.programs.sreport import sreport
from gateway.api.programs.sshare import Sshare
from gateway.api.programs.sstat import sstat
from gateway.api.wire import Answer
from gateway.config.accounts import PRIVATE_KINDS
from gateway.config.load import load
from gateway.config.site import site
from gateway.query.privacy import viewer
from tests.unit.gateway.api.programs.test_sreport import Summed
from tests.unit.gateway.query.desk import Program, ask, desk_of, snapshot
from tests.unit.gateway.query.history import history
from tests.unit.gateway.query.records import BOB, NOON, running

CONFIG = load((Path(__file__).parents[4] / "conformance" / "site.yaml").read_text())
KNOWN = {"alice": 2001, "bob": 2002, "carol": 2003, "root": 0}
PEOPLE = {uid: Owner(uid, uid, name, name) for name, uid in KNOWN.items()}
USUAL = site(CONFIG, service_uid=0, uid_of=KNOWN.get, price_of=lambda _: None)


def coordinated(by: str) -> Site:
    """With a coordinator of chem."""
    book = USUAL.book
    chem = replace(book.accounts["chem"], coordinators=(by,))  # type: ignore[index, arg-type]
    return with_book(USUAL, changed(book, Change(accounts=(chem,))))


SITE = coordinated("carol")
JOBS: tuple[Job, ...] = (
    running(2, account="physics", started=NOON - 60),
    running(3, owner=BOB, account="chem", started=NOON - 60),
)
BOOKED = Reservation(
    name="rb", start=NOON - 60, end=NOON + 3600, nodes=(NodeName("ec2-4"),), users=("bob",)
)


def programs() -> dict[str, Program]:
    """Which keep nothing yet."""
    return {
        "squeue": Squeue(),
        "sacct": sacct,
        "sstat": sstat,
        "scancel": scancel,
        "sprio": Sprio(CONFIG.priority),
        "seff": seff,
        "sinfo": Sinfo(),
        "sshare": Sshare(CONFIG.accounting.tres),
        "sreport": sreport,
        "sacctmgr": Sacctmgr(CONFIG),
        "scontrol": Show(
            lists=LISTS,
            entities={
                "reservations": (1, show_reservations),
                "assoc_mgr": (2, AssocMgr(CONFIG.accounting.tres)),
                **scontrol_steps.SHOWN,
            },
        ),
    }


def desk(private: Sequence[str], at: Site) -> Desk:
    made: Snapshot = replace(
        snapshot(JOBS, site=replace(at, private=frozenset(private))),
        reservations={"rb": BOOKED},
    )
    past = [one for one in history() if one.owner.uid == 2002]
    return replace(desk_of(made, Summed(past)), names=PEOPLE.__getitem__, uids=KNOWN.get)


def asked(line: str, *, by: str, private: Sequence[str], at: Site = SITE) -> Answer:
    words = line.split(" ")
    return ask(programs()[words[0]], desk(private, at), words, uid=KNOWN[by])


def out(answer: Answer) -> str:
    return answer.out if isinstance(answer.out, str) else answer.out.decode()


USE = "start=2020-01-01 end=2020-01-02"
SEEN = (
    # what is private, who, the command, what is printed
    ("", "alice", "squeue -h -S i -o %i", "2\n3\n"),
    ("jobs", "alice", "squeue -h -S i -o %i", "2\n"),
    ("jobs", "bob", "squeue -h -S i -o %i", "3\n"),
    ("jobs", "carol", "squeue -h -S i -o %i", "3\n"),
    ("jobs", "root", "squeue -h -S i -o %i", "2\n3\n"),
    ("jobs", "alice", "squeue -h -u bob -S i -o %i", ""),
    ("usage", "alice", "squeue -h -S i -o %i", "2\n3\n"),
    ("jobs", "alice", "sacct -anXP -o jobid -j 2,3", "2\n"),
    ("jobs", "carol", "sacct -anXP -o jobid -j 2,3", "3\n"),
    ("jobs", "root", "sacct -anXP -o jobid -j 2,3", "2\n3\n"),
    ("jobs", "alice", "scontrol -o listjobs", "JOBID\n2       \n"),
    ("jobs", "bob", "scontrol completing", ""),
    ("jobs", "alice", "sinfo -h -p debug -o %A", "1/3\n"),
    ("users", "alice", "sacctmgr -nP show user format=user", "alice\n"),
    ("users", "carol", "sacctmgr -nP show user format=user", ""),
    ("users", "bob", "sacctmgr -nP show assoc format=account,user", "root|\nresearch|\nchem|\nchem|bob\n"),
    ("users", "carol", "sacctmgr -nP show assoc format=account,user", "root|\nresearch|\nchem|\nchem|alice\nchem|bob\n"),
    ("users", "root", "sacctmgr -nP show user format=user", "alice\nbob\nroot\n"),
    ("accounts", "carol", "sacctmgr -nP show account format=account", "chem\n"),
    ("accounts", "root", "sacctmgr -nP show account format=account", "chem\nphysics\nresearch\nroot\n"),
    ("usage", "bob", "sshare -anP -o account,user", "chem|bob\n"),
    ("usage", "carol", "sshare -anP -o account,user", "chem|\n chem|alice\n chem|bob\n"),
    ("usage", "carol", f"sreport -nP cluster AccountUtilizationByUser format=account,login,used -t hours {USE}", "root||4\nresearch||4\nchem||4\nchem|nobody1|1\nchem|nobody2|3\n"),
    ("usage", "bob", f"sreport -nP cluster AccountUtilizationByUser format=account,login,used -t hours {USE}", ""),
    ("usage", "bob", f"sreport -nP user TopUsage format=login,used -t hours {USE}", ""),
    ("usage", "root", f"sreport -nP user TopUsage format=login,used -t hours {USE}", "nobody1|1\nnobody1|2\nnobody2|3\n"),
    ("reservations", "alice", "scontrol show res", "No reservations in the system\n"),
    ("reservations", "alice", "sinfo -T", "No reservations in the system\n"),
)  # fmt: skip


@pytest.mark.parametrize(("private", "by", "line", "printed"), SEEN)
def test_users_see_their_own_and_what_they_coordinate(
    private: str, by: str, line: str, printed: str
) -> None:
    answer = asked(line, by=by, private=private.split(",") if private else ())
    told = "\n".join(sorted(out(answer).splitlines())) if "Top" in line else out(answer)
    wanted = "\n".join(sorted(printed.splitlines())) if "Top" in line else printed
    assert (told, answer.code) == (wanted, 0), answer.err


DENIED = "Access/permission denied\n"
NO_QUERY = f"sacctmgr: error: {DENIED} Problem with query.\n"
REFUSED = (
    ("jobs", "bob", "squeue -j 2", "slurm_load_jobs error: Invalid job id specified\n"),
    ("jobs", "bob", "scontrol show job 2", "slurm_load_jobs error: Invalid job id specified\n"),
    ("jobs", "bob", "scontrol show step 2", ""),
    ("jobs", "bob", "seff 2", "Job not found.\n"),
    ("nodes", "alice", "scontrol show node ec2-1", f"slurm_load_node error: {DENIED}"),
    ("partitions", "alice", "scontrol show part ec2", f"slurm_load_partitions error: {DENIED}"),
    ("nodes", "alice", "sinfo", f"slurm_load_node: {DENIED}"),
    ("partitions,nodes", "alice", "sinfo -N", f"slurm_load_partitions: {DENIED}"),
    ("accounts", "alice", "sacctmgr -nP show account", NO_QUERY),
    ("events", "alice", "sacctmgr -nP show event", f"sacctmgr: error: {DENIED} Error with request: {DENIED}"),
    ("reservations", "alice", "sacctmgr -nP show reservation", NO_QUERY),
)  # fmt: skip


@pytest.mark.parametrize(("private", "by", "line", "said"), REFUSED)
def test_what_is_not_theirs_is_refused_in_slurms_words(
    private: str, by: str, line: str, said: str
) -> None:
    answer = asked(line, by=by, private=private.split(","))
    assert answer.code == 1
    if said:
        assert answer.err == said
    assert asked(line, by="root", private=private.split(",")).code == 0
    assert asked(line, by=by, private=()).code == 0


def test_who_may_not_see_partitions_sees_their_jobs_with_a_complaint() -> None:
    answer = asked("squeue -h -S i -o %i", by="alice", private=["partitions", "jobs"])
    assert (answer.out, answer.err) == ("2\n", f"slurm_load_partitions: {DENIED}")


@pytest.mark.parametrize("words", ["-u bob", "-A chem", "-n job", "-t RUNNING -p debug -u bob"])
def test_scancel_finds_no_job_that_they_do_not_see(words: str) -> None:
    answer = asked(f"scancel {words}", by="alice", private=["jobs"])
    assert (answer.out, answer.err, answer.code) == ("", "", 0)


def test_limits_within_a_qos_are_told_of_those_whom_they_see() -> None:
    shown = {
        by: out(asked("scontrol show assoc_mgr flags=qos", by=by, private=["users"])).split()
        for by in ("alice", "bob", "root")
    }
    parties = {"2001", "2002", "physics", "chem"}
    assert {by: parties & {*words} for by, words in shown.items()} == {
        "alice": {"2001", "chem", "physics"},
        "bob": {"2002", "chem"},
        "root": parties,
    }


@pytest.mark.parametrize(
    ("private", "by", "seen"),
    [
        ("users", "alice", False),
        ("accounts", "alice", False),
        ("users", "root", True),
        ("", "alice", True),
    ],
)
def test_changes_of_accounts_are_told_to_who_may_see_users_and_accounts(
    private: str, by: str, seen: bool
) -> None:
    at = replace(SITE, private=frozenset(private.split(",")) - {""})
    assert viewer(at, PEOPLE[KNOWN[by]]).change("root") is seen
    assert viewer(at, PEOPLE[KNOWN[by]]).change(by)


def test_an_operator_sees_all() -> None:
    at = replace(SITE, operators=frozenset({2003}))
    for line in ("squeue -h -S i -o %i", "sacctmgr -nP show user format=user", "sinfo"):
        private = asked(line, by="carol", private=PRIVATE_KINDS, at=at)
        assert private == asked(line, by="root", private=(), at=at)


@pytest.mark.parametrize("kind", PRIVATE_KINDS)
def test_show_config_names_what_is_private(kind: str) -> None:
    told = out(asked("scontrol show config", by="alice", private=[kind]))
    assert f"PrivateData             = {kind}\n" in told
    assert "PrivateData             = none\n" in out(
        asked("scontrol show config", by="alice", private=())
    )


def test_kept_listings_are_each_callers_own() -> None:
    at, squeue = desk(["jobs"], SITE), Squeue()
    shown = [
        ask(squeue, at, ["squeue", "-h", "-S", "i", "-o", "%i"], uid=uid).out
        for uid in (0, 2001, 2002, 0, 2001)
    ]
    assert shown == ["2\n3\n", "2\n", "3\n", "2\n3\n", "2\n"]
