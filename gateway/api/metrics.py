"""What monitoring reads: money, use, jobs, machines, refusals and times, for Prometheus."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse

from accounting.ledger import SPENT, Why
from accounting.rates import MICRO
from accounting.rollup import HOUR, JOBS
from broker.optimize.cooldown import Cooling
from broker.world import Snapshot
from gateway.api.asking import desk_of, viewer_of
from gateway.api.desk import Desk
from gateway.observe.times import BUCKETS, RequestTimes
from gateway.query.exposition import MEDIA_TYPE, Labels, histogram, metric

COUNTED = ("cpu", "mem", "node", "billing", "gres/gpu")
CHARGED = SPENT | {Why.MINIMUM, Why.DATA}
"""What only ever adds to a bill, and so may be a counter; all else goes up and down."""
Rows = Iterable[tuple[Labels, float]]


def metrics() -> APIRouter:
    routes = APIRouter()

    @routes.get("/metrics")
    async def scrape(request: Request) -> PlainTextResponse:
        """What was spent and used ever, and what is there now."""
        desk = desk_of(request)
        times: RequestTimes = request.app.state.times
        told = (await viewer_of(request)).may("usage")
        stored = await desk.read(_stored, desk) if told else ()
        live = [*_live(desk.snapshot()), _refused(desk.cooling()), *_reported(desk)]
        text = "".join([*stored, *live, _took(times)])
        return PlainTextResponse(text, media_type=MEDIA_TYPE)

    return routes


def _stored(desk: Desk) -> list[str]:
    """Of the ledger's sums. Blocks."""
    until = desk.now() + HOUR
    by = ("account", "partition", "market", "why")
    spent = desk.history.spent(since=0, until=until, by=by)
    used = desk.history.used(since=0, until=until, by=("account", "tres"), tres=(*COUNTED, JOBS))
    each = sorted(used.items())
    return [
        metric(
            "skypurza_charged_usd_total",
            "counter",
            about="Dollars charged for machines, their parts and data, by who pays.",
            values=_dollars(spent, charged=True),
        ),
        metric(
            "skypurza_adjusted_usd",
            "gauge",
            about="Dollars given back, or set right by late prices and the provider's bill.",
            values=_dollars(spent, charged=False),
        ),
        metric(
            "skypurza_tres_seconds_total",
            "counter",
            about="TRES-seconds of attempts that are over; memory in MiB.",
            values=(({"account": a, "tres": tres}, n) for (a, tres), n in each if tres != JOBS),
        ),
        metric(
            "skypurza_attempts_total",
            "counter",
            about="Attempts of jobs that ran and are over.",
            values=(({"account": a}, n) for (a, tres), n in each if tres == JOBS),
        ),
    ]


def _dollars(spent: Mapping[tuple[Any, ...], int], *, charged: bool) -> Rows:
    found: Counter[tuple[str, str, str]] = Counter()
    for (account, partition, market, why), amount in spent.items():
        if (why in CHARGED) == charged:
            found[account, partition, market] += amount
    for (account, partition, market), amount in sorted(found.items()):
        labels = {"account": account, "partition": partition, "market": market}
        yield labels, amount / MICRO


def _live(snap: Snapshot) -> Iterator[str]:
    jobs = Counter(job.shown_state for job in snap.jobs.values())
    yield metric(
        "skypurza_jobs",
        "gauge",
        about="Jobs in memory by state, ended ones for MinJobAge.",
        values=(({"state": state}, count) for state, count in sorted(jobs.items())),
    )
    machines: Counter[tuple[str, str, str]] = Counter()
    rates: Counter[tuple[str, str, str]] = Counter()
    for node in snap.nodes.values():
        machine = node.machine
        where = (machine.region, machine.market.value) if machine else ("", "")
        machines[(node.state.label, *where)] += 1
        paid = node.meter is not None and not node.meter.closed
        rates[(node.state.label, *where)] += node.micro_usd_per_hour if paid else 0
    yield metric(
        "skypurza_nodes",
        "gauge",
        about="Nodes by state; of bought ones region and market.",
        values=_of_nodes(machines, 1),
    )
    yield metric(
        "skypurza_nodes_usd_per_hour",
        "gauge",
        about="What the nodes cost an hour that somebody is billed for now.",
        values=_of_nodes(rates, MICRO),
    )


def _of_nodes(found: Mapping[tuple[str, str, str], int], unit: int) -> Rows:
    for (state, region, market), count in sorted(found.items()):
        yield {"state": state, "region": region, "market": market}, count / unit


def _refused(cooling: Iterable[Cooling]) -> str:
    kinds = Counter((str(entry.refusal), entry.key[1]) for entry in cooling)
    return metric(
        "skypurza_refused_offers",
        "gauge",
        about="What is left alone for a while because a provider refused it, by reason.",
        values=(
            ({"reason": reason, "provider": provider}, count)
            for (reason, provider), count in sorted(kinds.items())
        ),
    )


def _reported(desk: Desk) -> Iterator[str]:
    """How what happens on nodes is heard of."""
    nodes, pushes = desk.snapshot().nodes.values(), desk.pushes
    yield metric(
        "skypurza_reports_total",
        "counter",
        about="Times that something new of a node's journal came: posted, or read over SSH.",
        values=(({"way": way}, pushes.ways[way]) for way in ("push", "ssh")),
    )
    yield metric(
        "skypurza_nodes_swept",
        "gauge",
        about="Nodes that should post and do not, so that their journals are read over SSH.",
        values=[({}, sum(map(pushes.fallen_back, nodes)))],
    )


def _took(times: RequestTimes) -> str:
    return histogram(
        "skypurza_request_seconds",
        about="How long requests took, by command or route; those that stay open aside.",
        bounds=BUCKETS,
        values=(
            ({"request": asked}, one.counts, one.seconds)
            for asked, one in sorted(times.known.items())
        ),
    )
