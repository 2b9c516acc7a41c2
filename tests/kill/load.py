"""Those who submit while the service is killed: commands, and clients that ask again by hand."""

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.api.wire import EXIT, OUT
from tests.e2e.service import MARK, Service

SCRIPT = """\
#!/bin/bash
# appends one line to its own file, lives a while, ends as it was told
echo "$SLURM_JOB_ID" >> "lines/$1${SLURM_ARRAY_TASK_ID+.$SLURM_ARRAY_TASK_ID}"
sleep "$2"
exit "$3"
"""
TASKS = 3
ASK_AGAIN = 0.02
PATIENCE = 60.0
MOST_LIVE = 14
"""Jobs that run or wait at a time, so that the load never runs away from the machine."""


@dataclass(slots=True)
class Submission:
    """One request, and what was printed for it."""

    name: str
    code: int
    seconds: float
    partition: str
    nodes: int
    array: bool
    by_hand: bool
    to_cancel: bool
    job: int = 0
    tries: int = 0
    unanswered: bool = False
    """It was on disk and got no reply: the service was killed between the two."""
    said: str = ""

    def argv(self, script: str) -> list[str]:
        options = ["--array", f"0-{TASKS - 1}"] if self.array else []
        where = ["-p", self.partition, "-N", str(self.nodes), "-o", "/dev/null", *options]
        return [*where, script, self.name, f"{self.seconds:.2f}", str(self.code)]

    @property
    def files(self) -> list[str]:
        return [f"{self.name}.{task}" for task in range(TASKS)] if self.array else [self.name]


@dataclass
class Load:
    """Threads that submit until they are told to stop."""

    service: Service
    seed: int
    made: list[Submission] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, count: int) -> None:
        (self.service.work / "lines").mkdir()
        self.script = self.service.work / "job.sh"
        self.script.write_text(SCRIPT)
        for number in range(count):
            dice = random.Random(f"{self.seed}/{number}")
            self._thread(lambda dice=dice, number=number: self._submit(dice, number))
        self._thread(lambda: self._cancel(random.Random(f"{self.seed}/cancel")))

    def stop(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), "a client hangs"

    def _thread(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
        thread.start()
        self.threads.append(thread)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # border: told by the test
            self.failures.append(repr(error))

    # --- submitting

    def _submit(self, dice: random.Random, number: int) -> None:
        count = 0
        while not self.stopping.is_set():
            if self._live() >= MOST_LIVE:
                time.sleep(ASK_AGAIN)
                continue
            count += 1
            one = self._next(dice, f"{number}-{count}")
            self.made.append(one)
            (self._by_hand if one.by_hand else self._by_command)(one)
            time.sleep(dice.uniform(0, 0.15))

    @staticmethod
    def _next(dice: random.Random, name: str) -> Submission:
        to_cancel = dice.random() < 0.1
        return Submission(
            name=name,
            code=dice.randrange(8),
            seconds=30.0 if to_cancel else dice.choice([0, 0.1, 0.4, 1.0, 3.0]),
            partition=dice.choice(["own", "ec2"]),
            nodes=dice.choice([1, 1, 1, 2]),
            array=not to_cancel and dice.random() < 0.15,
            by_hand=dice.random() < 0.7,
            to_cancel=to_cancel,
        )

    def _live(self) -> int:
        """Jobs that are not over, as far as is known without the service."""
        ended = {row[0] for row in self.service.rows("select job_id from jobs where over = 1")}
        return sum(one.job not in ended for one in self.made)

    def _by_command(self, one: Submission) -> None:
        one.tries = 1
        one.job = self.service.submit(*one.argv(str(self.script)))

    def _by_hand(self, one: Submission) -> None:
        request = os.urandom(16).hex()
        message = self._message(one, request)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            one.tries += 1
            frames = exchange(str(self.service.socket), message)
            if EXIT in frames:
                one.said = frames.get(OUT, b"").decode() or repr(frames)
                one.job = int(one.said.removeprefix("Submitted batch job "))
                return
            known = self.service.rows("select 1 from requests where id = ?", request)
            one.unanswered = one.unanswered or bool(known)
            time.sleep(ASK_AGAIN)
        raise AssertionError(f"no answer to {one}")

    def _message(self, one: Submission, request: str) -> bytes:
        argv = [os.fsencode(word) for word in one.argv(str(self.script))]
        variables = [b"PATH=/usr/bin:/bin", f"{MARK}={self.service.mark}".encode()]
        work = os.fsencode(self.service.work)
        fields = [b"1", request.encode(), b"sbatch", work, b"22", b"", b""]
        fields += [b"%d" % len(argv), *argv, b"%d" % len(variables), *variables]
        content = self.script.read_bytes()
        fields += [b"1", os.fsencode(self.script), b"0", b"%d" % len(content)]
        body = b"".join(item + b"\0" for item in fields) + content
        return b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    # --- cancelling

    def _cancel(self, dice: random.Random) -> None:
        """Each of those that are to be cancelled, at some moment of its life."""
        done: set[int] = set()
        while not (self.stopping.is_set() and self._all_cancelled(done)):
            waiting = [one.job for one in self.made if one.to_cancel and one.job not in {0, *done}]
            for job in waiting:
                time.sleep(dice.uniform(0, 0.5))
                told = self.service.run("scancel", str(job))
                if told.code == 0:
                    done.add(job)
            time.sleep(ASK_AGAIN)

    def _all_cancelled(self, done: set[int]) -> bool:
        busy = any(thread.is_alive() for thread in self.threads[:-1])
        return not busy and all(one.job in done for one in self.made if one.to_cancel)


def exchange(address: str, message: bytes) -> dict[bytes, bytes]:
    """What came back, by the frames' kinds; empty if no whole reply did."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        data = b""
        try:
            connection.connect(address)
            connection.sendall(message)
            while part := connection.recv(65536):
                data += part
        except OSError:
            pass
    head, _, body = data.partition(b"\r\n\r\n")
    return frames_of(body) if head[9:12] == b"200" else {}


def frames_of(body: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while len(body) >= 5:
        size = int.from_bytes(body[1:5], "big")
        if len(body) < 5 + size:
            break
        found[body[:1]] = found.get(body[:1], b"") + body[5 : 5 + size]
        body = body[5 + size :]
    return found
