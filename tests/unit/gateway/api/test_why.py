"""What is told of a job's results: what was stored, and what is lost."""

from dataclasses import replace

import pytest

from accounting.tres import Tres
from broker.decide.telling import decide_kept
from broker.model.job import Share
from broker.model.recovery import Artifact, ArtifactsDone, ArtifactsStored, Fetched
from broker.model.site import Site
from broker.seen import Seen
from broker.world import World
from gateway.api.why import why
from gateway.query.shownode import SWEPT
from gateway.store.records import event, event_text
from tests.contract import records

PUT = (Artifact("s3://b/k", 3, ""), Artifact("s3://b/l", 4, ""))
STORED, LOST = "stored 2 files, 7 bytes, such as s3://b/k", "lost 1 results, such as s3://b/x: no"
BESIDE = "kept what you changed meanwhile; the job's own stands beside it: a.spz-1"
TOLD = (
    (Fetched(PUT), f"  {STORED}"),
    (Fetched(failed=("s3://b/x: no",)), f"  {LOST}"),
    (Fetched(PUT, ("s3://b/x: no",)), f"  {STORED}; {LOST}"),
    (Fetched(beside=("a.spz-1",)), f"  {BESIDE}"),
)


def never(_node: object) -> bool:
    return False


@pytest.mark.parametrize(("results", "line"), TOLD)
def test_results_that_were_stored_and_lost_are_told(results: Fetched, line: str) -> None:
    world, job = World(Site()), replace(records.job(1), attempt=1)
    world.jobs[job.id] = job
    (fact,) = decide_kept(world, ArtifactsDone(job=job.id, attempt=1, results=results), 5).facts
    assert isinstance(fact, ArtifactsStored)
    kept = event("ArtifactsStored", event_text(fact), None)
    assert line in why(job, seen=Seen(world, 5).snapshot(), events=[kept], cost=None, swept=never)


@pytest.mark.parametrize("silent", [True, False])
def test_nodes_that_should_post_and_do_not_are_told_of(silent: bool) -> None:
    world, node = World(Site()), records.node("ec2-7")
    job = records.job(1, shares=(Share(node.name, 1, Tres(cpu=1)),))
    world.jobs[job.id], world.nodes[node.name] = job, node
    seen = Seen(world, 5).snapshot()
    lines = list(why(job, seen=seen, events=[], cost=None, swept=lambda _: silent))
    assert (f"  ec2-7: {SWEPT}" in lines) is silent
