"""When what was used begins to count anew: at the turn of a period, or when somebody says so."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from accounting.assoc import ROOT, Book, lower

DAY = 86400


class Period(StrEnum):
    """How often everybody's use begins to count anew (PriorityUsageResetPeriod); days are UTC's."""

    NONE = "NONE"
    NOW = "NOW"
    """Once, when the service starts."""
    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    """On Sundays."""
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    YEARLY = "YEARLY"


MONTHS: Mapping[Period, int] = {Period.MONTHLY: 1, Period.QUARTERLY: 3, Period.YEARLY: 12}


def last_turn(period: Period, now: int, *, started_at: int) -> int:
    """The latest instant at which everybody's use began to count anew; 0 if it never did."""
    if period is Period.NONE:
        return 0
    if period is Period.NOW:
        return started_at
    today = datetime.fromtimestamp(now - now % DAY, UTC)
    if period is Period.WEEKLY:
        today -= timedelta(days=today.isoweekday() % 7)
    if period in MONTHS:
        step = MONTHS[period]
        today = today.replace(month=today.month - (today.month - 1) % step, day=1)
    return int(today.timestamp())


def of_account(account: str) -> str:
    """The key of an account's use, which is that of all below it."""
    return f"account:{lower(account)}"


def of_user(account: str, user: str) -> str:
    return f"user:{lower(account)}/{user}"


def of_qos(qos: str) -> str:
    return f"qos:{qos.lower()}"


def association_since(known: Book, account: str, user: str) -> int:
    """Since when use counts for a user's association with an account; 0: for ever."""
    above = (of_account(step.name) for step in known.lineage(lower(account)))
    keys = (of_user(account, user), of_account(account), *above, of_account(ROOT))
    return max(known.resets.get(key, 0) for key in keys)


def qos_since(known: Book, qos: str) -> int:
    """Since when use counts for a QOS; 0: for ever."""
    return known.resets.get(of_qos(qos), 0)
