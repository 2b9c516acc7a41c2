"""Volumes made, attached and mounted, taken off again, dropped; each call may be repeated."""

from collections.abc import Mapping, Sequence

from broker.model import effects as ef
from broker.model.errors import ProviderError
from broker.model.ids import step_key
from broker.model.reports import Report, StepRefused
from broker.model.volume import (
    NamedVolume,
    VolumeAttached,
    VolumeDetached,
    VolumeDropped,
    VolumeMade,
    VolumeNotMade,
)
from broker.ports import Done, Place, Reach, Volumes
from broker.run.agent.disk import NOT_YET

MOUNT_SECONDS = 300.0
"""How long a new file system of many TB may take."""
Kept = Mapping[str, Volumes]
"""By provider."""


def make(effect: ef.MakeVolume, kept: Kept) -> VolumeMade | VolumeNotMade:
    """Raises OSError while it cannot be told."""
    one = effect.volume
    try:
        id = kept[one.provider].make(one)
    except ProviderError as error:
        return VolumeNotMade(name=one.name, asked_at=one.asked_at, message=error.message)
    return VolumeMade(name=one.name, asked_at=one.asked_at, id=id)


def drop(effect: ef.DropVolume, kept: Kept) -> VolumeDropped:
    """Raises OSError, ProviderError while it is there."""
    one = effect.volume
    kept[one.provider].drop(one)
    return VolumeDropped(name=one.name, asked_at=one.asked_at)


def attach(effect: ef.AttachVolume, kept: Kept, reach: Reach) -> Report:
    """Raises OSError while the machine does not show it."""
    one, node, job = effect.volume, effect.node, effect.job
    place, disks = reach.place(node), kept[one.provider]
    message = ""
    try:
        if node.machine is None:
            raise OSError(f"{node.name} has no machine")
        disks.attach(one, node.machine)
        done = _asked(place, one, disks.paths(one), do=("mount", effect.path))
        said = done.err.decode("utf-8", "replace").strip()
        message = (said or f"mounting it ended with {done.code}") if done.code else ""
    except ProviderError as error:
        message = error.message
    if message:
        key = step_key(job.id, job.attempt, job.steps[0].id)
        return StepRefused(key=key, message=f"volume {one.name}: {message}", node=node.name)
    return VolumeAttached(
        name=one.name, asked_at=one.asked_at, node=node.name, launch=node.launch, path=effect.path
    )


def detach(effect: ef.DetachVolume, kept: Kept, reach: Reach) -> VolumeDetached:
    """Raises OSError while something uses it."""
    one, node = effect.volume, effect.node
    disks = kept[one.provider]
    if node is not None:
        done = _asked(reach.place(node), one, disks.paths(one), do=("unmount", one.path))
        if done.code:
            raise OSError(f"volume {one.name}: unmounting it ended with {done.code}")
    disks.detach(one)
    return VolumeDetached(name=one.name, asked_at=one.asked_at)


def _asked(place: Place, one: NamedVolume, paths: Sequence[str], *, do: tuple[str, str]) -> Done:
    whose = (str(one.owner.uid), str(one.owner.gid))
    argv = [place.python, place.archive, "disk", *do, *whose, *paths]
    done = place.channel.run(argv, timeout=MOUNT_SECONDS)
    if done.code == NOT_YET:
        raise OSError(f"volume {one.name}: not yet")
    return done
