"""Jobs of associations that an order of sacctmgr would take away."""

from collections.abc import Iterable

from accounting.assoc import Association, Book, association
from accounting.change import Change, changed, place
from accounting.ids import UserName
from broker.model.job import Job
from gateway.translate.bookorder import Known, associations

ACTIVE = " Error with request: Job(s) active, cancel job(s) before remove\n"
LINE = "  JobID = {:<10} C = {:<10.10} A = {:<10.10} U = {:<9.9}{}\n"


def active(change: Change, known: Known, jobs: Iterable[Job]) -> str:
    """What Slurm says where such jobs wait or run (22.05); empty where there are none."""
    if not (change.no_accounts or change.no_associations or change.no_people):
        return ""
    book, after = known.book, changed(known.book, change)
    places = {place(own): number for number, own in enumerate(associations(book))}
    left = [job for job in jobs if not job.over and _loses(job, book, after)]

    def order(job: Job) -> tuple[int, int, int]:
        own = _own(job, book)
        return places[place(own)] if own else len(places), job.started or 0, job.id

    lines = (_line(job, _own(job, book), known.cluster) for job in sorted(left, key=order))
    return ACTIVE + "".join(lines) if left else ""


def _loses(job: Job, before: Book, after: Book) -> bool:
    """Whether it loses its association, or, having none, its account."""
    if _own(job, before) is not None:
        return _own(job, after) is None
    return job.account in before.accounts and job.account not in after.accounts


def _own(job: Job, known: Book) -> Association | None:
    partition = job.partitions[0] if job.partitions else None
    user = UserName(job.owner.user)
    return association(known, user, account=job.account, partition=partition)


def _line(job: Job, own: Association | None, cluster: str) -> str:
    where = f" P = {own.partition}" if own is not None and own.partition else ""
    return LINE.format(job.id, cluster, job.account, job.owner.user, where)
