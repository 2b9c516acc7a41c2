"""Waiting for machines that boot: one thread tries all their doors, none waits for each."""

import selectors
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Door = tuple[str, int]
GREETING = b"SSH-"
ATTEMPT_SECONDS = 3.0
AGAIN_SECONDS = 0.2
TURN_SECONDS = 0.05
FORGET_SECONDS = 60.0
"""A door that nobody has asked about for so long is not tried any more."""


@dataclass(slots=True)
class _Try:
    """A connection under way."""

    door: Door
    sock: socket.socket
    until: float


@dataclass(slots=True)
class Knocker:
    """Says whether an SSH server answers; may be asked from any thread, and never waits."""

    clock: Callable[[], float] = time.monotonic
    greeted: Callable[[str], None] = lambda _host: None
    """Hears of a host as soon as it answers; may be set later."""
    _open: set[Door] = field(default_factory=set)
    _asked: dict[Door, float] = field(default_factory=dict)
    _next: dict[Door, float] = field(default_factory=dict)
    _tries: dict[Door, _Try] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    def answers(self, door: Door) -> bool:
        """Whether it has answered; if not, it is tried from now on."""
        with self._lock:
            if door in self._open:
                return True
            self._asked[door] = self.clock()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="knocker", daemon=True)
                self._thread.start()
            return False

    def forget(self, door: Door) -> None:
        """It did not answer when it was to be used."""
        with self._lock:
            self._open.discard(door)

    # --- the thread

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            while self._waiting():
                self._begin(selector)
                for key, _ in selector.select(TURN_SECONDS):
                    self._look(selector, key.data)
                self._give_up(selector)

    def _waiting(self) -> bool:
        """Whether anybody still waits for any; the thread ends otherwise."""
        now = self.clock()
        with self._lock:
            self._asked = {d: at for d, at in self._asked.items() if now - at < FORGET_SECONDS}
            if not self._asked and not self._tries:
                self._thread = None
            return self._thread is not None

    def _begin(self, selector: selectors.BaseSelector) -> None:
        now = self.clock()
        with self._lock:
            doors = [d for d in self._asked if d not in self._tries]
        for door in doors:
            if now < self._next.get(door, 0.0):
                continue
            self._next[door] = now + AGAIN_SECONDS
            sock = _dial(door)
            if sock is not None:
                self._tries[door] = _Try(door, sock, now + ATTEMPT_SECONDS)
                selector.register(sock, selectors.EVENT_READ, self._tries[door])

    def _look(self, selector: selectors.BaseSelector, tried: _Try) -> None:
        """Something can be read: a greeting, or the news that nobody is there."""
        try:
            greeted = tried.sock.recv(64).startswith(GREETING)
        except BlockingIOError:
            return
        except OSError:
            greeted = False
        self._end(selector, tried)
        if greeted:
            with self._lock:
                self._open.add(tried.door)
                self._asked.pop(tried.door, None)
                self._next.pop(tried.door, None)
            self.greeted(tried.door[0])

    def _give_up(self, selector: selectors.BaseSelector) -> None:
        now = self.clock()
        for tried in [one for one in self._tries.values() if now >= one.until]:
            self._end(selector, tried)

    def _end(self, selector: selectors.BaseSelector, tried: _Try) -> None:
        selector.unregister(tried.sock)
        tried.sock.close()
        del self._tries[tried.door]


def _dial(door: Door) -> socket.socket | None:
    """A connection under way; None where it failed at once."""
    sock = socket.socket(socket.AF_INET6 if ":" in door[0] else socket.AF_INET)
    sock.setblocking(False)
    try:
        sock.connect(door)
    except BlockingIOError:
        return sock
    except OSError:
        sock.close()
        return None
    return sock
