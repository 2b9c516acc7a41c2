"""storage ls, delete: buckets that tasks have by name, with the user's own credentials."""

from collections.abc import Sequence
from functools import partial

from gateway.query.listed import Column, listed
from gateway.query.listed import Json as Record
from gateway.query.skylists import STORAGES
from gateway.sdk import buckets, show
from gateway.sdk.client import Client, Json
from gateway.sdk.requested import apart
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import UsageError, Values


def ls(given: Values, counter: Counter) -> int:
    """Those that are there; where that cannot be asked, all that tasks have named."""
    told = counter.service.get("/v1/storage", all_users=given["all_users"])
    found = buckets.there(told["storages"], counter.say)
    counter.show(found, given, lambda: _table(found, told["at"]))
    return 0


def _table(found: Sequence[Json], now: int) -> str:
    columns = (*STORAGES, Column("STATUS", lambda one, now: one["status"]))
    shown = show.drawn(listed(columns, found, now, also=frozenset()))
    return shown if found else "No existing storage."


def delete(given: Values, counter: Counter) -> int:
    """Asks first; exits 1 where the answer is no. Raises Refused, Unknown."""
    found = _chosen(given, counter.service)
    names = ", ".join(one["name"] for one in found)
    question = f"Deleting {names} with all that is in them. Proceed?"
    if found and not given["yes"] and not counter.confirm(question):
        return 1
    if not given["async"]:
        buckets.remove((one["name"] for one in found), print)
        return 0
    wanted = [str(one["name"]) for one in found]
    work = partial(buckets.remove, wanted)
    return counter.requested(apart(counter.service, "storage delete", names, work=work))


def _chosen(given: Values, service: Client) -> Sequence[Record]:
    if not given["words"] and not given["all"]:
        raise UsageError("no storage named", hint="name some, or --all")
    return buckets.named(service, given["words"])
