"""Which jobs were there in a window of time, without a look at all that ever were.

Jobs that have ended stand in one of a few indexes by how long they were there, each by submission:
those of at most an hour that were there at nine were submitted after eight. So of each index a
stretch little longer than the window is read, wherever in the past the window lies.
"""

from sqlalchemy import CompoundSelect, Index, Table, bindparam, select, text, union_all
from sqlalchemy.sql.elements import TextClause

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

    The conditions stand as they stand in the indexes, so that both databases take those.
    """
    here = jobs.c.submitted <= bindparam("until")
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


def window(since: int, until: int | None) -> dict[str, int]:
    """The values of `in_window`."""
    after = {f"after_{place}": max(since - most, -1) for place, (_, most) in enumerate(SPANS)}
    return {"since": since, "until": OPEN_END if until is None else until, **after}
