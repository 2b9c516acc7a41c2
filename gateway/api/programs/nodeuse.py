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
GPUS = ("gpu_util", "gpu_util_max", "gpu_mem_mib")

Uses = dict[tuple[int, str], Use]


async def used(desk: Desk, jobs: Iterable[Job]) -> Uses:
    """By job and step; nothing of what cannot be reached now."""
    asked = {job.id: job for job in jobs}
    plain = frozenset(job.id for job in asked.values() if not _has_gpus(job))
    found = await desk.read(uses, plain)
    here = {job for job, _ in found}
    away = [job for number, job in asked.items() if number not in here]
    answers = await asyncio.gather(
        *(_asked(desk, job, share.node) for job in away for share in job.shares)
    )
    for answer in answers:
        for key, use in answer.items():
            found[key] = together(found[key], use) if key in found else use
    return found


def _has_gpus(job: Job) -> bool:
    """Of devices only the agents know how they are used."""
    return any(share.gpu_ids for share in job.shares)


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
    devices = answer.get("gpus") or {}
    return {
        (job.id, step): Use(
            tuple(one["pids"]),
            one["cpu_us"],
            one["rss_kib"],
            one["size_kib"],
            one["read"],
            one["written"],
            answer.get("khz", 0),
            **{name: int(count) for name, count in devices.get(step, {}).items() if name in GPUS},
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
        max((u.gpu_util for u in (one, other) if u.gpu_util is not None), default=None),
        max(one.gpu_util_max, other.gpu_util_max),
        max(one.gpu_mem_mib, other.gpu_mem_mib),
    )
