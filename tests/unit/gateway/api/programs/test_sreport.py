"""sreport with use: every report's lines, units, TRES and conditions."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from broker.model.ids import NodeName
from broker.model.reservation import Reservation, ReservationEvent, ReservationGone, ReservationSet
from broker.model.site import Elastic
from gateway.api.programs.accounting_help import CONDITIONS as HELPED
from gateway.api.programs.accounting_help import REPORTS as LISTED
from gateway.api.programs.sreport import sreport
from gateway.api.programs.sreport_kinds import GROUPS
from gateway.api.programs.sreport_words import CONDITIONS as WORDS
from gateway.api.wire import Answer
from gateway.config.load import load
from gateway.config.site import site
from tests.unit.gateway.query.desk import Past, ask, desk_of, snapshot, text
from tests.unit.gateway.query.records import NOON, running

CONFIG = load((Path(__file__).parents[4] / "conformance" / "site.yaml").read_text())
SITE = site(CONFIG, service_uid=0, uid_of=lambda _: 2001, price_of=lambda _: None)
HOUR = 3600
COLUMNS = ("account", "user", "qos", "partition", "size", "tres", "wckey", "reservation")
USED = {
    # account, user, qos, partition, size, tres (, wckey, reservation)
    ("physics", "nobody1", "normal", "ec2", 4, "cpu", "", ""): 2 * HOUR,
    ("physics", "nobody1", "normal", "ec2", 4, "mem", "", ""): 60,
    ("physics", "nobody1", "normal", "ec2", 4, "jobs", "", ""): 3,
    ("chem", "nobody1", "high", "ec2", 1, "cpu", "proj1", "week"): HOUR,
    ("chem", "nobody1", "high", "ec2", 1, "jobs", "proj1", "week"): 1,
    ("chem", "nobody2", "normal", "debug", 64, "cpu", "proj2", ""): 3 * HOUR,
    ("chem", "nobody2", "normal", "debug", 64, "jobs", "proj2", ""): 2,
    ("", "", "", "debug", 0, "planned/cpu", "", ""): 5 * HOUR,
    ("", "", "", "", 0, "down/cpu", "", ""): 8 * HOUR,
}


@dataclass
class Summed(Past):
    asked_for: list[dict[str, Any]] = field(default_factory=list)

    def first_use(self) -> int | None:
        return 0

    def used(self, **how: Any) -> dict[Any, int]:
        self.asked_for.append(how)
        found: dict[Any, int] = {}
        for row, amount in USED.items():
            key = tuple(row[COLUMNS.index(name)] for name in how["by"])
            if row[5] in how["tres"]:
                found[key] = found.get(key, 0) + amount
        return found


def said(line: str, *facts: ReservationEvent) -> Answer:
    past = Summed(reserved=facts)
    window = () if "start=" in line else ("start=2020-01-01", "end=2020-01-02")
    words = (*line.split(" "), *window)
    return ask(sreport, desk_of(snapshot([], site=SITE), past), words, uid=2001)


REPORTS = (
    ("sreport -nP cluster AccountUtilizationByUser", "oracle|root|||360|0\noracle|research|||360|0\noracle|chem|||240|0\noracle|chem|nobody1||60|0\noracle|chem|nobody2||180|0\noracle|physics|||120|0\noracle|physics|nobody1||120|0\n"),
    ("sreport -nP cluster AccountUtilizationByUser tree format=accounts,login,used users=nobody2", "   chem|nobody2|180\n"),
    ("sreport -nP cluster AccountUtilizationByUser accounts=physics format=accounts,login,used", "physics||120\nphysics|nobody1|120\n"),
    ("sreport -nP -T energy,vmem cluster AccountUtilizationByUser accounts=physics", "oracle|physics|||energy|0\noracle|physics|||vmem|0\noracle|physics|nobody1||energy|0\noracle|physics|nobody1||vmem|0\n"),
    ("sreport -nP cluster AccountUtilizationByQOS format=accounts,qos,used accounts=chem", "chem||240\nchem|high|60\nchem|normal|180\n"),
    ("sreport -nP -t hours cluster UserUtilizationByAccount", "oracle|nobody2||chem|3|0\noracle|nobody1||physics|2|0\noracle|nobody1||chem|1|0\n"),
    ("sreport -nP -t hours -T cpu,mem,foo cluster UserUtilizationByAccount users=nobody1", "oracle|nobody1||physics|cpu|2\noracle|nobody1||physics|mem|0\noracle|nobody1||chem|cpu|1\noracle|nobody1||chem|mem|0\n"),
    ("sreport -nP -t secper cluster UserUtilizationByAccount users=nobody2 format=login,used", "nobody2|10800(0.78%)\n"),
    ("sreport -nP user TopUsage topcount=2 format=login,account,used", "nobody2|chem|180\nnobody1|physics|120\n"),
    ("sreport -nP user TopUsage accounts=physics format=login,account,used", "nobody1|physics|120\n"),
    ("sreport -nP user TopUsage group users=nobody1 format=login,account,used", "nobody1|chem, physics|180\n"),
    ("sreport -nP -t hours cluster Utilization", "oracle|6|8|0|365|5|384\n"),
    ("sreport -nP -t hours -T all cluster Utilization format=tresname,all,tresc", "cpu|6|16\nmem|0|64000\nenergy|0|0\nbilling|0|16\nfs/disk|0|0\nvmem|0|0\npages|0|0\ngres/gpu|0|8\ngres/gpu:a10g|0|8\n"),
    ("sreport -nP -t percent cluster Utilization format=allocated,idle,reported", "1.56%|95.05%|100.00%\n"),
    ("sreport -nP -t hours cluster Utilization format=overcommitted,tresname,trescount", "0|cpu|16\n"),
    ("sreport -nP -t hours job SizesByAccount", "oracle|root|3|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount AcctAsParent", "oracle|research|3|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount AcctAsParent accounts=research", "oracle|chem|1|3|0|0|0|66.67%\noracle|physics|2|0|0|0|0|33.33%\n"),
    ("sreport -nP -t hours job SizesByAccount AcctAsParent accounts=chem", ""),
    ("sreport -nP -t hours job SizesByAccount accounts=research,chem", "oracle|research|3|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount accounts=chem", "oracle|chem|1|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount users=nobody2", "oracle|root|0|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount partitions=debug", "oracle|root|0|3|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount flatview grouping=2,10", "oracle|chem|1|0|3|66.67%\noracle|physics|0|2|0|33.33%\n"),
    ("sreport -nP -t hours job SizesByAccount flatview accounts=research", ""),
    ("sreport -nP -t hours job SizesByAccount grouping=individual", "oracle|root|1|2|3|100.00%\n"),
    ("sreport -P -t hours job SizesByAccount grouping=5,2 format=account", "Account|0-4 CPUs|5-1 CPUs|>= 2 CPUs|% of cluster\nroot|3|0|5|100.00%\n"),
    ("sreport -P -t hours job SizesByAccount grouping=0,3 format=account", "Account|0-4294967295 CPUs|0-2 CPUs|>= 3 CPUs|% of cluster\nroot|6|1|5|100.00%\n"),
    ("sreport -nP job SizesByAccount printjobcount", "oracle|root|4|2|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByWckey", "oracle|proj1|1|0|0|0|0|25.00%\noracle|proj2|0|3|0|0|0|75.00%\n"),
    ("sreport -nP -t hours job SizesByWckey wckeys=proj1", "oracle|proj1|1|0|0|0|0|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccountAndWckey", "oracle|root:proj1|1|0|0|0|0|25.00%\noracle|root:proj2|0|3|0|0|0|75.00%\n"),
    ("sreport -nP -t hours job SizesByAccountAndWckey flatview", "oracle|chem:proj1|1|0|0|0|0|16.67%\noracle|chem:proj2|0|3|0|0|0|50.00%\noracle|physics:|2|0|0|0|0|33.33%\n"),
    ("sreport -nP -t hours cluster WCKeyUtilizationByUser", "oracle|proj1|||1\noracle|proj1|nobody1||1\noracle|proj2|||3\noracle|proj2|nobody2||3\n"),
    ("sreport -nP -t hours cluster WCKeyUtilizationByUser wckeys=proj1 format=wckey,used", "proj1|1\nproj1|1\n"),
    ("sreport -nP -t hours cluster UserUtilizationByWCKey wckeys=proj2", "oracle|nobody2||proj2|3\n"),
    ("sreport -nP cluster AccountUtilizationByUser tree accounts=chem format=accounts,login,used", "chem||240\n chem|nobody1|60\n chem|nobody2|180\n"),
    ("sreport -nP cluster AccountUtilizationByUser accounts=research,nothere format=accounts,login,used", "research||360\nchem||240\nchem|nobody1|60\nchem|nobody2|180\nphysics||120\nphysics|nobody1|120\n"),
    ("sreport -nP cluster AccountUtilizationByUser accounts=physics users=nobody1 format=accounts,login,used", "physics|nobody1|120\n"),
    ("sreport -nP cluster AccountUtilizationByQOS qos=high format=accounts,qos,used", "chem|high|60\n"),
    ("sreport -nP -t hours cluster UserUtilizationByWCKey", "oracle|nobody2||proj2|3\noracle|nobody1||proj1|1\n"),
    ("sreport -nP user TopUsage topcount=0 format=login,account,used", "nobody2|chem|180\n"),
    ("sreport -nP -T gres/gpu user TopUsage format=login,account,used", "nobody1|chem|0\nnobody1|physics|0\nnobody2|chem|0\n"),
    ("sreport -nP -T e job SizesByWckey", "oracle|proj1|0|0|0|0|0|0.00%\noracle|proj2|0|0|0|0|0|0.00%\n"),
    ("sreport -nP -t hours job SizesByWckey accounts=physics", "oracle|proj1|1|0|0|0|0|25.00%\noracle|proj2|0|3|0|0|0|75.00%\n"),
    ("sreport -P -t hours job SizesByAccount grouping=x format=wckey", "Wckey|0-4294967295 CPUs|% of cluster\nroot|6|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount grouping=2-9", "oracle|root|1|5|100.00%\n"),
    ("sreport -nP -t hours -T bill,m cluster UserUtilizationByAccount users=nobody2 format=tres,used", "billing|0\nmem|0\n"),
    ("sreport -n -t hours cluster AccountUtilizationByUser accounts=physics users=nobody1 format=accounts%3,used%20,login%0,proper%x,energy%-9", "ph+        2   nobody1                        0 \n"),
    ("sreport -P -t hours cluster Utilization format=reserved,cpucount", "Planned|TRES Count\n5|16\n"),
    ("sreport -nP cluster AccountUtilizationByUser accounts=physics users=nobody1 start= format=login,used", "nobody1|120\n"),
    ("sreport -nP -t hours cluster AccountUtilizationByUser clusters=other", ""),
    ("sreport -nP -t hours cluster Utilization tree", ""),
    ("sreport -nP -M oracle -t hours cluster Utilization format=allocated", "6\n"),
    ("sreport -nP reservation Utilization", ""),
)  # fmt: skip


@pytest.mark.parametrize(("line", "out"), REPORTS)
def test_a_report_has_its_lines(line: str, out: str) -> None:
    answer = said(line)
    shown = text(answer.out)
    if " -P " in line:
        shown = shown[shown.rindex("-" * 80) + 81 :]
    assert (shown, text(answer.err), answer.code) == (out, "", 0)


def test_headlines_say_what_is_counted_and_in_what() -> None:
    shown = text(said("sreport job SizesByAccount printjobcount grouping=10").out).splitlines()
    assert shown[1] == "Job Sizes 2020-01-01T00:00:00 - 2020-01-01T23:59:59 (86400 secs)"
    assert shown[2] == "Units are in number of jobs ran"
    assert shown[4].rstrip().endswith("% of cluster")
    shown = text(said("sreport -t hourper -T cpu user TopUsage topcount=3").out).splitlines()
    assert shown[1].startswith("Top 3 Users ")
    assert shown[2] == "Usage reported in TRES Hours/Percentage of Total"


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("sreport -T cpu,mem job SizesByAccount", " Job report only supports a single --tres type.\n Generate a separate report for each TRES type.\n"),
        ("sreport job foo", 'Not valid report foo\nValid job reports are, "SizesByAccount, SizesByAccountAndWcKey, and  SizesByWckey"\n'),
        ("sreport cluster Utilization foo=1", " Unknown condition: foo=1\nUse keyword set to modify value\n"),
        ("sreport cluster Utilization accounts=chem", " Unknown condition: accounts=chem\nUse keyword set to modify value\n"),
        ("sreport reservation Utilization users=x", " Unknown condition: users=x\nUse keyword set to modify value\n"),
        ("sreport user top wckeys=a", " Unknown condition: wckeys=a\nUse keyword set to modify value\n"),
        ("sreport --local -a cluster Utilization", "Only one cluster option can be used (--all_clusters OR --cluster OR --local)\n"),
        ("sreport -T cpu,node cluster Utilization", "sreport: fatal: TRES node usage is no longer reported in the Cluster Utilization report.  Please use TRES CPU instead.\n"),
        ("sreport -T node -t percent user top", "sreport: fatal: TRES node usage is no longer reported in percent format reports.  Please use TRES CPU instead.\n"),
        ("sreport -T gres/foo user top", "sreport: fatal: No valid TRES given\n"),
        ("sreport job SizesByAccount grouping=individual users=nobody9", " We need a grouping list to set up the print.\n"),
        ("sreport -T foo cluster Utilization", "sreport: fatal: No valid TRES given\n"),
        ("sreport user top topcount=x", "sreport: error: Invalid value for TopCount (x)\n"),
        ("sreport c utilization", "invalid keyword: c\n"),
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused(line: str, err: str) -> None:
    answer = said(line)
    assert (answer.err, answer.code) == (err, 1)


def test_sizes_of_another_tres_say_so() -> None:
    shown = text(said("sreport -T gres/gpu job SizesByAccount grouping=10").out).splitlines()
    assert shown[2:4] == ["TRES type is gres/gpu", "Time reported in Minutes"]
    assert "0-9 TRES" in shown[5] and ">= 10 TRES" in shown[5]
    shown = text(said("sreport job SizesByWckey").out).splitlines()
    assert shown[4].startswith("  Cluster     Wckey ")


@pytest.mark.parametrize(
    ("window", "span"),
    [
        ("start=2020-01-01T01:29 end=2020-01-01T05:30", "2020-01-01T01:00:00 - 2020-01-01T05:59:59"),
        ("start=2020-01-01T01:59 end=2020-01-02T03:17", "2020-01-01T02:00:00 - 2020-01-02T02:59:59"),
        ("start=2020-01-01T01:29:30 end=2020-01-01T05:00", "2020-01-01T02:00:00 - 2020-01-01T04:59:59"),
    ],
)  # fmt: skip
def test_a_window_is_rounded_to_hours(window: str, span: str) -> None:
    assert span in text(said(f"sreport cluster Utilization {window}").out)


NEW_YEAR = 1_577_836_800
WEEK = Reservation(
    name="week", start=NEW_YEAR + 10 * HOUR, end=NEW_YEAR + 12 * HOUR,
    nodes=(NodeName("ec2-1"), NodeName("ec2-2")), users=("alice",),
)  # fmt: skip


def made(record: Reservation, at: int = NEW_YEAR) -> ReservationSet:
    return ReservationSet(at=at, record=record)


def gone(hour: int, name: str = "week") -> ReservationGone:
    return ReservationGone(at=NEW_YEAR + hour * HOUR, name=name)


HELD = (
    # what became of it, the report's lines
    ((made(WEEK),), "week|2020-01-01T10:00:00|2020-01-01T12:00:00|cpu|60|900\n"),
    ((made(WEEK), gone(13)), "week|2020-01-01T10:00:00|2020-01-01T12:00:00|cpu|60|900\n"),
    ((made(WEEK), gone(11)), "week|2020-01-01T10:00:00|2020-01-01T11:00:00|cpu|60|420\n"),
    ((made(WEEK), gone(9)), ""),
    ((made(WEEK), made(replace(WEEK, end=WEEK.end + HOUR), NEW_YEAR + 11 * HOUR)), "week|2020-01-01T10:00:00|2020-01-01T13:00:00|cpu|60|1380\n"),
    ((made(WEEK), made(replace(WEEK, start=WEEK.start + 24 * HOUR, end=WEEK.end + 24 * HOUR), WEEK.end)), "week|2020-01-01T10:00:00|2020-01-01T12:00:00|cpu|60|900\n"),
    ((made(replace(WEEK, start=WEEK.start + 24 * HOUR, end=WEEK.end + 24 * HOUR)),), ""),
)  # fmt: skip


@pytest.mark.parametrize(("facts", "out"), HELD)
def test_a_reservation_is_reported_for_each_time_that_it_was_there(
    facts: tuple[ReservationEvent, ...], out: str
) -> None:
    line = "sreport -nP reservation Utilization format=name,start,end,tresname,allocated,idle"
    assert text(said(line, *facts).out) == out
    assert text(said(f"{line} names=other", *facts).out) == ""


@pytest.mark.parametrize(
    ("flags", "out"),
    [
        ((), "21|8|0|350|5|384\n"),  # who may use it and does not has it nonetheless
        (("MAINT",), "6|8|15|350|5|384\n"),
        (("MAINT", "IGNORE_JOBS"), "6|8|0|365|5|384\n"),
    ],
)
def test_time_of_reservations_is_allocated_or_planned_down(
    flags: tuple[str, ...], out: str
) -> None:
    line = "sreport -nP -t hours cluster Utilization format=all,down,plannedd,idle,planned,rep"
    assert text(said(line, made(replace(WEEK, flags=flags))).out) == out


def test_jobs_on_nodes_of_groups_or_by_id_are_read_one_by_one() -> None:
    began = replace(running(1), started=NOON - 2 * HOUR, last_node_names=("ec2-1",))
    other = replace(running(2), started=NOON - 2 * HOUR, last_node_names=("ec2-2",))
    for which in ("nodes=ec2-1", "jobs=1"):
        words = ("sreport", "-nP", "-t", "seconds", "job", "SizesByAccount", which, "printjobcount")
        desk = desk_of(snapshot([began, other], site=SITE), Summed())
        window = ("start=2026-11-30T08:00", "end=2026-11-30T12:00")
        assert text(ask(sreport, desk, (*words, *window)).out).startswith("oracle|root|1|0")


def test_gpus_that_are_only_bought_can_be_reported() -> None:
    part = replace(SITE.partitions[0], elastic=Elastic("ec2-", max_nodes=4))
    bought = replace(SITE, nodes=(), partitions=(part,))
    for wanted, there, err in (
        ("gres/gpu:h100", bought, ""),
        ("gres/gpu", bought, ""),
        ("gres/gpu:h100", SITE, "sreport: fatal: No valid TRES given\n"),
        ("gres/fpga", bought, "sreport: fatal: No valid TRES given\n"),
    ):
        words = ("sreport", "-T", wanted, "user", "top")
        assert ask(sreport, desk_of(snapshot([], site=there), Summed()), words).err == err


def test_columns_are_as_wide_as_the_seconds_that_they_tell_of() -> None:
    line = "sreport -n -T mem cluster Utilization start=2020-01-01 end=2022-01-01"
    shown = said(f"{line} format=reported%3,allocated,down").out
    # 64000 MiB for 731 days, in seconds
    assert shown == f"{64000 * 731 * 1440:>13} {1:>8} {0:>8} \n"


SAID = (
    ("sreport -nP cluster Utilization -t secp", "unknown time format secp"),
    ("sreport -nP cluster Utilization -t minper", ""),
    (
        "sreport -nP cluster UserUtilizationByAccount a=chem",
        " Unknown condition: a=chem\nUse keyword set to modify value\n",
    ),
    (
        "sreport -nP cluster WCKeyUtilizationByUser users=nobody1",
        " Unknown condition: users=nobody1\n",
    ),
    ("sreport -nP reservation u nodes=ec2-1 flags=maint", ""),
    ("sreport -nP user TopUsage topcount=-1", ""),
    (
        "sreport -nP cluster UserUtilizationByAccount format=Foo,login,a",
        " Unknown field 'foo'\n Unknown field 'a'\n",
    ),
    ("sreport -nP job SizesByAccount format=Accounts,cluster", " Unknown field 'accounts'\n"),
    ("sreport r u", "invalid keyword: r\n"),
    ("sreport quiet start=2020-01-01", "too many arguments for keyword:quiet\n"),
)


@pytest.mark.parametrize(("line", "err"), SAID)
def test_what_is_not_there_is_told_and_passed_over(line: str, err: str) -> None:
    assert said(line).err == err


def test_the_tres_of_a_report_on_sizes_is_told_as_it_was_asked_for() -> None:
    assert "\nTRES type is CPU\n" in said("sreport -T CPU,foo job SizesByAccount").out
    none = ask_alone("sreport -T  job SizesByAccount")
    assert none.err == "sreport: fatal: No valid TRES given\n"


def ask_alone(line: str) -> Answer:
    """With words that may be empty."""
    return ask(
        sreport, desk_of(snapshot([], site=SITE), Summed()), tuple(line.split(" ")), uid=2001
    )


def test_lines_of_a_report_without_columns_are_empty() -> None:
    answer = said("sreport -n cluster AccountUtilizationByUser accounts=physics format=foo")
    assert (answer.out, answer.code) == ("\n\n", 1)


@pytest.mark.parametrize("word", ["quit", "EXIT"])
def test_words_that_end_the_prompt_do_nothing(word: str) -> None:
    assert ask_alone(f"sreport {word}") == Answer()


DENIED = "sreport: error: Your user doesn't have privilege to perform this action\n"


@pytest.mark.parametrize(
    ("report", "more", "code"),
    [
        ("cluster WCKeyUtilizationByUser", "slurmdb_report_cluster_wckey_by_user: Problem with get query.\n", 1),
        ("job SizesByWckey", "", 0),
        ("job SizesByAccountAndWckey", "", 0),
    ],
)  # fmt: skip
def test_reports_on_wckeys_are_for_operators(report: str, more: str, code: int) -> None:
    desk = desk_of(snapshot([], site=SITE), Summed())
    answer = ask(sreport, desk, ("sreport", *report.split(" ")), uid=2002)
    assert answer == Answer(err=DENIED + more, code=code)


def test_help_takes_two_letters_and_no_further_word() -> None:
    assert text(said("sreport h").err) == "invalid keyword: h\n"
    more = said("sreport help user")
    assert (text(more.err), more.code) == ("too many arguments for keyword:help\n", 1)


def test_help_lists_every_report_and_its_conditions() -> None:
    told = text(said("sreport help").out)
    assert told == text(said("sreport he").out)
    listed = {group: [one.lower() for one in names] for group, names in LISTED.items()}
    assert listed == {group: sorted(reports) for group, reports in GROUPS.items()}
    for group, reports in GROUPS.items():
        known = {word.rstrip("=") for word in HELPED[group]}
        assert set().union(*(one.takes for one in reports.values())) <= known
    assert {word.rstrip("=") for word in HELPED["all"]} == set(WORDS)
    assert all(name in told for names in LISTED.values() for name in names)
