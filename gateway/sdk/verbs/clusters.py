"""launch, exec, cancel, down, stop, start, autostop: what changes clusters."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from gateway.sdk import buckets, clusters, show
from gateway.sdk.client import Json
from gateway.sdk.launching import Launch
from gateway.sdk.launching import cancel as cancelled
from gateway.sdk.sending import YAML
from gateway.sdk.verbs import ssh
from gateway.sdk.verbs.begun import Begun
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.sent import body_of

USUAL_MINUTES = 5


def launch(given: Values, counter: Counter) -> int:
    """Exits as `logs` of the run does. Raises Refused, Told."""
    clusters.must_copy_no_disk(given["clone_disk_from"])
    clusters.must_keep_size(given["resize"])
    _must_name_no_file(given)
    detached = given["detach_run"] or given["async"]
    body = body_of(given, given["words"])
    body |= {"cluster": given["cluster"], "setup": not given["no_setup"]}
    if given["fast"]:
        body["setup"] = body["setup"] and not clusters.is_up(counter.service, given["cluster"])
    quiet = given["yes"] or as_json(given)
    made = Launch(counter.service, counter.say, as_json=as_json(given))
    if not made.launch(body, confirm=None if quiet else counter.confirm, dry_run=given["dryrun"]):
        return 0
    if given["async"]:
        return counter.requested(body["request"])
    goes = given["down"] and given["idle_minutes_to_autostop"] is None
    status = made.finish(detach=detached, goes=goes)
    ssh.anew(counter)
    return status


def _must_name_no_file(given: Values) -> None:
    """Raises UsageError for a task's file behind -c, with no task."""
    name = given["cluster"] or ""
    if not given["words"] and name.endswith(YAML):
        raise UsageError(f"-c {name}: a file, no name", hint=f"spz launch -c NAME {name}")


def execute(given: Values, counter: Counter) -> int:
    words = given["words"]
    if given["cluster"] is not None:
        words = [given["cluster"], *words]
    if not words:
        raise UsageError("CLUSTER is missing", hint="spz exec CLUSTER TASK")
    cluster, *words = words
    made = Launch(counter.service, counter.say, as_json=as_json(given))
    body = body_of(given, words)
    made.execute(cluster, body)
    if given["async"]:
        return counter.requested(body["request"])
    return made.finish(detach=given["detach_run"], goes=False)


def cancel(given: Values, counter: Counter) -> int:
    target, *numbers = given["words"]
    wanted: list[int | None] = [show.run_number(text) for text in numbers]
    runs = ", ".join(numbers) or ("all" if given["all"] else "the last")
    what = f"job {target}" if target.isdigit() else f"{runs} of the runs of {target}"
    if not given["yes"] and not counter.confirm(f"Cancelling {what}. Proceed?"):
        return 1
    begun = Begun("cancel", counter, given["async"])
    for number in wanted or [None]:
        end = cancelled(counter.service, target, number, everything=given["all"])
        begun.say(end.text)
        begun.goals += end.goals
    return begun.told()


class Way(NamedTuple):
    """In which a cluster ends: its route, what it becomes, and what is said of it."""

    route: str
    to: str
    doing: str
    does: str


DOWN = Way("down", "gone", "Terminating", "goes")
STOP = Way("stop", "stopped", "Stopping", "stops")


def _end(way: Way, given: Values, begun: Begun) -> list[Json] | None:
    """Asks first; None where the answer is no. With --graceful what runs wrote is kept."""
    counter = begun.counter
    found = _chosen(given, counter)
    if not _agreed(way.doing, found, given=given, counter=counter):
        return None
    for one in found:
        if given["graceful"]:
            within = given["graceful_timeout"]
            begun.goals.append(
                clusters.end_gracefully(counter.service, one, down=way is DOWN, within=within)
            )
            ends = "once its runs have ended, and what they wrote is in its buckets"
            begun.say(f"Cluster {one['name']} (job {one['job']}) {way.does} {ends}")
            continue
        begun.wants(way.to, job=one["job"], name=one["name"])
        counter.service.persist(f"/v1/clusters/{one['name']}/{way.route}")
        begun.say(f"{way.doing} cluster {one['name']} (job {one['job']})")
    return found


def down(given: Values, counter: Counter) -> int:
    """Exits 1 where the answer is no."""
    begun = Begun("down", counter, given["async"])
    found = _end(DOWN, given, begun)
    if found is None:
        return 1
    ssh.anew(counter)
    if not given["graceful"]:
        passing = [name for one in found for name in one["passing_storages"]]
        buckets.remove_made(passing, begun.say)
        return begun.told()
    return begun.seen_to()


def stop(given: Values, counter: Counter) -> int:
    """Waits until the last machine is stopped. Exits 1 where the answer is no."""
    begun = Begun("stop", counter, given["async"])
    found = _end(STOP, given, begun)
    if found is None:
        return 1
    if given["async"]:
        return begun.told()
    if given["graceful"]:
        begun.seen_to()
    for one in found:
        clusters.until(counter.service, one["job"], {"STOPPED"})
        print(f"Cluster {one['name']} is stopped: its disks are kept, and billed")
    ssh.anew(counter)
    return 0


def autostop(given: Values, counter: Counter) -> int:
    """Asks first; exits 1 where the answer is no."""
    asked = USUAL_MINUTES if given["idle_minutes"] is None else given["idle_minutes"]
    minutes = -1 if given["cancel"] else asked
    waits = given["wait_for"]
    found = _chosen(given, counter)
    verb = "Keeping" if minutes < 0 else "Setting autostop of"
    if not _agreed(verb, found, given=given, counter=counter):
        return 1
    way = DOWN if given["down"] else STOP
    told = f"{way.does} after {minutes} minutes without a run"
    if waits == "none":
        told = f"goes in {minutes} minutes, whatever runs"
    begun = Begun("autostop", counter, given["async"])
    for one in found:
        clusters.set_idle(counter.service, one["name"], minutes, down=given["down"], waits=waits)
        begun.say(f"Cluster {one['name']} {'is kept' if minutes < 0 else told}")
    return begun.told()


def start(given: Values, counter: Counter) -> int:
    """Asks first; waits until they are up. Exits 1 where one does not come up. Raises Refused."""
    begun = Begun("start", counter, given["async"])
    found = [one for one in _chosen(given, counter) if _to_start(one, begun)]
    if not _agreed("Starting", found, given=given, counter=counter):
        return 1
    for one in found:
        begun.wants("up", job=one["job"], name=one["name"])
        if not begun.apart:
            _begin(counter, one)
        _set_idle(given, counter, one)
    if begun.apart:
        return begun.told(again=given["retry_until_up"])
    codes = [_came_up(one, given, counter) for one in found]
    ssh.anew(counter)
    return max(codes, default=0)


def _begin(counter: Counter, one: Json) -> None:
    """As soon as it is stopped."""
    if one["status"] == "STOPPING":
        clusters.until(counter.service, one["job"], {"STOPPED"})
    counter.service.persist(f"/v1/clusters/{one['name']}/start")


def _set_idle(given: Values, counter: Counter, one: Json) -> None:
    minutes, waits = given["idle_minutes_to_autostop"], given["wait_for"]
    if minutes is not None:
        clusters.set_idle(counter.service, one["name"], minutes, down=given["down"], waits=waits)


def _to_start(one: Json, begun: Begun) -> bool:
    if one["status"] == "UP":
        begun.say(f"Cluster {one['name']} is up already")
    return bool(one["status"] != "UP")


def _came_up(one: Json, given: Values, counter: Counter) -> int:
    """A start is never another place, nor another type."""
    again = bool(given["retry_until_up"])
    now = clusters.came_up(counter.service, one, again=again, say=counter.say)
    if now["status"] == "UP":
        print(f"Cluster {one['name']} is up: {now['resources']} in {now['infra']}")
    return 0 if now["status"] == "UP" else 1


def _chosen(given: Values, counter: Counter) -> list[Any]:
    """Clusters by name, or all of the user's; a name that is none is told. Raises UsageError."""
    names, everything = given["words"], given["all"] or given.get("all_users")
    if not names and not everything:
        raise UsageError("no cluster named", hint="name some, or --all")
    anybody = bool(names or given.get("all_users"))
    every = clusters.listed(counter.service, all_users=anybody)
    return show.matching(every, names, say=counter.say)


def _agreed(verb: str, found: Iterable[Json], *, given: Values, counter: Counter) -> bool:
    names = ", ".join(one["name"] for one in found)
    if not names:
        if not given["words"]:
            counter.say("there is no such cluster of yours")
        return True
    if given["yes"]:
        return True
    return counter.confirm(f"{verb} {names}. Proceed?")
