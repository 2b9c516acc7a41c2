"""How much one user may hold of the service at a time, so that nobody keeps the others out."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from broker.model.errors import Busy

Take = Callable[[int], None]
MOST_HELD = 256 << 20
MOST_LOOKS = 2
ROOT = 0
ENOUGH_FILES = 16384
SHARE = 4
"""A user gets one of so many parts of the file descriptors."""


@dataclass(slots=True)
class Crowd:
    """Connections by uid. Root and whose service it is are never kept out."""

    most: int
    free: frozenset[int] = frozenset()
    count: dict[int, int] = field(default_factory=dict)

    def enter(self, uid: int) -> bool:
        """Whether one more is taken; if so, `leave` has to follow."""
        here = self.count.get(uid, 0)
        if here >= self.most and uid not in self.free:
            return False
        self.count[uid] = here + 1
        return True

    def leave(self, uid: int) -> None:
        """One that `enter` took is over."""
        left = self.count.pop(uid, 0) - 1
        if left > 0:
            self.count[uid] = left


@dataclass(slots=True)
class Held:
    """Bytes by uid of requests that have not come whole."""

    most: int = MOST_HELD
    count: dict[int, int] = field(default_factory=dict)

    @contextmanager
    def by(self, uid: int) -> Iterator[Take]:
        """What adds bytes to one request, until its end. It raises Busy for a user's too many."""
        mine = 0

        def take(size: int) -> None:
            nonlocal mine
            before = self.count.get(uid, 0)
            if before + size > self.most:
                raise Busy("too many large requests of yours at once", hint="try again")
            self.count[uid] = before + size
            mine += size

        try:
            yield take
        finally:
            left = self.count.pop(uid, 0) - mine
            if left > 0:
                self.count[uid] = left


@dataclass(frozen=True, slots=True)
class Looks:
    """Logs by owner that are being read: one's files may hang, and readers are few."""

    crowd: Crowd = field(default_factory=lambda: Crowd(MOST_LOOKS))

    @contextmanager
    def one(self, uid: int, user: str) -> Iterator[None]:
        """Raises Busy for a user's too many."""
        if not self.crowd.enter(uid):
            raise Busy(f"logs of {user} are being read", hint="try again")
        try:
            yield
        finally:
            self.crowd.leave(uid)


def crowd() -> Crowd:
    """As this process's limit of open files has it, which is raised where it is low."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return Crowd(wanted // SHARE, frozenset({ROOT, os.getuid()}))
