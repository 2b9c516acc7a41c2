"""A service for pages that says what it is told to, and a browser that keeps one cookie."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import httpx

from broker.model.errors import Busy, Conflict, Denied, Refused, SpzError, Unknown
from gateway.web.app import Pages
from gateway.web.sessions import Sessions

NOW = 1_800_000_000
MARK = "#mark#"
HOSTILE = "<script>alert(1)</script>\"'\n&amp;\x1b[31m\u202e"
STATUS = {Refused: 400, Denied: 403, Unknown: 404, Conflict: 409, Busy: 503}
HEALTH = {
    **{"status": "ok", "cluster": "tests", "version": "25.11.7", "pid": 1, "at": NOW},
    **{"started_at": NOW - 90, "jobs_live": 0, "jobs_running": 0, "nodes": []},
}
CEILING = {
    **{"nodes": None, "micro_usd_per_hour": 100_000_000},
    **{"account_micro_usd_per_hour": None, "user_micro_usd_per_hour": None},
}
ROUTES: dict[str, Any] = {
    "/v1/health": HEALTH,
    "/v1/budgets": {"budgets": []},
    "/v1/cost": {"rows": [], "by": ["account"], "micro_usd": 0, "old_price": None},
    "/v1/clusters": {"clusters": []},
    "/v1/managed": {"jobs": [], "at": NOW},
    "/v1/volumes": {"volumes": [], "at": NOW},
    "/v1/storage": {"storages": [], "at": NOW},
    "/v1/infra": {"partitions": [], "ceiling": CEILING},
    "/v1/gpus": {"gpus": []},
}
"""Of a site on which nothing was done yet."""


class Said(NamedTuple):
    out: str = ""
    err: str = ""
    code: int = 0


@dataclass
class Doors:
    """Tells what `routes` and `tables` have; keeps what it was asked."""

    routes: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    """By program: rows of cells under the names of columns."""
    said: Mapping[str, Said] = field(default_factory=dict)
    """By the beginning of a command line."""
    zone: str = "UTC"
    asked: list[str] = field(default_factory=list)
    who: list[tuple[int, str]] = field(default_factory=list)

    def ahead(self, at: int) -> int:
        return 0 if self.zone == "UTC" else 3600

    def found(self, route: str, query: Mapping[str, object]) -> Any:
        words = "&".join(f"{name}={value}" for name, value in query.items() if value is not None)
        self.asked.append(f"{route}?{words}")
        told = {**ROUTES, **self.routes}.get(route, Unknown(f"no {route}"))
        if isinstance(told, SpzError):
            raise told
        return told

    async def get(self, route: str, **query: object) -> Any:
        return self.found(route, query)

    async def read(self, route: str, **query: object) -> Any:
        return self.found(route, query)

    async def run(self, program: str, *argv: str) -> Said:
        line = " ".join((program, *argv))
        self.asked.append(line)
        known = next((told for start, told in self.said.items() if line.startswith(start)), None)
        if known is not None:
            return known
        return Said(self._table(program, argv))

    def _table(self, program: str, argv: Sequence[str]) -> str:
        if "-O" not in argv:
            return ""
        names = [one.partition(":")[0] for one in argv[-1].split(",")]
        rows = [*([] if "-h" in argv else [names]), *self.tables.get(program, ())]
        return "".join("".join(cell + MARK for cell in row[: len(names)]) + "\n" for row in rows)


class Browser:
    """Asks an application for pages; `folder` and `cookie` are what entering gave."""

    def __init__(self, doors: Doors | None = None) -> None:
        self.at = NOW
        self.doors = doors or Doors()
        self.numbers = 0
        self.sessions = Sessions(key=b"k" * 32, now=lambda: self.at, nonce=self._nonce)
        pages = Pages(
            sessions=self.sessions,
            doors=self._doors_of,
            status_of=lambda error: STATUS[type(error)],
            mark=MARK,
            now=lambda: self.at,
        )
        self.app = pages.application()
        self.folder, self.cookie = "", ""

    def _nonce(self) -> str:
        self.numbers += 1
        return f"n{self.numbers}"

    def _doors_of(self, uid: int, zone: str) -> Doors:
        self.doors.who.append((uid, zone))
        return self.doors

    def enter(self, uid: int = 1000, zone: str = "", page: str = "") -> httpx.Response:
        ticket = self.sessions.ticket(uid, zone)
        answer = self.ask(f"/enter/{ticket}", page=page)
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        found = re.search(r"url=/(\w+)/", answer.text)
        assert found is not None
        self.folder = found[1]
        return answer

    def page(self, path: str, **query: str) -> httpx.Response:
        if not self.folder:
            self.enter()
        path, _, words = path.partition("?")
        query |= dict(parse_qsl(words))
        return self.ask(f"/{self.folder}/{path}", headers={"cookie": self.cookie}, **query)

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        host: str = "127.0.0.1:4711",
        **query: str,
    ) -> httpx.Response:
        async def request() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
                named = {"host": host, **(headers or {})}
                return await client.request(method, path, headers=named, params=query)

        return asyncio.run(request())
