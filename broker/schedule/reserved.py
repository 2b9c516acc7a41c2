"""Reservations against jobs: which nodes are kept from whom, and until when."""

from collections.abc import Iterable, Iterator

from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.reservation import Reservation, Reservations, asked_of, names_of
from broker.model.spec import UNLIMITED

FOREVER = 10**12
MOST_TIMES = 30
"""Of one that comes again so many times are looked at."""
NOT_YET = "Reservation"
DELETED = "ReservationDeleted"
AWAY = "ReqNodeNotAvail, May be reserved for other job"
"""Why a job waits whose nodes are kept for others (22.05)."""


def gate(job: Job, known: Reservations, now: int) -> str | None:
    """Why the reservation that the job asks for lets it wait; None if it does not."""
    wanted = names_of(job.spec.reservation)
    if not wanted:
        return None
    found = asked_of(job.spec.reservation, known)
    if not found:
        return DELETED
    if any(one.active(now) or one.has("FLEX") for one in found):
        return None
    return NOT_YET


def may_have(node: NodeName, job: Job, known: Reservations, *, now: int) -> bool:
    """Whether the node is not kept from the job as long as it may run."""
    own = asked_of(job.spec.reservation, known)
    if own and any(node in one.nodes and (one.active(now) or one.has("FLEX")) for one in own):
        return True
    if own and not any(one.has("FLEX") for one in own):
        return False
    end = FOREVER if job.time_limit == UNLIMITED else now + int(job.time_limit)
    theirs = (one for one in known.values() if node in one.nodes and one not in own)
    return not any(one.overlaps(now, end) for one in theirs)


def edges(known: Iterable[Reservation]) -> list[int]:
    """Instants on whose sides jobs may have different nodes: each beginning, also the next ones."""
    return [one.start for one in _times(known)]


def ends(known: Iterable[Reservation]) -> list[int]:
    """Instants from which nodes are anybody's again, of those that come again too."""
    return [one.end for one in _times(known)]


def _times(known: Iterable[Reservation]) -> Iterator[Reservation]:
    """Each of them, and as it comes again."""
    for one in known:
        again: Reservation | None = one
        for _ in range(MOST_TIMES):
            if again is None:
                break
            yield again
            again = again.following()
