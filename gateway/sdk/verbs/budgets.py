"""spz budget set, show: dollars for accounts, users, QOS, partitions."""

from collections.abc import Sequence

from broker.model.errors import Refused
from gateway.query.listed import listed
from gateway.query.skylists import BUDGETS
from gateway.sdk.client import Json
from gateway.sdk.show import drawn
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values

NONE = "no budgets: `spz budget set account:NAME 100` makes one"


def show(given: Values, counter: Counter) -> int:
    """All of them."""
    told = counter.service.get("/v1/budgets")
    counter.show(told["budgets"], given, lambda: text(told["budgets"]))
    return 0


def put(given: Values, counter: Counter) -> int:
    """`SCOPE:NAME USD`, or none for the dollars to take it away. Raises Refused."""
    scope, colon, name = given["words"][0].partition(":")
    if not colon or not name:
        raise Refused(
            f"{given['words'][0]!r} names no budget",
            hint="account:NAME, user:NAME, qos:NAME, partition:NAME",
        )
    words = given["words"][1:]
    body: Json = {"scope": scope, "name": name, "usd": _dollars(words)}
    for key in ("window", "zone", "action", "running", "warn_percent"):
        if given[key] is not None:
            body[key] = given[key]
    told = counter.service.post("/v1/budgets", body)
    counter.show(told["budgets"], given, lambda: text(told["budgets"]))
    return 0


def _dollars(words: Sequence[str]) -> float | None:
    if not words:
        raise Refused("no dollars were given", hint="a number, or none to take the budget away")
    if words[0].lower() == "none":
        return None
    try:
        return float(words[0].lstrip("$"))
    except ValueError:
        raise Refused(f"{words[0]!r} are no dollars", hint="a number, or none") from None


def text(rows: Sequence[Json]) -> str:
    """The table."""
    if not rows:
        return NONE
    return drawn(listed(BUDGETS, rows, 0, also=frozenset()))
