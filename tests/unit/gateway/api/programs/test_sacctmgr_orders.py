"""sacctmgr's orders through the one writer: permissions, files, what others changed meanwhile."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from accounting.assoc import Account
from accounting.change import Change, changed
from accounting.ids import AccountName
from broker.decide.booking import decide_book
from broker.model.errors import SpzError
from broker.model.job import Job
from broker.model.site import with_book
from broker.world import World
from gateway.api.programs.sacctmgr import Sacctmgr
from gateway.api.wire import LINE, Answer, Call, Given, Peer
from tests.unit.gateway.api.programs.test_sacctmgr import CONFIG, OWNERS, SITE
from tests.unit.gateway.query.desk import Past, desk_of, snapshot, text
from tests.unit.gateway.query.records import running

PROGRAM = Sacctmgr(CONFIG)
NOW = 1_700_000_000


@dataclass
class Writer:
    """The engine, as far as the book goes; `meanwhile` is done before the first order is taken."""

    world: World = field(default_factory=lambda: World(SITE))
    meanwhile: Any = None

    def ask(self, command: Any) -> "Future[Any]":
        found: Future[Any] = Future()
        if self.meanwhile is not None:
            first, self.meanwhile = self.meanwhile, None
            first(self.world)
        try:
            for fact in decide_book(self.world, command, NOW).facts:
                self.world.apply(fact)
            found.set_result(None)
        except SpzError as error:
            found.set_exception(error)
        return found


def said(
    writer: Writer,
    line: str,
    uid: int = 0,
    files: dict[str, Given] | None = None,
    jobs: Sequence[Job] = (),
) -> Answer:
    desk = desk_of(snapshot(jobs, site=SITE), Past())
    desk.engine = writer  # type: ignore[assignment]
    desk.snapshot = lambda: snapshot(jobs, site=writer.world.site)
    desk.names = lambda number: OWNERS[number]
    call = Call(
        program="sacctmgr",
        argv=tuple(line.split(" ")[1:]),
        peer=Peer(uid, uid),
        request="r",
        files=files or {},
    )
    return asyncio.run(PROGRAM(desk, call))


def accounts(writer: Writer) -> set[str]:
    return set(writer.world.site.book.accounts)


def test_what_is_added_is_there_for_the_next_command() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i add account new parent=chem grptres=cpu=4,mem=2G")
    shown = said(writer, "sacctmgr -nP show assoc account=new format=account,grptres,parentname")
    assert shown.out == "new|cpu=4,mem=2G|chem\n"


def test_an_order_is_worked_out_anew_where_somebody_else_changed_the_book() -> None:
    def other(world: World) -> None:
        theirs = Account(name=AccountName("theirs"))
        site = world.site
        world.site = with_book(site, changed(site.book, Change(accounts=(theirs,))))

    writer = Writer(meanwhile=other)
    assert said(writer, "sacctmgr -i add account mine").code == 0
    assert {"mine", "theirs"} <= accounts(writer)


def test_answers_are_taken_in_their_order_until_one_is_yes_or_no() -> None:
    writer = Writer()
    answer = said(writer, "sacctmgr add account x", files={LINE: Given(b"what\n")})
    assert answer.ask == LINE
    assert text(answer.out).endswith("\nY or N please\n(N/y): ")
    answer = said(writer, "sacctmgr add account x", files={LINE: Given(b"what\ny\n")})
    assert (answer.ask, "x" in accounts(writer)) == (None, True)
    answer = said(writer, "sacctmgr add account y", files={LINE: Given(b"", error=1)})
    assert (text(answer.out).endswith(" Changes Discarded\n"), "y" in accounts(writer)) == (
        True,
        False,
    )


def test_without_conditions_two_questions_are_asked() -> None:
    writer = Writer()
    line = "sacctmgr modify user set maxjobs=3"
    first = said(writer, line)
    assert text(first.out).startswith("You didn't set any conditions with 'WHERE'.\n")
    assert "Modified" not in text(first.out)
    assert "Modified" in text(said(writer, line, files={LINE: Given(b"y\n")}).out)
    assert text(said(writer, line, files={LINE: Given(b"n\n")}).out).endswith("\nAborted\n")


def test_a_dump_is_a_file_to_write_and_a_load_asks_for_it() -> None:
    writer = Writer()
    dumped = said(writer, "sacctmgr dump oracle file=/tmp/a.cfg")
    assert dumped.write is not None
    path, content = dumped.write
    assert path == "/tmp/a.cfg"
    said(writer, "sacctmgr -i delete user bob")
    assert said(writer, "sacctmgr -i load /tmp/a.cfg").ask == "/tmp/a.cfg"
    loaded = said(writer, "sacctmgr -i load /tmp/a.cfg", files={path: Given(content)})
    assert " Adding User(s)\n  bob\n" in text(loaded.out)
    gone = said(writer, "sacctmgr -i load /nosuch", files={"/nosuch": Given(error=2)})
    assert gone.err == ' Unable to read "/nosuch": No such file or directory\n'


def test_users_stay_who_lose_their_last_association_with_an_account() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i add account lone")
    said(writer, "sacctmgr -i add user zoe account=lone")
    said(writer, "sacctmgr -i delete account lone")
    for line, shown in (
        ("show user zoe", "zoe||None\n"),
        ("show user zoe withassoc", "zoe||None||||0||0|0|0|0|00:00:00|0||\n"),
        ("show user zoe withassoc format=user,grptres,qos,grpwall", "zoe|||00:00:00\n"),
        ("show user zoe format=user,share,maxwall,qos", "zoe|0|00:00:00|\n"),
        ("show user account=lone", ""),
        ("show user defaultaccount=lone", ""),
        ("show assoc user=zoe", ""),
    ):
        assert said(writer, f"sacctmgr -nP {line}").out == shown, line
    assert "zoe" in text(said(writer, "sacctmgr -nP show user adminlevel=none").out)
    said(writer, "sacctmgr -i add user zoe account=chem")
    assert said(writer, "sacctmgr -nP show user zoe").out == "zoe|chem|None\n"
    said(writer, "sacctmgr -i delete user zoe account=chem")
    assert said(writer, "sacctmgr -nP show user zoe").out == ""


def test_operators_and_coordinators_may_what_is_theirs() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i add coordinator account=chem name=alice")
    assert said(writer, "sacctmgr -i add account below parent=chem", uid=2001).code == 0
    assert said(writer, "sacctmgr -i add account beside", uid=2001).code == 1
    said(writer, "sacctmgr -i modify user alice set adminlevel=Operator")
    assert said(writer, "sacctmgr -i add account beside", uid=2001).code == 0
    denied = said(writer, "sacctmgr -i modify user bob set adminlevel=Administrator", uid=2001)
    assert "Access/permission denied" in text(denied.err)


HERE = "No cluster specified, resetting on local cluster oracle\n"
MISSING = "sacctmgr: error: Failed to find cluster oracle account {} association in database\n"
RESETS = (
    # order, stdout, stderr, whose use counts anew (22.05.8)
    ("account chem set rawusage=0", HERE, "", {"account:chem"}),
    ("user alice where account=physics set rawusage=0", HERE, "", {"user:physics/alice"}),
    ("qos high set RawUsage=0", HERE, "", {"qos:high"}),
    ("account chem where cluster=oracle set rawusage=0", "", "", {"account:chem"}),
    (
        "user alice set rawusage=0",
        "",
        "sacctmgr: error: An account must be specified\n",
        set(),
    ),
    (
        "account set rawusage=0",
        "",
        "sacctmgr: error: An association name is required to remove usage\n",
        set(),
    ),
    (
        "account chem set rawusage=5",
        "",
        "sacctmgr: error: Raw usage can only be set to 0 (zero)\n",
        set(),
    ),
    (
        "account chem set rawusage=x",
        "",
        "sacctmgr: error: Invalid value for RawUsage (x)\n You didn't give me anything to set\n",
        set(),
    ),
    ("account nosuch set rawusage=0", HERE, MISSING.format("nosuch"), set()),
    ("user u where account=chem set rawusage=0", HERE, MISSING.format("chem user u"), set()),
    ("qos nosuch set rawusage=0", HERE, "sacctmgr: error: Failed to find QOS nosuch\n", set()),
)  # fmt: skip


@pytest.mark.parametrize(("order", "out", "err", "keys"), RESETS)
def test_raw_usage_is_reset_in_slurms_words(order: str, out: str, err: str, keys: set[str]) -> None:
    writer = Writer()
    answer = said(writer, f"sacctmgr -i modify {order}")
    assert (text(answer.out), text(answer.err), answer.code) == (out, err, int(bool(err)))
    assert writer.world.site.book.resets.keys() == keys


def test_limits_per_job_are_shown_for_all_below_and_those_of_groups_where_they_are_set() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i modify account chem set maxjobs=4 grpjobs=9 maxtres=cpu=3,mem=1G")
    said(writer, "sacctmgr -i modify user bob where account=chem set maxtres=cpu=2")
    line = "sacctmgr -nP show assoc account=chem format=user,grpjobs,maxjobs,maxtres"
    assert (
        said(writer, line).out == "|9|4|cpu=3,mem=1G\nalice||4|cpu=3,mem=1G\nbob||4|cpu=2,mem=1G\n"
    )
    assert said(writer, f"{line} wopinfo").out == "|9|4|cpu=3,mem=1G\nalice|||\nbob|||cpu=2\n"


NO_ACCESS = (
    " These associations don't have access to their default qos.\n"
    " Please give them access before they the default can be set to this.\n"
    "  DefQOS = high        C = oracle     A = chem                 U = bob      \n"
)


def test_a_default_qos_has_to_be_one_that_may_be_used() -> None:
    assert said(Writer(), "sacctmgr -i modify user bob set defaultqos=high").err == NO_ACCESS


MAY = (
    ("-i modify user where name=bob set defaultaccount=chem", True),
    ("-i modify user where name=bob set defaultqos=short", True),
    ("-i modify user where name=bob set fairshare=9", False),
    ("-i modify user where name=bob set adminlevel=op", False),
    ("-i modify user where name=alice set defaultaccount=chem", False),
)


@pytest.mark.parametrize(("order", "may"), MAY)
def test_users_choose_their_own_defaults_and_nothing_else(order: str, may: bool) -> None:
    assert (said(Writer(), f"sacctmgr {order}", uid=2002).code == 0) is may


COORDINATED = (
    ("add account sub parent=chem", True),
    ("modify user where name=bob account=chem set maxjobs=3", True),
    ("modify account where name=low set maxjobs=3", True),
    ("add coordinator account=chem names=alice", True),
    ("add coordinator account=physics names=alice", False),
    ("delete coordinator account=chem names=bob", True),
    ("add user carol account=chem", True),
    ("add user carol account=low", True),
    ("add user carol account=physics", False),
    ("add user carol account=chem qos=short", False),
    ("add user carol account=chem adminlevel=operator", False),
    ("modify account where name=chem set maxjobs=3", False),
    ("modify account where name=chem set fairshare=3", False),
    ("modify account where name=chem set description=x", False),
    ("modify account where name=low set description=x", False),
    ("modify account where name=low set qos=normal", True),
    ("modify account where name=low set qos+=short", False),
    ("modify account where name=low set parent=physics", False),
    ("modify account where name=chem set parent=root", False),
    ("modify user where name=alice account=chem set qos=normal", True),
    ("modify user where name=alice account=chem set priority=5", True),
    ("modify user where name=alice account=physics set maxjobs=3", False),
    ("modify user where name=alice account=chem set rawusage=0", False),
    ("modify user where name=alice set adminlevel=operator", False),
    ("add account beside", False),
    ("add account beside parent=physics", False),
    ("add qos new", False),
    ("modify qos short set maxjobs=1", False),
    ("delete qos short", False),
    ("delete user where name=alice account=chem", True),
    ("delete account low", False),
)
"""As 22.05.8 has it, but for an account's going below another's, which it lets them do."""


@pytest.mark.parametrize(("order", "may"), COORDINATED)
def test_coordinators_rule_what_is_below_their_accounts(order: str, may: bool) -> None:
    writer = Writer()
    assert said(writer, "sacctmgr -i add coordinator account=chem names=bob").code == 0
    assert said(writer, "sacctmgr -i add account low parent=chem").code == 0
    assert (said(writer, f"sacctmgr -i {order}", uid=2002).code == 0) is may


def test_admin_levels_may_be_cut_short() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i modify user where name=bob set adminlevel=admin")
    assert writer.world.site.book.level("bob") == "Administrator"


def test_the_wall_time_of_an_account_is_shown() -> None:
    writer = Writer()
    said(writer, "sacctmgr -i modify account where name=chem set maxwall=90")
    shown = said(writer, "sacctmgr -nP show assoc account=chem user=bob format=maxwall,user")
    assert text(shown.out) == "01:30:00|bob\n"


HELD = " Error with request: Job(s) active, cancel job(s) before remove\n"
LINES = (
    "  JobID = 7          C = oracle     A = chem       U = alice    \n"
    "  JobID = 9          C = oracle     A = chem       U = bob      \n"
)
TAKEN = (
    # the order, and whether the jobs of alice and bob in chem are in its way
    ("delete account chem", True),
    ("delete account research", True),
    ("delete account physics", False),
    ("delete user alice,bob account=chem", True),
    ("delete user alice,bob", True),
    ("delete user bob account=physics", False),
    ("delete coordinator account=chem name=bob", False),
    ("delete qos high", False),
    ("modify account chem set parent=root", False),
)


@pytest.mark.parametrize(("line", "held"), TAKEN)
def test_associations_with_jobs_stay(line: str, held: bool) -> None:
    jobs = [
        replace(running(9), owner=replace(running(9).owner, user="bob"), account="chem"),
        replace(running(7), owner=replace(running(7).owner, user="alice"), account="chem"),
        replace(running(5), owner=replace(running(5).owner, user="alice"), account="physics"),
    ][: 3 if "research" in line else 2]
    writer = Writer()
    before = writer.world.site.book
    answer = said(writer, f"sacctmgr -i {line}", jobs=jobs)
    assert text(answer.err).startswith(HELD) is held, text(answer.err)
    if held:
        assert (answer.code, text(answer.out), writer.world.site.book) == (1, "", before)
        assert {one in text(answer.err) for one in LINES.splitlines()} == {True}


def test_accounts_are_not_below_each_other_without_end() -> None:
    writer = Writer()
    lines = ["Cluster - 'oracle'", "Parent - 'root'", "Account - 'd0'"]
    for number in range(1, 100):
        lines += [f"Parent - 'd{number - 1}'", f"Account - 'd{number}'"]
    files = {"deep.cfg": Given("\n".join(lines).encode())}
    assert said(writer, "sacctmgr -i load deep.cfg", files=files).code == 0
    refused = said(writer, "sacctmgr -i add account more parent=d99")
    assert text(refused.err) == "sacctmgr: error: account more would be more than 100 deep\n"
    refused = said(writer, "sacctmgr -i modify account d0 set parent=chem")
    assert "would be more than 100 deep" in text(refused.err)
    deeper = "\n".join([*lines, "Parent - 'd99'", "Account - 'd100'"])
    refused = said(writer, "sacctmgr -i load a", files={"a": Given(deeper.encode())})
    assert "account d100 would be more than 100 deep" in text(refused.err)
    assert {"d99", "more", "d100"} & accounts(writer) == {"d99"}
