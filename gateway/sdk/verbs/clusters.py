"""launch, exec, cancel, down, stop, start, autostop: what changes clusters."""

import os
import time
from collections.abc import Container, Iterable
from typing import Any

from broker.model.errors import Refused
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.launching import Launch
from gateway.sdk.launching import cancel as cancelled
from gateway.sdk.verbs import ssh, storage
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.sent import body_of

USUAL_MINUTES = 5
LOOK = 0.3
FIRST_GAP, LONGEST_GAP = 30.0, 300.0
"""Seconds between two looks, and between two starts with `-r`."""


def launch(given: Values, counter: Counter) -> int:
    """Exits as the run does; 103 if it was cancelled."""
    detached = given["detach_run"] or given["async"]
    given["detach_down"] = given["down"] and detached
    body = body_of(given, given["words"])
    body |= {"cluster": given["cluster"], "setup": not given["no_setup"]}
    if given["fast"]:
        body["setup"] = body["setup"] and not _is_up(counter.service, given["cluster"])
    quiet = given["yes"] or as_json(given)
    made = Launch(counter.service, counter.say, as_json=as_json(given))
    if not made.launch(body, confirm=None if quiet else counter.confirm, dry_run=given["dryrun"]):
        return 0
    if given["async"]:
        return _requested(counter, body, made.made)
    down = given["down"] and not detached and given["idle_minutes_to_autostop"] is None
    status = made.finish(detach=detached, down=down)
    ssh.anew(counter)
    return status


def _is_up(service: Client, name: str | None) -> bool:
    found = service.get("/v1/clusters")["clusters"]
    return any(one["name"] == name and one["uid"] == os.getuid() for one in found)


def _requested(counter: Counter, body: Json, made: Json) -> int:
    counter.say(f"`spz api status {body['request']}` tells of it, `spz api logs` follows it")
    print(body["request"])
    return 0 if made else 1


def execute(given: Values, counter: Counter) -> int:
    cluster, *words = given["words"]
    made = Launch(counter.service, counter.say, as_json=as_json(given))
    body = body_of(given, words)
    made.execute(cluster, body)
    if given["async"]:
        return _requested(counter, body, made.made)
    return made.finish(detach=given["detach_run"], down=False)


def cancel(given: Values, counter: Counter) -> int:
    target, *numbers = given["words"]
    wanted: list[int | None] = [show.run_number(text) for text in numbers]
    runs = ", ".join(numbers) or ("all" if given["all"] else "the last")
    what = f"job {target}" if target.isdigit() else f"{runs} of the runs of {target}"
    if not given["yes"] and not counter.confirm(f"Cancelling {what}. Proceed?"):
        return 1
    for number in wanted or [None]:
        print(cancelled(counter.service, target, number, everything=given["all"]))
    return 0


def down(given: Values, counter: Counter) -> int:
    """Asks first; exits 1 where the answer is no."""
    found = _chosen(given, counter.service)
    if not _agreed("Terminating", found, given=given, counter=counter):
        return 1
    for one in found:
        if given["graceful"]:
            _set_idle(counter.service, one, seconds=0, down=True)
            print(f"Cluster {one['name']} (job {one['job']}) goes when its runs are over")
            continue
        counter.service.post(f"/v1/clusters/{one['name']}/down")
        print(f"Terminating cluster {one['name']} (job {one['job']})")
    ssh.anew(counter)
    if not given["graceful"]:
        storage.remove(name for one in found for name in one["passing_storages"])
    return 0


def autostop(given: Values, counter: Counter) -> int:
    minutes = USUAL_MINUTES if given["idle_minutes"] is None else given["idle_minutes"]
    seconds = None if given["cancel"] or minutes < 0 else minutes * 60
    found = _chosen(given, counter.service)
    verb = "Keeping" if seconds is None else "Setting autostop of"
    if not _agreed(verb, found, given=given, counter=counter):
        return 1
    for one in found:
        _set_idle(counter.service, one, seconds=seconds, down=given["down"])
        verb = "goes" if given["down"] else "stops"
        told = "is kept" if seconds is None else f"{verb} after {minutes} minutes without a run"
        print(f"Cluster {one['name']} {told}")
    return 0


def stop(given: Values, counter: Counter) -> int:
    """Asks first; waits until the last machine is stopped. Exits 1 where the answer is no."""
    found = _chosen(given, counter.service)
    if not _agreed("Stopping", found, given=given, counter=counter):
        return 1
    for one in found:
        if given["graceful"]:
            _set_idle(counter.service, one, seconds=0, down=False)
            print(f"Cluster {one['name']} (job {one['job']}) stops when its runs are over")
            continue
        counter.service.post(f"/v1/clusters/{one['name']}/stop")
        print(f"Stopping cluster {one['name']} (job {one['job']})")
    if given["graceful"] or given["async"]:
        return 0
    for one in found:
        _wait(counter.service, one, {"STOPPED"})
        print(f"Cluster {one['name']} is stopped: its disks are kept, and billed")
    ssh.anew(counter)
    return 0


def start(given: Values, counter: Counter) -> int:
    """Asks first; waits until they are up. Exits 1 where one does not come up."""
    found = [one for one in _chosen(given, counter.service) if _to_start(one)]
    if not _agreed("Starting", found, given=given, counter=counter):
        return 1
    minutes = given["idle_minutes_to_autostop"]
    for one in found:
        if one["status"] == "STOPPING":
            _wait(counter.service, one, {"STOPPED"})
        counter.service.post(f"/v1/clusters/{one['name']}/start")
        if minutes is not None:
            seconds = None if minutes < 0 else minutes * 60
            _set_idle(counter.service, one, seconds=seconds, down=given["down"])
    if given["async"]:
        return 0
    codes = [_came_up(one, given, counter) for one in found]
    ssh.anew(counter)
    return max(codes, default=0)


def _to_start(one: Json) -> bool:
    if one["status"] == "UP":
        print(f"Cluster {one['name']} is up already")
    return bool(one["status"] != "UP")


def _came_up(one: Json, given: Values, counter: Counter) -> int:
    """With -r for ever; a start is never another place, nor another type."""
    pause = FIRST_GAP
    while True:
        now = _wait(counter.service, one, {"UP", "STOPPED"})
        if now["status"] == "UP":
            print(f"Cluster {one['name']} is up: {now['resources']} in {now['infra']}")
            return 0
        counter.say(f"cluster {one['name']} did not start: {now['detail'] or now['reason']}")
        if not given["retry_until_up"]:
            return 1
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_GAP)
        counter.service.post(f"/v1/clusters/{one['name']}/start")


def _wait(service: Client, one: Json, states: Container[str]) -> Json:
    """The cluster once it is in one of the states. Raises Refused where it is gone."""
    while True:
        every: list[Json] = service.get("/v1/clusters")["clusters"]
        now = next((other for other in every if other["job"] == one["job"]), None)
        if now is None:
            raise Refused(f"cluster {one['name']} is gone", hint="`spz cost-report` has its record")
        if now["status"] in states:
            return now
        time.sleep(LOOK)


def _set_idle(service: Client, one: Json, *, seconds: int | None, down: bool) -> None:
    body = {"idle_seconds": seconds, "down": down}
    service.post(f"/v1/clusters/{one['name']}/autostop", body)


def _chosen(given: Values, service: Client) -> list[Any]:
    """Clusters by name, or all of the user's. Raises Refused, Unknown."""
    names, everything = given["words"], given["all"] or given.get("all_users")
    if not names and not everything:
        raise Refused("no cluster named", hint="name some, or --all")
    found = service.get("/v1/clusters")["clusters"]
    mine = [one for one in found if given.get("all_users") or one["uid"] == os.getuid()]
    return show.matching(found if names else mine, names)


def _agreed(verb: str, found: Iterable[Json], *, given: Values, counter: Counter) -> bool:
    names = ", ".join(one["name"] for one in found)
    if not names:
        counter.say("there is no such cluster of yours")
        return True
    if given["yes"]:
        return True
    return counter.confirm(f"{verb} {names}. Proceed?")
