"""`sacctmgr modify ... set RawUsage=0`: what was used begins to count anew (22.05's words)."""

from collections.abc import Iterator, Mapping

from accounting.assoc import lower
from accounting.change import Change
from accounting.reset import of_account, of_qos, of_user
from gateway.translate.bookorder import Known, OrderError, Proposal

ONLY_ZERO = "sacctmgr: error: Raw usage can only be set to 0 (zero)\n"
ON_CLUSTER = "No cluster specified, resetting on local cluster {}\n"
RESET = "Would you like to reset usage?"
NO_NAME = "sacctmgr: error: An association name is required to remove usage\n"
NO_ACCOUNT = "sacctmgr: error: An account must be specified\n"
NO_QOS_NAME = "sacctmgr: error: A QOS name is required to remove usage\n"
NO_ASSOCIATION = "sacctmgr: error: Failed to find cluster {} {} association in database\n"
NO_QOS = "sacctmgr: error: Failed to find QOS {}\n"
Where = Mapping[str, tuple[str, ...]]
"""Names by condition."""


def reset(entity: str, where: Where, known: Known, *, value: int) -> Proposal:
    """The order for an `account`, `user` or `qos`. Raises OrderError."""
    if value:
        raise OrderError(ONLY_ZERO)
    keys = tuple(KEYS[entity](where, known))
    return Proposal(
        change=Change(resets=tuple((key, known.now) for key in keys)),
        out=_head(where, known),
        action="Modify QOS" if entity == "qos" else "Modify Associations",
        where=",".join(keys),
        info="RawUsage=0",
        commit=RESET,
    )


def _head(where: Where, known: Known) -> str:
    return "" if "cluster" in where else ON_CLUSTER.format(known.cluster)


def _accounts(where: Where, known: Known) -> Iterator[str]:
    if not where.get("account"):
        raise OrderError(NO_NAME)
    for name in where["account"]:
        if lower(name) not in known.book.accounts:
            raise _missing(f"account {name}", where, known)
        yield of_account(name)


def _users(where: Where, known: Known) -> Iterator[str]:
    if not where.get("user"):
        raise OrderError(NO_NAME)
    if not where.get("account"):
        raise OrderError(NO_ACCOUNT)
    held = {(own.user, own.account) for o in known.book.associations.values() for own in o}
    for account in where["account"]:
        for user in where["user"]:
            if (user, lower(account)) not in held:
                raise _missing(f"account {account} user {user}", where, known)
            yield of_user(account, user)


def _qos(where: Where, known: Known) -> Iterator[str]:
    if not where.get("qos"):
        raise OrderError(NO_QOS_NAME)
    for name in where["qos"]:
        if name.lower() not in known.book.qos:
            raise OrderError(NO_QOS.format(name), out=_head(where, known))
        yield of_qos(name)


def _missing(what: str, where: Where, known: Known) -> OrderError:
    return OrderError(NO_ASSOCIATION.format(known.cluster, what), out=_head(where, known))


KEYS = {"account": _accounts, "user": _users, "qos": _qos}
