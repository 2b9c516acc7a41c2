"""When what a node's journal tells was, by the service's clock: a node's own may be wrong."""

from collections.abc import Mapping
from typing import Any

from accounting.ids import JobId
from broker.world import World

SLIGHTLY = 60
"""Seconds by which a clock may be behind and still be believed."""


def happened(world: World, record: Mapping[str, Any], now: int) -> int:
    """Not before the job of the record was placed, nor after now, when the record was read.

    What is told to have been long before that was by a clock that is wrong: it was just now.
    """
    told = int(float(record.get("at", now)))
    number = str(record.get("attempt") or record.get("key") or "").partition("/")[0]
    job = world.jobs.get(JobId(int(number))) if number.isdecimal() else None
    least = told if job is None or job.started is None else job.started
    return now if told < least - SLIGHTLY else min(now, max(told, least))
