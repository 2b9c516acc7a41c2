"""What the command line and programs alike ask of clusters and say of them."""

import os
import time
from collections.abc import Callable, Container, Mapping
from typing import Any

from broker.model.errors import Refused
from gateway.sdk.client import Client, Json, Told
from gateway.sdk.follow import LOOK_AGAIN

NOTHING_RUNS = 409
"""HTTP's status for a cancel that finds nothing to end."""
REMEMBERED_DAYS = 30
FIRST_GAP, LONGEST_GAP = 30.0, 300.0
"""Seconds between two starts of a cluster for which there is no room."""


def listed(service: Client, *, all_users: bool = False) -> list[Json]:
    """The caller's, or everybody's."""
    found: list[Json] = service.get("/v1/clusters")["clusters"]
    return [one for one in found if all_users or one["uid"] == os.getuid()]


def gone(service: Client, name: str) -> Json | None:
    """The caller's latest of that name as a job of the last days, if none is there any more."""
    told = service.get("/v1/report", days=REMEMBERED_DAYS)["clusters"]
    mine = [one for one in told if one["cluster"] == name and one["uid"] == os.getuid()]
    latest = max(mine, key=lambda one: int(one["id"]), default=None)
    return latest if latest is not None and latest["over"] else None


def address(one: Mapping[str, Any]) -> str:
    """Of the head node. Raises Refused while there is none."""
    if not one["addresses"]:
        raise Refused(f"cluster {one['name']} has no address yet ({one['status']})")
    return str(one["addresses"][0])


def endpoints(one: Mapping[str, Any], port: int | None = None) -> dict[int, str]:
    """`ADDRESS:PORT` by port, of each that is open or of one. Raises Refused where it is closed."""
    opened = [number for text in one["ports"] for number in _range(text)]
    if not opened or port not in {None, *opened}:
        has = ", ".join(one["ports"]) or "none"
        told = f"not opened port {port}; open: {has}" if port else "opened no ports"
        out = "ports: in resources of its task (--ports) opens them"
        raise Refused(f"cluster {one['name']} has {told}", hint=out)
    return {number: f"{address(one)}:{number}" for number in (opened if port is None else [port])}


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def is_up(service: Client, name: str | None) -> bool:
    """Whether the caller has one of that name that takes runs."""
    return any(one["name"] == name and one["status"] == "UP" for one in listed(service))


def until(service: Client, job: int, states: Container[str]) -> Json:
    """The cluster of that job once it is in one of the states. Raises Refused where it is gone."""
    while True:
        found = (one for one in listed(service, all_users=True) if one["job"] == job)
        one = next(found, None)
        if one is None:
            raise Refused(f"cluster of job {job} is gone", hint="`spz cost-report` has its record")
        if one["status"] in states:
            return one
        time.sleep(LOOK_AGAIN)


ELSEWHERE = (
    "its disks are in {infra} alone: `spz start -r {name}` asks there until there is room; "
    "`spz down {name}` lets go of them, and `spz launch -c {name}` takes what there is anywhere"
)


def came_up(
    service: Client,
    one: Json,
    *,
    again: bool,
    say: Callable[[str], None],
    wait: Callable[[float], None] = time.sleep,
) -> Json:
    """The cluster once its start has come to something; with `again` that is tried for ever.

    Raises Refused where it is gone, Told where it may not be started.
    """
    pause = FIRST_GAP
    while True:
        now = until(service, one["job"], {"UP", "STOPPED"})
        if now["status"] == "UP":
            return now
        say(f"cluster {one['name']} did not start: {now['detail'] or now['reason']}")
        if not again:
            say(ELSEWHERE.format(name=one["name"], infra=now["infra"]))
            return now
        wait(pause)
        pause = min(2 * pause, LONGEST_GAP)
        service.persist(f"/v1/clusters/{one['name']}/start")


def must_copy_no_disk(of: str | None) -> None:
    """Raises Refused for a cluster whose disk a new one is to begin with: its data would lack."""
    if of is not None:
        out = "keep data in a volume or in S3: volumes, file_mounts"
        raise Refused(f"clone_disk_from {of}: disks are not copied", hint=out)


def set_idle(
    service: Client, name: str, minutes: int, *, down: bool, waits: str | None = None
) -> int:
    """Stops it after so long without a run, or with `down` lets it go; a negative number keeps it.

    Its job. `waits` "none" lets it go after so long whatever runs, "jobs" whoever is logged in.
    Raises Told.
    """
    seconds, limit = None if minutes < 0 else minutes * 60, waits == "none"
    body = {"idle_seconds": seconds, "down": down or limit, "limit": limit}
    body |= {"past_logins": waits == "jobs"}
    return int(service.persist(f"/v1/clusters/{name}/autostop", body)["job"])


IDLE = ("idle_seconds", "idle_stops", "idle_past_logins")


def end_gracefully(service: Client, one: Json, *, down: bool, within: int | None) -> Json:
    """Cancels its runs; lets it go, or stops it, once what they wrote is in its buckets.

    That is what `--graceful` of SkyPilot means (0.14); `within` so many seconds it ends anyway.
    What it is to become, for a request, which cancelled gives its autostop back. Raises Told, and
    Refused for a time that is none, before anything ends.
    """
    if within is not None and within < 0:
        raise Refused(f"--graceful-timeout {within}: no time", hint="seconds from now, 0 or more")
    name = one["name"]
    job = set_idle(service, name, 0, down=down)
    try:
        service.persist(f"/v1/clusters/{name}/cancel")
    except Told as error:
        if error.status != NOTHING_RUNS:
            raise
    undo = {key: one[key] for key in IDLE}
    to = "gone" if down else "stopped"
    return {"to": to, "job": job, "name": name, "undo": undo, "within": within}


def must_keep_size(resize: bool) -> None:
    """Raises Refused: a cluster has the machines that it was launched with."""
    if resize:
        out = "launch under another name, or `spz down` first"
        raise Refused("--resize: machines of a cluster that is up do not change", hint=out)


def why(service: Client, job: int) -> list[str]:
    """Why the job is where it is, and what it was bought from. Raises Told."""
    lines: list[str] = service.get(f"/v1/jobs/{job}/why")["lines"]
    return lines
