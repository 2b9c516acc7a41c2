"""launch, exec, cancel, down, autostop: what changes clusters."""

import os
from collections.abc import Iterable
from typing import Any

from broker.model.errors import Refused
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.launching import Launch
from gateway.sdk.launching import cancel as cancelled
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.sent import body_of

USUAL_MINUTES = 5
NO_STOP = (
    "machines here have no disks that outlive them: `spz down` lets a cluster go, "
    "`spz launch -c` makes it anew; nothing is kept that costs money"
)


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
    return made.finish(detach=detached, down=down)


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
            _set_idle(counter.service, one, seconds=0)
            print(f"Cluster {one['name']} (job {one['job']}) goes when its runs are over")
            continue
        counter.service.post(f"/v1/clusters/{one['name']}/down")
        print(f"Terminating cluster {one['name']} (job {one['job']})")
    return 0


def autostop(given: Values, counter: Counter) -> int:
    minutes = USUAL_MINUTES if given["idle_minutes"] is None else given["idle_minutes"]
    seconds = None if given["cancel"] or minutes < 0 else minutes * 60
    found = _chosen(given, counter.service)
    verb = "Keeping" if seconds is None else "Setting autostop of"
    if not _agreed(verb, found, given=given, counter=counter):
        return 1
    for one in found:
        _set_idle(counter.service, one, seconds=seconds)
        told = "is kept" if seconds is None else f"goes after {minutes} minutes without a run"
        print(f"Cluster {one['name']} {told}")
    return 0


def stop(given: Values, counter: Counter) -> int:
    raise Refused(f"stop: {NO_STOP}", hint="`spz autostop` lets idle clusters go")


def start(given: Values, counter: Counter) -> int:
    raise Refused(f"start: {NO_STOP}", hint="`spz launch -c NAME TASK`")


def _set_idle(service: Client, one: Json, *, seconds: int | None) -> None:
    service.post(f"/v1/clusters/{one['name']}/autostop", {"idle_seconds": seconds})


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
