"""Forecasts of starts: as running jobs reach their limits, each behind those before it."""

from broker.model.ids import NodeName
from broker.model.job import Hold, Job
from broker.schedule.forecast import Forecast, forecast
from tests.unit.gateway.query.records import NODES, NOON, SITE, Tres, pending, running

WHOLE = Tres(cpu=4, mem_mib=4096, node=1)


def told(*jobs: Job) -> dict[int, Forecast]:
    nodes = {NodeName("ec2-1"): NODES[NodeName("ec2-1")]}
    return {**forecast(SITE, {job.id: job for job in jobs}, nodes, now=NOON)}


def busy(number: int, limit: int, cpus: tuple[int, ...]) -> Job:
    job = running(number, want=Tres(len(cpus), 1024, 1), time_limit=limit)
    (share,) = job.shares
    return Job(**{**_fields(job), "shares": (type(share)(share.node, 0, share.tres, cpus),)})


def _fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in job.__slots__}


def waiting(number: int, cpus: int, **changes: object) -> Job:
    task = {"resources": {"tasks": cpus}}
    return pending(number, want=Tres(cpus, 1024 * cpus, 1), spec=task, **changes)


def test_a_job_starts_when_enough_of_the_others_reach_their_limits() -> None:
    found = told(busy(1, 100, (0, 1)), busy(2, 500, (2, 3)), waiting(3, 2), waiting(4, 4))
    assert found[3] == Forecast(NOON + 70, ("ec2-1",))
    assert found[4].start == NOON + 70 + 3600, "behind the one before it"


def test_a_job_that_fits_nowhere_has_no_forecast_and_holds_nobody_up() -> None:
    found = told(busy(1, 100, (0, 1, 2, 3)), waiting(2, 40, priority=99999), waiting(3, 1))
    assert 2 not in found
    assert found[3].start == NOON + 70


def test_what_waits_for_more_than_room_has_none() -> None:
    held = waiting(2, 1, hold=Hold.USER, priority=0, reason="JobHeldUser")
    limited = waiting(3, 1, reason="JobArrayTaskLimit")
    assert told(busy(1, 100, (0,)), held, limited) == {}


def test_without_an_end_of_the_others_there_is_none() -> None:
    endless = running(1, want=WHOLE, time_limit="UNLIMITED")
    assert told(endless, waiting(2, 4)) == {}
