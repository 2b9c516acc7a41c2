"""A week of cluster life in a second: random seeds, every invariant after every step."""

import random

import pytest

from tests.sim.audit import Audit
from tests.sim.harness import CALM, Chaos, Simulation
from tests.sim.site import SITE
from tests.sim.workload import fates, meddling, misfortune, submissions, tidy

SECONDS = 2000
SLOW = Chaos(delay=4, lost_wakes=0.3)
ROUGH = Chaos(delay=3, lost_wakes=0.2, full_disk=0.05, crash=0.02, takeover=0.01)


def life(seed: int, chaos: Chaos, *, jobs: int = 25, trouble: int = 10) -> tuple[Simulation, Audit]:
    """One run to its end, audited."""
    audit, rng = Audit(), random.Random(seed)
    sim = Simulation(SITE, fates(seed), seed=seed, chaos=chaos, check=audit)
    submissions(sim, rng, jobs, seconds=SECONDS)
    meddling(sim, rng, trouble, seconds=SECONDS)
    misfortune(sim, rng, trouble, seconds=SECONDS)
    tidy(sim, at=4 * SECONDS)
    sim.run(10 * SECONDS)
    audit.finish(sim)
    unfinished = {job.id: job.shown_state for job in sim.store.jobs.values() if not job.over}
    assert not unfinished
    return sim, audit


@pytest.mark.parametrize("seed", range(6))
def test_every_invariant_holds_while_users_and_fortune_meddle(seed: int) -> None:
    life(seed, CALM)


@pytest.mark.parametrize("seed", range(6))
def test_slow_and_deaf_ways_to_the_outside_change_nothing_of_that(seed: int) -> None:
    life(seed, SLOW)


@pytest.mark.parametrize("seed", range(6))
def test_kills_and_full_disks_at_any_step_change_nothing_of_that(seed: int) -> None:
    life(seed, ROUGH)
