"""What Prometheus scrapes: the text form's rules, what is counted, and how long requests took."""

import re
from collections.abc import Mapping
from typing import Any, cast

import httpx
import pytest

from broker.model.errors import Refusal
from broker.optimize.cooldown import Cooling
from gateway.api.app import build_app
from gateway.api.metrics import metrics
from gateway.api.wire import Answer, Call
from gateway.query.exposition import histogram, metric
from tests.api.asking import ask
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.query.desk import Past, desk_of, snapshot
from tests.unit.gateway.query.records import ended, pending, running

SAMPLE = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (\S+)'
)
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\n"])*)"')
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> tuple[dict[str, str], Samples]:
    """Types by name, values by name and labels; each line as the text form (0.0.4) has it."""
    assert text.endswith("\n")
    types: dict[str, str] = {}
    helped: set[str] = set()
    found: Samples = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped and name not in types, line
            types[name] = kind
        else:
            _sample(line, found, next(reversed(types.items())))
    return types, found


def _sample(line: str, found: Samples, last: tuple[str, str]) -> None:
    match = SAMPLE.fullmatch(line)
    assert match, line
    name, kind = last
    tails = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
    assert match[1] in {name + tail for tail in tails}, line
    assert name.endswith("_total") == (kind == "counter"), line
    key = match[1], frozenset(LABEL.findall(match[2] or ""))
    assert key not in found, line
    found[key] = float(match[3])
    assert kind == "gauge" or found[key] >= 0, line


class Sums:
    """What the ledger's sums say."""

    def spent(self, **_: Any) -> Mapping[tuple[str, ...], int]:
        return {
            ("chem", "ec2", "spot", "run"): 1_500_000,
            ("chem", "ec2", "spot", "boot"): 250_000,
            ("chem", "ec2", "spot", "interrupted"): -1_000_000,
            ('a"b\\c\nd', "ec2", "on-demand", "idle"): 1,
        }

    def used(self, **_: Any) -> Mapping[tuple[str, str], int]:
        return {("chem", "cpu"): 7200, ("chem", "gres/gpu"): 60, ("chem", "jobs"): 3}


JOBS = (ended(1), ended(2), running(3), pending(4))
COOLING = Cooling(
    key=("type_in_zone", "ec2", "us-east-1", "use1-az1", "m5.large", "spot"),
    refusal=Refusal.CAPACITY, strikes=2, since=1, until=2, message="no", nodes=1,
)  # fmt: skip


async def hello(_desk: Any, _call: Call) -> Answer:
    return Answer(out="hello\n")


def scraped(*before: str) -> httpx.Response:
    """What is scraped after requests for some paths."""
    desk = desk_of(snapshot(JOBS), cast(Past, Sums()))
    desk.cooling = lambda: (COOLING,)
    app = build_app(desk, {"squeue": hello}, log=Log(), routers=[metrics()])
    for path in before:
        ask(app, "GET", path)
    return ask(app, "GET", "/metrics")


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_every_line_is_as_the_text_form_has_it() -> None:
    answer = scraped("/v1/version", "/x/squeue", "/nowhere/4711")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    types, found = read(answer.text)
    assert set(types.values()) == {"counter", "gauge", "histogram"}
    assert all(name.startswith("skypurza_") for name in types)
    assert len(found) > 20


def test_money_that_only_grows_is_a_counter_and_what_is_set_right_a_gauge() -> None:
    _, found = read(scraped().text)
    whose = {"account": "chem", "partition": "ec2", "market": "spot"}
    assert value(found, "skypurza_charged_usd_total", **whose) == 1.75
    assert value(found, "skypurza_adjusted_usd", **whose) == -1
    odd = {"account": 'a\\"b\\\\c\\nd', "partition": "ec2", "market": "on-demand"}
    assert value(found, "skypurza_charged_usd_total", **odd) == 0.000001


def test_use_jobs_nodes_and_refusals_are_counted() -> None:
    _, found = read(scraped().text)
    assert value(found, "skypurza_tres_seconds_total", account="chem", tres="gres/gpu") == 60
    assert value(found, "skypurza_attempts_total", account="chem") == 3
    assert value(found, "skypurza_jobs", state="COMPLETED") == 2
    assert value(found, "skypurza_nodes", state="UP", region="", market="") > 0
    assert value(found, "skypurza_refused_offers", reason="capacity", provider="ec2") == 1


def test_times_are_kept_by_command_and_route_whatever_else_the_path_says() -> None:
    _, found = read(scraped("/x/squeue", "/x/squeue", "/x/nosuch", "/metrics", "/nowhere/1").text)
    counts = {
        dict(labels)["request"]: n
        for (name, labels), n in found.items()
        if name == "skypurza_request_seconds_count"
    }
    assert counts == {"squeue": 2, "/metrics": 1, "other": 2}
    for request, count in counts.items():
        upto = value(found, "skypurza_request_seconds_bucket", request=request, le="+Inf")
        assert upto == count
        assert value(found, "skypurza_request_seconds_sum", request=request) > 0


def test_buckets_count_what_took_up_to_their_bound() -> None:
    text = histogram("t", about="x", bounds=(0.5, 1.0), values=[({"a": "b"}, (2, 0, 3), 7.25)])
    assert text.splitlines()[2:] == [
        't_bucket{a="b",le="0.5"} 2',
        't_bucket{a="b",le="1"} 2',
        't_bucket{a="b",le="+Inf"} 5',
        't_sum{a="b"} 7.25',
        't_count{a="b"} 5',
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.1, "0.1"),
        (1e-06, "1e-06"),
        (3.0, "3"),
        (2**40, "1099511627776"),
        (-1.5, "-1.5"),
    ],
)
def test_numbers_are_exact_and_short(number: float, text: str) -> None:
    assert metric("n", "gauge", about="x", values=[({}, number)]).splitlines()[-1] == f"n {text}"


def test_text_that_was_no_text_and_line_breaks_do_not_break_a_line() -> None:
    text = metric("n", "gauge", about="a\nb\\", values=[({"a": "x\udcffy"}, 1)])
    assert text == '# HELP n a\\nb\\\\\n# TYPE n gauge\nn{a="x?y"} 1\n'
    text.encode("utf-8")
