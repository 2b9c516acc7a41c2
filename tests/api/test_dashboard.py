"""The way into the pages, the pages over a real desk, and what their parts ask of the service."""

import asyncio
import os
import re
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter

from broker.model.errors import Refused
from broker.model.site import Site
from gateway.api.app import build_app
from gateway.api.dashboard import dashboard
from gateway.api.errors import status_of
from gateway.api.infra import infra
from gateway.api.inner import Inner
from gateway.api.jobs import of_jobs
from gateway.api.loopback import MOST, Loopback
from gateway.api.programs.standing import Commands
from gateway.api.wire import Peer
from gateway.config.settings import Config
from gateway.config.site import limits_of
from gateway.web.app import Pages
from gateway.web.sessions import Sessions
from tests.api.asking import ask
from tests.unit.gateway.api.office import ALICE, BOB, SITE, Office
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.query.desk import Past

MARK = "#mark#"


class Front:
    """The application over a desk, its pages, and somebody's browser."""

    def __init__(self, site: Site = SITE) -> None:
        self.office = Office(site)
        desk = self.office.desk
        desk.history = Past()  # type: ignore[assignment]
        self.loopback = Loopback()
        clock = self.office.clock
        self.sessions = Sessions(key=b"k", now=clock.now, nonce=lambda: "n")
        commands = Commands(Config())
        own = APIRouter(prefix="/v1")
        own.include_router(of_jobs)
        routers = [
            own,
            *(dashboard(self.loopback, self.sessions.ticket), infra(limits_of(Config().ceiling))),
        ]
        self.app = build_app(desk, commands.standing(), log=Log(), routers=routers)
        self.doors = lambda uid, tz: Inner(desk, self.app, commands.ours(), uid, tz)
        self.loopback.app = Pages(
            sessions=self.sessions,
            doors=self.doors,
            status_of=status_of,
            mark=MARK,
            now=desk.now,
        ).application()


@pytest.fixture
def front() -> Iterator[Front]:
    made = Front()
    yield made
    made.office.desk.close()


def test_who_may_ask_gets_an_address_that_lets_in_once_and_pages_of_that_user(front: Front) -> None:
    async def visit() -> tuple[str, str, int, str]:
        transport = httpx.ASGITransport(_as(front, ALICE.uid))
        async with httpx.AsyncClient(transport=transport, base_url="http://spz") as client:
            asked = await client.post("/v1/dashboard", json={"page": "jobs", "zone": "Asia/Tokyo"})
        url = asked.json()["url"]
        async with httpx.AsyncClient() as browser:
            entered = await browser.get(url)
            found = re.search(r"url=(/\w+/jobs)", entered.text)
            assert found is not None
            page = await browser.get(httpx.URL(url).join(found[1]))
            again = await browser.get(url)
        front.loopback.close()
        return url, page.text, again.status_code, str(page.status_code)

    front.office.submit(ALICE, name="mine")
    url, page, again, status = asyncio.run(visit())
    assert url.startswith("http://127.0.0.1:")
    assert (status, again) == ("200", 403)
    assert "mine" in page
    assert "2023-11-15 07:13:20" in page  # the clock of the desk, in Tokyo


def test_what_is_private_is_on_no_page_of_others() -> None:
    front = Front(replace(SITE, private=frozenset({"jobs"})))
    job = front.office.submit(ALICE, name="secret-name")

    async def looked(uid: int, path: str) -> tuple[int, bool]:
        folder, cookie = front.sessions.enter(front.sessions.ticket(uid, ""))
        app = front.loopback.app
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as browser:  # type: ignore[arg-type]
            where = f"http://localhost/{folder}/{path}"
            page = await browser.get(where, headers={"cookie": f"spz={cookie}"})
        return page.status_code, "secret-name" in page.text

    async def both() -> list[tuple[int, bool]]:
        pages = [(uid, path) for uid in (ALICE.uid, BOB.uid) for path in ("jobs", f"jobs/{job}")]
        return [await looked(*one) for one in pages]

    mine, _, others, one = asyncio.run(both())
    front.office.desk.close()
    assert (mine, others, one) == ((200, True), (200, False), (404, False))


def _as(front: Front, uid: int) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await front.app({**scope, "peer": Peer(uid, uid)}, receive, send)

    return app


@pytest.mark.parametrize(
    ("uid", "body", "status"),
    [
        (12345, {}, 403),
        (ALICE.uid, {"page": "../x"}, 422),
        (ALICE.uid, {"page": "x" * 65}, 422),
        (ALICE.uid, {"more": 1}, 422),
    ],
)
def test_an_address_is_refused(front: Front, uid: int, body: dict[str, Any], status: int) -> None:
    front.loopback.port = _no_port  # type: ignore[method-assign]
    assert ask(front.app, "POST", "/v1/dashboard", uid=uid, json=body).status_code == status


async def _no_port() -> int:
    raise AssertionError("nothing listens for who may not come")


def test_a_port_that_is_taken_is_told_with_the_way_out() -> None:
    async def twice() -> None:
        first = Loopback()
        first.app = _as  # type: ignore[assignment]
        port = await first.port()
        assert port == await first.port()
        second = Loopback(port)
        second.app = _as  # type: ignore[assignment]
        try:
            with pytest.raises(Refused, match=f"cannot listen on 127.0.0.1:{port}: Address"):
                await second.port()
        finally:
            first.close()

    asyncio.run(twice())


def test_who_only_connects_makes_room_for_who_asks() -> None:
    async def crowded() -> bytes:
        house = Loopback()
        house.app = _nobody
        port, loop = await house.port(), asyncio.get_running_loop()
        with ExitStack() as stack:
            idle = [stack.enter_context(await _connected(port)) for _ in range(MOST + 1)]
            asks = stack.enter_context(await _connected(port))
            await loop.sock_sendall(asks, b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = await loop.sock_recv(asks, 4096)
            assert await loop.sock_recv(asks, 1) == b""  # one request for each connection
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(idle[0], 1) == b""
        house.close()
        return answer

    assert b"204" in asyncio.run(crowded())


async def _connected(port: int) -> socket.socket:
    """Says the half of a request."""
    made, loop = socket.socket(), asyncio.get_running_loop()
    made.setblocking(False)
    await loop.sock_connect(made, ("127.0.0.1", port))
    await loop.sock_sendall(made, b"GET /")
    return made


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


def test_the_service_asked_from_within_refuses_as_it_refuses_programs(front: Front) -> None:
    async def asked() -> None:
        doors = front.doors(BOB.uid, "")
        for route, message in (("/v1/jobs/99", "no job 99"), ("/v1/jobs/x", "cannot be asked so")):
            with pytest.raises(Exception, match=message):
                await doors.get(route)
        said = await doors.run("squeue", "--user=nobody-there")
        assert "Invalid user: nobody-there" in said.err

    asyncio.run(asked())


# --- what a job wrote


def wrote(front: Front, path: Path, owner: Any) -> int:
    """The id of a job of that user which writes there."""
    job = front.office.submit(owner, output={"stdout": str(path)})
    front.office.change(job, last_node_names=("ec2-1",))
    return int(job)


def test_the_end_of_a_log_is_for_its_owner_and_administrators(front: Front, tmp_path: Path) -> None:
    path = tmp_path / "a log"
    path.write_bytes(b"0123456789")
    me = replace(ALICE, uid=os.getuid(), gid=os.getgid())
    job = wrote(front, path, me)
    front.office.desk.names = lambda uid: replace(BOB, uid=uid)
    route = f"/v1/jobs/{job}/log"
    assert ask(front.app, "GET", route, uid=me.uid, params={"tail": 4}).content == b"6789"
    assert ask(front.app, "GET", route, uid=me.uid, params={"tail": 99}).content == b"0123456789"
    denied = ask(front.app, "GET", route, uid=4321, params={"tail": 4})
    assert (denied.status_code, b"6789" in denied.content) == (403, False)
    too_much = ask(front.app, "GET", route, uid=me.uid, params={"tail": 1 << 21})
    assert too_much.status_code == 422
    path.unlink()
    gone = ask(front.app, "GET", route, uid=me.uid, params={"tail": 4})
    assert (gone.status_code, b"No such file" in gone.content) == (403, True)


def test_each_attempt_of_a_managed_job_has_its_own_text(front: Front, tmp_path: Path) -> None:
    me = replace(ALICE, uid=os.getuid(), gid=os.getgid())
    asked = {"output": {"stdout": f"{tmp_path}/%r"}, "managed": {"name": "fit"}}
    job = front.office.submit(me, **asked)
    front.office.change(job, last_node_names=("ec2-1",), restarts=1)
    (tmp_path / "0").write_text("the first")
    route, tail = f"/v1/jobs/{job}/log", {"tail": 99}
    first = ask(front.app, "GET", route, uid=me.uid, params={**tail, "attempt": 1})
    assert first.content == b"the first"
    for number in (0, 3, -1):
        none = ask(front.app, "GET", route, uid=me.uid, params={**tail, "attempt": number})
        assert (none.status_code, b"has no attempt" in none.content) == (404, True)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_could_keep_its_reader_waiting_is_no_log(
    front: Front, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / kind
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    me = replace(ALICE, uid=os.getuid(), gid=os.getgid())
    job = wrote(front, path, me)
    answer = ask(front.app, "GET", f"/v1/jobs/{job}/log", uid=me.uid, params={"tail": 9})
    assert (answer.status_code, b"no regular file" in answer.content) == (403, True)


def test_a_log_shows_nothing_of_the_services_variables(
    front: Front, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the service")
    path = tmp_path / "log"
    path.symlink_to("/proc/self/environ")
    me = replace(ALICE, uid=os.getuid(), gid=os.getgid())
    job = wrote(front, path, me)
    answer = ask(front.app, "GET", f"/v1/jobs/{job}/log", uid=me.uid, params={"tail": 1 << 20})
    assert b"of the service" not in answer.content


@pytest.mark.root
def test_the_service_of_root_reads_a_log_with_its_owners_rights(
    front: Front, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    secret, link = tmp_path / "secret", tmp_path / "link"
    secret.write_bytes(b"of root alone")
    secret.chmod(stat.S_IRUSR)
    link.symlink_to(secret)
    job = wrote(front, link, ALICE)
    answer = ask(front.app, "GET", f"/v1/jobs/{job}/log", uid=ALICE.uid, params={"tail": 99})
    assert (answer.status_code, b"of root" in answer.content) == (403, False)
    assert b"Permission denied" in answer.content


def test_what_happened_to_a_job_is_told_in_the_words_of_the_log(front: Front) -> None:
    job = front.office.submit(ALICE)
    kept = [event for _, event in front.office.store.events]
    front.office.desk.history.events = lambda _: kept  # type: ignore[method-assign]
    told = ask(front.app, "GET", f"/v1/jobs/{job}/events", uid=BOB.uid).json()["events"]
    assert told[0]["event"] == "job.queued"
    assert told[0]["told"]["user"] == "alice"


def test_where_partitions_buy_and_the_ceilings_are_told(front: Front) -> None:
    told = ask(front.app, "GET", "/v1/infra", uid=BOB.uid).json()
    assert told["partitions"] == []
    assert told["ceiling"]["micro_usd_per_hour"] == 100_000_000
    assert told["ceiling"]["nodes"] is None
