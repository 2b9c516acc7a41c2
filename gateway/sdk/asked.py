"""What functions of `gateway.sdk` answer: the id of a request, and what is waited for by it."""

import io
import secrets
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import BinaryIO, Generic, Protocol, TypeVar, cast

T = TypeVar("T")
Wait = Callable[[BinaryIO], T]
"""Waits until a request has come to something; what is to be told goes to the stream."""


class RequestId(str, Generic[T]):
    """Of something asked; `sdk.get` waits for what it comes to."""

    wait: Wait[T]

    @classmethod
    def of(cls, text: str, wait: Wait[T]) -> "RequestId[T]":
        """Under the id that the service knows."""
        made: RequestId[T] = cls(text)
        made.wait = wait
        return made

    @classmethod
    def done(cls, value: T) -> "RequestId[T]":
        """Of what is answered at once."""
        return cls.of(secrets.token_hex(16), lambda _: value)


class TextStream(Protocol):
    """Where text goes, as `sys.stdout` and `io.StringIO` take it."""

    def write(self, text: str, /) -> int: ...
    def flush(self) -> None: ...


class _Texts:
    """A stream of text that takes UTF-8, however it is cut."""

    def __init__(self, stream: TextStream) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def write(self, part: bytes) -> int:
        self._stream.write(self._decoder.decode(part))
        return len(part)

    def flush(self) -> None:
        self._stream.flush()


def stream_of(stream: TextStream | BinaryIO | None) -> BinaryIO:
    """Takes bytes, whichever kind was given; standard output where none was."""
    if stream is None:
        sys.stdout.flush()  # what was printed before stands before
        return sys.stdout.buffer
    text = isinstance(stream, io.TextIOBase) or not hasattr(stream, "readinto")
    return cast(BinaryIO, _Texts(cast(TextStream, stream))) if text else cast(BinaryIO, stream)
