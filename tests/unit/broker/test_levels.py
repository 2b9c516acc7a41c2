"""Who may do what to another's job and to the site: a table of orders by levels."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable
from dataclasses import replace

import pytest

from accounting.assoc import Account, Association, Person, book
from accounting.budget import Budget, Scope
from accounting.change import ADMINISTRATOR, OPERATOR, Change, changed
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import Limits
from broker.model import commands as cmd
from broker.model.errors import Denied
from broker.model.inbox import Message
from broker.model.job import Hold, Owner
from broker.model.site import Site, with_book
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, ROOT, Bench

COORDINATOR = Owner(2003, 2003, "carol", "carol")
OPERATES = Owner(2004, 2004, "olga", "olga")
ADMIN = Owner(2005, 2005, "ada", "ada")
WHO = {"owner": ALICE, "other": BOB, "coordinator": COORDINATOR, "operator": OPERATES,
       "administrator": ADMIN, "root": ROOT}  # fmt: skip
EVERYBODY_BUT = {"owner", "coordinator", "operator", "administrator", "root"}
OPERATORS = {"operator", "administrator", "root"}
LAB = AccountName("lab")


def site() -> Site:
    lab = Account(name=LAB, coordinators=(UserName("carol"),))
    names = [UserName(one.user) for one in WHO.values()]
    own = [Association(user=name, account=LAB) for name in names]
    people = (
        Person(name=UserName("olga"), admin=OPERATOR, uid=2004),
        Person(name=UserName("ada"), admin=ADMINISTRATOR, uid=2005),
    )
    return with_book(DECLARED, changed(book([lab], own), Change(people=people)))


def _book(bench: Bench, by: Owner, change: Change) -> Message:
    return cmd.ChangeBook(change=change, basis=bench.world.site.book, by=by, action="Modify")


def _of_lab(limits: Limits) -> Change:
    return Change(associations=(Association(user=UserName("bob"), account=LAB, limits=limits),))


BUDGET = Change(budgets=(Budget(scope=Scope.ACCOUNT, name="lab", micro_usd=1),))
NEW = Change(people=(Person(name=UserName("bob"), admin=ADMINISTRATOR, uid=2002),))
ORDERS: dict[str, tuple[set[str], Callable[[Bench, Owner, JobId], Message]]] = {
    "cancel": (EVERYBODY_BUT, lambda _, by, job: cmd.Cancel(target=cmd.Target(job), by=by)),
    "hold": (EVERYBODY_BUT, lambda _, by, job: cmd.SetHold(target=cmd.Target(job), by=by, hold=Hold.USER)),
    "time": (EVERYBODY_BUT, lambda _, by, job: cmd.Update(target=cmd.Target(job), by=by, time_limit=60)),
    "comment of an administrator": (OPERATORS, lambda _, by, job: cmd.Update(target=cmd.Target(job), by=by, admin_comment="x")),
    "more priority": (OPERATORS, lambda _, by, job: cmd.Update(target=cmd.Target(job), by=by, priority=2**32 - 2)),
    "more time than the partition has": (OPERATORS, lambda _, by, job: cmd.Update(target=cmd.Target(job), by=by, time_limit=10**8)),
    "limits of users below": ({"coordinator", *OPERATORS}, lambda bench, by, _: _book(bench, by, _of_lab(Limits(max_jobs=1)))),
    "a budget": (OPERATORS, lambda bench, by, _: _book(bench, by, BUDGET)),
    "an administrator": ({"administrator", "root"}, lambda bench, by, _: _book(bench, by, NEW)),
}  # fmt: skip


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("order", ORDERS)
def test_an_order_is_carried_out_for_those_of_its_level_alone(order: str, who: str) -> None:
    bench = Bench(replace(site(), service_uid=None))
    job: JobId = bench.submit(ALICE, hold=True, account="lab")
    allowed, made = ORDERS[order]
    (reply,) = bench.step(made(bench, WHO[who], job))
    assert isinstance(reply, Denied) is (who not in allowed), reply
