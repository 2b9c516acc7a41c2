"""Lines that are kept are the lines that would be made."""

from dataclasses import replace

from broker.model.job import Job
from gateway.query import views
from gateway.query.context import Context
from gateway.query.kept import KeptLines
from gateway.query.select import spread_partitions
from tests.unit.gateway.query.records import NOON, SITE, pending, running

LAYOUT = views.squeue_letters(views.SQUEUE_DEFAULT)


def reader(jobs: list[Job], *, now: int = NOON, array_width: int | None = None) -> Context:
    ctx = Context(now=now, site=SITE, jobs={job.id: job for job in jobs})
    return ctx if array_width is None else replace(ctx, array_width=array_width)


def test_a_second_listing_equals_a_fresh_one_though_time_has_passed() -> None:
    kept, jobs = KeptLines(), [pending(700001), running(700002), pending(700003)]
    first = kept.lines(LAYOUT, jobs, reader(jobs))
    later = reader(jobs, now=NOON + 61)
    second = kept.lines(LAYOUT, jobs, later)
    assert second == LAYOUT.lines(jobs, later)
    assert (second[0], second[2]) == (first[0], first[2])
    assert second[1] != first[1]


def test_a_changed_job_gets_a_new_line() -> None:
    kept, job = KeptLines(), pending(700001)
    kept.lines(LAYOUT, [job], reader([job]))
    changed = replace(job, reason="Priority")
    assert kept.lines(LAYOUT, [changed], reader([changed]))[0].endswith("(Priority)")


def test_only_records_of_the_world_that_wait_are_kept() -> None:
    both = replace(pending(700001), partitions=("ec2", "debug"))
    jobs = [both, running(700002)]
    kept, ctx = KeptLines(), reader(jobs)
    shown = [*spread_partitions(jobs), both]
    assert kept.lines(LAYOUT, shown, ctx) == LAYOUT.lines(shown, ctx)
    assert [pair[0] for pair in kept.kept[LAYOUT].values()] == [both]


def test_lines_of_records_that_are_gone_do_not_pile_up() -> None:
    kept = KeptLines()
    for number in range(3):
        jobs = [pending(700001 + 600 * number + n) for n in range(600)]
        kept.lines(LAYOUT, jobs, reader(jobs[:1]))
    for number in range(1500):
        job = pending(700001 + number)
        kept.lines(LAYOUT, [job], reader([job]))
    assert len(kept.kept[LAYOUT]) <= 1002


def test_another_site_or_a_width_of_array_lists_makes_lines_anew() -> None:
    kept, job = KeptLines(), pending(700001)
    kept.lines(LAYOUT, [job], reader([job]))
    kept.lines(LAYOUT, [job], replace(reader([job]), site=replace(SITE, cluster="other")))
    assert len(kept.kept[LAYOUT]) == 1
    narrow = reader([job], array_width=3)
    assert kept.lines(LAYOUT, [job], narrow) == LAYOUT.lines([job], narrow)
