"""JSON that is kept is the JSON that would be made."""

from dataclasses import replace

import pytest

from broker.model.job import Job, JobState
from gateway.query.context import Context
from gateway.query.documents import PIECE, Asker, Kind, pieces
from gateway.query.keptjson import MOST_BLOCKS, KeptBlocks
from gateway.query.restjob import JOB_KIND
from gateway.query.restpast import PAST_KIND
from tests.unit.gateway.query.records import NOON, SITE, ended, pending, running

FIRST = 256 * 2700
BY = Asker(("squeue", "--json"), "alice", "alice")
BOTH = pytest.mark.parametrize("kind", [JOB_KIND, PAST_KIND], ids=["squeue", "sacct"])


def jobs(count: int = PIECE * 2) -> list[Job]:
    """Those of the first block have ended, those of the second wait; further on some run."""
    found = [ended(FIRST + place, JobState.CANCELLED, ended_by=7) for place in range(256)]
    found += [pending(FIRST + place, eligible=NOON - 5) for place in range(256, count)]
    return [*found, running(FIRST + 700), pending(FIRST + 701)]


def reader(listed: list[Job], now: int = NOON) -> Context:
    return Context(now=now, site=SITE, jobs={job.id: job for job in listed})


def text(kind: Kind, listed: list[Job], ctx: Context, kept: KeptBlocks | None) -> str:
    return b"".join(pieces(kind, listed, ctx, asker=replace(BY, kept=kept))).decode()


@BOTH
def test_a_kept_answer_is_what_would_be_made_also_later(kind: Kind) -> None:
    kept, listed = KeptBlocks(), jobs()
    for now in (NOON, NOON, NOON + 61):
        ctx = reader(listed, now)
        assert text(kind, listed, ctx, kept) == text(kind, listed, ctx, None)
    assert len(kept.kept) == 2


@BOTH
def test_what_changed_left_or_came_is_made_anew(kind: Kind) -> None:
    kept, listed = KeptBlocks(), jobs()
    text(kind, listed, reader(listed), kept)
    for changed in (
        [replace(listed[0], account="chem"), *listed[1:]],
        listed[1:],
        [ended(FIRST - 1), *listed],
        [*listed[:300], replace(listed[300], priority=5), *listed[301:]],
    ):
        ctx = reader(changed)
        assert text(kind, changed, ctx, kept) == text(kind, changed, ctx, None)


@BOTH
def test_the_same_jobs_for_another_site_name_or_version_are_made_anew(kind: Kind) -> None:
    kept, listed = KeptBlocks(), jobs()
    ctx = reader(listed)
    text(kind, listed, ctx, kept)
    for other in (
        replace(ctx, site=replace(SITE, cluster="other")),
        ctx.with_names(lambda uid: f"user{uid}"),
    ):
        assert text(kind, listed, other, kept) == text(kind, listed, other, None)
    old = replace(BY, version="v0.0.41")
    made = b"".join(pieces(kind, listed, ctx, asker=replace(old, kept=kept)))
    assert made == b"".join(pieces(kind, listed, ctx, asker=old))


def test_blocks_do_not_pile_up() -> None:
    kept = KeptBlocks()
    found = [pending(FIRST + 256 * place) for place in range(MOST_BLOCKS + 100)]
    text(JOB_KIND, found, reader(found), kept)
    assert len(kept.kept) == MOST_BLOCKS
