"""A machine that its provider takes back: on notice it is drained, its jobs end as preempted."""

from broker.decide.draining import draining
from broker.decide.ending import region_of
from broker.model import events as ev
from broker.model.ids import NodeName
from broker.model.job import Job, JobState
from broker.model.left import TAKEN
from broker.model.lifecycle import Life, life
from broker.world import World


def on_notice(world: World, name: NodeName, when: str, *, now: int) -> list[ev.Event]:
    """Nothing new starts there; what runs gets SIGTERM, and time until shortly before the end."""
    node = world.nodes.get(name)
    if node is None or node.declared:
        return []
    drained = draining(node, now, reason=f"taken back by EC2 at {when}")
    facts: list[ev.Event] = [] if node.drain else [drained]
    for job in world.holders_of(name):
        facts += _pushed_out(world, job, region_of(node), now=now)
    return facts


def _pushed_out(world: World, job: Job, region: str | None, *, now: int) -> list[ev.Event]:
    if life(job) not in {Life.RUNNING, Life.CONFIGURING}:
        return []
    if may_requeue(world, job):
        back = ev.Requeued(
            job=job.id,
            at=now,
            why="preempted",
            hold=job.hold,
            priority=job.priority,
            kill_cause=TAKEN,
            region=region,
        )
        return [back]
    end = ev.Ended(job=job.id, at=now, state=JobState.PREEMPTED, reason="None", kill_cause=TAKEN)
    return [end]


def may_requeue(world: World, job: Job) -> bool:
    """As the job says, else as the site does (JobRequeue)."""
    return world.site.job_requeue if job.spec.requeue is None else job.spec.requeue
