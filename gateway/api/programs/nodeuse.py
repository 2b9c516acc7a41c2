"""What steps use: of this host's processes, and by the agents' word of those on other machines."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from broker.model.errors import Unknown
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.run import launch
from gateway.api.desk import Desk
from gateway.api.programs.hostprocs import Use, uses
from gateway.api.relay import place_of

ASK_SECONDS = 5.0

Uses = dict[tuple[int, str], Use]


async def used(desk: Desk, jobs: Iterable[Job]) -> Uses:
    """By job and step; nothing of what cannot be reached now."""
    asked = {job.id: job for job in jobs}
    found = await desk.read(uses, frozenset(asked))
    here = {job for job, _ in found}
    away = [job for number, job in asked.items() if number not in here]
    answers = await asyncio.gather(
        *(_asked(desk, job, share.node) for job in away for share in job.shares)
    )
    for answer in answers:
        for key, use in answer.items():
            found[key] = together(found[key], use) if key in found else use
    return found


async def _asked(desk: Desk, job: Job, node: NodeName) -> Uses:
    try:
        place = place_of(desk, node)
        socket = f"{place.folder}/agent.sock"
        line = await desk.read(place.channel.ask, socket, launch.use(job.id), timeout=ASK_SECONDS)
        answer = json.loads(line)
    except (OSError, ValueError, Unknown):
        return {}
    return told(job, answer) if isinstance(answer, dict) else {}


def told(job: Job, answer: Mapping[str, Any]) -> Uses:
    """An agent's answer, read; an old one knows of no such question."""
    return {
        (job.id, step): Use(
            tuple(one["pids"]),
            one["cpu_us"],
            one["rss_kib"],
            one["size_kib"],
            one["read"],
            one["written"],
            answer.get("khz", 0),
        )
        for step, one in (answer.get("steps") or {}).items()
    }


def together(one: Use, other: Use) -> Use:
    """Of one step on two nodes."""
    return Use(
        (*one.pids, *other.pids),
        one.cpu_us + other.cpu_us,
        one.rss_kib + other.rss_kib,
        one.size_kib + other.size_kib,
        one.read + other.read,
        one.written + other.written,
        one.khz or other.khz,
    )
