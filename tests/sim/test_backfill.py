"""Through the whole engine: whoever overtakes the first that waits does not delay it."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.job import Job
from broker.model.site import Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.providers.fake_agent import Fate
from tests.sim.harness import Simulation
from tests.sim.site import ALICE, NAMES, NODES

SITE = Site(
    partitions=(Partition("own", nodes=NAMES, default=True, def_mem_per_cpu_mib=1024),),
    nodes=NODES,
)
SECONDS, JOBS = 3000, 40
SLACK = 45
"""Seconds for a job's end, and until somebody looks at the queue again."""


@dataclass
class Promise:
    """When the first that waits would start if nobody came before it any more."""

    latest: dict[JobId, int] = field(default_factory=dict)
    overtook: int = 0

    def __call__(self, sim: Simulation) -> None:
        jobs, now = sim.world.jobs, sim.clock.time
        waiting = [jobs[one] for one in sorted(sim.world.pending)]
        first = waiting[0] if waiting and waiting[0].reason == "Resources" else None
        if first is not None:
            self.overtook += any(one.shares and one.id > first.id for one in jobs.values())
            holding = [one for one in jobs.values() if one.shares]
            self.latest.setdefault(first.id, _latest(first, holding, now))
        for job_id, latest in self.latest.items():
            job = jobs.get(job_id)
            late = job is not None and not job.shares and not job.over and now > latest + SLACK
            assert not late, f"{job_id} was to start by {latest}, it is {now}"


def _latest(job: Job, holding: list[Job], now: int) -> int:
    """When enough nodes are given back at the latest."""
    until, free = now, len(NAMES) - sum(len(one.shares) for one in holding)
    for one in sorted(holding, key=_end):
        if free >= job.want.node:
            break
        until, free = max(now, _end(one)), free + len(one.shares)
    return until


def _end(job: Job) -> int:
    assert job.started is not None
    return job.started + int(job.time_limit)


def _fate(luck: random.Random, _: str, order: Mapping[str, Any]) -> Fate:
    return Fate(luck.randint(1, order["time_limit"]), 0, 0, False)


@pytest.mark.parametrize("seed", range(2))
def test_nobody_who_overtakes_delays_the_first_that_waits(seed: int) -> None:
    luck, promise = random.Random(seed), Promise()
    sim = Simulation(SITE, partial(_fate, random.Random(seed)), seed=seed, check=promise)
    for number in range(JOBS):
        nodes = luck.choice((1, 1, 1, 2, 3, 4))
        spec = TaskSpec(
            name="job",
            batch=StepSpec(name="batch"),
            resources=Resources(min_nodes=nodes, max_nodes=nodes, exclusive=True),
            time_limit=luck.choice((60, 120, 300, 600)),
        )
        asked = cmd.Submit(spec=spec, owner=ALICE, request=f"r{number}")
        sim.submit_at(luck.randint(0, SECONDS), asked)
    sim.run(5 * SECONDS)
    assert promise.latest
    assert promise.overtook
