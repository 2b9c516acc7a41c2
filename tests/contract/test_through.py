"""Files that go through a store by signed URLs, with a store on loopback."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pytest

from broker.stage.disk import Disk
from broker.stage.sides import HereError
from broker.stage.through import MUCH, Through
from tests.contract.test_stage import Pair


@dataclass(frozen=True)
class Signing(Disk):
    """A folder whose objects are served to whoever has the URL."""

    port: int = 0
    asked: list[str] = field(default_factory=list)

    def url(self, key: str, *, put: bool) -> str:
        return f"http://127.0.0.1:{self.port}/{key}?signed={'put' if put else 'get'}"


class Server(ThreadingHTTPServer):
    store: Signing


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.answer(self.server.store.read(self.key("get")))

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.store.put(self.key("put"), BytesIO(data))
        self.answer(b"")

    def key(self, signed: str) -> str:
        """Refuses what the URL was not signed for."""
        key, _, sign = self.path[1:].partition("?signed=")
        self.server.store.asked.append(f"{signed} {sign}")
        assert sign == signed
        return key

    def answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Signing]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.store = Signing(tmp_path / "store", server.server_port)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.store
        server.shutdown()
        thread.join()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    made = Pair(tmp_path)
    (made.here / "small").write_bytes(b"1")
    (made.here / "large").write_bytes(os.urandom(MUCH))
    return made


def test_much_goes_through_the_store_both_ways_and_nothing_stays_there(
    pair: Pair, store: Signing
) -> None:
    way = Through(pair.far, store)
    assert pair.sync.push(pair.folder, way).moved == 2
    assert "load" in pair.calls
    assert "unpack" not in pair.calls
    assert (pair.there / "large").read_bytes() == (pair.here / "large").read_bytes()
    (pair.there / "result").write_bytes(os.urandom(MUCH))
    assert pair.sync.pull(pair.folder, way).moved == 1
    assert "send" in pair.calls
    assert (pair.there / "result").read_bytes() == (pair.here / "result").read_bytes()
    assert store.asked == ["get get", "put put"]
    assert list(store.found()) == []


def test_little_takes_the_short_way(pair: Pair, store: Signing) -> None:
    (pair.here / "large").unlink()
    assert pair.sync.push(pair.folder, Through(pair.far, store)).moved == 1
    assert store.asked == []


def test_a_store_that_does_not_answer_is_told_without_its_url(pair: Pair, store: Signing) -> None:
    lost = replace(store, port=1)
    with pytest.raises(HereError, match="the store does not answer") as error:
        pair.sync.push(pair.folder, Through(pair.far, lost))
    assert "signed" not in str(error.value)
    assert list(store.found()) == []
