"""Routes that send the ledger itself: its entries, and those with money as FOCUS."""

import json
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from accounting.ids import JobId
from accounting.ledger import Entry
from gateway.api.asking import AsciiJson, caller, desk_of, operator, viewer_of
from gateway.api.desk import Desk
from gateway.api.zone import LATEST
from gateway.query import focus, spending
from gateway.query.costwords import COLUMNS, FILTERS
from gateway.query.ledgerlines import told
from gateway.store.history import HIGHEST
from gateway.store.rollup import FOREVER


class CostFilter(BaseModel, extra="forbid"):
    """Whose costs, of what, from when until when: in whole hours UTC."""

    since: int = Field(ge=0, le=LATEST)
    until: int = Field(ge=0, le=LATEST)
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    partition: str | None = None
    type: str | None = None
    region: str | None = None
    market: str | None = None

    @property
    def filters(self) -> dict[str, str]:
        """Those that were given."""
        found = {word: getattr(self, word) for word in FILTERS}
        return {word: value for word, value in found.items() if value is not None}


class LedgerQuery(CostFilter):
    """Whose entries, posted when."""

    job: JobId | None = Field(None, ge=0, le=HIGHEST)
    """All of one job, whenever they were posted."""


def exports() -> APIRouter:
    routes = APIRouter(default_response_class=AsciiJson)

    @routes.get("/v1/focus")
    async def bill(request: Request, asked: Annotated[CostFilter, Query()]) -> StreamingResponse:
        """Entries of the ledger that move money, as FOCUS 1.2 in CSV; for administrators.

        Those that were posted in the time, so that exports of times that follow each other
        have each once. Raises BadOption.
        """
        await operator(request)
        desk, filters = desk_of(request), asked.filters
        if filters:
            await desk.read(must_be_known, desk, filters)
        ids = {name: own for own, name in (await desk.read(desk.history.billed)).items()}
        every = desk.history.entries(since=asked.since, until=asked.until, user=asked.user)
        entries = (entry for entry in every if spending.wanted(entry, filters))
        lines = focus.rows(entries, desk.site.cluster, ids=ids)
        return StreamingResponse(lines, media_type="text/csv")

    @routes.get("/v1/ledger")
    async def ledger(request: Request, asked: Annotated[LedgerQuery, Query()]) -> StreamingResponse:
        """Entries as lines of JSON, in the order of their posting: to administrators all, to
        others their own. Raises BadOption.
        """
        desk, owner = desk_of(request), await caller(request)
        filters = asked.filters
        if filters and (await viewer_of(request)).may("usage"):
            await desk.read(must_be_known, desk, filters)
        whose = None if desk.site.is_run_by(owner.uid) else owner.user
        lines = (
            json.dumps(told(entry), separators=(",", ":")) + "\n"
            for entry in _entries(desk, asked, whose)
            if spending.wanted(entry, filters) and whose in (None, entry.user)
        )
        return StreamingResponse(lines, media_type="application/x-ndjson")

    return routes


def _entries(desk: Desk, asked: LedgerQuery, whose: str | None) -> Iterator[Entry]:
    """Read as they are sent; of a time those of one user alone, where one is named. Blocks."""
    if asked.job is not None:
        yield from desk.history.entries_of(asked.job)
        return
    user = asked.user if whose is None else whose
    yield from desk.history.entries(since=asked.since, until=asked.until, user=user)


def must_be_known(desk: Desk, filters: dict[str, str]) -> None:
    """Raises BadOption. Blocks."""
    columns = [COLUMNS[word] for word in filters]
    ever = {
        column: {str(key) for (key,) in desk.history.spent(since=0, until=FOREVER, by=(column,))}
        for column in columns
    }
    spending.must_be_known(filters, desk.site, ever)
