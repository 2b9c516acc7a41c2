"""Routes about money: what was spent by whom on what, and what another bill says."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from accounting import reconcile
from accounting.ledger import Entry
from broker.model.commands import PostEntries
from broker.model.errors import BadOption, Refused
from broker.model.job import Owner
from broker.world import Snapshot
from gateway.api.asking import AsciiJson, caller, desk_of, operator, viewer_of
from gateway.api.desk import Desk
from gateway.api.exports import CostFilter, must_be_known
from gateway.api.zone import is_zone, zone_of
from gateway.query import spending
from gateway.query.bills import BillError, by_machine, by_region, read_bill, read_traffic
from gateway.query.prices import old_price
from gateway.query.privacy import Viewer
from sbatch_shim.grammar.instants import Zone

Json = dict[str, Any]


class CostQuery(CostFilter):
    """By what costs are told."""

    by: str = "account"
    """Words of COLUMNS with commas."""
    zone: str = "UTC"
    """Whose days are told."""


class ReconcileRequest(BaseModel, extra="forbid"):
    """A provider's bill, as FOCUS or CUR 2.0 in CSV; without one AWS's Cost Explorer is asked."""

    bill: str | None = None
    since: int = 0
    until: int = 0
    """Of which time Cost Explorer is asked."""
    post: bool = False
    """Whether to post what is missing."""


Lines = Iterable[tuple[str, int, Decimal]]
Explorer = Callable[[int, int], tuple[Lines, Lines]]
"""What a provider says itself: ids of machines, or what was used, instants, dollars.

Raises OSError, SpzError."""
NO_EXPLORER = "no partition buys machines at AWS, whose Cost Explorer could be asked"


def money(explorer: Explorer | None = None) -> APIRouter:
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.get("/v1/cost")
    async def cost(request: Request, asked: Annotated[CostQuery, Query()]) -> Json:
        """Micro-dollars by what was asked for, the dearest first or by day. Raises BadOption."""
        desk = desk_of(request)
        await caller(request)
        by = await viewer_of(request)
        words = spending.words_of(asked.by)
        zone = _zone(asked.zone)
        found = await desk.read(_spent, desk, asked, words, zone=zone, by=by)
        rows = spending.told(found, words, asked.filters, zone=zone)
        if not rows and by.may("usage"):
            await desk.read(must_be_known, desk, asked.filters)
        return {
            "since": asked.since,
            "until": asked.until,
            "by": words,
            "rows": rows,
            "micro_usd": sum(amount for *_, amount in rows if isinstance(amount, int)),
            "old_price": _old_price(desk.snapshot(), asked.until),
        }

    @routes.post("/v1/reconcile")
    async def compare(request: Request, asked: ReconcileRequest) -> Json:
        """The bill against the ledger by machine and hour; `post` sets the ledger right.

        For administrators. Raises BadOption for what is no bill, Denied, Refused.
        """
        desk, owner = desk_of(request), await operator(request)
        return await _compared(desk, asked, explorer, by=owner)

    return routes


def _old_price(seen: Snapshot, until: int) -> str | None:
    """That a machine which is being paid for has an old price, where the time reaches till now."""
    return old_price(seen.nodes.values(), seen.site, seen.at) if until >= seen.at else None


async def _compared(
    desk: Desk, asked: ReconcileRequest, explorer: Explorer | None, *, by: Owner
) -> Json:
    bill, moved = await desk.read(_bill, desk, asked, explorer)
    entries = await desk.read(_of_its_time, desk, bill)
    data = await desk.read(_traffic, desk, bill, moved)
    found = reconcile.differences(entries, bill)
    if asked.post:
        made = reconcile.corrections(entries, bill, desk.now())
        await desk.ask(PostEntries(entries=tuple(made), by=by))
    return {
        "hours": len(bill),
        "billed_micro_usd": sum(bill.values()),
        "posted": asked.post,
        "differences": [_told(one) for one in found],
        "data": [_told(one) for one in data],
    }


Bill = dict[tuple[str, int], int]


def _told(one: reconcile.Difference | reconcile.Traffic) -> Json:
    return asdict(one) | {"missing": one.missing}


def _bill(desk: Desk, asked: ReconcileRequest, explorer: Explorer | None) -> tuple[Bill, Bill]:
    """By machine and hour, and of data by region and hour. Raises BadOption, Refused. Blocks."""
    machines = desk.history.billed()
    if asked.bill is not None:
        lines = asked.bill.splitlines()
        try:
            return read_bill(lines, machines), read_traffic(lines, machines)
        except BillError as error:
            raise BadOption("bill", "", f"the bill cannot be read: {error}") from error
    if explorer is None:
        raise Refused(NO_EXPLORER, hint="give the bill as a file")
    try:
        resources, used = explorer(asked.since, asked.until)
        return by_machine(resources, machines), by_region(used)
    except OSError as error:
        raise Refused(f"Cost Explorer does not answer: {error}") from error


def _of_its_time(desk: Desk, bill: Bill) -> list[Entry]:
    """The ledger's entries of the bill's time, of what it can tell of; those that reach into it
    too. Blocks."""
    first, last = reconcile.span(bill)
    if first == last:
        return []
    names = reconcile.comparable(desk.history.billed().values(), bill)
    every = desk.history.entries(since=first, until=desk.now() + 1)
    return [entry for entry in every if entry.since < last and entry.machine in names]


def _traffic(desk: Desk, bill: Bill, moved: Bill) -> list[reconcile.Traffic]:
    """Data between regions where the bill tells of any; of its whole time. Blocks."""
    if not moved:
        return []
    first, last = reconcile.span(bill | moved)
    return reconcile.traffic(desk.history.entries(since=first, until=last), moved)


def _zone(name: str) -> Zone:
    """Raises BadOption."""
    if not is_zone(name):
        raise BadOption("zone", name, f"no time zone {name!r}", hint="such as Europe/Berlin")
    return zone_of(name)


def _spent(
    desk: Desk, asked: CostQuery, words: list[str], *, zone: Zone, by: Viewer
) -> spending.Spent:
    """By the columns of the words and filters; where use is private what they may see of it."""
    window, columns = (asked.since, asked.until), spending.columns_of(words, asked.filters)
    whose = () if by.may("usage") else ("account", "user")
    found: spending.Spent = desk.history.spent(
        since=asked.since,
        until=asked.until,
        by=(*columns, *whose),
        span=spending.span_of(words, zone, window),
    )
    return spending.of_theirs(found, by) if whose else found
