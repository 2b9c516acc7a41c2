"""What partitions and declared nodes are: as configured, with `scontrol update` laid over it."""

from broker.decide.passing import configured_nodes
from broker.decide.rules import Decision
from broker.model.errors import USER_ID_MISSING, Denied, Unknown
from broker.model.partition import PartitionGone, PartitionPatch, PartitionSet, SetPartition
from broker.world import World

NO_PARTITION = "Invalid partition name specified"


def decide_partition(world: World, asked: SetPartition, now: int) -> Decision:
    """Administrators only, as in Slurm (25.11). Raises Denied, Unknown."""
    if not world.site.is_run_by(asked.by.uid):
        raise Denied(USER_ID_MISSING)
    if world.site.partition(asked.name) is None:
        raise Unknown(NO_PARTITION)
    known = world.patches.get(asked.name) or PartitionPatch(asked.name)
    fact = PartitionSet(at=now, actor=asked.by.uid, record=known.with_changes(asked.changes))
    return Decision([fact])


def decide_reconfigured(world: World, now: int) -> Decision:
    """The configuration was read anew: what was laid over it ends."""
    ended = [PartitionGone(at=now, name=name) for name in world.patches]
    return Decision([*configured_nodes(world, now), *ended])
