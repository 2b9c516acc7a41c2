"""Who holds allocations, and who waits for news."""

import asyncio

from accounting.ids import JobId
from gateway.api.holders import GRACE, Bells, Holders
from tests.unit.gateway.api.office import Office, wait


def test_only_who_listens_to_that_name_is_woken() -> None:
    async def whole() -> tuple[bool, bool]:
        bells = Bells()
        with bells.listening("a", "b") as first, bells.listening("c") as second:
            bells.ring("b")
            bells.ring("nobody")
            await asyncio.sleep(0)
            return first.is_set(), second.is_set()

    assert wait(whole()) == (True, False)


def test_an_allocation_without_its_holder_is_given_up_after_a_while() -> None:
    office = Office()
    held = office.submit(batch=None, allocator="salloc", name="held")
    alone = office.submit(batch=None, allocator="srun", name="alone")
    office.submit(name="script")
    jobs = [office.job(JobId(number)) for number in (held, alone, alone + 1)]
    holders = Holders()
    with holders.holding(held):
        assert holders.abandoned(jobs, 0.0) == []
        assert [job.id for job in holders.abandoned(jobs, GRACE)] == [alone]
    assert holders.abandoned(jobs[:1], GRACE) == []


def test_a_holder_that_came_again_in_time_keeps_its_allocation() -> None:
    office = Office()
    job = office.job(office.submit(batch=None, allocator="salloc"))
    holders = Holders()
    assert holders.abandoned([job], 0.0) == []
    with holders.holding(job.id):
        assert holders.abandoned([job], GRACE / 2) == []
    assert holders.abandoned([job], GRACE + 1) == []


def test_a_site_says_how_long_an_allocation_waits_for_its_holder() -> None:
    office = Office()
    job = office.job(office.submit(batch=None, allocator="salloc"))
    holders = Holders()
    assert holders.abandoned([job], 0.0, patience=7) == []
    assert holders.abandoned([job], 6.9, patience=7) == []
    assert holders.abandoned([job], 7.0, patience=7) == [job]
