"""Buckets that tasks have by name, with the user's own credentials."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from broker.model.errors import Refused, SpzError
from gateway.query import listed
from gateway.sdk import show
from gateway.sdk.client import Client, Json

Say = Callable[[str], None]


def _outside() -> Any:
    """boto3 takes 0.2 s to load."""
    return import_module("gateway.staging")


def there(told: Sequence[Json], say: Say) -> list[Json]:
    """Those that are; all of them, and why it is said, where that cannot be asked."""
    if not told:
        return []
    try:
        names = _outside().users_buckets()
    except (OSError, SpzError) as error:
        say(f"note: whether they are there is not known: {error}")
        return [{**one, "status": "UNKNOWN"} for one in told]
    return [{**one, "status": "READY"} for one in told if one["name"] in names]


def named(service: Client, names: Sequence[str]) -> Sequence[listed.Json]:
    """The caller's own of these names, all without any. Raises Unknown."""
    told = service.get("/v1/storage")["storages"]
    mine = [one for one in told if one["uid"] == os.getuid()]
    return show.matching(mine, names, what="storage", lists="storage ls")


def remove(names: Iterable[str], say: Say) -> None:
    """With all that is in them. Raises Refused, also where S3 does not answer."""
    for name in names:
        with _answered():
            _outside().remove_bucket(name)
        say(f"Deleted storage {name}")


def remove_made(names: Iterable[str], say: Say) -> None:
    """Those that were made for their task; what was there before is only deleted by name.

    Raises Refused as `remove`.
    """
    listed = list(names)
    with _answered():
        left = _outside().users_buckets() if listed else set()
    for name in listed:
        if name not in left:  # its machine was quicker
            continue
        with _answered():
            made = _outside().made_for_a_task(name)
        if made:
            remove([name], say)
        else:
            say(f"Storage {name} stays, for no task made it: `spz storage delete {name}`")


@contextmanager
def _answered() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(str(error), hint="the credentials of this shell are used") from error
