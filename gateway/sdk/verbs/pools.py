"""jobs pool: workers that are kept up, and jobs that are sent to them.

A worker is a cluster called POOL-1, POOL-2, ...; a job goes to the one with the fewest runs.
"""

import os
import re
from collections.abc import Iterator, Sequence

from broker.model.errors import Refused, Unknown
from gateway.sdk import clusters, show
from gateway.sdk.client import Client, Json
from gateway.sdk.follow import Which
from gateway.sdk.launching import Launch, state_of, which
from gateway.sdk.sending import make_folders
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import Values
from gateway.sdk.verbs.listing import tell_why, text_of
from gateway.sdk.verbs.sent import body_of
from gateway.sdk.verbs.tasks import text_of as file_text
from gateway.translate.skypilot import Task, read_file
from gateway.translate.skypilot_yaml import written

_WORKER = re.compile(r"(.+)-pool-(\d+)")


def apply(given: Values, counter: Counter) -> int:
    """Starts workers until there are as many as asked for, and lets the last ones go."""
    name, count, body = _asked(given)
    found = workers(counter.service).get(name, [])
    question = f"Pool {name}: {count} workers ({len(found)} are there). Proceed?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    for told in applied(counter.service, name, count, body=body):
        print(told)
    return 0


def applied(service: Client, name: str, count: int, *, body: Json | None) -> Iterator[str]:
    """Tells of each worker that it starts, or lets go. Raises Told."""
    found = workers(service).get(name, [])
    there = {one["name"] for one in found}
    for number in range(1, count + 1):
        worker = f"{name}-pool-{number}"
        if body is not None and worker not in there:
            _start(service, {**body, "cluster": worker, "request": os.urandom(16).hex()})
            yield f"Starting worker {number} of pool {name}"
    for one in found:
        if _number(one) > count:
            service.persist(f"/v1/clusters/{one['name']}/down")
            yield f"Letting worker {_number(one)} of pool {name} go"


def _asked(given: Values) -> tuple[str, int, Json | None]:
    """Name, workers and what each is launched with; None where no file is given. Raises Refused."""
    if not given["words"]:
        if not given["pool"] or given["workers"] is None:
            raise Refused("a pool needs a file, or --pool NAME --workers N")
        return given["pool"], given["workers"], None
    file = read_file(file_text(given["words"][0]))
    task, usual = worker_of(file.tasks, given["words"][0])
    plain = {key: value for key, value in file.trees[0].items() if key not in {"pool", "secrets"}}
    body = body_of({**_nothing(), **given, "name": None}, [])
    body["task"] = written([plain])
    kept = {name: text for name, text in (task.secrets or {}).items() if text is not None}
    body["secrets"] = kept | body["secrets"]
    name = given["pool"] or task.name or "pool"
    return name, usual if given["workers"] is None else given["workers"], body


def worker_of(tasks: Sequence[Task], told: str) -> tuple[Task, int]:
    """The only task, which has a `pool`, and how many workers that asks for. Raises Refused."""
    task, *others = tasks
    if others or task.pool is None:
        raise Refused(f"{told}: not one task with a `pool`")
    if task.run:
        raise Refused("run: a pool has none", hint="`spz jobs launch --pool` sends jobs to it")
    return task, task.pool.workers or task.pool.min_workers or 1


def _nothing() -> Values:
    return {"env": [], "env_file": [], "secret": [], "secret_file": []}


def _start(service: Client, body: Json) -> None:
    plan = service.post("/v1/launch", {**body, "dry_run": True})
    make_folders(body["home"], plan["cwd"])
    service.persist("/v1/launch", body)


def workers(service: Client) -> dict[str, list[Json]]:
    """The user's, by pool."""
    found: dict[str, list[Json]] = {}
    for one in clusters.listed(service):
        if named := _WORKER.fullmatch(one["name"]):
            found.setdefault(named[1], []).append(one)
    return found


def _number(worker: Json) -> int:
    return int(worker["name"].rpartition("-")[2])


def must_have(service: Client, name: str) -> list[Json]:
    """Raises Unknown."""
    found = workers(service).get(name)
    if not found:
        raise Unknown(f"no pool {name!r}", hint="`spz jobs pool status` lists those there are")
    return found


def least_used(service: Client, pool: str) -> Json:
    """The worker with the fewest runs. Raises Unknown, Refused."""
    up = [one for one in must_have(service, pool) if one["status"] == "UP"]
    if not up:
        raise Refused(f"no worker of pool {pool} is up yet", hint="try again soon")
    return min(up, key=lambda one: sum(not run["over"] for run in one["runs"]))


def run_on(given: Values, counter: Counter, body: Json) -> int:
    """Sends a job to the worker with the fewest runs; so many times as --num-jobs says."""
    service = counter.service
    status = 0
    for _ in range(given["num_jobs"] or 1):
        least = least_used(service, given["pool"])
        made = Launch(service, counter.say, as_json=as_json(given))
        made.execute(least["name"], {**body, "request": os.urandom(16).hex()})
        detached = given["detach_run"] or given["async"] or (given["num_jobs"] or 1) > 1
        status = status or made.finish(detach=detached, down=False)
    return status


def status(given: Values, counter: Counter) -> int:
    found = workers(counter.service)
    for name in given["words"]:
        must_have(counter.service, name)
    wanted = {
        name: one for name, one in found.items() if not given["words"] or name in given["words"]
    }
    counter.show(wanted, given, lambda: show.pools(wanted))
    return 0


def logs(given: Values, counter: Counter) -> int:
    name, *rest = given["words"]
    first = first_of(counter.service, name)
    numbers = [show.run_number(word) for word in rest] or [first]
    return max(_said(given, counter, name, number=number) for number in numbers)


def first_of(service: Client, pool: str) -> int:
    """The number of its first worker. Raises Unknown."""
    return _number(must_have(service, pool)[0])


def setup_of(service: Client, pool: str, number: int) -> Which:
    """The first run of a worker. Raises Unknown."""
    return which(service, f"{pool}-pool-{number}", 1)


def _said(given: Values, counter: Counter, name: str, *, number: int) -> int:
    wanted = setup_of(counter.service, name, number)
    if given["controller"]:
        return tell_why(counter.service, wanted.job)
    state = state_of(counter.service, wanted)
    return text_of(given, counter, wanted, state=state, title=f"{name} {number}")


def down(given: Values, counter: Counter) -> int:
    names = given["words"] or (list(workers(counter.service)) if given["all"] else [])
    if not names and not given["all"]:
        raise Refused("no pool named", hint="spz jobs pool down POOL, or --all")
    found = [one for name in names for one in must_have(counter.service, name)]
    question = f"End pool {', '.join(names)}?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    for one in found:
        counter.service.persist(f"/v1/clusters/{one['name']}/down")
    for name in names:
        print(f"Terminating pool {name}")
    return 0
