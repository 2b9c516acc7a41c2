"""Which jobs were there in a window of time, without a look at all that ever were.

Jobs that have ended stand in one of a few indexes by how long they were there, each by submission:
those of at most an hour that were there at nine were submitted after eight. So of each index a
stretch little longer than the window is read, wherever in the past the window lies.
"""

from collections.abc import Collection
from itertools import pairwise

from sqlalchemy import CompoundSelect, Index, Table, and_, bindparam, not_, select, text, union_all
from sqlalchemy.sql.elements import TextClause

from accounting.ids import JobId

EDGES = (0, 1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20)
"""Seconds from submission to end with which a span begins; the last has no end."""
FOREVER = 1 << 62
OPEN_END = 1 << 61


def _spans() -> list[tuple[str, int]]:
    """The condition of each span, and the seconds that its jobs were there at most."""
    ends = (*EDGES[1:], FOREVER)
    return [
        (f"ended - submitted >= {low} AND ended - submitted < {high}", high)
        for low, high in zip(EDGES, ends, strict=True)
    ]


SPANS = _spans()


def span_indexes() -> list[Index]:
    """One for each span; a job that has not ended is in none."""
    return [_index(place, text(told)) for place, (told, _) in enumerate(SPANS)]


def _index(place: int, told: TextClause) -> Index:
    columns = ("submitted", "ended", "job_id", "version")
    return Index(f"jobs_span_{place}", *columns, sqlite_where=told, postgresql_where=told)


def in_window(jobs: Table) -> CompoundSelect[int, int]:
    """Ids and versions of jobs that were there at any moment of [since, until].

    The conditions stand as they stand in the indexes, so that both databases take those. Left out
    is what stands between `first` and `last`, which the asker has.
    """
    held = jobs.c.job_id.between(bindparam("first"), bindparam("last"))
    here = and_(jobs.c.submitted <= bindparam("until"), not_(held))
    found = [
        select(jobs.c.job_id, jobs.c.version).where(
            text(told),
            jobs.c.submitted > bindparam(f"after_{place}"),
            here,
            jobs.c.ended >= bindparam("since"),
        )
        for place, (told, _) in enumerate(SPANS)
    ]
    live = select(jobs.c.job_id, jobs.c.version).where(
        jobs.c.over == 0, jobs.c.ended.is_(None), here
    )
    return union_all(*found, live)


def window(since: int, until: int | None, held: Collection[JobId]) -> dict[str, int]:
    """The values of `in_window`."""
    after = {f"after_{place}": max(since - most, -1) for place, (_, most) in enumerate(SPANS)}
    first, last = stretch(held)
    upto = OPEN_END if until is None else until
    return {"since": since, "until": upto, "first": first, "last": last, **after}


def stretch(ids: Collection[JobId]) -> tuple[int, int]:
    """First and last of the most ids that follow one another without a gap; of none an empty one.

    A database leaves out so many at a glance, while fetching ids costs as much as showing jobs.
    """
    if not ids:
        return 1, 0
    row = sorted(ids)
    gaps = [place for place, (one, next_) in enumerate(pairwise(row), 1) if next_ != one + 1]
    start, end = max(pairwise((0, *gaps, len(row))), key=lambda ends: ends[1] - ends[0])
    return row[start], row[end - 1]
