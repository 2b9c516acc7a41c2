"""Who sees what: PrivateData, of slurm.conf and slurmdbd.conf at once. Every view asks here."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from accounting.budget import Budget, Scope
from accounting.change import coordinated
from accounting.ids import AccountName, UserName
from broker.model.job import Job, Owner
from broker.model.reservation import Reservation
from broker.model.site import Site
from broker.world import Snapshot

JOBS = "jobs"


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who looks, and what is hidden from them: nothing from operators."""

    owner: Owner
    hidden: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    """Those that they coordinate."""
    above: frozenset[str] = frozenset()
    """Those that they are in, and all above."""

    def may(self, kind: str) -> bool:
        """Whether they see all of it: nodes, partitions, events."""
        return kind not in self.hidden

    def job(self, job: Job) -> bool:
        """Their own, and those in accounts that they coordinate."""
        if JOBS not in self.hidden or job.owner.uid == self.owner.uid:
            return True
        return job.account in self.accounts

    def account(self, account: str) -> bool:
        """Those that they coordinate."""
        return "accounts" not in self.hidden or account in self.accounts

    def user(self, user: str) -> bool:
        """Themselves."""
        return "users" not in self.hidden or user == self.owner.user

    def association(self, account: str, user: str) -> bool:
        """Their own, and all of accounts that they coordinate; the accounts above as well (22.05).

        `user` is empty for an account.
        """
        shown = self._theirs(account, user) or (not user and account in self.above)
        return "users" not in self.hidden or shown

    def used(self, account: str, user: str) -> bool:
        """What they used themselves, and what was used in accounts that they coordinate."""
        return "usage" not in self.hidden or self._theirs(account, user)

    def change(self, by: str) -> bool:
        """Of the book of accounts; it tells of users and accounts at once: those they made."""
        return self.hidden.isdisjoint({"users", "accounts"}) or by == self.owner.user

    def _theirs(self, account: str, user: str) -> bool:
        return user == self.owner.user or account in self.accounts

    def budget(self, budget: Budget) -> bool:
        """One that tells of what they may know."""
        account = budget.name if budget.scope is Scope.ACCOUNT else ""
        return self.used(account, budget.name if budget.scope is Scope.USER else "")

    def reservation(self, one: Reservation, charges: Iterable[str]) -> bool:
        """One that they may use; `charges` are the accounts to which they may charge jobs."""
        if "reservations" not in self.hidden:
            return True
        return any(one.admits(self.owner, account) for account in charges)


SEES_ALL = Viewer(Owner(0, 0, "root", "root"))
"""Where nothing is private nobody asks who looks."""


def viewer(site: Site, owner: Owner) -> Viewer:
    """Operators, administrators and who runs the service see all."""
    if not site.private or site.operates(owner.uid) or site.is_run_by(owner.uid):
        return Viewer(owner)
    book, mine = site.book, frozenset(map(str, coordinated(site.book, owner.user)))
    own = [one.account for one in book.associations.get(UserName(owner.user), ())]
    lines = (book.lineage(AccountName(account)) for account in (*own, *mine))
    return Viewer(owner, site.private, mine, frozenset(str(o.name) for line in lines for o in line))


def seen(snap: Snapshot, by: Viewer) -> Snapshot:
    """The jobs and reservations that they see; of nodes all, which tell of nobody."""
    if by.hidden.isdisjoint({JOBS, "reservations"}):
        return snap
    book = snap.site.book
    own = book.associations.get(UserName(by.owner.user), ())
    charges = [one.account for one in own] or [book.default_account]
    return replace(
        snap,
        jobs={number: job for number, job in snap.jobs.items() if by.job(job)},
        reservations={
            name: one for name, one in snap.reservations.items() if by.reservation(one, charges)
        },
    )
