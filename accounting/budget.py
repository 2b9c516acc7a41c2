"""Budgets in dollars: windows in a stated time zone, spent plus promised, the verdict."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class Scope(StrEnum):
    """Whose money it is; an account's is that of all accounts below it too."""

    ACCOUNT = "account"
    USER = "user"
    QOS = "qos"
    PARTITION = "partition"


class Window(StrEnum):
    """How long it has to last."""

    DAY = "day"
    MONTH = "month"
    QUARTER = "quarter"
    TOTAL = "total"


class Action(StrEnum):
    """What comes of its being used up."""

    WARN = "warn"
    HOLD = "hold"
    """Jobs that would break it wait, with the reason AssocBudgetLimit."""
    STOP = "stop"
    """The same, and what runs may be ended."""


class Running(StrEnum):
    """When running jobs are ended that a budget with STOP does not pay for any more."""

    NEVER = "never"
    NOTICE = "notice"
    NOW = "now"


class Standing(StrEnum):
    """How a budget stands."""

    OK = "ok"
    WARN = "warn"
    FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """So many micro-dollars for whom, in what time; `zone` says when days begin."""

    scope: Scope
    name: str
    micro_usd: int
    window: Window = Window.MONTH
    zone: str = "UTC"
    action: Action = Action.HOLD
    running: Running = Running.NEVER
    warn_percent: int = 80

    @property
    def key(self) -> str:
        return f"{self.scope}:{self.name}"

    def covers(self, *, accounts: Iterable[str], user: str, qos: str, partition: str) -> bool:
        """Whether a job is paid from it; `accounts` are its account and those above."""
        if self.scope is Scope.ACCOUNT:
            return self.name in accounts
        own = {Scope.USER: user, Scope.QOS: qos, Scope.PARTITION: partition}
        return self.name == own[self.scope]

    def standing(self, spent: int, promised: int) -> Standing:
        """By what was spent and what running jobs may still cost."""
        if spent + promised >= self.micro_usd:
            return Standing.FULL
        warned = (spent + promised) * 100 >= self.micro_usd * self.warn_percent
        return Standing.WARN if warned else Standing.OK


def begins(budget: Budget, now: int) -> int:
    """When the window began that holds the instant; 0 for one that never ends."""
    if budget.window is Window.TOTAL:
        return 0
    return int(_first(budget, now).astimezone(UTC).timestamp())


def ends(budget: Budget, now: int) -> int | None:
    """When it is over; None for one that never ends."""
    if budget.window is Window.TOTAL:
        return None
    first = _first(budget, now)
    if budget.window is Window.DAY:
        after = first.replace(tzinfo=None) + timedelta(days=1)
    else:
        months = first.month - 1 + (1 if budget.window is Window.MONTH else 3)
        after = datetime(first.year + months // 12, months % 12 + 1, 1)
    return int(after.replace(tzinfo=first.tzinfo).timestamp())


def _first(budget: Budget, now: int) -> datetime:
    here = datetime.fromtimestamp(now, ZoneInfo(budget.zone))
    day = here.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    if budget.window is Window.DAY:
        return day
    month = day.month if budget.window is Window.MONTH else day.month - (day.month - 1) % 3
    return day.replace(month=month, day=1)
