"""Who may charge what to whom under which QOS, and which limits rule."""

import pytest

from accounting.assoc import (
    Account,
    Association,
    Enforce,
    InvalidAccount,
    InvalidQos,
    LevelKind,
    Qos,
    book,
    standing,
)
from accounting.ids import AccountName, UserName
from accounting.limits import Limits

ALL_QOS = ("gpu1", "high", "normal", "short")
ALICE, BOB, EVE = UserName("alice"), UserName("bob"), UserName("eve")


def account(name: str, parent: str = "root", **more: object) -> Account:
    return Account(name=AccountName(name), parent=AccountName(parent), **more)  # type: ignore[arg-type]


def place(user: UserName, name: str, **more: object) -> Association:
    return Association(user=user, account=AccountName(name), **more)  # type: ignore[arg-type]


ACCOUNTS = (
    account("research", limits=Limits(grp_tres={"cpu": 100}, max_wall=86_400)),
    account("physics", "research", limits=Limits(grp_tres={"cpu": 10, "gres/gpu": 2})),
    account("chem", "research"),
)
PLACES = (
    place(ALICE, "chem", qos=ALL_QOS),
    place(ALICE, "physics", qos=ALL_QOS, default_account=True, limits=Limits(max_jobs=5)),
    place(BOB, "chem", qos=("normal", "short")),
)
GRADES = (
    Qos(name="high", priority=1000),
    Qos(
        name="short",
        priority=500,
        flags=frozenset({"DenyOnLimit"}),
        limits=Limits(max_wall=3600, max_jobs=2, max_submit_jobs=4),
    ),
    Qos(name="gpu1", limits=Limits(max_tres_per_user={"gres/gpu": 1})),
)
SITE = book(ACCOUNTS, PLACES, qos=GRADES, enforce=("associations", "limits", "qos"))


@pytest.mark.parametrize(
    ("user", "asked", "charged"),
    [
        (ALICE, None, "physics"),
        (ALICE, "", "physics"),
        (ALICE, "chem", "chem"),
        (ALICE, "CHEM", "chem"),
        (BOB, None, "chem"),
    ],
)
def test_a_job_is_charged_to_the_account_asked_for_or_the_default(user, asked, charged):
    assert standing(SITE, user, account=asked).account == charged


@pytest.mark.parametrize(
    ("user", "asked"),
    [(ALICE, "nosuch"), (ALICE, "root"), (BOB, "physics"), (EVE, None), (EVE, "chem")],
)
def test_an_account_that_is_not_the_users_is_refused_with_slurms_text(user, asked):
    with pytest.raises(InvalidAccount) as caught:
        standing(SITE, user, account=asked)
    assert str(caught.value) == "Invalid account or account/partition combination specified"
    assert (caught.value.slurm_errno, caught.value.user, caught.value.account) == (
        2045,
        user,
        asked,
    )


# The lists of several are what Slurm 25.11.7 chose at this site.
@pytest.mark.parametrize(
    ("asked", "chosen", "others"),
    [
        (None, "normal", []),
        ("high", "high", []),
        ("HIGH", "high", []),
        ("normal,high", "high", ["normal"]),
        ("short,gpu1", "short", ["gpu1"]),
        ("gpu1,normal", "gpu1", ["normal"]),
    ],
)
def test_the_qos_asked_for_with_the_highest_priority_is_taken(asked, chosen, others):
    stand = standing(SITE, ALICE, qos=asked)
    assert stand.qos.name == chosen
    assert [qos.name for qos in stand.others] == others


@pytest.mark.parametrize(
    ("user", "asked"),
    [(ALICE, "nosuch"), (BOB, "high"), (ALICE, "nosuch,normal"), (ALICE, "normal,")],
)
def test_a_qos_that_is_not_allowed_is_refused_with_slurms_text(user, asked):
    with pytest.raises(InvalidQos) as caught:
        standing(SITE, user, qos=asked)
    assert str(caught.value) == "Invalid qos specification"
    assert caught.value.slurm_errno == 2066


def test_an_association_of_the_partition_goes_before_the_general_one():
    known = book(
        [account("lab")],
        [
            place(ALICE, "lab", limits=Limits(max_jobs=1)),
            place(ALICE, "lab", partition="gpu", limits=Limits(max_jobs=2)),
            place(BOB, "lab", partition="gpu"),
        ],
        enforce=["limits"],
    )
    assert standing(known, ALICE, partition="gpu").limit("max_jobs")[1] == 2
    assert standing(known, ALICE, partition="cpu").limit("max_jobs")[1] == 1
    assert standing(known, BOB, partition="gpu").account == "lab"
    with pytest.raises(InvalidAccount):
        standing(known, BOB, partition="cpu")


def test_the_first_level_that_sets_a_limit_rules():
    stand = standing(SITE, ALICE, qos="short")
    level, seconds = stand.limit("max_wall")
    assert (level.kind, level.name, seconds) == (LevelKind.QOS, "short", 3600)
    level, seconds = standing(SITE, ALICE).limit("max_wall")
    assert (level.kind, level.name, seconds) == (LevelKind.ACCOUNT, "research", 86_400)
    level, jobs = standing(SITE, ALICE).limit("max_jobs")
    assert (level.kind, level.name, jobs) == (LevelKind.USER, "alice", 5)
    assert standing(SITE, BOB).limit("max_jobs") is None


def test_a_group_limit_is_found_at_each_level_and_for_each_tres_by_itself():
    stand = standing(SITE, ALICE)
    assert [(level.name, count) for level, count in stand.each("grp_tres", "cpu")] == [
        ("physics", 10),
        ("research", 100),
    ]
    assert [count for _, count in stand.each("grp_tres", "gres/gpu")] == [2]
    assert stand.limit("grp_tres", "mem") is None
    assert standing(SITE, ALICE, qos="gpu1").limit("max_tres_per_user", "gres/gpu")[1] == 1


def test_limits_that_are_not_enforced_are_not_met():
    known = book(ACCOUNTS, PLACES, qos=GRADES, enforce=["associations"])
    assert standing(known, ALICE, qos="short").levels == ()


@pytest.mark.parametrize(
    ("own", "parent", "grandparent", "default", "allowed"),
    [
        (("high",), None, None, "high", "high"),
        (None, ("high", "short"), ("normal",), "normal", "short"),
        (None, None, ("normal", "high"), "normal", "high"),
        (None, None, None, "normal", "normal"),
    ],
)
def test_qos_that_are_not_given_come_from_above(own, parent, grandparent, default, allowed):
    known = book(
        [account("top", qos=grandparent), account("lab", "top", qos=parent)],
        [place(ALICE, "lab", qos=own)],
        qos=GRADES,
        enforce=["associations"],
    )
    assert standing(known, ALICE).qos.name == default
    enforced = book(
        known.accounts.values(),
        [place(ALICE, "lab", qos=own)],
        qos=GRADES,
        enforce=["qos"],
    )
    assert standing(enforced, ALICE, qos=allowed).qos.name == allowed
    with pytest.raises(InvalidQos):
        standing(enforced, ALICE, qos="gpu1")


def test_the_nearest_default_qos_is_taken():
    known = book(
        [account("top", default_qos="high"), account("lab", "top")],
        [place(ALICE, "lab"), place(BOB, "lab", default_qos="short")],
        qos=GRADES,
    )
    assert standing(known, ALICE).qos.name == "high"
    assert standing(known, BOB).qos.name == "short"


def test_where_nothing_is_enforced_everybody_may_name_anything():
    known = book()
    stand = standing(known, EVE)
    assert (stand.account, stand.qos.name, stand.levels) == ("default", "normal", ())
    stand = standing(known, EVE, account="Proj7", qos="gpu")
    assert (stand.account, stand.qos.name) == ("proj7", "gpu")
    assert standing(book(default_account="Lab"), EVE).account == "lab"


def test_nobody_charges_the_account_of_idle_machines():
    with pytest.raises(InvalidAccount):
        standing(book(), EVE, account="Overhead")


@pytest.mark.parametrize(
    ("words", "enforced"),
    [
        ([], set()),
        (["limits"], {"associations", "limits"}),
        (["Safe"], {"associations", "limits", "safe"}),
        (["qos", "nojobs"], {"associations", "qos"}),
        (["all"], {"associations", "limits", "qos", "safe"}),
    ],
)
def test_a_word_brings_what_it_needs(words, enforced):
    assert book(enforce=words).enforce == {Enforce(word) for word in enforced}


def test_names_of_accounts_and_qos_are_kept_in_lower_case():
    known = book(
        [account("Top"), account("Lab", "TOP")], [place(ALICE, "LAB")], qos=[Qos(name="Fast")]
    )
    assert set(known.accounts) == {"root", "top", "lab"}
    assert standing(known, ALICE, qos="fast").qos.name == "fast"
    assert standing(known, ALICE).account == "lab"


@pytest.mark.parametrize(
    ("accounts", "places", "named"),
    [
        ([account("a", "nosuch")], [], "'nosuch'"),
        ([account("a", "b"), account("b", "a")], [], "below itself"),
        ([account("a", "a")], [], "below itself"),
        ([account("a"), account("A")], [], "'a' is given twice"),
        ([account("overhead")], [], "'overhead'"),
        ([], [place(ALICE, "a")], "user 'alice', account 'a': no such account"),
        ([account("a")], [place(ALICE, "a"), place(ALICE, "A")], "given twice"),
        ([account("a", qos=("x",))], [], "no such QOS 'x'"),
        ([account("a")], [place(ALICE, "a", default_qos="x")], "no such QOS 'x'"),
        (
            [account("a"), account("b")],
            [place(ALICE, "a", default_account=True), place(ALICE, "b", default_account=True)],
            "second default account",
        ),
    ],
)
def test_a_book_that_does_not_hold_together_is_refused_by_name(accounts, places, named):
    with pytest.raises(ValueError, match="account") as caught:
        book(accounts, places)
    assert named in str(caught.value)


def test_an_unknown_word_to_enforce_is_refused_by_name():
    with pytest.raises(ValueError, match="enforce 'limit'"):
        book(enforce=["limit"])
    with pytest.raises(ValueError, match="'Overhead' is kept"):
        book(default_account="Overhead")
