"""jobs launch, cancel, logs: managed jobs."""

import json
import os
import sys

from broker.model.errors import Refused, Unknown
from gateway.sdk import managed, show
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import NOT_FOUND, Follower, Which, logs_status, part_of
from gateway.sdk.launching import job_number, plan_text
from gateway.sdk.managed import must_join_none
from gateway.sdk.sending import make_folders
from gateway.sdk.texts import copied
from gateway.sdk.verbs import pools
from gateway.sdk.verbs.counter import Counter, as_json, tell
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.listing import tell_why, text_of
from gateway.sdk.verbs.sent import body_of


def launch(given: Values, counter: Counter) -> int:
    """Exits as `logs` of the job does; 0 with -d. Raises Refused."""
    must_join_none(given["job_group"])
    body = body_of({**given, "name": given["name"] or given["cluster"]}, given["words"])
    if given["pool"]:
        return pools.run_on(given, counter, body)
    body |= {"num_jobs": given["num_jobs"]}
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
    counter.say(f"managed job {made['root']}: `spz jobs logs {made['root']}` follows it")
    if given["async"]:
        return counter.requested(body["request"])
    if as_json(given):
        print(json.dumps(made, indent=2))
    if given["detach_run"] or (given["num_jobs"] or 1) > 1:
        return 0
    status = 0
    for job in made["jobs"]:
        ended = _followed(counter, job)
        if job in made["primary"]:
            status = status or logs_status(ended)
    return status


def _followed(counter: Counter, job: int) -> Json:
    return Follower(counter.service, sys.stdout.buffer, say=counter.say).follow(Which(job))


def cancel(given: Values, counter: Counter) -> int:
    """Whole pipelines and groups, or with --task one of their tasks. Asks first."""
    found = _chosen(given, counter.service)
    if not found:
        counter.say("there is no such managed job of yours that is not over")
        return 0
    ids = ", ".join(str(number) for number in dict.fromkeys(one["root"] for one in found))
    if not given["yes"] and not counter.confirm(f"Cancelling managed jobs {ids}. Proceed?"):
        return 1
    for number in managed.end(counter.service, found):
        print(f"Cancelling managed job {number}")
    return 0


def _number(service: Client, text: str) -> int:
    """A job's id, as Slurm tells it too. Raises Refused, Unknown."""
    number = job_number(service, text)
    return show.run_number(text) if number is None else number


def _chosen(given: Values, service: Client) -> list[Json]:
    """Those that are not over, in the order of their ids. Raises Refused, Unknown."""
    ids = [_number(service, text) for text in given["words"]]
    names = {"name": given["name"], "pool": given["pool"]}
    if not ids and not (any(names.values()) or given["all"] or given["all_users"]):
        raise UsageError("no job named", hint="spz jobs cancel ID, --name NAME, or --all")
    if given["pool"]:
        raise Refused("jobs of pools are runs of their workers", hint="`spz cancel POOL-pool-1`")
    jobs = sorted(service.get("/v1/managed", all=True)["jobs"], key=lambda one: int(one["id"]))
    found = managed.of_ids(jobs, ids) if ids else jobs
    live = managed.of_task([one for one in found if not one["over"]], given["task"])
    if ids:
        return live
    mine = [one for one in live if given["all_users"] or one["uid"] == os.getuid()]
    return managed.of_name(mine, given["name"])


def logs(given: Values, counter: Counter) -> int:
    """As `spz logs` exits."""
    service = counter.service
    try:
        job = _job_of(given, service)
    except Unknown as error:
        tell(error)
        return NOT_FOUND
    if given["controller"]:
        return tell_why(service, job)
    wanted = Which(job)
    state = part_of(service.get(f"/v1/jobs/{job}"), wanted)
    if given["attempt"] is not None:
        return _of_attempt(state, given["attempt"], only=given["worker"])
    if not (given["status"] or given["sync_down"] or given["tail"]):
        follower = Follower(service, sys.stdout.buffer, say=counter.say, only=given["worker"])
        follower.earlier(wanted)
    return text_of(given, counter, wanted, state=state, title=str(job))


def _of_attempt(state: Json, number: int, *, only: int | None) -> int:
    """The whole text of one attempt, counted from 1. Raises Unknown."""
    paths = dict(enumerate(state["attempts"], 1)).get(number, [])
    if not copied(paths, sys.stdout.buffer.write, only=only):
        raise Unknown(f"job {state['id']} has no text of attempt {number}", hint="counted from 1")
    return logs_status(state)


def _job_of(given: Values, service: Client) -> int:
    """The job, or that task of it; the last one without an id. Raises Unknown."""
    jobs = service.get("/v1/managed", all=True)["jobs"]
    wanted = _number(service, given["words"][0]) if given["words"] else None
    task = given["words"][1] if len(given["words"]) > 1 else None
    mine = [one for one in jobs if wanted is not None or one["uid"] == os.getuid()]
    return int(managed.one_of(managed.of_name(mine, given["name"]), wanted, task=task)["id"])
