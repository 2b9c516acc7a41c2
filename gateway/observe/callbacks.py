"""SkyPilot's event_callback: a managed job's script is told of each change of its state.

It is run on the service's host by a process that has given up its rights for those of the user,
with the words of SkyPilot in its environment; what it says goes to a file below `~/sky_logs`.
"""

import json
import os
import posixpath
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from accounting.ids import JobId
from broker.model import events as ev
from broker.model import octets
from broker.model.facts import JobFact
from broker.model.ids import Digest
from broker.model.job import Job, JobState, Owner
from broker.model.spec import Managed

SECONDS = 60
"""How long one call may take."""
CALLERS = 4
"""Calls at a time; those of one job come one after the other."""
ENDS: Mapping[JobState, str] = {
    JobState.COMPLETED: "SUCCEEDED",
    JobState.CANCELLED: "CANCELLED",
}
"""SkyPilot's words; any other end is FAILED."""


class Log(Protocol):
    def warning(self, event: str, **fields: object) -> object: ...


@dataclass(frozen=True, slots=True)
class Call:
    """Who is told what."""

    job: Job
    managed: Managed
    script: Digest
    status: str


class Run(Protocol):
    def __call__(
        self, owner: Owner, script: str, *, variables: Mapping[str, str], log: str
    ) -> None:
        """Runs it for its owner, its text into the file `log`. Raises OSError."""
        ...


def statuses(fact: ev.Event, job: Job) -> Iterator[str]:
    """What the fact means in SkyPilot's words, if anything."""
    if isinstance(fact, ev.Queued):
        yield "SUBMITTED"
    elif isinstance(fact, ev.Placed) and not job.restarts:
        yield "STARTING"
    elif isinstance(fact, ev.Started):
        yield "RECOVERED" if job.restarts else "STARTED"
    elif isinstance(fact, ev.Requeued):
        yield "RECOVERING"
    elif isinstance(fact, ev.Ended) and fact.state is JobState.CANCELLED:
        yield "CANCELLING"
    if isinstance(fact, ev.Released) and job.over:
        yield ENDS.get(job.state, "FAILED")


class Callbacks:
    """Tells of each committed fact once, without blocking who tells it."""

    def __init__(
        self,
        blob: Callable[[Digest], bytes],
        unpack: Callable[[bytes], Mapping[str, str]],
        *,
        run: Run,
        log: Log,
    ) -> None:
        self._blob = blob
        self._unpack = unpack
        self._run = run
        self._log = log
        self._pool = ThreadPoolExecutor(CALLERS, thread_name_prefix="callback")
        self._waiting: dict[JobId, deque[Call]] = {}
        self._lock = Lock()

    def tell(self, facts: Iterable[ev.Event], jobs: Mapping[JobId, Job]) -> None:
        """`jobs` are as the facts left them."""
        for fact in facts:
            job = jobs.get(fact.job) if isinstance(fact, JobFact) else None
            asked = job.spec.managed if job is not None else None
            if job is None or asked is None or asked.callback is None:
                continue
            for status in statuses(fact, job):
                self._add(Call(job, asked, asked.callback, status))

    def close(self) -> None:
        """Lets what waits be told, then ends."""
        self._pool.shutdown(wait=True)

    def _add(self, call: Call) -> None:
        with self._lock:
            calls = self._waiting.setdefault(call.job.id, deque())
            calls.append(call)
            if len(calls) == 1:
                self._pool.submit(self._work, call.job.id)

    def _work(self, job: JobId) -> None:
        """All that waits of one job, in order."""
        while True:
            with self._lock:
                call = self._waiting[job][0]
            self._call(call)
            with self._lock:
                self._waiting[job].popleft()
                if not self._waiting[job]:
                    del self._waiting[job]
                    return

    def _call(self, call: Call) -> None:
        job, asked = call.job, call.managed
        try:
            script = octets.text(self._blob(call.script))
            own = job.spec.steps[0].environment if job.spec.steps else None
            given = self._unpack(self._blob(own)) if own is not None else {}
            found = {**given, **variables(job, asked, call.status)}
            self._run(job.owner, script, variables=found, log=log_of(job, asked))
        except Exception as error:  # border: whatever a user's script does, the next is called
            self._log.warning("callback.failed", job=job.id, error=str(error))


def log_of(job: Job, asked: Managed) -> str:
    """SkyPilot's name of the file, in the folder where the job's own text goes."""
    own = (job.spec.output.stdout or f"{job.owner.home}/sky_logs/x").replace("%%", "%")
    name = f"jobs-callback-{asked.root or job.id}-{asked.number}.log"
    return f"{posixpath.dirname(own)}/managed_job_event/{name}"


def variables(job: Job, asked: Managed, status: str) -> dict[str, str]:
    """What SkyPilot tells such a script, and enough for a shell."""
    owner = job.owner
    return {
        "PATH": os.defpath,
        "HOME": owner.home,
        "USER": owner.user,
        "LOGNAME": owner.user,
        "SHELL": owner.shell,
        "TASK_ID": str(asked.number),
        "JOB_ID": str(asked.root or job.id),
        "JOB_STATUS": status,
        "CLUSTER_NAME": "",
        "TASK_NAME": job.spec.name,
        "EVENT_TYPE": "Spot",
    }


def caller(python: str, archive: str) -> Run:
    """Runs scripts by the agent's program, which gives up its rights first."""

    def run(owner: Owner, script: str, *, variables: Mapping[str, str], log: str) -> None:
        groups = ",".join(map(str, owner.groups or (owner.gid,)))
        whose = [str(owner.uid), str(owner.gid), groups, str(SECONDS), owner.home, log]
        asked = json.dumps({"script": script, "env": dict(variables)}).encode("ascii")
        done = subprocess.run(
            [python, "-IS", archive, "call", *whose],
            input=asked,
            capture_output=True,
            check=False,
            cwd="/",
            timeout=2 * SECONDS,
        )
        if done.stderr:
            raise OSError(done.stderr.decode("utf-8", "replace").strip())

    return run
