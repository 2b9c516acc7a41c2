"""Requests by the id that they were sent under."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from broker.model.errors import SpzError
from gateway.observe.processes import birth
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import CANCELLED, FAILED, LOOK_AGAIN, SUCCEEDED, UNFINISHED

Say = Callable[[str], None]
STATUSES = {"SUCCEEDED": SUCCEEDED, "FAILED": FAILED, "CANCELLED": CANCELLED}
"""How `api logs` exits for what is no run."""


def begun(
    service: Client,
    verb: str,
    goals: Iterable[Json],
    *,
    said: Iterable[str] = (),
    again: bool = False,
) -> str:
    """The id of a request that the service sees through: each goal is what a thing is to become.

    With `again` clusters for which there is no room are started until there is. Raises Told.
    """
    request = os.urandom(16).hex()
    asked = {"verb": verb, "goals": [*goals], "said": [*said], "again": again}
    service.persist("/v1/requests", {"request": request, **asked})
    return request


def apart(service: Client, verb: str, name: str, *, work: Callable[[Say], None]) -> str:
    """The same of what only a process of the caller's can do: one that outlives this one.

    Raises Told.
    """
    waits, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(begins)
        _done_apart(service, os.read(waits, 64).decode("ascii"), work)
    os.close(waits)
    try:
        goal = {"to": "told", "name": name, "pid": pid, "birth": birth(pid)}
        request = begun(service, verb, [goal])
        os.write(begins, request.encode("ascii"))
    finally:
        os.close(begins)
    return request


def _done_apart(service: Client, request: str, work: Callable[[Say], None]) -> None:
    """Never returns. Without a request nothing is done."""
    status = 1
    told: list[str] = []
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nothing, number)
        if request:
            state = "SUCCEEDED"
            try:
                work(told.append)
            except SpzError as error:
                state, told = "FAILED", [*told, error.message]
            service.persist(f"/v1/requests/{request}/end", {"state": state, "told": told})
            status = 0
    finally:
        os._exit(status)


def cancel(service: Client, request: str) -> Json:
    """Ends what was asked for: a job, one run of a cluster, or what is still tried; what it was.

    What machines have begun goes on. Raises Told.
    """
    told: Json = service.get(f"/v1/requests/{request}")
    if told["job"] is None:
        service.post(f"/v1/requests/{request}/end", {"state": "CANCELLED"})
        for one in told["processes"]:
            _terminate(one["pid"], one["birth"])
    elif told["run"] is None or not told["cluster"]:
        service.persist(f"/v1/jobs/{told['job']}/cancel")
    else:
        service.persist(f"/v1/clusters/{told['cluster']}/cancel", run=told["run"])
    return told


def _terminate(pid: int, born: str) -> None:
    """Only that very process: its number may be another's by now, or on this host."""
    if born and birth(pid) == born:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)


def follow(
    service: Client,
    request: str,
    tell: Say,
    *,
    still: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Tells how a request stands until it is over, or with `still` once; as `logs` exits."""
    shown: list[str] = []
    while True:
        told = service.get(f"/v1/requests/{request}")
        for line in (line for line in told["told"] if line not in shown):
            tell(line)
        shown = told["told"]
        if told["over"] or still:
            return STATUSES.get(told["state"], UNFINISHED)
        sleep(LOOK_AGAIN)
