"""Rows of sacct that are kept are the rows that would be made."""

from dataclasses import replace

import pytest

from broker.model.job import Job, JobState, Step
from gateway.query.context import Context
from gateway.query.kept import KeptRows
from gateway.query.rows import Style, body, read_fields
from tests.unit.gateway.query.records import NOON, SITE, ended, pending, running

USUAL = "jobid,jobname,partition,account,alloccpus,state,exitcode"


class Counting:
    """Makes rows, and counts how many it made."""

    def __init__(self, text: str, ctx: Context) -> None:
        self.fields, self.ctx, self.made = read_fields(text), ctx, 0

    def __call__(self, job: Job) -> str:
        self.made += 1
        rows: list[tuple[Job, Step | None]] = [(job, None), *((job, step) for step in job.steps)]
        return body(self.fields, rows, self.ctx, style=Style())


def reader(jobs: list[Job], *, now: int = NOON) -> Context:
    return Context(now=now, site=SITE, jobs={job.id: job for job in jobs})


def listed(kept: KeptRows, jobs: list[Job], ctx: Context, text: str = USUAL) -> tuple[str, int]:
    """The rows, and how many were made anew."""
    make = Counting(text, ctx)
    return kept.text((make.fields, Style(), False), jobs, ctx, make=make), make.made


JOBS = [ended(700001), running(700002), pending(700003), ended(700004, JobState.CANCELLED)]


@pytest.mark.parametrize(
    ("text", "again"),
    [
        (USUAL, 1),
        ("jobid,elapsed,state", 2),
        ("jobid,planned", 2),
        ("jobid,cost", 4),
    ],
)
def test_rows_that_time_cannot_change_are_made_once(text: str, again: int) -> None:
    kept = KeptRows()
    listed(kept, JOBS, reader(JOBS), text)
    later = reader(JOBS, now=NOON + 61)
    fresh = "".join(map(Counting(text, later), JOBS))
    assert listed(kept, JOBS, later, text) == (fresh, again)


def test_a_changed_job_gets_a_new_row() -> None:
    kept, job = KeptRows(), ended(700001)
    listed(kept, [job], reader([job]))
    changed = replace(job, account="chem")
    assert "chem" in listed(kept, [changed], reader([changed]))[0]


def test_another_site_zone_or_unit_makes_rows_anew() -> None:
    kept, job = KeptRows(), ended(700001)
    ctx = reader([job])
    listed(kept, [job], ctx)
    for other in (
        replace(ctx, site=replace(SITE, cluster="other")),
        replace(ctx, zone=lambda _: 3600),
        replace(ctx, unit="K"),
    ):
        assert listed(kept, [job], other)[1] == 1
    relative = replace(ctx, time_format="relative")
    assert [listed(kept, [job], relative)[1] for _ in range(2)] == [1, 1]


def test_rows_of_records_that_are_gone_do_not_pile_up() -> None:
    kept = KeptRows()
    for number in range(30):
        jobs = [ended(700001 + 1000 * number + place) for place in range(1000)]
        listed(kept, jobs, reader(jobs[:1]), "jobid")
    assert sum(map(len, kept.kept.values())) <= 13_000


def test_of_records_that_memory_does_not_have_those_that_ended_are_kept() -> None:
    for job, made in ((ended(700001), [1, 0]), (pending(700002), [1, 1])):
        kept = KeptRows()
        assert [listed(kept, [job], reader([]))[1] for _ in range(2)] == made
