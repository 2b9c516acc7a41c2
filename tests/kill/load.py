"""Those who submit while the service is killed: commands, and clients that ask again by hand."""

import os
import random
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.api.wire import EXIT, OUT
from tests.e2e.service import MARK, Service
from tests.kill.runs import Clusters

SCRIPT = """\
#!/bin/bash
# appends one line to its own file, lives a while, ends as it was told
echo "$SLURM_JOB_ID" >> "lines/$1${SLURM_ARRAY_TASK_ID+.$SLURM_ARRAY_TASK_ID}"
sleep "$2"
exit "$3"
"""
AGAIN = """\
#!/bin/bash
# the same for a job that is requeued: a line for each attempt, which has to be alone
exec 9> "lines/$1.lock"
flock -n 9 || echo "two attempts at a time" >> "lines/$1"
echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0}" >> "lines/$1"
sleep "$2"
exit "$3"
"""
GAVE_UP = "Unable to contact slurm controller (connect failure)\n"
TASKS = 3
ASK_AGAIN = 0.02
PATIENCE = 150.0
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
    to_requeue: bool
    job: int = 0
    tries: int = 0
    unanswered: bool = False
    """It was on disk and got no reply: the service was killed between the two."""
    said: str = ""

    def argv(self, folder: str) -> list[str]:
        script = f"{folder}/{'again.sh' if self.to_requeue else 'job.sh'}"
        options = ["--array", f"0-{TASKS - 1}"] if self.array else []
        where = [
            "-J",
            self.name,
            "-p",
            self.partition,
            "-N",
            str(self.nodes),
            "-o",
            "/dev/null",
            *options,
        ]
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

    requeued: int = 0

    def __post_init__(self) -> None:
        self.clusters = Clusters(self.service)

    def start(self, count: int) -> None:
        for folder in ("lines", "sky_workdir"):
            (self.service.work / folder).mkdir()
        (self.service.work / "job.sh").write_text(SCRIPT)
        (self.service.work / "again.sh").write_text(AGAIN)
        for number in range(count):
            dice = random.Random(f"{self.seed}/{number}")
            self._thread(lambda dice=dice, number=number: self._submit(dice, number))
        self._thread(lambda: self._clusters(random.Random(f"{self.seed}/clusters")))
        self._thread(lambda: self._requeue(random.Random(f"{self.seed}/requeue")))
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
        fate = dice.random()
        to_cancel, to_requeue = fate < 0.1, 0.1 < fate < 0.2
        return Submission(
            name=name,
            code=dice.randrange(8),
            seconds=30.0 if to_cancel else dice.choice([0, 0.1, 0.4, 1.0, 3.0]) + 2 * to_requeue,
            partition=dice.choice(["own", "ec2"]),
            nodes=dice.choice([1, 1, 1, 2]),
            array=fate > 0.2 and dice.random() < 0.15,
            by_hand=dice.random() < 0.7,
            to_cancel=to_cancel,
            to_requeue=to_requeue,
        )

    def _live(self) -> int:
        """Jobs that are not over, as far as is known without the service."""
        ended = {row[0] for row in self.service.rows("select job_id from jobs where over = 1")}
        return sum(one.job not in ended for one in self.made)

    def _by_command(self, one: Submission) -> None:
        """A command that no service lived long enough for says so after 10 s, as Slurm's does."""
        one.tries = 1
        told = self.service.run("sbatch", *one.argv(str(self.service.work)))
        if told.code == 1 and told.err.endswith(GAVE_UP):
            self._look_up(one)
            return
        assert told.code == 0, told
        one.job = int(told.out.removeprefix("Submitted batch job "))

    def _look_up(self, one: Submission) -> None:
        """Whether the job was made, although nobody was told its id."""
        statement = "select coalesce(array_base, job_id) from jobs where name = ?"
        found = self.service.rows(statement, one.name)
        if found:
            one.job = found[0][0]
        else:
            self.made.remove(one)

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
        argv = [os.fsencode(word) for word in one.argv(str(self.service.work))]
        variables = [b"PATH=/usr/bin:/bin", f"{MARK}={self.service.mark}".encode()]
        work = os.fsencode(self.service.work)
        fields = [b"1", request.encode(), b"sbatch", work, b"22", b"", b""]
        fields += [b"%d" % len(argv), *argv, b"%d" % len(variables), *variables]
        script = next(word for word in argv if word.endswith(b".sh"))
        content = Path(os.fsdecode(script)).read_bytes()
        fields += [b"1", script, b"0", b"%d" % len(content)]
        body = b"".join(item + b"\0" for item in fields) + content
        return b"POST /x/sbatch HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    # --- what else is done to them

    def _clusters(self, dice: random.Random) -> None:
        count = 0
        while not self.stopping.is_set():
            count += 1
            self.clusters.one(dice, f"c{count}")

    def _requeue(self, dice: random.Random) -> None:
        """Those that are to be requeued, now and then; one that does not run is not to be had."""
        while not self.stopping.is_set():
            time.sleep(dice.uniform(0, 0.5))
            jobs = [one.job for one in self.made if one.to_requeue and one.job]
            if jobs:
                told = self.service.run("scontrol", "requeue", str(dice.choice(jobs[-3:])))
                self.requeued += told.code == 0

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
