"""`scontrol show assoc_mgr`, in the layout of a real 22.05."""

from dataclasses import replace

import pytest

from accounting.assoc import USE_PARENT, Account, Association, Qos, book
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from broker.model.site import with_book
from gateway.api.programs.scontrol_assoc import AssocMgr
from gateway.api.programs.scontrol_show import Show
from tests.unit.gateway.api.office import SITE, Office

LIMITS = Limits(
    grp_jobs=5,
    grp_submit_jobs=50,
    grp_wall=36_000,
    grp_tres={"cpu": 20},
    grp_tres_run_mins={"cpu": 900},
    max_jobs=4,
    max_wall=6_000,
    max_tres_per_job={"cpu": 8, "mem": 1000},
    min_prio_threshold=3,
)
BOOK = book(
    accounts=[
        Account(name=AccountName("chem"), fairshare=USE_PARENT),
        Account(name=AccountName("physics"), fairshare=2),
    ],
    associations=[
        Association(
            user=UserName("alice"), account=AccountName("physics"), fairshare=10, limits=LIMITS
        ),
        Association(user=UserName("bob"), account=AccountName("chem"), fairshare=5),
    ],
    qos=[
        Qos(
            name="high",
            priority=1000,
            preempt_mode="requeue",
            limits=replace(LIMITS, max_tres_per_user={"cpu": 12}, max_jobs_per_account=6),
        )
    ],
)
RUN = Show(entities={"assoc_mgr": (2, AssocMgr(("cpu", "mem")))})


def booked() -> Office:
    made = Office(with_book(SITE, BOOK))
    made.desk.history = made.store  # type: ignore[assignment]
    return made


def show(*words: str, office: Office | None = None, options: tuple[str, ...] = ()) -> str:
    office = office or booked()
    answer = office.run(RUN, *options, "show", "assoc_mgr", *words, name="scontrol")
    return str(answer.out) + str(answer.err)


HEAD = "Current Association Manager state\n"
USERS = """
User Records

UserName=alice(4294967294) DefAccount=physics DefWckey= AdminLevel=None
UserName=bob(4294967294) DefAccount=chem DefWckey= AdminLevel=None
"""
ALICE = """\
ClusterName=skypurza Account=physics UserName=alice(4294967294) Partition= Priority=0 ID=4
    SharesRaw/Norm/Level/Factor=10/1.00/10/1.00
    UsageRaw/Norm/Efctv=0.00/0.00/0.00
    ParentAccount= Lft=3 DefAssoc=Yes
    GrpJobs=5(0) GrpJobsAccrue=N(0)
    GrpSubmitJobs=50(1) GrpWall=600(0.00)
    GrpTRES=cpu=20(0),mem=N(0)
    GrpTRESMins=cpu=N(0),mem=N(0)
    GrpTRESRunMins=cpu=900(0),mem=N(0)
    MaxJobs=4(0) MaxJobsAccrue= MaxSubmitJobs= MaxWallPJ=100
    MaxTRESPJ=cpu=8,mem=1000
    MaxTRESPN=
    MaxTRESMinsPJ=
    MinPrioThresh=3
"""
HIGH = """\
QOS=high(2)
    UsageRaw=0.000000
    GrpJobs=5(0) GrpJobsAccrue=N(0) GrpSubmitJobs=50(1) GrpWall=600(0.00)
    GrpTRES=cpu=20(0),mem=N(0)
    GrpTRESMins=cpu=N(0),mem=N(0)
    GrpTRESRunMins=cpu=900(0),mem=N(0)
    MaxWallPJ=100
    MaxTRESPJ=cpu=8,mem=1000
    MaxTRESPN=
    MaxTRESMinsPJ=
    MinPrioThresh=3\x20
    MinTRESPJ=
    PreemptMode=REQUEUE
    Priority=1000
    Account Limits
      physics
        MaxJobsPA=6(0) MaxJobsAccruePA=N(0) MaxSubmitJobsPA=N(1)
        MaxTRESPA=cpu=N(0),mem=N(0)
    User Limits
      2001
        MaxJobsPU=4(0) MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(1)
        MaxTRESPU=cpu=12(0),mem=N(0)
"""
NONE = "    Account Limits\n        No Accounts\n    User Limits\n        No Users\n"


@pytest.fixture
def office() -> Office:
    """With a job of alice's that waits."""
    made = booked()
    made.submit(account="physics", qos="high")
    return made


def test_users_associations_and_qos_are_shown_in_this_order(office: Office) -> None:
    whole = show(office=office)
    titles = [line for line in whole.splitlines() if line.endswith(" Records")]
    assert titles == ["User Records", "Association Records", "QOS Records"]
    assert whole.startswith(HEAD + USERS)
    assert ALICE in whole
    assert HIGH in whole


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("flags=assoc",), ["1", "2", "5", "3", "4"]),
        (("flags=assoc", "users=alice"), ["1", "2", "3", "4"]),
        (("flag=ASSOC", "account=physics"), ["3", "4"]),
        (("flags=assoc", "accounts=physics", "users=bob"), ["3"]),
    ],
)
def test_associations_are_chosen_by_account_and_user(
    words: tuple[str, ...], ids: list[str]
) -> None:
    lines = show(*words).splitlines()
    assert [line.rpartition("=")[2] for line in lines if line.startswith("Cluster")] == ids


def test_who_is_below_an_account_with_its_parents_shares_stands_beside_it() -> None:
    shares = [line.split("=")[1] for line in show("flags=assoc").splitlines() if "Level" in line]
    assert [share.rsplit("/", 1)[0] for share in shares] == [
        "1/0.00/1",
        "2147483647/0.00/7",
        "5/0.71/7",
        "2/0.29/7",
        "10/1.00/10",
    ]


def test_one_line_for_each_record(office: Office) -> None:
    text = show("flags=qos", office=office, options=("-o",))
    assert text.startswith(HEAD + "QOS Records\nQOS=normal(1) UsageRaw=0.000000 GrpJobs=N(0) ")
    assert "Account Limits= No Accounts User Limits= No Users\n" in text
    assert text.endswith(
        "Priority=1000 Account Limits= physics={MaxJobsPA=6(0) MaxJobsAccruePA=N(0) "
        "MaxSubmitJobsPA=N(1) MaxTRESPA=cpu=N(0),mem=N(0)} User Limits= 2001={MaxJobsPU=4(0) "
        "MaxJobsAccruePU=N(0) MaxSubmitJobsPU=N(1) MaxTRESPU=cpu=12(0),mem=N(0)}\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("flags=users",), HEAD + USERS),
        (("flags=users,bogus", "users=alice"), HEAD + USERS.rpartition("UserName")[0]),
        (("flags=users", "users=nosuch"), f"{HEAD}\nNo users currently cached in Slurm.\n\n"),
        (("flags=qos", "qos=nosuch"), f"{HEAD}\nNo QOS currently cached in Slurm.\n\n"),
        (
            ("flags=assoc", "accounts=nosuch"),
            f"{HEAD}\nNo associations currently cached in Slurm.\n\n",
        ),
        (
            ("flags=bogus",),
            "invalid flag 'bogus', valid options are 'Assoc, QOS, and/or Users'\n",
        ),
        (("users",), "No value given for option users\n"),
        (("bogus=1",), "invalid entity: bogus=1 for keyword:show assoc_mgr\n"),
    ],
)
def test_what_is_asked_for_is_read_as_slurm_does(words: tuple[str, ...], said: str) -> None:
    assert show(*words) == said


def test_a_partitions_qos_counts_the_jobs_there() -> None:
    told = []
    for grade in (None, "High"):
        parts = tuple(replace(one, qos=grade) for one in SITE.partitions)
        office = Office(with_book(replace(SITE, partitions=parts), BOOK))
        office.desk.history = office.store  # type: ignore[assignment]
        office.submit(account="physics")
        told.append(show("flags=qos", "qos=high", office=office))
    assert ["GrpSubmitJobs=50(1)" in one for one in told] == [False, True]
