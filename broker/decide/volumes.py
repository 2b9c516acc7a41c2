"""Volumes: what is asked of them and seen of them, to facts; who may have which now."""

from dataclasses import replace

from accounting.assoc import InvalidAccount, InvalidQos, standing
from accounting.ids import AccountName, UserName
from accounting.ledger import Holder, Meter, Payer
from accounting.rates import ON_DEMAND, Price
from accounting.tres import Tres
from broker.decide.rules import NOTHING, Decision
from broker.model.errors import BadOption, Conflict, Denied, Unknown
from broker.model.facts import SYSTEM
from broker.model.job import Job, Owner
from broker.model.site import Site
from broker.model.volume import (
    ApplyVolume,
    DeleteVolume,
    NamedVolume,
    VolumeAttached,
    VolumeDetached,
    VolumeDropped,
    VolumeGone,
    VolumeMade,
    VolumeNotMade,
    VolumeOrder,
    VolumeSeen,
    VolumeSet,
    VolumeState,
    holds,
    names_of,
    users_of,
)
from broker.optimize.costs import VOLUME, hourly
from broker.world import World

WHOLE = Tres(cpu=1)
"""What its owner has of it: all."""


def decide_volume(world: World, asked: VolumeOrder, now: int) -> Decision:
    """Raises Unknown, Denied, Conflict."""
    if isinstance(asked, ApplyVolume):
        return _applied(world, asked, now)
    return _deleted(world, asked, now)


def _applied(world: World, asked: ApplyVolume, now: int) -> Decision:
    there = world.volumes.get(asked.name)
    if there is not None and there.state is not VolumeState.FAILED:
        _must_be_the_same(there, asked)
        return Decision(reply=asked.name)
    record = NamedVolume(
        name=asked.name,
        owner=asked.by,
        account=_account(world.site, asked.by),
        provider=asked.provider,
        asked_at=now,
        gib=asked.gib,
        tier=asked.tier,
        labels=asked.labels,
        region=asked.region,
        zone=asked.zone,
    )
    return Decision([VolumeSet(at=now, actor=asked.by.uid, record=record)], asked.name)


def _must_be_the_same(there: NamedVolume, asked: ApplyVolume) -> None:
    if there.owner.uid != asked.by.uid:
        raise Denied(f"volume {there.name!r} is {there.owner.user}'s", hint="choose another name")
    if there.state is VolumeState.DELETING:
        raise Conflict(f"volume {there.name!r} is being deleted", hint="try again soon")
    if (there.gib, there.tier) != (asked.gib, asked.tier):
        tier = there.tier or "the usual tier"
        raise Conflict(
            f"volume {there.name!r} is there, of {there.gib}Gi and {tier}",
            hint="a volume keeps its size: make another",
        )


def _account(site: Site, owner: Owner) -> AccountName:
    """The owner's usual one. Raises BadOption where he has none."""
    try:
        return standing(site.book, UserName(owner.user)).account
    except (InvalidAccount, InvalidQos) as error:
        raise BadOption("account", "", str(error)) from error


def _deleted(world: World, asked: DeleteVolume, now: int) -> Decision:
    there = world.volumes.get(asked.name)
    if there is None:
        raise Unknown(f"no volume {asked.name!r}", hint="`spz volumes ls` lists those there are")
    if asked.by.uid not in {there.owner.uid, *world.site.admins}:
        raise Denied(f"volume {asked.name!r} is {there.owner.user}'s")
    if there.state is VolumeState.CREATING and not asked.purge:
        raise Conflict(f"volume {asked.name!r} is being made", hint="try again soon")
    users = users_of(asked.name, world.jobs.values())
    if users and (there.host is not None or not asked.purge):
        named = ", ".join(world.jobs[job].spec.cluster or f"job {job}" for job in users)
        raise Conflict(f"volume {asked.name!r} is in use by {named}", hint="end it first")
    if asked.purge or there.state is VolumeState.FAILED:
        return Decision([VolumeGone(at=now, actor=asked.by.uid, name=asked.name)])
    return _set(replace(there, state=VolumeState.DELETING), now, actor=asked.by.uid)


def decide_volume_seen(world: World, seen: VolumeSeen, now: int) -> Decision:
    """What is told of one that is not known any more is let be."""
    there = world.volumes.get(seen.name)
    if there is None or there.asked_at != seen.asked_at:
        return NOTHING
    match seen:
        case VolumeMade():
            return _set(_made(world, there, seen.id, now=now), now)
        case VolumeNotMade():
            return _set(replace(there, state=VolumeState.FAILED, told=seen.message), now)
        case VolumeDropped():
            return Decision([VolumeGone(at=now, name=there.name)])
        case VolumeAttached():
            if there.host is not None and (there.host, there.host_launch) != (
                seen.node,
                seen.launch,
            ):
                return NOTHING  # late: it is another's by now, or about to be taken off
            used = replace(there, host=seen.node, host_launch=seen.launch, path=seen.path)
            return _set(replace(used, used_at=now), now)
        case VolumeDetached():
            return _set(replace(there, host=None, host_launch=0, path=""), now)


def _set(record: NamedVolume, now: int, *, actor: int = SYSTEM) -> Decision:
    return Decision([VolumeSet(at=now, actor=actor, record=record)])


def _made(world: World, there: NamedVolume, id: str, *, now: int) -> NamedVolume:
    """It is billed from now on."""
    meter = Meter(
        node=f"volume-{there.name}",
        launch=there.asked_at,
        part=VOLUME,
        whole=WHOLE,
        terms=ON_DEMAND,
        prices=(Price(now, hourly(there.disk, there.region, world.site.rates)),),
        running_at=now,
        booted_at=now,
        cause=payer(there),
        region=there.region,
    )
    return replace(there, state=VolumeState.READY, id=id, meter=meter)


def payer(one: NamedVolume) -> Payer:
    """Its owner's account."""
    return Payer(one.account, UserName(one.owner.user))


def holder(one: NamedVolume) -> Holder:
    return Holder(payer(one), WHOLE)


def why_waits(world: World, job: Job) -> str | None:
    """Why the job cannot have its volumes now; None where it can."""
    for name in sorted(names_of(job.spec.volumes)):
        there = world.volumes.get(name)
        if there is None or there.owner.uid != job.owner.uid:
            return f"there is no volume {name}"
        if there.state is not VolumeState.READY:
            return f"volume {name} is {there.told or there.state.value}"
        others = (world.jobs[one] for one in users_of(name, world.jobs.values()) if one != job.id)
        held = next((one for one in others if holds(one)), None)
        if held is not None:
            return f"volume {name} is held by {held.spec.cluster or f'job {held.id}'}"
        if _is_left(world, there):
            return f"volume {name} is being taken off {there.host}"
    return None


def _is_left(world: World, one: NamedVolume) -> bool:
    """Whether a machine has it still for nobody: what takes it off cannot be called back."""
    there = one.host is not None and world.present(one.host, one.host_launch) is not None
    return there and not world.serves(one)
