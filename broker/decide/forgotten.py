"""Nodes whose agent began anew: what it knew of the jobs there went with its files, or its host."""

from broker.decide.draining import draining
from broker.decide.ending import lost, places
from broker.decide.rules import NOTHING, Decision
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import NodeState
from broker.model.reports import JournalLost
from broker.world import World

FORGOTTEN = "files of the agent are gone"


def decide_journal_lost(world: World, seen: JournalLost, now: int) -> Decision:
    """A bought machine is let go: its end is that of its jobs for certain, which go on elsewhere.

    A declared node's new journal is read from its beginning. Jobs that are not in it have failed
    and are not begun again, for something of them may live there yet; no others come before
    somebody has looked.
    """
    node = world.present(seen.node, seen.launch)
    if node is None or node.state is not NodeState.UP:
        return NOTHING
    if not node.declared:
        doomed = nev.NodeDoomed(node=node.name, launch=node.launch, at=now, why=FORGOTTEN)
        return Decision([doomed])
    facts: list[ev.Event] = [
        nev.JournalRead(node=node.name, launch=node.launch, at=now, position=0)
    ]
    told = {record.get("attempt") for record in seen.records}
    jobs = [job for job in world.holders_of(node.name) if job.key not in told]
    for job in jobs:
        if _lived(job, node.name):
            facts += lost(job, node, now=now, why=FORGOTTEN, requeue=False)
    if len(facts) > 1 and not node.drain:
        facts.append(draining(node, now, reason=FORGOTTEN))
    return Decision(facts)


def _lived(job: Job, node: NodeName) -> bool:
    """Whether anything of it was begun there and is not known to have ended."""
    if job.completing:
        return node not in job.cleared
    living = (step for step in job.steps if step.started is not None and not step.state.final)
    return any(node in places(job, step) for step in living)
