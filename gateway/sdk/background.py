"""The service in the background, for one user: start, stop, what it is doing."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from broker.model.errors import Busy, Denied, Refused
from gateway.config.paths import Paths
from gateway.observe.processes import lives
from gateway.sdk.client import Client

START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOOK_AGAIN = 0.1
LAST_WORDS = 2000
"""Bytes of what a service said that did not come up."""
SERVE = (sys.executable, "-P", "-m", "gateway.cli", "serve")
"""`-P`: a folder called `gateway` where the user stands is not imported."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Background:
    """One service, by its paths."""

    paths: Paths
    say: Say
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    argv: Sequence[str] = SERVE

    @property
    def client(self) -> Client:
        return Client(self.paths.socket)

    @property
    def words(self) -> Path:
        """What the service says before it has a log, and when it breaks."""
        return self.paths.home / "log" / "start.log"

    def start(self) -> int:
        """Until it takes requests; its pid. Raises Refused with its last words if it ends."""
        if self.client.answers():
            raise Refused(
                f"a service answers on {self.paths.socket} already (pid {self.pid() or 'unknown'})",
                hint="`spz api status` tells of it, `spz api stop` ends it",
            )
        with self._first_words() as words:
            started = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd="/",
                start_new_session=True,
            )
        self._wait_for_answer(started)
        return started.pid

    def _first_words(self) -> BinaryIO:
        """Raises Refused where the state directory cannot be made or written."""
        try:
            self.words.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            return self.words.open("wb")
        except OSError as error:
            raise Refused(
                f"{error.filename}: {error.strerror}",
                hint="SKYPURZA_HOME names a folder that you may write",
            ) from error

    def _wait_for_answer(self, started: "subprocess.Popen[bytes]") -> None:
        begun, told = self.clock(), 0
        while not self.client.answers():
            waited = self.clock() - begun
            if started.poll() is not None:
                raise Refused(f"the service did not start: {self.last_words()}")
            if waited > START_SECONDS:
                started.kill()
                started.wait()
                raise Busy(
                    f"the service did not answer within {START_SECONDS:.0f} s",
                    hint=f"see {self.words} and {self.paths.log}",
                )
            if int(waited) // 3 > told:
                told = int(waited) // 3
                self.say(f"starting, {waited:.0f} s")
            self.sleep(LOOK_AGAIN)

    def last_words(self) -> str:
        """The end of what it said, without the name that the command puts before."""
        try:
            text = self.words.read_bytes()[-LAST_WORDS:].decode("utf-8", "replace").strip()
        except OSError as error:
            return str(error)
        return text.removeprefix("spz: error: ") or f"it said nothing; see {self.paths.log}"

    def log_end(self, lines: int) -> str:
        """The last lines of its log. Raises Refused."""
        file = self.paths.log
        try:
            with file.open(encoding="utf-8", errors="replace") as text:
                return "".join(deque(text, maxlen=lines))
        except OSError as error:
            hint = "`spz api start` makes it"
            raise Refused(f"{file}: {error.strerror}", hint=hint) from error

    def pid(self) -> int | None:
        """Of a service that lives; None where there is none."""
        try:
            number = int(self.paths.pid.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        return number if lives(number) else None

    def stop(self) -> int:
        """Asks it to end and waits; its pid. Raises Refused if there is none, Busy if it stays."""
        number = self.pid()
        if number is None:
            raise Refused(f"no service runs on {self.paths.home}")
        try:
            os.kill(number, signal.SIGTERM)
        except PermissionError:
            raise Denied(
                f"the service (pid {number}) is another user's", hint="ask who runs it"
            ) from None
        begun, told = self.clock(), 0
        while lives(number):
            waited = self.clock() - begun
            if waited > STOP_SECONDS:
                raise Busy(
                    f"the service (pid {number}) has not ended within {STOP_SECONDS:.0f} s",
                    hint=f"see {self.paths.log}; `kill -9 {number}` loses nothing",
                )
            if int(waited) // 3 > told:
                told = int(waited) // 3
                self.say(f"stopping, {waited:.0f} s")
            self.sleep(LOOK_AGAIN)
        return number


def foreground(paths: Paths) -> int:
    """The service itself, until it is told to end; its exit status. Raises Refused, Busy."""
    gc.disable()  # what is loaded now stays; `serve` enables it again
    # Here, as starting one in the background must not wait for all that a service loads.
    from gateway.config.load import read  # noqa: PLC0415

    config = read(paths)
    from gateway.observe import log  # noqa: PLC0415
    from gateway.serve import make_home, serve  # noqa: PLC0415

    file = Path(config.log.path) if config.log.path else paths.log
    size = config.log.max_mb << 20
    with _usable(paths.home):
        make_home(paths)
        paths.lock.open("a").close()
        file.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        log.configure(path=file, level=config.log.level, max_bytes=size, keep=config.log.keep)
    return serve(paths, config)


@contextmanager
def _usable(home: Path) -> Iterator[None]:
    """Raises Refused for a file or folder that cannot be made or written."""
    try:
        yield
    except OSError as error:
        raise Refused(
            f"cannot use {error.filename or home}: {error.strerror}",
            hint=f"set SKYPURZA_HOME to a folder of yours, or make {home} yours",
        ) from error
