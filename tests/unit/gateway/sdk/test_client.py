"""The client's own HTTP: answers in chunks, answers cut off, requests that do not fit."""

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.sdk.client import Client, NoService, Told
from gateway.sdk.show import run_number
from gateway.sdk.verbs.counter import Counter

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@contextmanager
def answering(folder: Path, *parts: bytes) -> Iterator[Client]:
    """A client of one that sends these parts to whoever asks first, and hangs up."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / "s"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                for part in parts:
                    connection.sendall(part)

        thread = threading.Thread(target=answer)
        thread.start()
        yield Client(folder / "s")
        thread.join()


@pytest.mark.parametrize(
    "parts",
    [
        (CHUNKED + b"3\r\nabc\r\n", b"B\r\n\r\ndefghij\r\n\r\n", b"0\r\n\r\n"),
        (CHUNKED, b"3\r", b"\nabc\r", b"\nB;x=y\r\n\r\ndefghij\r\n\r\n0\r\n\r\n"),
    ],
)
def test_a_streamed_body_is_free_of_chunk_lines(short_tmp: Path, parts: tuple[bytes, ...]) -> None:
    with answering(short_tmp, *parts) as client:
        assert b"".join(client.stream("/v1/focus")) == b"abc\r\ndefghij\r\n"


def test_a_streamed_body_that_is_cut_off_is_said_to_be(short_tmp: Path) -> None:
    with (
        answering(short_tmp, CHUNKED + b"3\r\nabc\r\n") as client,
        pytest.raises(NoService, match="cut off"),
    ):
        list(client.stream("/v1/focus"))


WHOLE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
CALLS = (  # what is asked, what comes of the first try, whether another is made
    (lambda client: client.get("/x"), "refused", True),
    (lambda client: client.get("/x"), "cut", True),
    (lambda client: client.persist("/x"), "cut", True),
    (lambda client: client.post("/x"), "refused", True),
    (lambda client: client.post("/x"), "cut", False),
)


@pytest.mark.parametrize(("ask", "first", "again"), CALLS)
def test_a_restart_is_sat_out_by_what_may_be_sent_again(
    short_tmp: Path, ask: Callable[[Client], object], first: str, again: bool
) -> None:
    """Between two tries: the old socket is gone, then there is a new service."""
    path, turns = short_tmp / "s", ["gone", "up"]
    with ExitStack() as stack:

        def sleep(_seconds: float) -> None:
            path.unlink(missing_ok=True)
            if turns.pop(0) == "up":
                stack.enter_context(answering(short_tmp, WHOLE))

        if first == "refused":
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
                dead.bind(str(path))
        else:
            stack.enter_context(answering(short_tmp))
        client = Client(path, sleep=sleep)
        if again:
            assert ask(client) == {}
        else:
            with pytest.raises(NoService):
                ask(client)
        assert bool(turns) is not again


def test_a_value_that_does_not_fit_is_named_with_those_that_do(short_tmp: Path) -> None:
    one = {"loc": ["body", "scope"], "msg": "Input should be 'account' or 'user'", "input": "foo"}
    body = json.dumps({"detail": [one]}).encode()
    head = f"HTTP/1.1 422 X\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with answering(short_tmp, head + body) as client, pytest.raises(Told) as caught:
        client.post("/v1/budgets", {})
    assert str(caught.value) == "scope: 'foo': Input should be 'account' or 'user'"


def test_a_question_that_nobody_answers_tells_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert not Counter.confirm("Proceed?")
    assert "-y asks nothing" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "x", "²", "9" * 5000, "-1"])
def test_what_is_no_number_of_a_run_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="is no number"):
        run_number(text)
