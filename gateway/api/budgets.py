"""Routes about budgets: what there are and how they stand; setting and taking away."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from zoneinfo import available_timezones

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from accounting.budget import Action, Budget, Running, Scope, Window, begins, ends
from accounting.change import Change
from accounting.ids import AccountName
from broker.model.commands import ChangeBook
from broker.model.errors import BadOption, Unknown
from broker.schedule.budgets import Ahead
from gateway.api.asking import AsciiJson, caller, desk_of, viewer_of, writer
from gateway.api.desk import Desk
from gateway.query.privacy import Viewer
from gateway.store.rollup import FOREVER

Json = dict[str, Any]
MICRO = 1_000_000
MOST_USD = 10**9
ENDS_NONE = "only a budget with --action stop ends what runs"


class BudgetRequest(BaseModel, extra="forbid"):
    """A budget as it is to be; what is left out stays, or is as usual."""

    scope: Scope
    name: str = Field(min_length=1, max_length=256, pattern=r"^[^\s\x00-\x1f\x7f]+$")
    usd: Decimal | None = Field(None, ge=0, le=MOST_USD, decimal_places=6, allow_inf_nan=False)
    """None takes the budget away."""
    window: Window | None = None
    zone: str | None = None
    action: Action | None = None
    running: Running | None = None
    warn_percent: int | None = Field(None, ge=1, le=100)


def budgets() -> APIRouter:
    routes = APIRouter(prefix="/v1/budgets", default_response_class=AsciiJson)

    @routes.get("")
    async def show(request: Request) -> Json:
        """Every budget with what was spent and what running jobs may still cost."""
        desk = desk_of(request)
        await caller(request)
        return {"budgets": await desk.read(_views, desk, await viewer_of(request))}

    @routes.post("")
    async def put(request: Request, asked: BudgetRequest) -> Json:
        """For administrators and operators. Raises Denied, BadOption, Unknown."""
        desk, owner = desk_of(request), await writer(request)
        book = desk.site.book
        known = book.budgets.get(f"{asked.scope}:{asked.name}")
        if asked.usd is None and known is None:
            raise Unknown(f"no budget {asked.scope}:{asked.name}", hint="give it so many dollars")
        gone = asked.usd is None and not _changes(asked)
        made = None if gone else _budget(asked, known, desk)
        change = Change(
            budgets=() if made is None else (made,),
            no_budgets=(known.key,) if gone and known is not None else (),
        )
        await desk.ask(
            ChangeBook(
                change=change,
                basis=book,
                by=owner,
                action="Remove Budget" if gone else "Set Budget",
                where=f"{asked.scope}:{asked.name}",
                info="" if made is None else f"usd={made.micro_usd / MICRO:.2f}",
            )
        )
        return {"budgets": await desk.read(_views, desk, await viewer_of(request))}

    return routes


def _changes(asked: BudgetRequest) -> bool:
    told = (asked.window, asked.zone, asked.action, asked.running, asked.warn_percent)
    return any(value is not None for value in told)


def _budget(asked: BudgetRequest, known: Budget | None, desk: Desk) -> Budget:
    """Raises BadOption for a zone that is none, Unknown for nobody's budget.

    One that is to stop nothing any more forgets what it did to running jobs.
    """
    _must_exist(asked, desk)
    if asked.zone is not None and asked.zone not in available_timezones():
        raise BadOption("zone", asked.zone, f"no time zone {asked.zone!r}", hint="Europe/Berlin")
    usual = known or Budget(scope=asked.scope, name=asked.name, micro_usd=0)
    amount = usual.micro_usd if asked.usd is None else int(asked.usd * MICRO)
    action = asked.action or usual.action
    ends = action is Action.STOP
    if not ends and asked.running not in {None, Running.NEVER}:
        raise BadOption("running", str(asked.running), ENDS_NONE, hint="--action stop")
    return replace(
        usual,
        micro_usd=amount,
        window=asked.window or usual.window,
        zone=asked.zone or usual.zone,
        action=action,
        running=(asked.running or usual.running) if ends else Running.NEVER,
        warn_percent=asked.warn_percent or usual.warn_percent,
    )


def _must_exist(asked: BudgetRequest, desk: Desk) -> None:
    book = desk.site.book
    known: dict[Scope, Any] = {
        Scope.ACCOUNT: book.accounts,
        Scope.QOS: book.qos,
        Scope.PARTITION: {part.name for part in desk.site.partitions},
    }
    if asked.scope in known and asked.name not in known[asked.scope]:
        if asked.scope is Scope.ACCOUNT and asked.name == book.default_account:
            return
        raise Unknown(f"no {asked.scope} {asked.name!r}")


def _views(desk: Desk, by: Viewer) -> list[Json]:
    """Blocks."""
    return [_view(one, desk) for one in desk.site.book.budgets.values() if by.budget(one)]


def _view(budget: Budget, desk: Desk) -> Json:
    snap, now = desk.snapshot(), desk.now()
    since, until = begins(budget, now), ends(budget, now)
    by = ("account", "user", "qos", "partition")
    found = desk.history.spent(since=since, until=FOREVER, by=by)
    book = snap.site.book
    spent = sum(
        amount
        for (account, user, qos, partition), amount in found.items()
        if budget.covers(
            accounts=[str(one.name) for one in book.lineage(AccountName(account))] or [account],
            user=user,
            qos=qos,
            partition=partition,
        )
    )
    ahead = Ahead.of(snap.site, snap.jobs.values(), snap.nodes, now=now).promised(budget)
    return {
        "scope": budget.scope.value,
        "name": budget.name,
        "micro_usd": budget.micro_usd,
        "spent_micro_usd": spent,
        "promised_micro_usd": ahead,
        "window": budget.window.value,
        "zone": budget.zone,
        "since": since,
        "until": until,
        "action": budget.action.value,
        "running": budget.running.value,
        "warn_percent": budget.warn_percent,
        "standing": budget.standing(spent, ahead).value,
    }
