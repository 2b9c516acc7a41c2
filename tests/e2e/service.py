"""A real service in a home of its own with the commands installed, and what tests ask of it."""

import json
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from broker.model.job import Job
from gateway.store import records
from sbatch_shim.install import install
from tests.e2e.agents import alive, until

ROOT = Path(__file__).parents[2]
VERSION = "slurm 25.11.7"
MARK = "SPZ_TEST_MARK"
"""In the environment of everything that a test submits, so that what it leaves is found."""
PATIENCE = 80.0
CONFIG = """\
cluster: tests
kill_wait: 1
nodes:
  - {names: "own-[1-2]", cpus: 4, real_memory: 8000, gres: "gpu:a10g:2"}
partitions:
  - {name: own, default: true, nodes: "own-[1-2]", def_mem_per_cpu: 100}
  - {name: ec2, elastic: {max_nodes: 4, idle_seconds: 1}, def_mem_per_cpu: 1024}
providers:
  local: {boot_seconds: 0.2}
scheduling: {requeue_delay: 0}
"""
"""Two declared nodes of two GPUs; bought machines that come up at once and leave soon."""


class Preloaded:
    """The process that services are forked from."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.preloaded"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def start(self, order: Mapping[str, object]) -> int:
        """The new service's pid."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()  # it has nothing to put in order, which would take it seconds
        self.process.communicate(timeout=10)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, its streams as text that keeps every byte."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class User:
    """Whom a command runs as."""

    name: str
    uid: int
    gid: int
    home: Path

    @classmethod
    def named(cls, name: str) -> "User":
        entry = pwd.getpwnam(name)
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid, Path(entry.pw_dir))

    @classmethod
    def present(cls) -> "User":
        return cls.named(pwd.getpwuid(os.getuid()).pw_name)


@dataclass
class Service:
    """One home; the service on it may be started, killed and started again."""

    preloaded: Preloaded
    root: Path
    config: str = CONFIG
    user: User = field(default_factory=User.present)
    """Whose service it is."""
    environ: dict[str, str] = field(default_factory=dict)
    """Beside what every service here has."""
    pid: int = 0
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    users: list[Path] = field(default_factory=list)
    """Homes of those whose clusters it has: what these begin has no mark."""

    def __post_init__(self) -> None:
        self.home = self.root / "home"
        self.work = self.root / "work"
        self.bin = self.root / "commands" / "bin"
        self.socket = self.home / "gateway.sock"
        self.out = self.root / "service.out"
        for folder in (self.home, self.work):
            folder.mkdir()
            os.chown(folder, self.user.uid, self.user.gid)
        (self.root / "config.yaml").write_text(self.config)
        self.out.touch()
        install(self.root / "commands", self.socket, VERSION)

    # --- the service

    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user.home),
            "SKYPURZA_HOME": str(self.home),
            "SKYPURZA_CONFIG": str(self.root / "config.yaml"),
            **self.environ,
        }

    def start(self) -> None:
        """Returns when it takes requests."""
        self.launch()
        self.wait_up()

    def launch(self) -> None:
        self.pid = self.preloaded.start(
            {
                "environ": self.variables(),
                "out": str(self.out),
                "home": str(self.user.home),
                "user": self.user.name,
                "uid": self.user.uid,
                "gid": self.user.gid,
            }
        )

    def wait_up(self) -> None:
        def up() -> bool:
            assert alive(self.pid), f"the service ended: {self.words()}"
            return self.listens()

        until(up, "the service", PATIENCE)

    def listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as knock:
            return knock.connect_ex(str(self.socket)) == 0

    def words(self) -> str:
        """What it has said, in its log too."""
        log = self.home / "log" / "gateway.log"
        said = log.read_text(errors="replace")[-4000:] if log.exists() else ""
        return self.out.read_text(errors="replace")[-4000:] + said

    def kill(self, *, wait: bool = True) -> None:
        """SIGKILL; returns when the process is gone, unless it is not to be waited for."""
        self._end(signal.SIGKILL, wait=wait)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: int, *, wait: bool = True) -> None:
        if self.pid and alive(self.pid):
            os.kill(self.pid, number)
            # Its first thread may be dead before the others, which keep lock and socket.
            if wait:
                until(lambda: not Path(f"/proc/{self.pid}").exists(), "the service's end")
        self.pid = 0

    def restart(self) -> None:
        self.kill()
        self.start()

    # --- commands

    def run(
        self,
        program: str,
        *argv: str | bytes,
        env: Mapping[Any, Any] | None = None,
        cwd: Path | None = None,
        stdin: bytes = b"",
        user: User | None = None,
    ) -> Ran:
        """One of the commands, to its end."""
        identity: dict[str, Any] = {}
        if user is not None:
            groups = os.getgrouplist(user.name, user.gid)
            identity = {"user": user.uid, "group": user.gid, "extra_groups": groups}
        variables = {MARK: self.mark, "PATH": "/usr/bin:/bin", **(env or {})}
        done = subprocess.run(
            [str(self.bin / program), *argv],
            env={os.fsencode(name): os.fsencode(value) for name, value in variables.items()},
            cwd=cwd or self.work,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
            **identity,
        )
        return Ran(done.returncode, _text(done.stdout), _text(done.stderr))

    def submit(self, *argv: str | bytes, **how: Any) -> int:
        """The id that sbatch prints."""
        done = self.run("sbatch", *argv, **how)
        assert done.code == 0, done
        assert done.out.startswith("Submitted batch job "), done
        return int(done.out.split()[-1])

    def wrap(self, command: str, *options: str, **how: Any) -> int:
        """Submits `--wrap`."""
        return self.submit(*options, "--wrap", command, **how)

    # --- what is so

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Read only, beside the service or without one."""
        path = self.environ.get("SKYPURZA_STATE_DB") or str(self.home / "state.db")
        connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)
        try:
            yield connection
        finally:
            connection.close()

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self.database() as connection:
            return connection.execute(statement, values).fetchall()

    def job(self, job: int) -> Job:
        """The record as it is on disk."""
        statement = (
            "select jobs.doc, specs.doc from jobs join specs on digest = spec where job_id = ?"
        )
        return records.job(*self.rows(statement, job)[0])

    def state(self, job: int) -> str:
        """As squeue would say it, from disk: COMPLETING while it is."""
        return self.job(job).shown_state

    def exit(self, job: int) -> tuple[int, int]:
        """Exit code and signal of a job that is over."""
        told = self.job(job).exit
        return told.code, told.signal

    def wait(self, job: int, *states: str) -> None:
        """Until it is in one of these states."""
        there = _Lazy(lambda: f"{states} of {self.job(job)}")
        until(lambda: self.state(job) in states, there, PATIENCE)

    def file(self, name: str) -> str:
        """Content below the work folder; empty while there is none."""
        path = self.work / name
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_file(self, name: str, content: str = "") -> str:
        """Until a file is there and has these words in it."""

        def there() -> str | None:
            text = self.file(name)
            return text if text and content in text else None

        return until(there, f"{content!r} in {name}", PATIENCE)

    def counts(self) -> dict[str, int]:
        """Rows of every table, files below the homes of nodes, and the next id."""
        tables = ("jobs", "runs", "specs", "blobs", "requests", "events", "nodes", "ledger")
        found = {name: self.rows(f"select count(*) from {name}")[0][0] for name in tables}
        return found | {
            "files": sum(1 for _ in self.work.rglob("*")),
            "machines": sum(1 for _ in (self.home / "machines").iterdir()),
            "next": self.next_id(),
        }

    def next_id(self) -> int:
        told = self.run("scontrol", "show", "config").out
        line = next(line for line in told.splitlines() if line.startswith("NEXT_JOB_ID"))
        return int(line.split()[-1])

    def processes(self) -> dict[int, str]:
        """Live ones that belong to this home: agents, supervisors, and what jobs began."""
        return {pid: words for pid, words in _everything() if self._ours(pid, words)}

    def _ours(self, pid: int, words: str) -> bool:
        if pid == self.pid or not alive(pid):
            return False
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            environ = b""
        marks = [
            f"{MARK}={self.mark}".encode(),
            *(b"HOME=%b\0" % bytes(home) for home in self.users),
        ]
        return str(self.home) in words or any(mark in environ for mark in marks)

    # --- the end

    def close(self) -> None:
        """Ends the service and everything that it began."""
        try:
            self.stop()
        finally:
            self.sweep()

    def sweep(self) -> None:
        """Ends every process that belongs here, and what those begin meanwhile."""
        for _ in range(50):
            for pid in self.processes():
                _kill(pid)
            time.sleep(0.02)
            if not self.processes():
                break


class _Lazy:
    """Text that is made when it is shown."""

    def __init__(self, make: Callable[[], str]) -> None:
        self.make = make

    def __str__(self) -> str:
        return self.make()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _everything() -> Iterable[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        yield int(entry.name), _text(words.replace(b"\0", b" "))


@contextmanager
def service(
    preloaded: Preloaded, config: str = CONFIG, *, folder: Path | None = None, **how: Any
) -> Iterator[Service]:
    """One that runs, in a folder with a name that breaks whatever does not quote."""
    root = folder or Path(tempfile.mkdtemp(prefix="sp '\n"))
    root.chmod(0o755)
    made = Service(preloaded, root, config, **how)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(root, ignore_errors=True)


def script(folder: Path, name: str, text: str | bytes) -> Path:
    """A job script in a file."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o755)
    return path
