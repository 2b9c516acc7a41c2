"""The commands' door and the application, without a server."""

import asyncio
from typing import Any

import pytest

from broker.model.errors import Busy, Denied, Refused, Unknown
from gateway.api.app import build_app
from gateway.api.auth import sign
from gateway.api.desk import Desk
from gateway.api.errors import body_of, number_of
from gateway.api.text import TextDoor
from gateway.api.wire import CEILING, Answer, Call, Peer
from tests.unit.gateway.api.office import ALICE, Office
from tests.unit.gateway.api.test_wire import ID, envelope

DONE = b"x\0\0\0\x010"


class Log:
    def __init__(self) -> None:
        self.events: list[str] = []

    def exception(self, event: str, **fields: object) -> None:
        self.events.append(" ".join([event, *map(str, fields.values())][:2]))


async def echo(desk: Desk, call: Call) -> Answer:
    return Answer(out=f"{call.peer.uid} {' '.join(call.argv)}\n")


async def breaks(desk: Desk, call: Call) -> Answer:
    raise ZeroDivisionError


async def denied(desk: Desk, call: Call) -> Answer:
    raise Denied("Access/permission denied", hint="ask alice")


async def slow(desk: Desk, call: Call) -> Answer:
    async def rest() -> Answer:
        await asyncio.sleep(0)
        return Answer(err="late\n", code=3)

    return Answer(out="early\n", rest=rest())


async def for_ever(desk: Desk, call: Call) -> Answer:
    async def rest() -> Answer:
        await asyncio.Event().wait()
        return Answer()

    return Answer(rest=rest())


PROGRAMS = {
    "echo": echo,
    "breaks": breaks,
    "denied": denied,
    "slow": slow,
    "for_ever": for_ever,
}


class Front:
    """An application, and requests to it."""

    def __init__(self, key: bytes | None = None) -> None:
        self.office = Office()
        self.log = Log()
        self.app = build_app(self.office.desk, PROGRAMS, log=self.log, key=key)

    def ask(
        self,
        path: str,
        *pieces: bytes,
        method: str = "POST",
        peer: Peer | None = Peer(2001, 2001, 1),
        headers: tuple[tuple[bytes, bytes], ...] = (),
        leave: bool = False,
    ) -> tuple[int, bytes]:
        """Status and body; the caller leaves after its request if `leave`."""
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "http_version": "1.0",
            "server": None,
            "client": None,
            "headers": list(headers),
            "peer": peer,
        }
        return asyncio.run(self._exchange(scope, pieces or (b"",), leave))

    async def _exchange(
        self, scope: dict[str, Any], pieces: tuple[bytes, ...], leave: bool
    ) -> tuple[int, bytes]:
        coming = [
            {"type": "http.request", "body": piece, "more_body": n + 1 < len(pieces)}
            for n, piece in enumerate(pieces)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if coming:
                return coming.pop(0)
            if not leave:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        status = next((m["status"] for m in sent if m["type"] == "http.response.start"), 0)
        return status, b"".join(m.get("body", b"") for m in sent)


def body(program: bytes, *argv: bytes) -> bytes:
    return envelope(b"1", ID, program, b"/", b"22", b"", b"", argv=argv)


@pytest.fixture
def front() -> Front:
    return Front()


def test_a_program_answers_in_frames(front: Front) -> None:
    text = b"2001 a b\n"
    wanted = (200, b"o\0\0\0" + bytes([len(text)]) + text + DONE)
    whole = body(b"echo", b"a", b"b")
    assert front.ask("/x/echo", whole) == wanted
    assert front.ask("/x/echo", *(whole[n : n + 1] for n in range(len(whole)))) == wanted


def test_what_follows_later_comes_in_the_same_reply(front: Front) -> None:
    status, reply = front.ask("/x/slow", body(b"slow"))
    assert (status, reply) == (200, b"o\0\0\0\x06early\ne\0\0\0\x05late\nx\0\0\0\x013")


def test_what_follows_is_made_while_the_first_part_is_still_being_read() -> None:
    async def exchange() -> list[bytes]:
        made = asyncio.Event()
        sent: list[bytes] = []

        async def rest() -> Answer:
            made.set()
            return Answer(code=3)

        async def program(desk: Desk, call: Call) -> Answer:
            return Answer(out="early\n", rest=rest())

        async def receive() -> dict[str, Any]:
            if not sent:
                return {"type": "http.request", "body": body(b"slow")}
            await asyncio.Event().wait()
            return {}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message.get("body", b""))
            if message.get("more_body"):
                await asyncio.wait_for(made.wait(), 5)

        scope = {"method": "POST", "path": "/x/slow", "headers": [], "peer": Peer(2001, 2001)}
        await TextDoor(Office().desk, {"slow": program}, log=Log())(scope, receive, send)
        return sent

    assert b"".join(asyncio.run(exchange())) == b"o\0\0\0\x06early\nx\0\0\0\x013"


def test_a_caller_that_leaves_is_not_waited_for(front: Front) -> None:
    status, reply = front.ask("/x/for_ever", body(b"for_ever"), leave=True)
    assert (status, reply) == (200, b"")
    assert front.log.events == []


def test_what_a_program_did_not_foresee_is_told_and_logged(front: Front) -> None:
    status, reply = front.ask("/x/breaks", body(b"breaks"))
    assert status == 200
    assert b"breaks: error: internal error of the service" in reply
    assert reply.endswith(b"x\0\0\0\x011")
    assert front.log.events == ["program.failed breaks"]


def test_a_refusal_that_a_program_left_is_told_with_the_way_out(front: Front) -> None:
    _, reply = front.ask("/x/denied", body(b"denied"))
    assert b"denied: error: Access/permission denied (ask alice)\n" in reply
    assert front.log.events == []


@pytest.mark.parametrize(
    ("path", "data", "method", "words"),
    [
        ("/x/echo", b"", "POST", b"ends within"),
        ("/x/echo", b"\0" * 100, "POST", b"wire version"),
        ("/x/echo", body(b"slow"), "POST", b"'slow' came to '/x/echo'"),
        ("/x/nosuch", body(b"nosuch"), "POST", b"no program 'nosuch' (it has breaks, denied,"),
        ("/x/echo", body(b"echo"), "GET", b"came to"),
    ],
)
def test_bad_requests_are_refused_in_plain_words(
    front: Front, path: str, data: bytes, method: str, words: bytes
) -> None:
    status, reply = front.ask(path, data, method=method)
    assert status == 400
    assert words in reply
    assert front.log.events == []


def test_more_than_the_ceiling_is_refused_before_it_is_read(front: Front) -> None:
    headers = ((b"content-length", str(CEILING + 1).encode()),)
    assert front.ask("/x/echo", b"", headers=headers)[0] == 413
    piece = bytes(1 << 20)
    assert front.ask("/x/echo", *[piece] * (CEILING // len(piece) + 2))[0] == 413


def test_over_tcp_a_token_is_needed() -> None:
    front = Front(key=b"k" * 16)
    assert front.ask("/x/echo", body(b"echo"), peer=None)[0] == 403
    token = sign(b"k" * 16, 2002, expires=front.office.clock.at + 60)
    headers = ((b"authorization", b"Bearer " + token.encode()),)
    status, reply = front.ask("/x/echo", body(b"echo"), peer=None, headers=headers)
    assert (status, reply[5:10]) == (200, b"2002 ")


def test_health_and_an_agents_knock(front: Front) -> None:
    status, reply = front.ask("/healthz", method="GET")
    assert status == 200
    assert b'"version":"25.11.7"' in reply
    assert front.ask("/agent/ec2-1")[0] == 204
    assert front.office.woken == ["ec2-1"]
    status, reply = front.ask("/agent/nosuch")
    assert status == 404
    assert b"nosuch" in reply


def test_errors_keep_slurms_number_where_it_has_one() -> None:
    assert number_of(Unknown("Invalid job id specified")) == 2017
    assert number_of(Busy("the disk is full")) == 0
    told = body_of(Refused("no such type", hint="try one of: a, b"))
    assert told == {
        "error": {
            "kind": "Refused",
            "message": "no such type",
            "hint": "try one of: a, b",
            "slurm_errno": 0,
        }
    }


def test_names_are_asked_for_once_in_a_while() -> None:
    office = Office()
    asked: list[int] = []
    clock = [0.0]
    office.desk.monotonic = lambda: clock[0]

    def names(uid: int) -> Any:
        asked.append(uid)
        return ALICE

    office.desk.names = names

    async def twice() -> None:
        assert await office.desk.owner(2001) is ALICE
        assert await office.desk.owner(2001) is ALICE

    asyncio.run(twice())
    assert asked == [2001]
    clock[0] = 31.0
    asyncio.run(twice())
    assert asked == [2001, 2001]
