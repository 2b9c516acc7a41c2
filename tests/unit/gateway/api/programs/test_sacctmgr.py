"""sacctmgr, sprio, sshare, sstat, sreport, seff, sdiag: what they show, and what they refuse."""

# ruff: noqa: E501 - a row stays on one line

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.change import NO_CHANGE
from broker.model.events import BookChanged
from gateway.api.programs.accounting_help import ENTITIES as HELPED
from gateway.api.programs.sacctmgr import Sacctmgr
from gateway.api.programs.sacctmgr_orders import FILES, ORDERS
from gateway.api.programs.sacctmgr_show import ENTITIES
from gateway.api.programs.sdiag import sdiag
from gateway.api.programs.seff import seff
from gateway.api.programs.sprio import Sprio
from gateway.api.programs.sreport import sreport
from gateway.api.programs.sshare import Sshare
from gateway.api.programs.sstat import sstat
from gateway.api.wire import LINE, Answer
from gateway.config.load import load
from gateway.config.site import site
from tests.unit.gateway.query.desk import Past, Program, ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import NOON, running
from tests.unit.gateway.query.scene import queue

CONFIG = load((Path(__file__).parents[4] / "conformance" / "site.yaml").read_text())
SITE = site(
    CONFIG,
    service_uid=0,
    uid_of=lambda name: {"root": 0}.get(name, 2001),
    price_of=lambda _: None,
)
PROGRAMS: dict[str, Program] = {
    "sacctmgr": Sacctmgr(CONFIG),
    "sdiag": sdiag,
    "seff": seff,
    "sprio": Sprio(CONFIG.priority),
    "sreport": sreport,
    "sshare": Sshare(CONFIG.accounting.tres),
    "sstat": sstat,
}
OWNERS = {job.owner.uid: job.owner for job in queue()}
OWNERS[0] = replace(OWNERS[2001], uid=0, user="root")


def said(*words: str, uid: int = 2001) -> Answer:
    jobs = queue()
    desk = desk_of(snapshot(jobs, site=SITE), Past(jobs))
    desk.names = lambda number: OWNERS[number]
    return ask(PROGRAMS[words[0]], desk, words, uid=uid)


SHOWN = (
    (
        "sacctmgr -nP show assoc",
        "oracle|root|||1|||||||||||||normal||\n"
        "oracle|root|root||1|||||||||||||gpu1,high,normal,short|normal|\n"
        "oracle|research|||1|||||||||||||normal||\n"
        "oracle|chem|||1|||||||||||||normal||\n"
        "oracle|chem|alice||5|||||||||||||gpu1,high,normal,short|normal|\n"
        "oracle|chem|bob||1|||||||||||||normal,short|normal|\n"
        "oracle|physics|||1|||||||||||||normal||\n"
        "oracle|physics|alice||10|||||||||||||gpu1,high,normal,short|normal|\n",
    ),
    ("sacctmgr list associations -nP where user=bob format=account,share", "chem|1\n"),
    ("sacctmgr -nP show user bob", "bob|chem|None\n"),
    (
        "sacctmgr -nP show user alice withassoc format=user,account,defaultaccount",
        "alice|chem|physics\nalice|physics|physics\n",
    ),
    ("sacctmgr -nP show account physics withassoc format=account,user", "physics|\nphysics|alice\n"),
    ("sacctmgr -nP show qos short format=name,maxwall,maxjobspu,flags", "short|01:00:00|2|DenyOnLimit\n"),
    ("sacctmgr -n show account chem format=account%6,desc%4", "  chem che+ \n"),
    ("sacctmgr -nP show tres type=gres format=name,id", "gpu|1001\ngpu:a10g|1002\ngpumem|1003\ngpuutil|1004\n"),
    ("sacctmgr -nP show assoc account=research withsubaccounts format=account,user user=bob", "chem|bob\n"),
    ("sacctmgr -nP show assoc onlydefaults format=account,user", "root|root\nchem|bob\nphysics|alice\n"),
    ("sacctmgr -nP show assoc wopinfo account=physics user=alice format=account,qos", "physics|gpu1,high,normal,short\n"),
    ("sacctmgr -P show assoc woplimits account=physics user=alice", "Cluster|Account|User|Partition\noracle|physics|alice|\n"),
    ("sacctmgr -nP show account where description=chemistry", "chem|chemistry|lab\n"),
    ("sacctmgr -nP show user defaultaccount=chem", "bob|chem|None\n"),
    ("sacctmgr -P show assoc account=chem user=bob format=account,user,Account", "User|Account\nbob|chem\n"),
    ("sacctmgr -P -p show qos short format=name,name", "Name|\nshort|\n"),
    ("sacctmgr -p -P show qos short format=name", "Name\nshort\n"),
    ("sacctmgr -nP show qos gpu1 format=maxcpusperuser,grpcpurunmins,name", "||gpu1\n"),
    ("sacctmgr -nP show assoc where partition=ec2", ""),
    (
        "sacctmgr -P show assoc format=account,user,id,parentid,lft,rgt,qosraw",
        "Account|User|ID|ParentID|LFT|RGT|QOS_RAW\n"
        "root||1|0|1|16|1\nroot|root|2|1|14|15|1,2,3,4\nresearch||3|1|2|13|1\n"
        "chem||5|3|3|8|1\nchem|alice|7|5|6|7|1,2,3,4\nchem|bob|8|5|4|5|1,3\n"
        "physics||4|3|9|12|1\nphysics|alice|6|4|10|11|1,2,3,4\n",
    ),
    ("sacctmgr -nP show assoc where parent=research format=account", "chem\nphysics\n"),
    ("sacctmgr -nP show assoc where defaultqos=short", ""),
    ("sacctmgr -nP show assoc where account=chem user=bob wolimits", "oracle|chem|bob|\n"),
    ("sacctmgr -nP show qos where preemptmode=cluster description=gpu1 format=name", "gpu1\n"),
    ("sacctmgr -nP show tres cpu", "cpu||1\n"),
    ("sacctmgr -nP show tres type=gres name=gpu", "gres|gpu|1001\n"),
    ("sacctmgr -nP show tres gres format=name", "gpu\ngpu:a10g\ngpumem\ngpuutil\n"),
    ("sacctmgr -nP show cluster format=cluster,nodecount", "oracle|4\n"),
    ("sacctmgr exit", ""),
    ("sacctmgr verbose", ""),
    ("sacctmgr -nP show user bob format=user,maxsubmitjobsperuser,fairshare%5", "bob||0\n"),
    ("sshare -nP -A chem -a -o account,user", "chem|\n chem|alice\n chem|bob\n"),
    ("sshare -nP -U -u bob -o account,user", "chem|bob\n"),
    ("sshare -nP -A root -u nosuch -o effectvusage,normusage", "1.000000|\n"),
    ("sacctmgr -nP show assoc where cluster=elsewhere", ""),
    ("sshare -nP -o account,user,rawshares", "root||\n research||1\n  chem||1\n   chem|alice|5\n  physics||1\n   physics|alice|10\n"),
    ("sprio -h -o %i|%r|%Q|%T -p ec2", "700009|ec2|0|cpu=25,mem=25\n"),
    ("sprio -h -j 700001", ""),
    ("sprio -hw -o %i,%A,%Q", "Weights,1000,2000\n"),
    ("sreport -nP cluster Utilization start=2020-01-01 end=2020-01-02", ""),
    ("sstat -nP -a -j 700003 -o jobid,ntasks", "700003.batch|1\n700003.0|1\n"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "out"), SHOWN)
def test_what_is_asked_for_is_shown(line: str, out: str) -> None:
    answer = said(*line.split(" "))
    assert (text(answer.out), answer.err, answer.code) == (out, "", 0)


REFUSED = (
    ("sacctmgr show assoc format=", "Unknown field ''\n"),
    ("sacctmgr show assoc where account", "sacctmgr: error: Invalid value for AssocId (account)\n"),
    ("sacctmgr dump oracle", " Your user does not have sufficient privileges to dump clusters.\n"),
    ("sacctmgr foo", "invalid keyword: foo\n"),
    ("sacctmgr show transaction action=modify", "sacctmgr: error: You gave a bad action 'modify'.\n"),
    ("sacctmgr show user format=nosuch", "Unknown field 'nosuch'\n"),
    ("sacctmgr show event format=node", "Unknown field 'node'\n"),
    ("sacctmgr show user where colour=red", " Unknown condition: colour=red\n Use keyword 'set' to modify value\n"),
    ("sacctmgr -i add user x", " Need name of account to add user to.\n"),
    ("sacctmgr -i modify user bob set maxjobs=1", "sacctmgr: error: Your user doesn't have privilege to perform this action\n Error with request: Access/permission denied\n"),
    ("sacctmgr -ir add account x", "Can't run this command in readonly mode.\n"),
    ("sacctmgr archive dump", "sacctmgr: error: Your user doesn't have privilege to perform this action\n"),
    ("sreport foo", "invalid keyword: foo\n"),
    ("sstat -o nosuch -j 700003", 'sstat: error: Invalid field requested: "nosuch"\n'),
    ("sshare -o nosuch", 'sshare: error: Invalid field requested: "nosuch"\n'),
    ("sprio -l -o %i", "sprio: fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry.\n"),
    ("sprio -h -S y,!", "sprio: error: Invalid sort specification: !\n"),
    ("sdiag -M nosuch", "sdiag: error: No cluster 'nosuch' known by database.\nsdiag: error: 'nosuch' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.\n"),
    ("sstat --nosuch", "sstat: unrecognized option '--nosuch'\n"),
    ("seff 1", "Job not found.\n"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "err"), REFUSED)
def test_what_cannot_be_is_refused_in_slurms_words(line: str, err: str) -> None:
    answer = said(*line.split(" "))
    assert (answer.err, answer.code) == (err, 1)


def test_a_change_that_is_denied_is_shown_all_the_same() -> None:
    answer = said("sacctmgr", "-i", "add", "user", "x", "account=chem")
    assert answer.err == " Problem adding users: Access/permission denied\n"
    assert text(answer.out).startswith(" Adding User(s)\n  x\n")


def test_only_administrators_set_the_counts_of_sdiag_to_zero() -> None:
    answer = said("sdiag", "-r")
    assert (answer.err, answer.code) == (
        "slurm_reset_statistics: Access/permission denied\n",
        255,
    )


class Changed(Past):
    """Of two transactions the first is purged but for what it changed."""

    def book_changes(self) -> Sequence[BookChanged]:
        gone = BookChanged(at=NOON - 60, actor=0, by="", action="", change=NO_CHANGE)
        return [gone, replace(gone, at=NOON, by="root", action="Add QOS", where="", info="x")]


def test_of_a_purged_transaction_nothing_is_told() -> None:
    desk = desk_of(snapshot([], site=SITE), Changed())
    desk.names = lambda number: OWNERS[number]
    words = ["sacctmgr", "-nP", "show", "transaction", "format=action,actor,info"]
    assert ask(PROGRAMS["sacctmgr"], desk, words, uid=0).out == "Add QOS|root|x\n"


def test_a_question_is_asked_before_anything_is_changed() -> None:
    answer = said("sacctmgr", "add", "account", "x", uid=0)
    assert answer.ask == LINE
    assert text(answer.out).endswith("(You have 30 seconds to decide)\n(N/y): ")


def test_unknown_steps_are_complained_about_below_an_empty_table() -> None:
    answer = said("sstat", "-nj", "1")
    assert (answer.out, answer.code) == ("", 0)
    assert answer.err == "sstat: error: couldn't get steps for JobId=1\n"


def test_a_user_as_json_has_the_keys_of_slurmdbd() -> None:
    (user,) = json.loads(text(said("sacctmgr", "--json", "show", "user", "alice", "-s").out))[
        "users"
    ]
    assert user["default"] == {"qos": 1, "account": "physics", "wckey": ""}
    assert [one["account"] for one in user["associations"]] == ["chem", "physics"]


def test_seff_tells_a_running_job_that_it_may_mislead() -> None:
    lines = text(said("seff", "700002").out).splitlines()
    assert lines[:4] == [
        "Job ID: 700002",
        "Cluster: oracle",
        "User/Group: bob/bob",
        "State: RUNNING (exit code 0)",
    ]
    assert lines[-1].startswith("WARNING")


def test_sdiag_counts_jobs() -> None:
    out = text(said("sdiag").out)
    assert "Jobs running:   4\n" in out


FOR_OPERATORS = (
    *(f"sacctmgr show {what}" for what in ("problem", "stats", "runawayjobs", "wckey")),
    *(f"sreport cluster {what}" for what in ("UserUtilizationByWCKey", "WCKeyUtilizationByUser")),
)


@pytest.mark.parametrize("line", FOR_OPERATORS)
def test_operators_are_shown_what_users_are_not(line: str) -> None:
    jobs = queue()
    words = tuple(line.split())
    for operators, code in ((frozenset({2001}), 0), (frozenset(), 1)):
        desk = desk_of(snapshot(jobs, site=replace(SITE, operators=operators)), Past(jobs))
        desk.names = lambda number: OWNERS[number]
        assert ask(PROGRAMS[words[0]], desk, words, uid=2001).code == code


def test_help_lists_everything_that_can_be_shown() -> None:
    told = text(said("sacctmgr", "help").out)
    assert {one.name for one in ENTITIES} == set(HELPED) - {"coordinator"}
    assert all(name in told for name in (*HELPED, *ORDERS, *FILES))


@pytest.mark.parametrize("word", ["", "h", "helpx"])
def test_what_is_no_command_is_not_taken_for_help(word: str) -> None:
    assert (said("sacctmgr", word).code, text(said("sacctmgr", word).out)) == (1, "")


def test_help_takes_no_further_word() -> None:
    more = said("sacctmgr", "help", "user")
    assert (text(more.err), more.code) == ("too many arguments for keyword:help\n", 1)


def test_users_whom_the_host_does_not_know_are_a_problem() -> None:
    desk = desk_of(snapshot([], site=SITE), Past([]))
    desk.uids = lambda name: None if name == "bob" else 2001
    told = text(ask(PROGRAMS["sacctmgr"], desk, ["sacctmgr", "-nP", "show", "problem"], uid=0).out)
    assert told == "||bob|User does not have a uid\n"


def test_the_configuration_of_accounting_names_what_is_private() -> None:
    private = replace(SITE, private=frozenset({"usage", "jobs"}))
    desk = desk_of(snapshot([], site=private), Past([]))
    told = text(ask(PROGRAMS["sacctmgr"], desk, ["sacctmgr", "show", "config"], uid=0).out)
    assert "PrivateData            = jobs,usage\n" in told


def test_statistics_tell_their_moments_as_slurm_does() -> None:
    told = text(said("sacctmgr", "show", "stats", uid=0).out).splitlines()
    assert told[1] == f"sacctmgr show stats output at Mon Nov 30 12:00:00 2026 ({NOON})"


def test_a_moment_that_is_none_is_told_with_where_reading_stopped() -> None:
    answer = said("sacctmgr", "show", "transaction", "start=2026-11-30T99:00", uid=0)
    assert text(answer.err) == "Invalid time specification (pos=11): 2026-11-30t99:00\n"


def test_what_running_jobs_may_still_use_counts_times_the_factor_of_their_qos() -> None:
    job = running(7)
    book, told = SITE.book, []
    for factor in (1.0, 2.0):
        grade = replace(book.qos[job.qos], usage_factor=factor)
        at = replace(SITE, book=replace(book, qos={**book.qos, job.qos: grade}))
        desk = desk_of(snapshot([job], site=at), Past([]))
        words = ("sshare", "-nP", "-A", "root", "-o", "tresrunmins")
        line = text(ask(PROGRAMS["sshare"], desk, words, uid=0).out).splitlines()[0]
        told.append(int(line.partition("cpu=")[2].partition(",")[0]))
    assert told[0] > 0
    assert told[1] == 2 * told[0]
