"""spz plugins ls, set, forget: how far accounting plugins have come in the ledger."""

from broker.model.errors import Refused
from gateway.sdk.client import Json
from gateway.sdk.show import table
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values
from sbatch_shim.grammar.values import read_digits

HEAD = ("PLUGIN", "POSITION", "BEHIND", "STATE")


def show(given: Values, counter: Counter) -> int:
    """All that ever read the ledger, the sums of reports among them."""
    return _told(counter.service.get("/v1/plugins"), given, counter)


def put(given: Values, counter: Counter) -> int:
    """`NAME NUMBER`: the entries after that one come next. Raises Refused."""
    name, number = given["words"]
    position = read_digits(number)
    if position is None:
        raise Refused(f"{number!r} is no number of an entry", hint="0 begins anew")
    body = {"name": name, "position": position}
    return _told(counter.service.post("/v1/plugins", body), given, counter)


def forget(given: Values, counter: Counter) -> int:
    """`NAME` of one that is not installed any more."""
    body = {"name": given["words"][0]}
    return _told(counter.service.post("/v1/plugins", body), given, counter)


def _told(told: Json, given: Values, counter: Counter) -> int:
    rows = told["plugins"]
    names = ("name", "position", "behind", "state")
    counter.show(rows, given, lambda: table(HEAD, [[str(row[n]) for n in names] for row in rows]))
    return 0
