"""volumes apply, ls, delete: disks that outlive machines."""

import os
import time
from collections.abc import Sequence
from typing import Any

from broker.model.errors import Refused
from gateway.query.listed import listed
from gateway.query.skylists import VOLUMES
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.sending import file_of, task_text
from gateway.sdk.verbs.begun import Begun
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values

OVERRIDES = ("name", "infra", "type", "size", "use_existing")
POLL_SECONDS = 0.2
MAKING = "CREATING"
GOING = "DELETING"


def apply(given: Values, counter: Counter) -> int:
    """Follows it until it is ready. Raises Refused where it cannot be made."""
    text = _text(given["words"])
    overrides = {key: given[key] for key in OVERRIDES if given.get(key) is not None}
    question = f"Proceed to create volume {overrides.get('name') or given['words'][:1] or ''}?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    told = counter.service.persist("/v1/volumes", {"text": text, "overrides": overrides})
    for note in told["notes"]:
        counter.say(f"note: {note}")
    if given["async"]:
        begun = Begun("volumes apply", counter, apart=True)
        begun.wants("ready", name=told["name"])
        return begun.told()
    made = _settled(counter.service, told["name"], MAKING)
    if made is not None and made["error_message"]:
        raise Refused(f"volume {made['name']}: {made['error_message']}")
    where = "" if made is None else f" in {made['region']}/{made['zone']}"
    print(f"Created volume {told['name']}{where}" if made else f"Creating volume {told['name']}")
    return 0


def _text(words: Sequence[str]) -> str:
    """Of the file that is named. Raises Refused where there is none."""
    if words and not file_of(words[0]):
        raise Refused(f"{words[0]}: no such file", hint="spz volumes apply FILE, or --name, --size")
    return task_text(words[:1])


def _settled(service: Client, name: str, moving: str) -> Json | None:
    """It as soon as it is not on its way any more; None once it is gone."""
    while True:
        found = {one["name"]: one for one in service.get("/v1/volumes")["volumes"]}
        one: Json | None = found.get(name)
        if one is None or one["status"] != moving:
            return one
        time.sleep(POLL_SECONDS)


def ls(given: Values, counter: Counter) -> int:
    reply = counter.service.get("/v1/volumes", all_users=given["all_users"])
    found = [one for one in reply["volumes"] if not given["words"] or one["name"] in given["words"]]
    missing = sorted(set(given["words"]) - {one["name"] for one in found})
    if missing:
        counter.say(f"no volume {', '.join(missing)}")
    text = show.drawn(
        listed(VOLUMES, found, reply["at"], also=show.wide({**given, "all_users": True}))
    )
    told = f"{text}{show.below(found)}" if found else "No existing volumes."
    counter.show(found, given, lambda: told)
    return 0


def delete(given: Values, counter: Counter) -> int:
    """Asks first; exits 1 where the answer is no. Raises Refused, Unknown, Conflict."""
    if bool(given["words"]) == bool(given["all"]):
        raise Refused("Either --all or a name must be specified.")
    told: list[Any] = counter.service.get("/v1/volumes")["volumes"]
    mine = [one for one in told if one["uid"] == os.getuid()]
    found = show.matching(mine, given["words"], what="volume", lists="volumes ls")
    if not found:
        print("No volumes to delete.")
        return 0
    names = ", ".join(one["name"] for one in found)
    volumes = "volumes" if len(found) > 1 else "volume"
    question = f"Deleting {len(found)} {volumes}: {names}. Proceed?"
    if not given["yes"] and not counter.confirm(question):
        return 1
    for one in found:
        counter.service.persist(f"/v1/volumes/{one['name']}/delete", purge=bool(given["purge"]))
    begun = Begun("volumes delete", counter, given["async"])
    for one in found:
        begun.wants("deleted", name=one["name"])
        if not begun.apart:
            _settled(counter.service, one["name"], GOING)
            print(f"Deleted volume {one['name']}")
    return begun.told()
