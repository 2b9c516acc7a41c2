"""What deciding leans on beside the world: quotes, and the form of a decision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accounting.change import coordinated
from accounting.ledger import Entry
from broker.model.events import Event
from broker.model.job import Job, Owner
from broker.model.offer import Need
from broker.model.site import Elastic, Site
from broker.schedule.limits import Keeper
from broker.schedule.view import Quote

QuoteFor = Callable[[Need, Elastic], Quote]
"""Ranked offers for a need now; pure for the world and the cool-down as they stand."""
KeeperNow = Callable[[], Keeper]
"""Limits and budgets as they stand; costs something."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Facts that follow from a message, and the answer to who asked."""

    facts: Sequence[Event] = ()
    reply: Any = None
    entries: Sequence[Entry] = ()
    """For the ledger, beside what the facts cost."""


NOTHING = Decision()


def may_change(by: Owner, job: Job, site: Site) -> bool:
    """Owners change their jobs, coordinators those of their accounts, operators all jobs."""
    if by.uid == job.owner.uid or site.operates(by.uid):
        return True
    return job.account in coordinated(site.book, by.user)
