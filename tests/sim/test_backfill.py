"""Through the whole engine: whoever overtakes the first that waits does not delay it."""

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from accounting.ids import JobId
from accounting.tres import Tres
from broker.model import commands as cmd
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.reservation import Edit, Reservation, SetReservation
from broker.model.site import DeclaredNode, Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.providers.fake_agent import Fate
from tests.sim.harness import START, USUAL, Simulation
from tests.sim.site import ALICE, NAMES, NODES, ROOT, elastic

SITE = Site(
    partitions=(Partition("own", nodes=NAMES, default=True, def_mem_per_cpu_mib=1024),),
    nodes=NODES,
)
WIDE = tuple(
    DeclaredNode(name=NodeName(f"w{i}"), whole=Tres(cpu=8, mem_mib=32000, node=1)) for i in (1, 2)
)
MIXED = replace(
    SITE,
    partitions=(replace(SITE.partitions[0], nodes=(*NAMES, *(one.name for one in WIDE))),),
    nodes=(*NODES, *WIDE),
)
"""Small machines and large ones."""
LIVES = int(os.environ.get("SKYPURZA_TEST_EXAMPLES", "2"))
"""Drawn ones where machines are bought."""
MOST = 5
BUYABLE = [NodeName(f"x-{number}") for number in range(1, MOST + 1)]
BOUGHT = Site(
    partitions=(
        Partition("own", default=True, elastic=elastic("x-", MOST), def_mem_per_cpu_mib=1024),
    ),
)
"""Machines cost money, and there may be no more than so many."""
BOOT = USUAL.boot + USUAL.stop
SHAPES = ((1, 1), (1, 1), (1, 1), (2, 1), (3, 1), (4, 1), (1, 8), (2, 8), (5, 1))
"""Nodes, and cpus of each."""
SECONDS, JOBS = 3000, 40
SLACK = 45
"""Seconds for a job's end, and until somebody looks at the queue again."""


@dataclass
class Promise:
    """When the first that waits would start if nobody came before it any more."""

    held: Reservation | None = None
    """What takes nodes away for a while."""
    latest: dict[JobId, int] = field(default_factory=dict)
    overtook: int = 0

    def __call__(self, sim: Simulation) -> None:
        jobs, now = sim.world.jobs, sim.clock.time
        waiting = [jobs[one] for one in sorted(sim.world.pending)]
        first = waiting[0] if waiting and waiting[0].reason == "Resources" else None
        if first is not None:
            self.overtook += any(one.shares and one.id > first.id for one in jobs.values())
            holding = [one for one in jobs.values() if one.shares]
            self.latest.setdefault(first.id, self._latest(sim.world.site, first, holding, now))
        for job_id, latest in self.latest.items():
            job = jobs.get(job_id)
            late = job is not None and not job.shares and not job.over and now > latest + SLACK
            assert not late, f"{job_id} was to start by {latest}, it is {now}"

    def _latest(self, site: Site, job: Job, holding: list[Job], now: int) -> int:
        """When enough nodes that are large enough are given back at the latest."""
        back = {share.node: _end(one, now) for one in holding for share in one.shares}
        cpus = job.spec.resources.cpus_per_task or 1
        fits = [one.name for one in site.nodes if one.whole.cpu >= cpus] or BUYABLE
        moments = {now, *back.values(), *([self.held.end] if self.held else [])}
        return next(at for at in sorted(moments) if self._room(job, fits, back, at))

    def _room(self, job: Job, fits: list[NodeName], back: dict[NodeName, int], at: int) -> bool:
        held = self.held
        away = held.nodes if held and held.overlaps(at, at + int(job.time_limit)) else ()
        free = [name for name in fits if back.get(name, 0) <= at and name not in away]
        return len(free) >= job.want.node


def _end(job: Job, now: int) -> int:
    """At the latest; a job whose machines were bought for it has its time once they are up."""
    boot = BOOT if any(share.launch for share in job.shares) else 0
    return max(now, (job.started or now) + boot + int(job.time_limit))


def _fate(luck: random.Random, _: str, order: Mapping[str, Any]) -> Fate:
    return Fate(luck.randint(1, order["time_limit"]), 0, 0, False)


def _made(held: Reservation) -> SetReservation:
    return SetReservation(
        by=ROOT,
        make=True,
        name=held.name,
        start=held.start,
        end=held.end,
        nodes=held.nodes,
        users=Edit(held.users),
    )


HELD = Reservation("upkeep", START + 1200, START + 2000, NAMES[:2], users=("root",))


@pytest.mark.parametrize(
    ("seed", "site", "held"),
    [
        (0, SITE, None),
        (1, MIXED, None),
        (12, SITE, HELD),
        (16, MIXED, HELD),
        *((seed, BOUGHT, None) for seed in range(20, 20 + LIVES)),
    ],
)
def test_nobody_who_overtakes_delays_the_first_that_waits(
    seed: int, site: Site, held: Reservation | None
) -> None:
    luck, promise = random.Random(seed), Promise(held)
    sim = Simulation(site, partial(_fate, random.Random(seed)), seed=seed, check=promise)
    if held is not None:
        sim.at(0, lambda _: [_made(held)])
    for number in range(JOBS):
        nodes, cpus = luck.choice(SHAPES if site is MIXED else SHAPES[:6])
        spec = TaskSpec(
            name="job",
            batch=StepSpec(name="batch"),
            resources=Resources(
                min_nodes=nodes, max_nodes=nodes, exclusive=True, cpus_per_task=cpus
            ),
            time_limit=luck.choice((60, 120, 300, 600)),
        )
        asked = cmd.Submit(spec=spec, owner=ALICE, request=f"r{number}")
        sim.submit_at(luck.randint(0, SECONDS), asked)
    sim.run(5 * SECONDS)
    assert promise.latest
    assert promise.overtook
