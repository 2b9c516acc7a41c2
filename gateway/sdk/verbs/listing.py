"""status, queue, logs, cost-report: what only looks."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broker.model.errors import SpzError
from gateway.query import listed
from gateway.sdk import clusters, show
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import NOT_FOUND, Follower, Which, logs_status
from gateway.sdk.launching import is_unknown, state_of, which
from gateway.sdk.records import cluster_told, cost_record, job_record
from gateway.sdk.synced import synced
from gateway.sdk.verbs import ssh
from gateway.sdk.verbs.counter import Counter, tell
from gateway.sdk.verbs.line import Values

EVENTS = ("stop", "preemption", "down")
"""What SkyPilot takes behind --hook; what hooks said is one text here."""
USUAL_TAIL = 1000
USUAL_DAYS = 30


def status(given: Values, counter: Counter) -> int:
    """Exits 1 where --ip is asked of a cluster that has none."""
    service = counter.service
    shown = _shown(given, service)
    ssh.tell(counter, shown)
    found = show.matching(shown, given["words"], say=counter.say)
    if given["endpoints"] or given["endpoint"] is not None:
        return _endpoints(found, given["endpoint"])
    if given["ip"]:
        return _addresses(found)
    told = service.get("/v1/jobs")
    others = [one for one in told["jobs"] if not one["over"] and not one["cluster"]]
    jobs = [] if given["words"] or given["show_managed_jobs"] is False else others
    data = [cluster_told(dict(one)) for one in found]
    also = show.wide(given)
    counter.show(data, given, lambda: show.overview(found, jobs, told["at"], also=also))
    return 0


def _shown(given: Values, service: Client) -> list[Json]:
    """The user's own, with `-u` everybody's; a name given finds whoever has it."""
    return clusters.listed(service, all_users=bool(given["all_users"] or given["words"]))


def _addresses(found: Sequence[listed.Json]) -> int:
    for one in found:
        print(clusters.address(one))
    return 0 if found else 1


def _endpoints(found: Sequence[listed.Json], port: int | None) -> int:
    """`8080: ADDRESS:8080` of each open port; of one that is named ADDRESS:PORT alone."""
    for one in found:
        for number, where in clusters.endpoints(one, port).items():
            print(where if port is not None else f"{number}: {where}")
    return 0 if found else 1


def queue(given: Values, counter: Counter) -> int:
    service = counter.service
    now = service.get("/v1/health")["at"]
    found = show.matching(_shown(given, service), given["words"], say=counter.say)
    hidden = given["skip_finished"]
    queues = {
        one["name"]: [run for run in one["runs"] if not (hidden and run["over"])] for one in found
    }
    data = {name: [job_record(run) for run in runs] for name, runs in queues.items()}
    counter.show(data, given, lambda: show.queues(queues, now))
    return 0


def logs(given: Values, counter: Counter) -> int:
    """0 succeeded, 100 failed, 101 not over, 102 not found, 103 cancelled."""
    words = given["words"]
    if given["hook"] and len(words) > 1:
        words = [word for word in words if word not in EVENTS]
    target, *numbers = words
    service = counter.service
    if given["provision"]:
        return tell_why(service, which(service, target, None).job)
    if given["hook"]:
        Follower(service, sys.stdout.buffer).show(Which(which(service, target, None).job))
        return 0
    runs: list[int | None] = [show.run_number(text) for text in numbers]
    return max(_one_log(given, counter, target, run=run) for run in runs or [None])


def _one_log(given: Values, counter: Counter, target: str, *, run: int | None) -> int:
    try:
        wanted = _found(counter, target, run)
        state = state_of(counter.service, wanted)
    except SpzError as error:
        if not is_unknown(error):
            raise
        tell(error)
        return NOT_FOUND
    return text_of(given, counter, wanted, state=state, title=target)


def _found(counter: Counter, target: str, run: int | None) -> Which:
    """Also a run of a cluster that is gone. Raises Unknown, Told."""
    try:
        return which(counter.service, target, run)
    except SpzError as error:
        past = clusters.gone(counter.service, target) if is_unknown(error) else None
        if past is None:
            raise
        counter.say(f"cluster {target} (job {past['id']}) is gone: {past['state']}")
        runs = [one["id"] for one in past["runs"]]
        return Which(past["id"], run or max(runs, default=1))


def tell_why(service: Client, job: int) -> int:
    """In place of its text."""
    print("\n".join(clusters.why(service, job)))
    return 0


def text_of(given: Values, counter: Counter, wanted: Which, *, state: Json, title: str) -> int:
    """Shows, copies or follows a run's text, as the options say; the exit status of `logs`."""
    if given["status"]:
        print(f"{title}: {state['status']}")
        return logs_status(state)
    if given["sync_down"]:
        return _copied(counter.service, wanted, state, title=title, only=given["worker"])
    tail = USUAL_TAIL if given["tail"] is None else given["tail"] or None
    follower = Follower(counter.service, sys.stdout.buffer, say=counter.say, only=given["worker"])
    ended = follower.show(wanted, tail=tail) if given["no_follow"] else None
    return logs_status(ended or follower.follow(wanted, tail=tail))


def _copied(service: Client, wanted: Which, state: Json, *, title: str, only: int | None) -> int:
    """Below ./sky_logs."""
    name = f"{title}-{wanted.job}{'' if wanted.run is None else f'-{wanted.run}'}"
    for path in synced(service, wanted, state, start=Path("sky_logs") / name, only=only):
        print(path)
    return logs_status(state)


def why(given: Values, counter: Counter) -> int:
    service = counter.service
    told = service.get(f"/v1/jobs/{_found(counter, given['words'][0], None).job}/why")
    counter.show(told, given, lambda: "\n".join(told["lines"]))
    return 0


def cost_report(given: Values, counter: Counter) -> int:
    days = USUAL_DAYS if given["days"] is None else given["days"]
    told: Any = counter.service.get("/v1/report", days=None if given["all"] else days)
    data = [cost_record(one, told["at"]) for one in told["clusters"]]
    counter.show(data, given, lambda: show.report(told["clusters"], told["at"]))
    return 0
