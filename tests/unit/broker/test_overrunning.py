"""Limits that act while jobs run or wait: minutes that are used up, shares, who may reserve."""

from dataclasses import replace

import pytest

from accounting.assoc import Account, Association, Qos, book
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from accounting.order import Ranking
from broker.model.site import Site
from broker.schedule.sums import Family, known_of
from tests.unit.broker.test_engine import ALICE, BOB, DECLARED, Bench

LAB = AccountName("lab")


def site(
    *, account: Limits = Limits(), user: Limits = Limits(), qos: Qos | None = None, **more: object
) -> Site:
    grade = qos or Qos(name="normal")
    people = [
        Association(user=UserName(name), account=LAB, limits=user, qos=(grade.name,))
        for name in ("alice", "bob")
    ]
    known = book([Account(name=LAB, limits=account)], people, qos=[grade], enforce=["limits"])
    return replace(DECLARED, book=known, **more)


def running(bench: Bench, cpus: int = 2) -> int:
    job = bench.submit(ALICE, resources={"tasks": 1, "cpus_per_task": cpus}, time_limit=3600)
    key = f"{bench.world.jobs[job].key}/batch"
    bench.journal(bench.world.jobs[job].shares[0].node, {"kind": "started", "key": key})
    return job


MINUTES = (
    # what sets the limit, the seconds for which a job of two cpus runs under it, the limit
    ("account", {"grp_tres_mins": {"cpu": 10}}, 300, "AssocGrpCPUMinutesLimit"),
    ("user", {"grp_wall": 240}, 240, "AssocGrpWallLimit"),
    ("user", {"max_tres_mins_per_job": {"cpu": 4}}, 120, "AssocMaxCpuMinutesPerJobLimit"),
    ("qos", {"grp_tres_mins": {"cpu": 20}}, 600, "QOSGrpCPUMinutesLimit"),
    ("qos", {"max_tres_mins_per_job": {"node": 5}}, 300, "QOSMaxNodeMinutesPerJob"),
)


@pytest.mark.parametrize(("where", "limits", "seconds", "reason"), MINUTES)
def test_a_job_ends_when_the_minutes_of_a_limit_are_used_up(
    where: str, limits: dict[str, object], seconds: int, reason: str
) -> None:
    own = Limits(**limits)  # type: ignore[arg-type]
    made = site(qos=Qos(name="normal", limits=own)) if where == "qos" else site(**{where: own})
    bench = Bench(made)
    # What asks for more than that by its time limit has to come in first.
    bench.world.site = site()
    job = running(bench)
    bench.world.site = made
    bench.step(seconds=seconds - 30)
    assert bench.state(job) == "RUNNING"
    bench.step(seconds=30)
    assert bench.state(job) == "COMPLETING"
    ended = bench.world.jobs[job]
    assert (ended.state.label, ended.reason) == ("TIMEOUT", "TimeLimit")
    assert any(getattr(event, "why", "") == reason for _, event in bench.store.events)


def test_without_such_a_limit_a_job_runs_to_its_own() -> None:
    bench = Bench(site(account=Limits(grp_jobs=5)))
    job = running(bench)
    bench.step(seconds=3000)
    assert bench.state(job) == "RUNNING"


@pytest.mark.parametrize(
    ("flags", "reason"), [({"EnforceUsageThreshold"}, "QOSUsageThreshold"), (set(), "None")]
)
def test_who_used_more_than_the_threshold_of_a_qos_waits(flags: set[str], reason: str) -> None:
    grade = Qos(name="normal", usage_threshold=0.9, flags=frozenset(flags))
    bench = Bench(site(qos=grade, ranking=Ranking(multifactor=True, fairshare=1000, period=1)))
    running(bench)
    bench.step(seconds=100)
    used, fresh = bench.submit(ALICE, time_limit=60), bench.submit(BOB, time_limit=60)
    bench.step(full=True, seconds=1)
    assert (bench.world.jobs[used].reason, bench.state(fresh)) == (reason, "CONFIGURING")


RESERVING = (
    (Qos(name="normal"), "PENDING"),
    (Qos(name="normal", flags=frozenset({"NoReserve"})), "CONFIGURING"),
    (Qos(name="normal", limits=Limits(min_prio_threshold=10**10)), "CONFIGURING"),
    (Qos(name="normal", limits=Limits(min_prio_threshold=1)), "PENDING"),
)


@pytest.mark.parametrize(("grade", "state"), RESERVING)
def test_others_overtake_a_job_that_may_not_reserve(grade: Qos, state: str) -> None:
    bench = Bench(site(qos=grade))
    running(bench, cpus=1)
    whole = len(DECLARED.nodes)
    bench.submit(ALICE, resources={"min_nodes": whole, "exclusive": True}, time_limit=60)
    bench.step(full=True, seconds=1)
    small = bench.submit(BOB, time_limit=7200)
    bench.step(full=True, seconds=1)
    assert bench.state(small) == state


FACTORS = (
    # the QOS's factor and flags, the half-life, what 100 seconds of two cpus count while they run
    # and then after 100 seconds more
    (1.0, (), 0, 200, 200),
    (0.5, (), 0, 100, 100),
    (0.0, (), 0, 0, 0),
    (1.0, (), 100, 144, 72),
    (2.0, (), 100, 288, 144),
    (2.0, ("NoDecay",), 100, 400, 400),
)


@pytest.mark.parametrize(("factor", "flags", "half_life", "first", "later"), FACTORS)
def test_running_use_counts_as_it_will_when_it_is_past(
    factor: float, flags: tuple[str, ...], half_life: int, first: int, later: int
) -> None:
    grade = Qos(name="normal", usage_factor=factor, flags=frozenset(flags))
    bench = Bench(site(qos=grade, ranking=Ranking(half_life=half_life)))
    job = running(bench)
    bench.step(seconds=100)
    assert used(bench) == pytest.approx(first, rel=0.01)
    bench.run(job)
    assert used(bench) == pytest.approx(first, rel=0.01)
    bench.step(seconds=100)
    assert used(bench) == pytest.approx(later, rel=0.01)


def used(bench: Bench) -> float:
    known = known_of(bench.world.site, bench.world.tally, bench.world.charges, now=bench.now)
    return known.charged(Family.QOS, ("normal",)).get("cpu", 0.0)
