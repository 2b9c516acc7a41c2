"""Components of heterogeneous jobs: found by the leader's id, which all of them bear inside."""

import json
from collections.abc import Iterable

from sqlalchemy import bindparam, select

from accounting.ids import JobId
from gateway.store import tables as t

MARK = '%"het":%'
LEADERS = select(t.jobs.c.doc).where(
    t.jobs.c.job_id.in_(bindparam("jobs", expanding=True)), t.jobs.c.doc.like(MARK)
)
"""Documents that may be those of heterogeneous jobs: the few that are worth reading."""


def components(docs: Iterable[str]) -> set[JobId]:
    """Ids of all components of jobs whose leaders are among the records."""
    places = (json.loads(doc).get("het") for doc in docs)
    return {
        JobId(place["base"] + offset)
        for place in places
        if place and not place.get("offset")
        for offset in range(1, place["size"])
    }
