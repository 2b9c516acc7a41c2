"""jobs pool: workers that are kept up, and jobs that are sent to them."""

import os

from broker.model.errors import Refused
from gateway.sdk import pools, show
from gateway.sdk.client import Json
from gateway.sdk.launching import Launch, state_of
from gateway.sdk.verbs.begun import Begun
from gateway.sdk.verbs.counter import Counter, as_json
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.listing import tell_why, text_of
from gateway.sdk.verbs.sent import body_of
from gateway.sdk.verbs.tasks import text_of as file_text
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_notes import notes
from gateway.translate.skypilot_yaml import written


def apply(given: Values, counter: Counter) -> int:
    """Starts workers until there are as many as asked for, and lets the last ones go."""
    name, count, body = _asked(given, counter)
    found = pools.workers(counter.service).get(name, [])
    question = f"Pool {name}: {count} workers ({len(found)} are there). Proceed?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    begun = Begun("jobs pool apply", counter, given["async"])
    begun.goals += pools.scale(counter.service, name, count, body=body, say=begun.say)
    return begun.told()


def _asked(given: Values, counter: Counter) -> tuple[str, int, Json | None]:
    """Name, workers and what each is launched with; None where no file is given. Raises Refused."""
    if not given["words"]:
        if not given["pool"] or given["workers"] is None:
            raise Refused("a pool needs a file, or --pool NAME --workers N")
        return given["pool"], given["workers"], None
    file = read_file(file_text(given["words"][0]))
    task, usual = pools.worker_of(file.tasks, given["words"][0])
    for note in notes(task):
        if note.startswith("pool."):
            counter.say(f"note: {note}")
    plain = {key: value for key, value in file.trees[0].items() if key not in {"pool", "secrets"}}
    body = body_of({**_nothing(), **given, "name": None}, [])
    body["task"] = written([plain])
    kept = {name: text for name, text in (task.secrets or {}).items() if text is not None}
    body["secrets"] = kept | body["secrets"]
    name = given["pool"] or task.name or "pool"
    return name, usual if given["workers"] is None else given["workers"], body


def _nothing() -> Values:
    return {"env": [], "env_file": [], "secret": [], "secret_file": []}


def run_on(given: Values, counter: Counter, body: Json) -> int:
    """Sends a job to the worker with the fewest runs; so many times as --num-jobs says."""
    service = counter.service
    status = 0
    for _ in range(given["num_jobs"] or 1):
        least = pools.least_used(service, given["pool"])
        made = Launch(service, counter.say, as_json=as_json(given))
        own = {**body, "request": os.urandom(16).hex()}
        made.execute(least["name"], own)
        if given["async"]:
            counter.requested(own["request"])
            continue
        detached = given["detach_run"] or (given["num_jobs"] or 1) > 1
        status = status or made.finish(detach=detached, goes=False)
    return status


def status(given: Values, counter: Counter) -> int:
    found = pools.workers(counter.service)
    for name in given["words"]:
        pools.must_have(counter.service, name)
    wanted = {
        name: one for name, one in found.items() if not given["words"] or name in given["words"]
    }
    counter.show(wanted, given, lambda: show.pools(wanted))
    return 0


def logs(given: Values, counter: Counter) -> int:
    name, *rest = given["words"]
    first = pools.must_have(counter.service, name)[0]
    numbers = [show.run_number(word) for word in rest] or [pools.number_of(first)]
    return max(_said(given, counter, name, number=number) for number in numbers)


def _said(given: Values, counter: Counter, name: str, *, number: int) -> int:
    wanted = pools.setup_of(counter.service, name, number)
    if given["controller"]:
        return tell_why(counter.service, wanted.job)
    state = state_of(counter.service, wanted)
    return text_of(given, counter, wanted, state=state, title=f"{name} {number}")


def down(given: Values, counter: Counter) -> int:
    names = given["words"] or (list(pools.workers(counter.service)) if given["all"] else [])
    if not names and not given["all"]:
        raise UsageError("no pool named", hint="spz jobs pool down POOL, or --all")
    for name in names:
        pools.must_have(counter.service, name)
    question = f"End pool {', '.join(names)}?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    begun = Begun("jobs pool down", counter, given["async"])
    begun.goals += pools.end(counter.service, names)
    for name in names:
        begun.say(f"Terminating pool {name}")
    return begun.told()
