"""Routes about money: what was spent by whom on what, the bill as FOCUS, counters to scrape."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel

from accounting import reconcile
from accounting.ledger import Entry
from accounting.rates import MICRO
from accounting.rollup import DAY, HOUR
from broker.model.commands import PostEntries
from broker.model.errors import BadOption, Refused
from gateway.api.asking import AsciiJson, caller, desk_of, operator
from gateway.query import focus
from gateway.query.bills import BillError, by_machine, read_bill
from gateway.query.exposition import metric

Json = dict[str, Any]
COLUMNS = {
    "account": "account", "user": "user", "qos": "qos", "partition": "partition",
    "type": "instance_type", "region": "region", "market": "market", "why": "why", "day": "start",
}  # fmt: skip
"""What costs can be told by, and the column of the sums."""
COUNTED = ("cpu", "mem", "node", "billing", "gres/gpu")


class CostQuery(BaseModel):
    """Of which time, in whole hours UTC, and by what."""

    since: int
    until: int
    by: str = "account"
    """Words of COLUMNS with commas."""
    user: str | None = None
    account: str | None = None


class ReconcileRequest(BaseModel, extra="forbid"):
    """A provider's bill, as FOCUS or CUR 2.0 in CSV; without one AWS's Cost Explorer is asked."""

    bill: str | None = None
    since: int = 0
    until: int = 0
    """Of which time Cost Explorer is asked."""
    post: bool = False
    """Whether to post what is missing."""


Explorer = Callable[[int, int], Iterable[tuple[str, int, Decimal]]]
"""What a provider says itself: ids of machines, instants, dollars. Raises OSError, SpzError."""
NO_EXPLORER = "no partition buys machines at AWS, whose Cost Explorer could be asked"


def money(explorer: Explorer | None = None) -> APIRouter:
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.get("/v1/cost")
    async def cost(request: Request, asked: Annotated[CostQuery, Query()]) -> Json:
        """Micro-dollars by what was asked for, the dearest first. Raises BadOption."""
        desk = desk_of(request)
        await caller(request)
        by = _words(asked.by)
        columns = tuple(dict.fromkeys([*(COLUMNS[word] for word in by), "user", "account"]))
        found = await desk.read(_spent, desk, asked, columns)
        return _told(found, asked, by=by, columns=columns)

    @routes.get("/v1/focus")
    async def bill(request: Request, since: int, until: int) -> StreamingResponse:
        """Every entry of the ledger that moves money, as FOCUS 1.2 in CSV; for administrators."""
        await operator(request)
        desk = desk_of(request)
        ids = {name: own for own, name in (await desk.read(desk.history.machines)).items()}
        entries = desk.history.entries(since=since, until=until)
        lines = focus.rows(entries, desk.site.cluster, ids=ids)
        return StreamingResponse(lines, media_type="text/csv")

    @routes.post("/v1/reconcile")
    async def compare(request: Request, asked: ReconcileRequest) -> Json:
        """The bill against the ledger by machine and hour; `post` sets the ledger right.

        For administrators. Raises BadOption for what is no bill, Denied, Refused.
        """
        desk, owner = desk_of(request), await operator(request)
        bill = await desk.read(_bill, desk, asked, explorer)
        entries = await desk.read(_of_its_time, desk, bill)
        found = reconcile.differences(entries, bill)
        if asked.post:
            made = reconcile.corrections(entries, bill, desk.now())
            await desk.ask(PostEntries(entries=tuple(made), by=owner))
        return {
            "hours": len(bill),
            "billed_micro_usd": sum(bill.values()),
            "posted": asked.post,
            "differences": [asdict(one) | {"missing": one.missing} for one in found],
        }

    @routes.get("/metrics")
    async def metrics(request: Request) -> PlainTextResponse:
        """What was spent and used ever, for Prometheus."""
        desk = desk_of(request)
        return PlainTextResponse(await desk.read(_metrics, desk), media_type="text/plain")

    return routes


def _told(
    found: dict[tuple[Any, ...], int], asked: CostQuery, *, by: list[str], columns: tuple[str, ...]
) -> Json:
    """The rows that were asked for, the dearest first, or by day."""
    rows: dict[tuple[str, ...], int] = {}
    for key, amount in found.items():
        named = dict(zip(columns, key, strict=True))
        if _wanted(named, asked):
            short = tuple(_shown(word, named[COLUMNS[word]]) for word in by)
            rows[short] = rows.get(short, 0) + amount
    order = sorted(rows.items(), key=lambda row: (row[0] if "day" in by else (), -row[1]))
    return {
        "since": asked.since,
        "until": asked.until,
        "by": by,
        "rows": [[*key, amount] for key, amount in order],
        "micro_usd": sum(rows.values()),
    }


Bill = dict[tuple[str, int], int]


def _bill(desk: Any, asked: ReconcileRequest, explorer: Explorer | None) -> Bill:
    """By machine and hour. Raises BadOption, Refused. Blocks."""
    machines = desk.history.machines()
    if asked.bill is not None:
        try:
            return read_bill(asked.bill.splitlines(), machines)
        except BillError as error:
            raise BadOption("bill", "", f"the bill cannot be read: {error}") from error
    if explorer is None:
        raise Refused(NO_EXPLORER, hint="give the bill as a file")
    try:
        return by_machine(explorer(asked.since, asked.until), machines)
    except OSError as error:
        raise Refused(f"Cost Explorer does not answer: {error}") from error


def _of_its_time(desk: Any, bill: Bill) -> list[Entry]:
    """The ledger's entries of the bill's time. Blocks."""
    hours = [hour for _, hour in bill]
    if not hours:
        return []
    first, last = min(hours), max(hours) + HOUR
    every = desk.history.entries(since=first, until=desk.now() + 1)
    return [entry for entry in every if first <= entry.since < last]


def _words(text: str) -> list[str]:
    words = [word for word in text.split(",") if word]
    for word in words:
        if word not in COLUMNS:
            raise BadOption("by", word, f"costs are not told by {word!r}", hint=", ".join(COLUMNS))
    return words


def _spent(desk: Any, asked: CostQuery, columns: tuple[str, ...]) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = desk.history.spent(
        since=asked.since, until=asked.until, by=columns
    )
    return found


def _wanted(named: Json, asked: CostQuery) -> bool:
    return asked.user in {None, named["user"]} and asked.account in {None, named["account"]}


def _shown(word: str, value: Any) -> str:
    return str(value - value % DAY) if word == "day" else str(value)


def _metrics(desk: Any) -> str:
    until = desk.now() + HOUR
    spent = desk.history.spent(since=0, until=until, by=("account", "partition", "market"))
    used = desk.history.used(since=0, until=until, by=("account", "tres"), tres=COUNTED)
    jobs: dict[str, int] = {}
    for job in desk.snapshot().jobs.values():
        jobs[job.shown_state] = jobs.get(job.shown_state, 0) + 1
    return "".join(
        [
            metric(
                "skypurza_cost_usd_total",
                "counter",
                about="Dollars posted to the ledger.",
                values=(
                    ({"account": a, "partition": p, "market": m}, n / MICRO)
                    for (a, p, m), n in sorted(spent.items())
                ),
            ),
            metric(
                "skypurza_tres_seconds_total",
                "counter",
                about="TRES-seconds of attempts that are over.",
                values=(
                    ({"account": a, "tres": t}, float(n)) for (a, t), n in sorted(used.items())
                ),
            ),
            metric(
                "skypurza_jobs",
                "gauge",
                about="Jobs in memory by state.",
                values=(({"state": state}, float(n)) for state, n in sorted(jobs.items())),
            ),
        ]
    )
