"""sacctmgr's orders: what they say and what the book is afterwards (texts of Slurm 22.05.8)."""

# ruff: noqa: E501 - a row stays on one line

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from accounting.assoc import USE_PARENT, Account, Association, Book, Person, Qos, book
from accounting.change import Change, changed
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from gateway.translate import bookadd, bookdelete, bookfile, bookmodify
from gateway.translate.bookorder import Known, OrderError, Proposal
from gateway.translate.bookwords import Vocabulary

TRES = {"cpu": 1, "mem": 2, "energy": 3, "node": 4, "billing": 5, "gres/gpu": 1001}
MAKE = {"add": bookadd.add, "modify": bookmodify.modify, "delete": bookdelete.delete}


def site() -> Book:
    made = book(
        [
            Account(name=AccountName("aa"), description="aa", organization="aa"),
            Account(name=AccountName("bb"), parent=AccountName("aa"), description="bb"),
        ],
        [
            Association(user=UserName("alice"), account=AccountName("aa")),
            Association(user=UserName("bob"), account=AccountName("bb")),
            Association(user=UserName("bob"), account=AccountName("aa")),
        ],
        qos=[Qos(name="high", priority=10)],
    )
    people = (Person(name=UserName("alice")), Person(name=UserName("bob")))
    return replace(made, people={one.name: one for one in people})


def known(of: Book | None = None) -> Known:
    return Known(of or site(), "oracle", Vocabulary((), TRES))


def ordered(line: str, of: Book | None = None) -> Proposal:
    word, *words = line.split()
    return MAKE[word]([one.replace("~", " ") for one in words], known(of))


SAID = (
    (
        "add account cc",
        " Adding Account(s)\n  cc\n Settings\n  Description     = Account Name\n"
        "  Organization    = Parent/Account Name\n Associations\n  A = cc         C = oracle    \n",
    ),
    (
        "add account dd parent=aa description=My~desc organization=Org fairshare=7 GrpTRES=cpu=100,mem=2G MaxJobs=5 MaxWall=1-00:00:00 qos=normal,high",
        " Adding Account(s)\n  dd\n Settings\n  Description     = my desc\n  Organization    = org\n"
        " Associations\n  A = dd         C = oracle    \n Settings\n  Fairshare     = 7\n"
        "  GrpTRES       = cpu=100,mem=2G\n  MaxJobs       = 5\n  MaxWall       = 1-00:00:00\n"
        "  Parent        = aa\n  QOS           = high,normal\n",
    ),
    (
        "add user u1 account=aa adminlevel=operator defaultaccount=bb",
        " Adding User(s)\n  u1\n Settings =\n  Default Account = bb\n  Admin Level     = Operator\n"
        " Associations =\n  U = u1        A = aa         C = oracle    \n"
        "  U = u1        A = bb         C = oracle    \n Non Default Settings\n",
    ),
    (
        "add user u4 account=aa fairshare=3 maxjobs=4 maxsubmit=9 grptres=cpu=3 qos=high defaultqos=high partition=debug",
        " Adding User(s)\n  u4\n Associations =\n"
        "  U = u4        A = aa         C = oracle     P = debug     \n Non Default Settings\n"
        "  Fairshare     = 3\n  GrpTRES       = cpu=3\n  MaxJobs       = 4\n  MaxSubmitJobs = 9\n"
        "  QOS           = high\n  DefQOS        = high\n",
    ),
    (
        "add user u9 account=aa wckey=w1",
        " Adding User(s)\n  u9\n Associations =\n  U = u9        A = aa         C = oracle    \n"
        " WCKeys =\n  U = u9        W = w1         C = oracle    \n Non Default Settings\n",
    ),
    ("add qos q1", " Adding QOS(s)\n  q1\n Settings\n  Description    = q1\n"),
    (
        "add coordinator account=aa name=alice",
        " Adding Coordinator User(s)\n  alice\n To Account(s) and all sub-accounts\n  aa\n",
    ),
    ("modify account aa set description=new", " Modified accounts...\n  aa\n"),
    ("modify account bb set grptres=cpu=5", " Modified account associations...\n  C = oracle     A = bb of aa\n"),
    (
        "modify account where name=bb set maxjobs=3",
        " Modified account associations...\n  C = oracle     A = bb of aa\n"
        "  C = oracle     A = bb                   U = bob      \n",
    ),
    (
        "modify user bob set maxjobs=3",
        " Modified user associations...\n  C = oracle     A = aa                   U = bob      \n"
        "  C = oracle     A = bb                   U = bob      \n",
    ),
    ("modify user alice set adminlevel=Operator", " Modified users...\n  alice\n"),
    ("modify user bob set newname=bert", " Modified users...\n  bob\n"),
    ("modify qos high set priority=5 maxwall=10:00", " Modified qos...\n  high\n"),
    (
        "modify cluster set grptres=cpu=-1",
        " Setting\n  Default Limits:\n  GrpTRES       = cpu=NONE\n"
        " Modified cluster defaults for associations...\n  C = oracle     A = root\n",
    ),
    ("delete user bob account=bb", " Deleting user associations...\n  C = oracle     A = bb         U = bob      \n"),
    ("delete user alice", " Deleting users...\n  alice\n"),
    ("delete user alice account=aa", " Deleting user associations...\n  C = oracle     A = aa         U = alice    \n Deleting users (No Associations)...\n  alice\n"),
    ("modify qos where id=2 set grptres=cpu=2K", " Modified qos...\n  high\n"),
    ("delete qos high", " Deleting QOS(s)...\n  high\n"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "out"), SAID)
def test_an_order_says_what_it_comes_to(line: str, out: str) -> None:
    assert ordered(line).out == out


WRONG = (
    ("add account aa", " Nothing new added.\n"),
    ("add account x parent=nosuch", " Parent account 'nosuch' doesn't exist on cluster oracle\n        Contact your admin to add this account.\n No associations created.\n"),
    ("add account x cluster=nosuch", " This cluster 'nosuch' doesn't exist.\n        Contact your admin to add it to accounting.\n"),
    ("add account", " Need name of account to add.\n"),
    ("add user alice account=aa", " Nothing new added.\n"),
    ("add user alice account=nosuch", " Nothing new added.\n This account 'nosuch' doesn't exist.\n        Contact your admin to add this account.\n"),
    ("add account aa parent=nosuch", " Nothing new added.\n"),
    ("add qos q priority=x gracetime=y", " Nothing new added.\nsacctmgr: error: Invalid value for Priority (x)\nsacctmgr: error: Invalid value for GraceTime (y)\n"),
    ("add user u3", " Need name of account to add user to.\n"),
    ("add user u3 account=nosuch", " This account 'nosuch' doesn't exist.\n        Contact your admin to add this account.\n No associations or wckeys created.\n"),
    ("add user u5 account=aa qos=nosuch", "sacctmgr: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,high\n Unknown option: qos=nosuch\n"),
    ("add qos high", " Nothing new added.\n"),
    ("add coordinator account=nosuch name=alice", " You specified a non-existent account 'nosuch'.\n"),
    ("add coordinator account=aa name=nosuch", " You specified a non-existent user 'nosuch'.\n"),
    ("modify account nosuch set maxjobs=3", " Nothing modified\n"),
    ("modify user alice set defaultaccount=nosuch", " Can't modify because these users aren't associated with new default account 'nosuch'...\n  U = alice C = oracle\n"),
    ("modify user alice maxjobs=1", " Unknown condition: maxjobs=1\n Use keyword 'set' to modify value\n"),
    ("modify user alice set foo=1", " Unknown option: foo=1\n Use keyword 'where' to modify condition\n"),
    ("modify user alice set maxjobs=x", "sacctmgr: error: Invalid value for MaxJobs (x)\n Unknown option: maxjobs=x\n Use keyword 'where' to modify condition\n"),
    ("modify qos high set grptres=nosuch=4", "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type nosuch\n"),
    ("modify qos high set", " You didn't give me anything to set\n"),
    ("delete user nosuch", " Nothing deleted\n"),
    ("delete user", " No conditions given to remove, not executing.\n"),
    ("delete coordinator account=aa name=alice", " Removing Coordinators with user name\n  alice\n From Account(s)\n  aa\n Nothing removed\n"),
    ("delete account bb", " Changes Discarded\n Error with request: You can not remove the default account of a user\n  C = oracle          A = bb         U = bob      \n Please either remove the accounts listed above from list and resubmit,\n or change these users' default accounts to remove the account(s).\n"),
    ("delete coordinator name=alice", " Removing Coordinators with user name\n  alice\n From all accounts\n Nothing removed\n"),
    ("delete coordinator account=aa", " Removing all users from Accounts\n  aa\n Nothing removed\n"),
    ("delete coordinator account=no name=nobody", " You specified a non-existent account 'no'.\n You specified a non-existent user 'nobody'.\n"),
    ("delete coordinator", " You need to specify a user list or account list here.\n"),
    ("add coordinator account=no,no2 name=nobody", " You specified a non-existent account 'no'.\n You specified a non-existent account 'no2'.\n You specified a non-existent user 'nobody'.\n"),
    ("add coordinator account=aa", " You need to specify a user list here.\n"),
    ("add coordinator name=alice", " You need to specify an account list here.\n"),
    ("add account x defaultqos=nosuch", "You gave a bad default qos 'nosuch'.  Use 'list qos' to get complete list.\n"),
    ("add qos q grpjobs=x bogus=1", " Unknown option: bogus=1\n Use keyword 'where' to modify condition\nsacctmgr: error: Invalid value for GrpJobs (x)\n"),
    ("modify account aa foo=1 set bar=1 maxjobs=x", " Unknown condition: foo=1\n Use keyword 'set' to modify value\n Unknown option: bar=1\n Use keyword 'where' to modify condition\nsacctmgr: error: Invalid value for MaxJobs (x)\n Unknown option: maxjobs=x\n Use keyword 'where' to modify condition\n"),
    ("modify account aa set bb", " Can't modify the name of an account\n"),
    ("modify qos high set priority=x", "sacctmgr: error: Invalid value for Priority (x)\n You didn't give me anything to set\n"),
    ("modify qos high set maxwall=x", " Bad MaxWall time format: maxwall=x\n"),
    ("modify qos high set preemptmode=x", " Bad Preempt Mode given: preemptmode=x\n"),
    ("modify qos high set flags+=x", " Unknown QOS flag used in:\n  'x'\n Valid QOS flags are\n  'DenyOnLimit,EnforceUsageThreshold,NoReserve,PartitionMaxNodes,PartitionMinNodes,OverPartQOS,PartitionTimeLimit,RequiresReservation,NoDecay,UsageFactorSafe'\n"),
    ("modify qos high set grptres=cpu=2x", "sacctmgr: error: Invalid unit type 'x'. Possible options are 'KMGTP'\n"),
    ("modify qos high set grptres=license/x=2", "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type license/x\n"),
    ("modify qos id=x set priority=1", "sacctmgr: error: Invalid value for QOS ID (x)\n"),
    ("modify qos normal id=2 set priority=1", " Nothing modified\n"),
    ("delete foo", 'No valid entity in delete command\nInput line must include "Account", "Cluster", "Coordinator", "Federation", "QOS", "Resource", or "User"\n'),
)  # fmt: skip


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_what_cannot_be_done_is_told_in_slurms_words(line: str, said: str) -> None:
    with pytest.raises(OrderError) as error:
        ordered(line)
    assert error.value.out + error.value.err == said


def after(*lines: str) -> Book:
    made = site()
    for line in lines:
        made = changed(made, ordered(line, made).change)
    return made


def test_limits_are_set_one_tres_at_a_time_and_taken_away_with_minus_one() -> None:
    made = after(
        "modify qos high set grptres=cpu=4,gres/gpu=2", "modify qos high set grptres=cpu=-1"
    )
    assert made.qos["high"].limits.grp_tres == {"gres/gpu": 2}
    made = after("modify account aa set maxjobs=3 maxwall=60", "modify account aa set maxjobs=-1")
    assert made.accounts[AccountName("aa")].limits.max_jobs is None
    assert made.accounts[AccountName("aa")].limits.max_wall == 3600


def test_values_are_kept_as_slurm_reads_them() -> None:
    made = after("modify qos high set grptres=cpu=2K,mem=1G maxwall=0 grpwall=0")
    assert made.qos["high"].limits.grp_tres == {"cpu": 2048, "mem": 1024}
    assert (made.qos["high"].limits.max_wall, made.qos["high"].limits.grp_wall) == (0, 0)


def test_accounts_that_are_not_there_are_told_and_the_others_added() -> None:
    proposal = ordered("add user u1 account=aa,no")
    assert proposal.err.startswith(" This account 'no' doesn't exist.\n")
    assert [own.account for own in proposal.change.associations] == ["aa"]


def test_lists_of_qos_and_flags_grow_and_shrink() -> None:
    made = after("modify user alice set qos=normal", "modify user alice set qos+=high")
    assert made.associations[UserName("alice")][0].qos == ("high", "normal")
    made = after(
        "add qos q flags=DenyOnLimit",
        "modify qos q set flags+=OverPartQOS",
        "modify qos q set flags-=DenyOnLimit",
    )
    assert made.qos["q"].flags == {"OverPartQOS"}


def test_the_first_account_of_a_new_user_is_the_default_one_until_another_is_marked() -> None:
    made = after("add user u1 account=bb,aa", "modify user u1 set defaultaccount=aa")
    assert [own.account for own in made.associations[UserName("u1")] if own.default_account] == [
        "aa"
    ]


MOVED = {
    # what is asked, of aa with bb below it and cc below that; parents afterwards
    "modify account aa set parent=cc": {"aa": "cc", "bb": "aa", "cc": "root"},
    "modify account aa set parent=bb": {"aa": "bb", "bb": "root", "cc": "bb"},
    "modify account cc set parent=aa": {"aa": "root", "bb": "aa", "cc": "aa"},
    "modify account cc set parent=ROOT": {"aa": "root", "bb": "aa", "cc": "root"},
    "modify account aa set parent=cc maxjobs=3": {"aa": "cc", "bb": "aa", "cc": "root"},
    "modify account cc set parent=bb maxjobs=3": {"aa": "root", "bb": "aa", "cc": "bb"},
}


@pytest.mark.parametrize("line", MOVED)
def test_an_account_that_comes_below_one_of_its_own_lets_it_have_its_place(line: str) -> None:
    made = after("add account cc parent=bb", line)
    assert {n: one.parent for n, one in made.accounts.items() if n != "root"} == MOVED[line]


@pytest.mark.parametrize(
    "line",
    [
        "modify account bb set parent=aa",
        "modify account aa set parent=aa",
        "modify account root set parent=aa",
    ],
)
def test_nothing_is_modified_where_an_account_is_below_that_one_already(line: str) -> None:
    with pytest.raises(OrderError) as refused:
        ordered(line)
    assert (refused.value.out, refused.value.err) == (" Nothing modified\n", "")


def test_a_question_comes_first_where_no_condition_was_given() -> None:
    assert ordered("modify user set maxjobs=3").sure.startswith("You didn't set any conditions")
    assert ordered("modify cluster set maxjobs=3").sure == ""


def test_a_dump_that_is_loaded_again_changes_nothing() -> None:
    made = after(
        "add account cc parent=bb fairshare=7 grptres=cpu=100,mem=2G maxwall=1-0 qos=high",
        "add user carol account=cc maxsubmit=9 adminlevel=Operator wckey=w1",
        "add user carol account=cc partition=debug",
        "add coordinator account=cc name=carol",
        "modify user carol set defaultqos=high fairshare=parent",
    )
    text = "\n".join(bookfile.dumped(made, "oracle"))
    change, out = bookfile.loaded(text, known(made), clean=True)
    assert (change.empty, out) == (True, "For cluster oracle\n Nothing new added.\n"), text


COUNTS = ("grp_jobs", "grp_jobs_accrue", "max_submit_jobs", "max_jobs", "min_prio_threshold")
OF_TRES = ("grp_tres", "grp_tres_mins", "max_tres_per_node")


def some(luck: random.Random, values: Sequence[Any]) -> dict[str, Any]:
    """A few of them, with numbers."""
    return {name: luck.randint(0, 2**31) for name in values if luck.random() < 0.3}


def name(luck: random.Random, number: int) -> str:
    return "".join(luck.choices("ab é0-_.", k=4)).strip() + str(number)


def text(luck: random.Random) -> str:
    return "x" + "".join(luck.choices("ab é0:,=-# /", k=luck.randint(0, 8))) + "x"


def of_both(luck: random.Random) -> dict[str, Any]:
    """What an account and an association may have."""
    walls = {name: count // 60 * 60 for name, count in some(luck, ("grp_wall", "max_wall")).items()}
    tres = {name: some(luck, ("cpu", "mem", "gres/gpu")) for name in OF_TRES}
    return {
        "fairshare": luck.choice([1, 7, USE_PARENT]),
        "qos": luck.choice([None, ("high",), ("high", "normal")]),
        "default_qos": luck.choice([None, "normal"]),
        "priority": luck.choice([None, 5]),
        "comment": luck.choice(["", text(luck)]),
        "limits": Limits(**some(luck, COUNTS), **walls, **tres),
    }


def drawn(luck: random.Random) -> Book:
    """Accounts below each other, whose users are in several of them and lead some."""
    users = [UserName(name(luck, number)) for number in range(luck.randint(0, 3))]
    above, found = [AccountName("root")], []
    for number in range(luck.randint(0, 5)):
        found.append(
            Account(
                name=AccountName(name(luck, number)),
                parent=luck.choice(above),
                description=text(luck),
                organization=text(luck),
                coordinators=tuple(luck.sample(users, min(len(users), luck.randint(0, 1)))),
                **of_both(luck),
            )
        )
        above.append(found[-1].name)
    owned = {
        (user, account, where): Association(
            user=user, account=account, partition=where, **of_both(luck)
        )
        for user in users
        for account in luck.sample(above, min(len(above), 2))
        for where in luck.sample([None, "debug"], luck.randint(1, 2))
    }
    made = book(found, owned.values(), qos=[Qos(name="high")])
    people = [
        Person(name=user, admin=luck.choice(["None", "Operator"]), wckeys=("k",), default_wckey="k")
        for user in users
    ]
    return replace(made, people={one.name: one for one in people})


@pytest.mark.parametrize("seed", range(40))
def test_a_dump_that_is_loaded_into_an_empty_site_is_dumped_again_as_it_was(seed: int) -> None:
    made, empty = drawn(random.Random(seed)), book([], [], qos=[Qos(name="high")])
    wanted = bookfile.dumped(made, "oracle")
    for clean in (True, False):
        change, _ = bookfile.loaded("\n".join(wanted), known(empty), clean=clean)
        assert bookfile.dumped(changed(empty, change), "oracle") == wanted


def test_a_dump_loaded_clean_takes_away_what_it_does_not_name() -> None:
    text = "Cluster - 'oracle':Fairshare=1\nParent - 'root'\nAccount - 'new':Description='it':Organization='us':Fairshare=3\n"
    change, out = bookfile.loaded(text, known(), clean=True)
    made = changed(site(), change)
    assert set(made.accounts) == {"root", "new"}
    assert not made.associations
    assert " Adding Account(s)\n  new\n" in out


OF_SLURM = (
    "Cluster - 'oracle':Fairshare=1:QOS='normal'",
    "Parent - 'root'",
    "User - 'root':DefaultAccount='root':AdminLevel='Administrator':DefaultQOS='normal':Fairshare=1:QOS='high,normal'",
    "Account - 'lab':Description='lab':Organization='here':Fairshare=2147483647:GrpWall=1560",
    "Parent - 'lab'",
    "Account - 'a b':Description='x: y':Organization='o r':Fairshare=1",
    "Account - 'chem':Description='chemistry':Organization='here':DefaultQOS='normal':Fairshare=1:GrpTRESMins=cpu=100:GrpTRES=cpu=10,mem=1000M:GrpSubmitJobs=5:MaxJobs=3:MaxWallDurationPerJob=100:Priority=5",
    "Parent - 'chem'",
    "User - 'alice':DefaultAccount='chem':AdminLevel='Operator':DefaultQOS='normal':Fairshare=5:QOS='high,normal'",
    "User - 'bob':DefaultAccount='chem':Coordinator='chem,deep':DefaultQOS='normal':Fairshare=1:GrpTRESRunMins=cpu=9:MaxTRESPerNode=cpu=2:MaxSubmitJobs=3:QOS='high,normal'",
    "Account - 'deep':Description='deep':Organization='here':Fairshare=1",
    "Parent - 'a b'",
    "User - 'bob':Partition='debug':DefaultAccount='chem':Fairshare=2147483647",
)
"""Lines as 22.05.8 dumps them; who coordinates is told before the account is, and once."""


@pytest.mark.parametrize(
    "before", [site(), after("modify user bob set adminlevel=operator maxjobs=3")]
)
def test_what_slurm_dumped_is_what_is_there_after_loading_it(before: Book) -> None:
    text = "# made by sacctmgr\n" + "\n".join(OF_SLURM)
    made = changed(before, bookfile.loaded(text, known(before), clean=True)[0])
    parent, bobs = f"={USE_PARENT}", "DefaultAccount='chem':Coordinator='chem,deep'"
    wanted = [one.replace(parent, "=parent") for one in OF_SLURM]
    wanted[-1] = wanted[-1].replace("DefaultAccount='chem'", bobs)
    assert sorted(bookfile.dumped(made, "oracle")) == sorted(wanted)


MERGED = {
    # lines, what is dumped of them afterwards
    "limits that a line does not name stay": (
        "Parent - 'aa'\nUser - 'carol':MaxJobs=4",
        "User - 'carol':DefaultAccount='aa':AdminLevel='Operator':DefaultWCKey='w1':WCKeys='w1':Fairshare=7:MaxJobs=4",
    ),
    "QOS are added to": (
        "Parent - 'aa'\nUser - 'carol':QOS+=high",
        "User - 'carol':DefaultAccount='aa':AdminLevel='Operator':DefaultWCKey='w1':WCKeys='w1':Fairshare=7:QOS='high'",
    ),
    "the first line says who they are": (
        "Parent - 'aa'\nUser - 'carol':AdminLevel=None\nParent - 'bb'\nUser - 'carol'",
        "User - 'carol':DefaultAccount='aa':DefaultWCKey='w1':WCKeys='w1':Fairshare=7",
    ),
    "who coordinates an account goes on": (
        "Account - 'aa':Description='new'",
        "Account - 'aa':Description='new':Organization='aa':Fairshare=1",
    ),
}


@pytest.mark.parametrize("what", MERGED)
def test_what_a_line_does_not_name_stays(what: str) -> None:
    before = after("add user carol account=aa fairshare=7 adminlevel=operator wckey=w1")
    text, line = MERGED[what]
    made = changed(before, bookfile.loaded(text, known(before), clean=False)[0])
    assert line in bookfile.dumped(made, "oracle")


def test_another_clusters_file_is_taken_where_that_is_said() -> None:
    text = "Cluster - 'other'\nParent - 'root'\nAccount - 'new'\n"
    with pytest.raises(OrderError, match=r"line 1: This cluster 'other' doesn't exist"):
        bookfile.loaded(text, known(), clean=False)
    change, out = bookfile.loaded(text, known(), clean=False, any_cluster=True)
    assert ([one.name for one in change.accounts], out[:19]) == (
        ["root", "new"],
        "For cluster oracle\n",
    )


# fmt: off
DAMAGED = {
    "a bar in a text":        ("Account - 'x':Description='a|b'",       "No quotes, bars or control characters are taken in names and texts: \"'a|b'\""),
    "a time that is none":    ("User - 'x':MaxWallDurationPerJob=abc",  "Invalid value for MaxWall (abc)"),
    "a key without a value":  ("User - 'x':AdminLevel",                 "AdminLevel has no value"),
    "a colon for an equals":  ("User - 'x':MaxTRESPerJob=node:2",       "2 has no value"),
    "coordinates nothing":    ("User - 'x':Coordinator='nosuch'",       "no account 'nosuch' to coordinate"),
    "a QOS that is none":     ("User - 'x':QOS='nosuch'",               "You gave a bad qos 'nosuch'. Valid QOS's are normal,high"),
    "a key that is none":     ("Account - 'x':Foo=1",                   "no such value: Foo"),
    "no kind":                ("garbage",                               "'garbage' is no `Kind - 'name'`"),
    "a line without end":     ("\0" * 100_000,                          f"{chr(0) * 60!r} is no `Kind - 'name'`"),
    "an unknown kind":        ("Foo - 'x'",                             "no such kind of line: Foo"),
    "no name":                ("Account - '':Fairshare=1",              "Account has no name"),
    "cut within a name":      ("User - 'bo",                            "\"'bo\" has no quote at its end"),
    "cut within a value":     ("Account - 'x':Description='about",      "\"Description='about\" has no quote at its end"),
    "a number that is none":  ("User - 'x':Fairshare=many",             "Invalid value for FairShare (many)"),
    "a level that is none":   ("User - 'x':AdminLevel='God'",           "Invalid value for AdminLevel (God)"),
    "below what is not":      ("Parent - 'nosuch'",                     "no account 'nosuch' to be below"),
}
# fmt: on


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("what", DAMAGED)
def test_a_line_that_cannot_be_read_is_named_once_and_shortly(what: str, clean: bool) -> None:
    line, why = DAMAGED[what]
    with pytest.raises(OrderError) as said:
        bookfile.loaded(f"Cluster - 'oracle'\n{line}\n", known(), clean=clean)
    assert said.value.err == f" error: line 2: {why}\n"


@pytest.mark.parametrize("text", ["", "# cut\n", "Parent - 'root'\n"])
def test_a_file_that_names_no_cluster_takes_nothing_away(text: str) -> None:
    with pytest.raises(OrderError, match="need to specify a cluster name first"):
        bookfile.loaded(text, known(), clean=True)
    assert bookfile.loaded(text, known(), clean=False)[0].empty


ODD_VALUES = (
    *("UsageFactor=nan", "UsageFactor=inf", "UsageFactor=-3", "UsageThreshold=1e400"),
    *("LimitFactor=-2", "Priority=4294967294", f"Priority={'9' * 5000}", "MaxJobsPerUser=٣"),
    *("MaxJobsPerUser=²", "MaxWall=99999999999-00:00:00", f"GrpTRES=cpu={'9' * 5000}"),
    *("GrpTRES=cpu=9223372036854775808", f"GrpTRES=mem={'9' * 30}T", f"MaxWall={'9' * 5000}"),
)


@pytest.mark.parametrize("setting", ODD_VALUES, ids=lambda text: text[:30])
def test_a_number_that_no_limit_may_be_is_an_invalid_value(setting: str) -> None:
    with pytest.raises(OrderError) as said:
        ordered(f"modify qos high set {setting}")
    kinds = ("sacctmgr: error: Invalid value for ", " Bad MaxWall time format: ")
    assert said.value.err.startswith(kinds)


ODD_NAMES = ("new\nline", "a'b", 'a"b', "a|b", "a\x1b[2J", "a\udcff")


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize(
    "order", ["account {}", "user {} account=aa", "qos {}", "account cc desc={}"]
)
def test_names_and_texts_are_such_as_fit_a_line_of_a_dump(order: str, name: str) -> None:
    with pytest.raises(OrderError, match="No quotes, bars or control characters"):
        bookadd.add([word.format(name) for word in order.split()], known())


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("order", ["account aa set desc={}", "user alice set defaultwckey={}"])
def test_so_are_those_that_are_set_later(order: str, name: str) -> None:
    with pytest.raises(OrderError, match="No quotes, bars or control characters"):
        bookmodify.modify([word.format(name) for word in order.split()], known())


def test_a_renamed_user_keeps_associations_rights_and_coordination() -> None:
    before = site()
    lab = replace(before.accounts[AccountName("aa")], coordinators=(UserName("bob"),))
    boss = Person(name=UserName("bob"), admin="Operator", uid=2002)
    before = changed(before, Change(accounts=(lab,), people=(boss,)))
    after = changed(before, ordered("modify user bob set newname=bert", before).change)
    assert UserName("bob") not in after.associations
    assert [own.account for own in after.associations[UserName("bert")]] == ["bb", "aa"]
    assert after.level("bert") == "Operator"
    assert after.accounts[AccountName("aa")].coordinators == ("bert",)


@pytest.mark.parametrize(
    ("line", "err", "out"),
    [
        (
            "modify user bob set newname=alice",
            "sacctmgr: accounting_storage/slurmdbd: acct_storage_p_modify_users: No error\n",
            " Nothing modified\n",
        ),
        ("modify user nosuch set newname=x", "", " Nothing modified\n"),
        (
            "modify user alice,bob set newname=x",
            "sacctmgr: error: Can only change one at a time\n"
            " Error with request: Can only change one at a time\n"
            " If you are changing a users name you can only specify 1 user at a time.\n",
            "",
        ),
        (
            "modify account aa set newname=x",
            " Unknown option: newname=x\n Use keyword 'where' to modify condition\n",
            "",
        ),
    ],
)
def test_what_cannot_be_renamed_is_told_as_by_slurm(line: str, err: str, out: str) -> None:
    with pytest.raises(OrderError) as refused:
        ordered(line)
    assert (refused.value.err, refused.value.out) == (err, out)
