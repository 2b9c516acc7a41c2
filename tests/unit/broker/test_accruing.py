"""Limits on how many waiting jobs grow older in their priority."""

from dataclasses import replace

import pytest

from accounting.assoc import Qos
from accounting.limits import Limits
from accounting.order import Ranking
from broker.model import commands as cmd
from tests.unit.broker.test_engine import ALICE, BOB, Bench
from tests.unit.broker.test_overrunning import site

AGE = Ranking(multifactor=True, age=1000, max_age=1000)
FULL = {"tasks": 4, "cpus_per_task": 4}


def ages(bench: Bench, jobs: list[int]) -> list[int | None]:
    """Since when each grows older, counted from the start; None for one that does not."""
    found = [bench.world.jobs[job] for job in jobs]
    return [
        None if job.idles else (job.ages_since or job.eligible or 0) - bench.now for job in found
    ]


WHOSE = (
    # who sets it, the limit, how many of alice's and of bob's jobs grow older
    ("user", {"max_jobs_accrue": 2}, 2, 2),
    ("qos", {"max_jobs_accrue": 2}, 2, 2),
    ("account", {"grp_jobs_accrue": 3}, 3, 0),
    ("qos", {"grp_jobs_accrue": 5}, 4, 1),
    ("user", {"max_jobs": 99}, 4, 4),
)


@pytest.mark.parametrize(("where", "limits", "alices", "bobs"), WHOSE)
def test_only_so_many_waiting_jobs_grow_older(
    where: str, limits: dict[str, int], alices: int, bobs: int
) -> None:
    own = Limits(**limits)  # type: ignore[arg-type]
    made = site(qos=Qos(name="normal", limits=own)) if where == "qos" else site(**{where: own})
    bench = Bench(made)
    bench.submit(resources=FULL)
    mine = [bench.submit(ALICE, resources=FULL) for _ in range(4)]
    theirs = [bench.submit(BOB, resources=FULL) for _ in range(4)]
    bench.step(seconds=1)
    assert [job for job in ages(bench, mine) if job is not None] == [-1] * alices
    assert [job for job in ages(bench, theirs) if job is not None] == [-1] * bobs


def test_the_next_grows_older_from_when_one_before_it_has_gone() -> None:
    bench = Bench(site(user=Limits(max_jobs_accrue=1), ranking=AGE))
    running = bench.submit(resources=FULL)
    jobs = [bench.submit(resources=FULL) for _ in range(3)]
    bench.step(seconds=100)
    assert ages(bench, jobs) == [-100, None, None]
    ranks = bench.engine.ranked.at(bench.now)
    assert [round(ranks.factors(bench.world.jobs[job], "ec2").age, 2) for job in jobs] == [
        0.1,
        0,
        0,
    ]
    bench.step(cmd.Cancel(target=cmd.Target(jobs[0]), by=ALICE), seconds=50)
    bench.step(seconds=10)
    assert ages(bench, jobs[1:]) == [-10, None]
    bench.step(seconds=10)
    assert ages(bench, jobs[1:]) == [-20, None], "who has a turn keeps it"
    assert bench.world.jobs[running].idles is False


def test_a_held_job_takes_nobodys_turn() -> None:
    bench = Bench(site(user=Limits(max_jobs_accrue=1)))
    held = bench.submit(hold=True)
    bench.submit(resources=FULL)
    job = bench.submit(resources=FULL)
    bench.step(seconds=1)
    assert ages(bench, [job]) == [-1]
    assert not bench.world.jobs[held].idles


def test_without_the_limit_all_grow_older_again() -> None:
    bench = Bench(site(user=Limits(max_jobs_accrue=1)))
    bench.submit(resources=FULL)
    jobs = [bench.submit(resources=FULL) for _ in range(3)]
    bench.step(seconds=5)
    bench.world.site = site()
    bench.step(seconds=5)
    bench.step(seconds=5)
    assert ages(bench, jobs) == [-15, -5, -5]


def test_where_age_counts_always_the_limit_is_not_looked_at() -> None:
    always = replace(AGE, flags=frozenset({"ACCRUE_ALWAYS"}))
    bench = Bench(site(user=Limits(max_jobs_accrue=1), ranking=always))
    bench.submit(resources=FULL)
    jobs = [bench.submit(resources=FULL) for _ in range(3)]
    bench.step(seconds=5)
    assert ages(bench, jobs) == [-5, -5, -5]
