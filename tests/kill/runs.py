"""Clusters and their runs, asked for over HTTP while the service is killed."""

import http.client
import json
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.service import Service

ASK_AGAIN = 0.02
PATIENCE = 60.0
LONG = PATIENCE / 4
CONFLICT = 409
RUNS = 3


@dataclass(slots=True)
class Run:
    """One run of a cluster: the file it appends a line to, how it is to end, what was answered."""

    name: str
    code: int
    job: int = 0
    number: int = 0
    tries: int = 0

    @property
    def task(self) -> str:
        return (
            f"resources: {{cpus: 1+}}\nrun: |\n"
            f"  echo $SKYPILOT_TASK_ID >> ../lines/{self.name}\n  sleep 0.2\n  exit {self.code}\n"
        )


@dataclass
class Clusters:
    """One client, which launches a cluster, runs a few things in it, and takes it down."""

    service: Service
    runs: list[Run] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    _since: float | None = None
    """Since when what it waits for does not come."""

    def waits_long(self) -> bool:
        """Where a start takes as long as a service lives, nobody is heard unless kills pause."""
        since = self._since
        return since is not None and time.monotonic() - since > LONG

    @contextmanager
    def _patience(self) -> Iterator[float]:
        """The instant at which it ends."""
        self._since = time.monotonic()
        try:
            yield self._since + PATIENCE
        finally:
            self._since = None

    def one(self, dice: random.Random, name: str) -> None:
        """A cluster's whole life."""
        first = self._run(dice, f"{name}-1")
        body = self._body(first) | {"cluster": name}
        self._told(first, self._ask("/v1/launch", body, first))
        for number in range(2, RUNS + 1):
            more = self._run(dice, f"{name}-{number}")
            self._told(more, self._ask(f"/v1/clusters/{name}/exec", self._body(more), more))
        self._wait(first.job)
        self._ask(f"/v1/clusters/{name}/down", {}, first)
        self.down.append(first.job)

    def _run(self, dice: random.Random, name: str) -> Run:
        made = Run(f"run-{name}", dice.randrange(4))
        self.runs.append(made)
        return made

    @staticmethod
    def _told(run: Run, answer: dict[str, Any]) -> None:
        run.job, run.number = answer["job"], answer["run"]

    def _body(self, run: Run) -> dict[str, Any]:
        work = str(self.service.work)
        return {
            "request": os.urandom(16).hex(),
            "task": run.task,
            "cwd": work,
            "home": work,
            "logs": f"{work}/logs",
            "environ": {"PATH": "/usr/bin:/bin"},
        }

    def _ask(self, path: str, body: dict[str, Any], run: Run) -> dict[str, Any]:
        """Again and again until it is answered; a conflict passes when the cluster is up."""
        status, answer = 0, dict[str, Any]()
        with self._patience() as end:
            while time.monotonic() < end:
                run.tries += 1
                status, answer = post(str(self.service.socket), path, body)
                if status == 200:
                    return answer
                if path.endswith("/down") and status == 404:
                    return {}  # an earlier try did it
                assert status in {0, CONFLICT, 503}, (path, status, answer)
                time.sleep(ASK_AGAIN)
        raise AssertionError(f"no answer from {path} about {run}, the last was {status} {answer}")

    def _wait(self, job: int) -> None:
        """Until all its runs are over."""
        with self._patience() as end:
            while time.monotonic() < end:
                steps = [step for step in self.service.job(job).steps if step.id.isdigit()]
                if len(steps) == RUNS and all(step.state.final for step in steps):
                    return
                time.sleep(ASK_AGAIN)
        raise AssertionError(f"runs do not end: {self.service.job(job).steps}")


def post(address: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Status and answer; status 0 where no whole answer came."""
    connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.connect(address)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()
