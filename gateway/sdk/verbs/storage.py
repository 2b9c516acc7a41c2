"""storage ls, delete: buckets that tasks have by name, with the user's own credentials."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from broker.model.errors import Refused, SpzError
from gateway.sdk import show
from gateway.sdk.client import Client, Json
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values


def _outside() -> Any:
    """boto3 takes 0.2 s to load."""
    return import_module("gateway.staging")


def ls(given: Values, counter: Counter) -> int:
    """Those that are there; where that cannot be asked, all that tasks have named."""
    told = counter.service.get("/v1/storage", all_users=given["all_users"])
    found = there(told["storages"], counter.say) if told["storages"] else []
    counter.show(found, given, lambda: _table(found, told["at"]))
    return 0


def there(named: Sequence[Json], say: Callable[[str], None]) -> list[Json]:
    """Those that are; all of them, and why it is said, where that cannot be asked."""
    try:
        names = _outside().users_buckets()
    except (OSError, SpzError) as error:
        say(f"note: whether they are there is not known: {error}")
        return [{**one, "status": "UNKNOWN"} for one in named]
    return [{**one, "status": "READY"} for one in named if one["name"] in names]


def _table(found: Sequence[Json], now: int) -> str:
    head = ("NAME", "UPDATED", "STORE", "COMMAND", "STATUS")
    rows = (
        (one["name"], show.ago(one["updated"], now), one["store"], one["command"], one["status"])
        for one in found
    )
    return show.table(head, rows) if found else "No existing storage."


def delete(given: Values, counter: Counter) -> int:
    """Asks first; exits 1 where the answer is no. Raises Refused, Unknown."""
    found = _chosen(given, counter.service)
    names = ", ".join(one["name"] for one in found)
    question = f"Deleting {names} with all that is in them. Proceed?"
    if found and not given["yes"] and not counter.confirm(question):
        return 1
    remove(one["name"] for one in found)
    return 0


def _chosen(given: Values, service: Client) -> Sequence[show.Json]:
    if not given["words"] and not given["all"]:
        raise Refused("no storage named", hint="name some, or --all")
    return named(service, given["words"])


def named(service: Client, names: Sequence[str]) -> Sequence[show.Json]:
    """The caller's own of these names, all without any. Raises Unknown."""
    told = service.get("/v1/storage")["storages"]
    mine = [one for one in told if one["uid"] == os.getuid()]
    return show.matching(mine, names, what="storage", lists="storage ls")


def remove(names: Iterable[str]) -> None:
    """Raises Refused, also where S3 does not answer."""
    for name in names:
        with _answered():
            _outside().remove_bucket(name)
        print(f"Deleted storage {name}")


def remove_made(names: Iterable[str]) -> None:
    """Those that were made for their task; what was there before is only deleted by name.

    Raises Refused as `remove`.
    """
    listed = list(names)
    with _answered():
        there = _outside().users_buckets() if listed else set()
    for name in listed:
        if name not in there:  # its machine was quicker
            continue
        with _answered():
            made = _outside().made_for_a_task(name)
        if made:
            remove([name])
        else:
            print(f"Storage {name} stays, for no task made it: `spz storage delete {name}`")


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(str(error), hint="the credentials of this shell are used") from error
