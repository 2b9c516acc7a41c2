"""sreport with use: every report's lines, units, TRES and conditions."""

# ruff: noqa: E501 - a row stays on one line

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.api.programs.sreport import sreport
from gateway.api.wire import Answer
from gateway.config.load import load
from gateway.config.site import site
from tests.unit.gateway.query.desk import Past, ask, desk_of, snapshot, text

CONFIG = load((Path(__file__).parents[4] / "conformance" / "site.yaml").read_text())
SITE = site(CONFIG, service_uid=0, uid_of=lambda _: 2001, price_of=lambda _: None)
HOUR = 3600
COLUMNS = ("account", "user", "qos", "partition", "size", "tres")
USED = {
    # account, user, qos, partition, size, tres
    ("physics", "nobody1", "normal", "ec2", 4, "cpu"): 2 * HOUR,
    ("physics", "nobody1", "normal", "ec2", 4, "mem"): 60,
    ("physics", "nobody1", "normal", "ec2", 4, "jobs"): 3,
    ("chem", "nobody1", "high", "ec2", 1, "cpu"): HOUR,
    ("chem", "nobody1", "high", "ec2", 1, "jobs"): 1,
    ("chem", "nobody2", "normal", "debug", 64, "cpu"): 3 * HOUR,
    ("chem", "nobody2", "normal", "debug", 64, "jobs"): 2,
}


@dataclass
class Summed(Past):
    asked_for: list[dict[str, Any]] = field(default_factory=list)

    def used(self, **how: Any) -> dict[Any, int]:
        self.asked_for.append(how)
        found: dict[Any, int] = {}
        for row, amount in USED.items():
            key = tuple(row[COLUMNS.index(name)] for name in how["by"])
            if row[-1] in how["tres"]:
                found[key] = found.get(key, 0) + amount
        return found


def said(line: str) -> Answer:
    past = Summed()
    window = () if "start=" in line else ("start=2020-01-01", "end=2020-01-02")
    words = (*line.split(" "), *window)
    return ask(sreport, desk_of(snapshot([], site=SITE), past), words, uid=2001)


REPORTS = (
    ("sreport -nP cluster AccountUtilizationByUser", "oracle|root|||360|0\noracle|research|||360|0\noracle|chem|||240|0\noracle|chem|nobody1||60|0\noracle|chem|nobody2||180|0\noracle|physics|||120|0\noracle|physics|nobody1||120|0\n"),
    ("sreport -nP cluster AccountUtilizationByUser tree format=accounts,login,used users=nobody2", "root||360\n research||360\n  chem||240\n   chem|nobody2|180\n  physics||120\n"),
    ("sreport -nP cluster AccountUtilizationByUser accounts=physics format=accounts,login,used", "physics||120\nphysics|nobody1|120\n"),
    ("sreport -nP cluster AccountUtilizationByQOS format=accounts,qos,used accounts=chem", "chem||240\nchem|high|60\nchem|normal|180\n"),
    ("sreport -nP -t hours cluster UserUtilizationByAccount", "oracle|nobody1||chem|1|0\noracle|nobody1||physics|2|0\noracle|nobody2||chem|3|0\n"),
    ("sreport -nP -t hours -T cpu,mem cluster UserUtilizationByAccount users=nobody1", "oracle|nobody1||chem|cpu|1\noracle|nobody1||physics|cpu|2\noracle|nobody1||physics|mem|0\n"),
    ("sreport -nP -t secper cluster UserUtilizationByAccount users=nobody2 format=login,used", "nobody2|10800(0.78%)\n"),
    ("sreport -nP user TopUsage topcount=2 format=login,account,used", "nobody2|chem|180\nnobody1|physics|120\n"),
    ("sreport -nP user TopUsage group format=login,account,used", "nobody1|chem,physics|180\nnobody2|chem|180\n"),
    ("sreport -nP -t hours cluster Utilization", "oracle|6|0|0|378|0|384\n"),
    ("sreport -nP -t percent cluster Utilization format=allocated,idle,reported", "1.56%|98.44%|100.00%\n"),
    ("sreport -nP -t hours job SizesByAccount", "oracle|research|3|3|0|0|0|1.56%\n"),
    ("sreport -nP -t hours job SizesByAccount flatview grouping=2,10", "oracle|chem|1|0|3|1.04%\noracle|physics|0|2|0|0.52%\n"),
    ("sreport -nP job SizesByAccount printjobcount", "oracle|research|4|2|0|0|0|100.00%\n"),
    ("sreport -nP cluster WCKeyUtilizationByUser", ""),
    ("sreport -nP reservation Utilization", ""),
    ("sreport -nP -t hours cluster UserUtilizationByAccount partitions=debug format=login,used", "nobody2|3\n"),
)  # fmt: skip


@pytest.mark.parametrize(("line", "out"), REPORTS)
def test_a_report_has_its_lines(line: str, out: str) -> None:
    answer = said(line)
    assert (text(answer.out), text(answer.err), answer.code) == (out, "", 0)


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
