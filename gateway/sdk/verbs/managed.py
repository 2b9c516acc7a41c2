"""jobs launch, queue, cancel, logs: managed jobs."""

import json
import os
from typing import Any

from broker.model.errors import Refused, Unknown
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import Follower, Which, own_status, part_of
from gateway.sdk.launching import plan_text
from gateway.sdk.sending import make_folders
from gateway.sdk.verbs import pools
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.listing import text_of
from gateway.sdk.verbs.sent import body_of

USUAL_LIMIT = 50
FAILED = 100


def launch(given: Values, counter: Counter) -> int:
    """Exits as the job does; 0 with -d."""
    body = body_of(given, given["words"])
    if given["pool"]:
        return pools.run_on(given, counter, body)
    body |= {"num_jobs": given["num_jobs"], "group": given["job_group"]}
    service = counter.service
    plan = service.post("/v1/managed", {**body, "dry_run": True})
    for note in plan["notes"]:
        counter.say(f"note: {note}")
    if given["dryrun"]:
        counter.show(plan, given, lambda: plan_text({**plan, "cluster": plan["name"]}))
        return 0
    if not as_json(given):
        print(plan_text({**plan, "cluster": plan["name"]}))
    if not (given["yes"] or as_json(given) or counter.confirm(f"Launch {plan['name']}?")):
        raise Refused("nothing was launched", hint="-y launches without asking")
    make_folders(body["home"], plan["cwd"])
    made = service.persist("/v1/managed", body)
    return _finish(given, counter, body, made=made)


def _finish(given: Values, counter: Counter, body: Json, *, made: Json) -> int:
    ids = ", ".join(map(str, made["jobs"]))
    counter.say(f"managed job {ids}: `spz jobs logs {made['jobs'][0]}` follows it")
    if given["async"]:
        print(body["request"])
        return 0
    if as_json(given):
        print(json.dumps(made, indent=2))
    if given["detach_run"] or (given["num_jobs"] or 1) > 1:
        return 0
    status = 0
    for job in made["jobs"]:
        ended = _followed(counter, job)
        status = status or own_status(ended)
    return status


def _followed(counter: Counter, job: int) -> Json:
    import sys  # noqa: PLC0415 - only here is the terminal written to as bytes

    return Follower(counter.service, sys.stdout.buffer, say=counter.say).follow(Which(job))


def queue(given: Values, counter: Counter) -> int:
    told: Any = counter.service.get("/v1/managed", all=True)
    jobs = [one for one in told["jobs"] if given["all_users"] or one["uid"] == os.getuid()]
    wanted = {status.upper() for status in given["status"]}
    jobs = [one for one in jobs if not wanted or one["status"] in wanted]
    jobs = [one for one in jobs if not (given["skip_finished"] and one["over"])]
    if not given["all"]:
        jobs = jobs[: given["limit"] or USUAL_LIMIT]
    counter.show(jobs, given, lambda: show.managed(jobs, told["at"]))
    return 0


def cancel(given: Values, counter: Counter) -> int:
    found = _chosen(given, counter.service)
    names = ", ".join(str(one["id"]) for one in found)
    if (
        found
        and not given["yes"]
        and not counter.confirm(f"Cancelling managed jobs {names}. Proceed?")
    ):
        return 1
    for one in found:
        counter.service.post(f"/v1/jobs/{one['id']}/cancel")
        print(f"Cancelling managed job {one['id']}")
    if not found:
        counter.say("there is no such managed job of yours that is not over")
    return 0


def _chosen(given: Values, service: Client) -> list[Json]:
    """Raises Refused, Unknown."""
    ids = [show.run_number(text) for text in given["words"]]
    if not ids and not (given["name"] or given["all"] or given["all_users"]):
        raise Refused("no job named", hint="spz jobs cancel ID, --name NAME, or --all")
    jobs = service.get("/v1/managed", all=True)["jobs"]
    unknown = [number for number in ids if not any(one["id"] == number for one in jobs)]
    if unknown:
        raise Unknown(f"no managed job {unknown[0]}", hint="`spz jobs queue -a` lists them")
    live = [one for one in jobs if not one["over"]]
    mine = [one for one in live if given["all_users"] or one["uid"] == os.getuid()]
    if ids:
        return [one for one in live if one["id"] in ids]
    return [one for one in mine if not given["name"] or one["name"] == given["name"]]


def logs(given: Values, counter: Counter) -> int:
    """As `spz logs` exits."""
    service = counter.service
    job = _job_of(given, service)
    if given["controller"]:
        print("\n".join(service.get(f"/v1/jobs/{job}/why")["lines"]))
        return 0
    wanted = Which(job)
    state = part_of(service.get(f"/v1/jobs/{job}"), wanted)
    return text_of(given, counter, wanted, state=state, title=str(job))


def _job_of(given: Values, service: Client) -> int:
    """Raises Unknown."""
    if given["words"]:
        first = show.run_number(given["words"][0])
        task = show.run_number(given["words"][1]) if len(given["words"]) > 1 else 0
        return first + task
    jobs = service.get("/v1/managed", all=True)["jobs"]
    mine = [one for one in jobs if one["uid"] == os.getuid()]
    found = [one for one in mine if not given["name"] or one["name"] == given["name"]]
    if not found:
        raise Unknown("no such managed job", hint="`spz jobs queue -a` lists them")
    return int(found[0]["id"])
