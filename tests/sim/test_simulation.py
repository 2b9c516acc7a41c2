"""A week of cluster life in a second: random seeds, every invariant after every step.

SKYPURZA_TEST_LIVES says how many more seeds than the first ones are lived (`make chaos`: 20).
"""

import os
import random

import pytest

from broker.providers.fake_agent import Fates
from tests.sim.audit import Audit
from tests.sim.harness import CALM, Chaos, Simulation
from tests.sim.site import SITE
from tests.sim.workload import (
    fates,
    meddling,
    misfortune,
    one_after_the_other,
    submissions,
    tidy,
)

SECONDS = 2000
LIVES = int(os.environ.get("SKYPURZA_TEST_LIVES") or 3)
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


@pytest.mark.parametrize("seed", range(2))
def test_every_invariant_holds_while_users_and_fortune_meddle(seed: int) -> None:
    life(seed, CALM)


@pytest.mark.parametrize("seed", range(2))
def test_slow_and_deaf_ways_to_the_outside_change_nothing_of_that(seed: int) -> None:
    life(seed, SLOW)


@pytest.mark.parametrize("seed", range(2))
def test_kills_takeovers_and_full_disks_at_any_step_change_nothing_of_that(seed: int) -> None:
    life(seed, ROUGH)


@pytest.mark.kill
@pytest.mark.parametrize("chaos", [CALM, SLOW, ROUGH], ids=["calm", "slow", "rough"])
@pytest.mark.parametrize("seed", range(100, 100 + LIVES))
def test_the_same_holds_for_many_more_lives(seed: int, chaos: Chaos) -> None:
    life(seed, chaos)


Outcome = dict[tuple[str, int | None], tuple[str, str, str]]


def outcomes(seed: int, chaos: Chaos) -> Outcome:
    """How each job, and each task of an array, has ended."""
    audit, rng = Audit(), random.Random(seed)
    sim = Simulation(SITE, _by_name(seed), seed=seed, chaos=chaos, check=audit)
    one_after_the_other(sim, rng, 15)
    sim.run(20 * SECONDS)
    audit.finish(sim)
    jobs = sim.store.jobs.values()
    assert len(sim.printed) == 15
    assert all(job.over for job in jobs)
    return {
        (job.spec.name, job.array.task if job.array else None): (
            job.state.label,
            job.reason,
            str(job.exit),
        )
        for job in jobs
    }


def _by_name(seed: int) -> Fates:
    """A step's fate by its job's name and task: ids depend on when tasks start."""
    fate = fates(seed)
    return lambda key, order: fate(f"{order['job_label']} {key.rpartition('/')[2]}", order)


@pytest.mark.parametrize("seed", range(2))
def test_crashes_and_takeovers_at_any_step_change_no_jobs_outcome(seed: int) -> None:
    assert outcomes(seed, ROUGH) == outcomes(seed, CALM)
