"""What nodes are told beside signals, their word that they have it, and of what ails them."""

from broker.decide.commands import OVER, PENDING, records
from broker.decide.draining import draining
from broker.decide.rules import NOTHING, Decision
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model import reports as rep
from broker.model.errors import Conflict
from broker.model.ids import NodeName
from broker.model.job import Notice
from broker.model.lifecycle import Life, life
from broker.model.recovery import ArtifactsDone, ArtifactsStored, CheckpointDone, Checkpointed
from broker.world import World

NO_BATCH = "Job {} has no batch script into whose output the message could go"


def decide_notify(world: World, asked: cmd.Notify, now: int) -> Decision:
    """Notes the text; the nodes get it next. Raises Conflict for jobs that do not run."""
    found = records(world, asked.target, asked.by)
    running = [job for job in found if life(job) is Life.RUNNING]
    if not running:
        raise Conflict(OVER if all(job.over for job in found) else PENDING)
    if not any(job.runs_batch for job in running):
        raise Conflict(NO_BATCH.format(running[0].id))
    serial = world.last_event + 1
    return Decision(
        [
            ev.NoticeAsked(
                job=job.id,
                at=now,
                actor=asked.by.uid,
                notice=Notice(asked.text, serial + job.id),
            )
            for job in running
            if job.runs_batch
        ]
    )


Kept = CheckpointDone | ArtifactsDone
MOST_NAMED = 100
"""Artifacts and failures of one event that are named."""


def decide_kept(world: World, seen: Kept, now: int) -> Decision:
    """What was kept of a job elsewhere. Words about an old attempt change nothing."""
    job = world.jobs.get(seen.job)
    if job is None or job.attempt != seen.attempt:
        return NOTHING
    if isinstance(seen, CheckpointDone):
        fact: ev.JobEvent = Checkpointed(
            job=job.id, at=now, what=seen.what, number=seen.number, detail=seen.detail
        )
    else:
        stored, failed = seen.results.stored, seen.results.failed
        fact = ArtifactsStored(
            job=job.id,
            at=now,
            files=len(stored),
            size=sum(one.size for one in stored),
            artifacts=stored[:MOST_NAMED],
            failed=failed[:MOST_NAMED],
            lost=len(failed),
            beside=seen.results.beside[:MOST_NAMED],
        )
    return Decision([fact])


def decide_told(world: World, seen: rep.NoticeDone | rep.LimitDone, now: int) -> Decision:
    """Words about an old attempt change nothing."""
    job = world.jobs.get(seen.job)
    if job is None or job.attempt != seen.attempt:
        return NOTHING
    if isinstance(seen, rep.NoticeDone):
        return Decision([ev.NoticeSent(job=job.id, at=now, serial=seen.serial)])
    return Decision([ev.LimitTold(job=job.id, at=now, serial=seen.serial, step=seen.step)])


def unkillable(world: World, name: NodeName, *, now: int) -> list[ev.Event]:
    """Processes outlived SIGKILL: no job starts there before somebody has looked (25.11)."""
    node = world.nodes.get(name)
    if node is None or node.drain:
        return []
    return [draining(node, now, reason="Kill task failed")]


def decide_trouble(world: World, seen: rep.NodeTrouble, now: int) -> Decision:
    """A node that cannot take jobs is drained for that reason, and resumed when it can."""
    node = world.present(seen.node, seen.launch)
    if node is None or node.drain is bool(seen.text):
        return NOTHING
    return Decision([draining(node, now, reason=seen.text, drain=bool(seen.text))])
