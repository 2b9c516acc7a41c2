"""The two ends of a synchronised folder: each runs the same small program as the files' user."""

import errno
import json
import posixpath
import subprocess
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from broker.model.ids import NodeName
from broker.ports import Channel

LEAST_SECONDS = 60.0
BYTES_PER_SECOND = 1 << 20
"""The slowest way that is waited for."""
NEAR_SECONDS = 900.0
"""The same on this host, whose file systems may hang and whose users may ask for much."""


DEFINITE = (
    *("Permission denied", "Operation not permitted", "Read-only file system"),
    *("Not a directory", "File name too long", "Too many levels of symbolic links"),
)
"""Last words of a node's program that no other try makes better."""


ALONE = "alone"
"""The program's word for: nothing is made with more rights than the user's."""


SENSELESS = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError, zlib.error),
)
"""What comes of reading an answer that no program of ours gives."""


Identity = tuple[int, ...]
"""Number of a folder's inode, and when anything in it was made last."""
MOST_LOOKS = 20


class HereError(Exception):
    """The login side, or a node's user, cannot read or write: no other try makes it better."""


@dataclass(frozen=True, slots=True)
class Where:
    """A folder, and with whose rights it is read and written."""

    path: str
    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    umask: int = 0o022

    def below(self, path: str) -> "Where":
        """A folder in it, with the same rights."""
        return replace(self, path=posixpath.join(self.path, path))

    def words(self) -> list[str]:
        """As the program takes them."""
        groups = ",".join(map(str, self.groups or (self.gid,)))
        return [str(self.uid), str(self.gid), groups, f"{self.umask:o}", self.path]


class Side(Protocol):
    """One end."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        """What the program says (`broker/run/agent/carry.py`).

        Raises FileNotFoundError where the folder does not exist, OSError where a node is out of
        reach or its disk is full, HereError for the same on the login side.
        """
        ...

    def words(self, verb: str, where: Where) -> list[str] | None:
        """A command of this host that does the same with its streams; None where there is none."""
        ...

    def failure(self, where: Where, said: bytes) -> Exception:
        """What `carry` would raise for these last words of the program."""
        ...


@dataclass(frozen=True, slots=True)
class Near:
    """This host: a process that gives up its rights before it looks at anything."""

    python: str
    archive: str

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        argv = self.words(verb, where)
        try:
            done = subprocess.run(
                argv, input=asked, capture_output=True, check=False, cwd="/", timeout=NEAR_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise HereError(f"{where.path}: nothing was heard in {NEAR_SECONDS:.0f} s") from None
        if done.returncode != 0:
            raise self.failure(where, done.stderr)
        return done.stdout

    def words(self, verb: str, where: Where) -> list[str]:
        return [self.python, "-IS", self.archive, "carry", verb, *where.words()]

    def failure(self, where: Where, said: bytes) -> Exception:
        return _failure(where.path, said, HereError)


@dataclass(frozen=True, slots=True)
class Far:
    """A node, by the agent's own archive."""

    channel: Channel
    python: str
    archive: str
    stream: Callable[[Sequence[str]], list[str] | None] = lambda argv: None
    """As `broker.ports.Place` has it."""
    shared: bool = False
    """Whether the node has the login node's files: then root makes no folders there for users."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        done = self.channel.run(self._argv(verb, where), stdin=asked, timeout=patience(len(asked)))
        if done.code != 0:
            raise self.failure(where, done.err)
        return done.out

    def words(self, verb: str, where: Where) -> list[str] | None:
        return self.stream(self._argv(verb, where))

    def failure(self, where: Where, said: bytes) -> Exception:
        return _failure(where.path, said, OSError)

    def _argv(self, verb: str, where: Where) -> list[str]:
        alone = [ALONE] if self.shared else []
        return [self.python, "-IS", self.archive, "carry", *alone, verb, *where.words()]


@contextmanager
def understood(node: NodeName) -> Iterator[None]:
    """Raises OSError for an answer that makes no sense: as good as none from that machine."""
    try:
        yield
    except SENSELESS as error:
        raise OSError(f"{node} answers what cannot be read: {error!r:.200}") from error


def patience(size: int) -> float:
    """Seconds that so many bytes may take."""
    return LEAST_SECONDS + size / BYTES_PER_SECOND


def same(near: Side, far: Side, where: Where, *, seen: tuple[Identity, Identity]) -> bool:
    """Whether both ends see one and the same folder, by what they said of it, the near one first.

    Whatever is made in it in between changes what they say: then both are asked again. Raises
    OSError where that has no end, and as `Side.carry`.
    """
    here, there = seen
    for _ in range(MOST_LOOKS):
        if here == there or here[0] != there[0]:
            return here == there
        again = identity(near, where)
        if again == here:
            return False
        here, there = again, identity(far, where)
    raise OSError(errno.EBUSY, "it changes all the time", where.path)


def identity(side: Side, where: Where) -> Identity:
    """Of the folder, as the side sees it now."""
    found: Identity = tuple(json.loads(side.carry("sizes", where, b"[]"))[""])
    return found


def tails(said: bytes) -> list[bytes]:
    """The pieces that `tail` answers with, in the order that they were asked for."""
    found, at = [], 0
    while at < len(said):
        end = said.index(b"\n", at)
        size = int(said[at:end])
        found.append(said[end + 1 : end + 1 + size])
        at = end + 1 + size
    return found


def _failure(folder: str, said: bytes, kind: type[Exception]) -> Exception:
    text = said.decode("utf-8", "replace").strip().splitlines()
    reason = text[-1] if text else "it says nothing"
    if "No such file or directory" in reason:
        return FileNotFoundError(errno.ENOENT, "No such file or directory", folder)
    return (HereError if reason.endswith(DEFINITE) else kind)(f"{folder}: {reason}")
