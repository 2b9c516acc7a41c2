"""A real agent in a folder, and ways to wait for what its journal says."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from broker.run import launch
from broker.run.agent import procs, wire
from broker.run.launch import Phase, StepOrder
from broker.run.records import records

PYTHON = "/usr/bin/python3"
PATIENCE = 40.0
T = TypeVar("T")
Record = Mapping[str, object]


def until(look: Callable[[], T | None], what: object, patience: float = PATIENCE) -> T:
    """What `look` gives soon after it is true. Raises AssertionError after `patience` seconds.

    Who has waited long looks less often: looking at a service takes it and us time.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < patience:
        found = look()
        if found:
            return found
        time.sleep(min(0.1, 0.01 + waited / 20))
    raise AssertionError(f"waited {patience} s for {what}")


def with_argument(word: str) -> list[int]:
    """Processes that have this word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(
                b"\0"
            ):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def children(pid: int) -> list[int]:
    """Live children of a process."""
    return [one for one, process in procs.table().items() if process.parent == pid and alive(one)]


class RunningAgent:
    """One node's agent; `start` after a kill starts its successor."""

    def __init__(self, folder: Path, *options: str, python: str = PYTHON) -> None:
        self.home = folder / "node"
        self.archive = folder / "agent.pyz"
        self.archive.write_bytes(launch.agent_zipapp())
        self.options = options
        self.python = python
        self.start()

    def start(self) -> str:
        argv = launch.serve_argv(
            self.python, str(self.archive), folder=str(self.home), node="ec2-1"
        )
        done = subprocess.run([*argv, *self.options], capture_output=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr + self.log()
        return done.stdout.decode().strip()

    def log(self) -> bytes:
        path = self.home / "agent.log"
        return path.read_bytes() if path.exists() else b""

    def ask(self, line: bytes) -> Record:
        return launch.reply(wire.ask(str(self.home / "agent.sock"), line, 30.0))

    def run(self, key: str, order: StepOrder) -> Record:
        reply = self.ask(launch.start(key, order))
        assert reply["ok"], reply
        return reply

    def journal(self) -> tuple[Record, ...]:
        return records((self.home / "journal").read_bytes())[0]

    def find(self, kind: str, name: str) -> Record | None:
        """The record of this kind about a step or an attempt."""
        for record in self.journal():
            if record["kind"] == kind and name in {record.get("key"), record.get("attempt")}:
                return record
        return None

    def wait(self, kind: str, name: str) -> Record:
        return until(lambda: self.find(kind, name), f"{kind} {name}: {self.journal()}")

    def count(self, kind: str, key: str) -> int:
        return sum(r["kind"] == kind and r.get("key") == key for r in self.journal())

    def daemon(self) -> int:
        """The agent's process."""
        return int(str(self.ask(launch.ping())["pid"]))

    def supervisor(self, key: str) -> int:
        """The process that watches a running step."""
        folder = self.home / "steps" / key.replace("/", ".")
        leader = json.loads((folder / "started").read_text())["pid"]
        return int(Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[1])

    def kill_daemon(self) -> None:
        pid = self.daemon()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), f"the end of {pid}")

    def halt(self) -> None:
        if (self.home / "agent.sock").exists():
            try:
                self.ask(launch.halt())
            except OSError:
                self.start()
                self.ask(launch.halt())


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def order(folder: Path, script: str | bytes, **changes: object) -> StepOrder:
    """A batch step of the present user that runs `script` in `folder` and writes `out`."""
    data = script if isinstance(script, bytes) else f"#!/bin/bash\n{script}\n".encode()
    plain = StepOrder(
        uid=os.getuid(),
        gid=os.getgid(),
        user="nobody",
        groups=(os.getgid(),),
        cwd=os.fsencode(folder),
        phases=(Phase("run", (None,), data),),
        environment=b"PATH=/usr/bin:/bin",
        stdout=b"out",
        label="JOB 1",
    )
    return replace(plain, **changes)  # type: ignore[arg-type]
