"""Pools: a worker is a cluster called POOL-pool-1, POOL-pool-2, ...; jobs are runs in them."""

import os
import re
from collections.abc import Callable, Sequence

from broker.model.errors import Refused, Unknown
from gateway.sdk import clusters
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import Which
from gateway.sdk.launching import which
from gateway.sdk.sending import make_folders
from gateway.translate.skypilot import Task

_WORKER = re.compile(r"(.+)-pool-(\d+)")


def name_of(pool: str, number: int) -> str:
    """The cluster that the worker is."""
    return f"{pool}-pool-{number}"


def number_of(worker: Json) -> int:
    """Counted from 1."""
    return int(worker["name"].rpartition("-")[2])


def workers(service: Client) -> dict[str, list[Json]]:
    """The user's, by pool."""
    found: dict[str, list[Json]] = {}
    for one in clusters.listed(service):
        if named := _WORKER.fullmatch(one["name"]):
            found.setdefault(named[1], []).append(one)
    return found


def must_have(service: Client, name: str) -> list[Json]:
    """Raises Unknown."""
    found = workers(service).get(name)
    if not found:
        raise Unknown(f"no pool {name!r}", hint="`spz jobs pool status` lists those there are")
    return found


def worker_of(tasks: Sequence[Task], told: str) -> tuple[Task, int]:
    """The only task, which has a `pool`, and how many workers that asks for. Raises Refused."""
    task, *others = tasks
    if others or task.pool is None:
        raise Refused(f"{told}: not one task with a `pool`")
    if task.run:
        raise Refused("run: a pool has none", hint="`spz jobs launch --pool` sends jobs to it")
    return task, task.pool.kept


def scale(
    service: Client, name: str, count: int, *, body: Json | None, say: Callable[[str], None]
) -> list[Json]:
    """Starts workers until there are so many, and lets the last ones go; what each becomes.

    Without a `body` to launch them with none is started. Raises Told.
    """
    goals: list[Json] = []
    found = workers(service).get(name, [])
    there = {one["name"] for one in found}
    for number in range(1, count + 1):
        worker = name_of(name, number)
        if body is not None and worker not in there:
            made = _start(service, {**body, "cluster": worker, "request": os.urandom(16).hex()})
            goals.append({"to": "up", "job": made["job"], "name": worker})
            say(f"Starting worker {number} of pool {name}")
    for one in found:
        if number_of(one) > count:
            service.persist(f"/v1/clusters/{one['name']}/down")
            goals.append(_to_go(one))
            say(f"Letting worker {number_of(one)} of pool {name} go")
    return goals


def _to_go(one: Json) -> Json:
    return {"to": "gone", "job": one["job"], "name": one["name"]}


def _start(service: Client, body: Json) -> Json:
    plan = service.post("/v1/launch", {**body, "dry_run": True})
    make_folders(body["home"], plan["cwd"])
    return service.persist("/v1/launch", body)


def least_used(service: Client, pool: str) -> Json:
    """The worker with the fewest runs. Raises Unknown, Refused."""
    up = [one for one in must_have(service, pool) if one["status"] == "UP"]
    if not up:
        raise Refused(f"no worker of pool {pool} is up yet", hint="try again soon")
    return min(up, key=lambda one: sum(not run["over"] for run in one["runs"]))


def setup_of(service: Client, pool: str, number: int) -> Which:
    """The first run of a worker. Raises Unknown."""
    return which(service, name_of(pool, number), 1)


def end(service: Client, names: Sequence[str]) -> list[Json]:
    """Lets the workers of these pools go; what each becomes.

    Raises Unknown before any goes, Told.
    """
    found = [one for name in names for one in must_have(service, name)]
    for one in found:
        service.persist(f"/v1/clusters/{one['name']}/down")
    return [*map(_to_go, found)]
