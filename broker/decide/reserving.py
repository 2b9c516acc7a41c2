"""scontrol create, update and delete reservation: what is asked, to a record or Slurm's refusal."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from broker.decide.rules import Decision
from broker.model.constraint import holds, parse
from broker.model.errors import USER_ID_MISSING, Conflict, Denied, Refused, Unknown
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.reservation import (
    OPEN_ENDED,
    DropReservation,
    Reservation,
    ReservationGone,
    ReservationSet,
    SetReservation,
    names_of,
)
from broker.model.site import DeclaredNode, Site
from broker.model.spec import UNLIMITED
from broker.world import World

INVALID = "Requested reservation is invalid"
BAD_TIME = "Invalid time specified"
BAD_NODE = "Invalid node name specified"
BAD_PARTITION = "Invalid partition name specified"
OVERLAP = "Requested reservation overlaps with another reservation"
DUPLICATE = "Duplicate reservation name"
BUSY = "Requested nodes are busy"
IN_USE = "Requested reservation is in use"
STARTED = "Reservation already started"
LATE = 60
"""Seconds that a beginning may lie in the past."""
ALL = "ALL"
ALONGSIDE = ("MAINT", "OVERLAP")
"""Flags of reservations beside which others may stand."""
BY_NAME, OF_ALL, BY_COUNT = "SPEC_NODES", "ALL_NODES", ("SPEC_NODES", "ALL_NODES")


def decide_reservation(world: World, asked: SetReservation, now: int) -> Decision:
    """The record as it is from now. Raises Denied, Unknown, Refused, Conflict."""
    if not world.site.is_run_by(asked.by.uid):
        raise Denied(USER_ID_MISSING)
    before = world.reservations.get(asked.name)
    if before is None and not asked.make:
        raise Unknown(INVALID)
    if before is not None and asked.make:
        raise Conflict(DUPLICATE)
    if asked.partition is not None and world.site.partition(asked.partition) is None:
        raise Refused(BAD_PARTITION)
    drawn = _drawn(world, asked, before)
    timed = _timed(drawn, asked, before, now=now)
    record = _placed(world, asked, timed, before=before)
    return Decision([ReservationSet(at=now, actor=asked.by.uid, record=record)], record.name)


def decide_drop(world: World, asked: DropReservation, now: int) -> Decision:
    """Raises Denied, Unknown, Conflict while a job runs in it; who waits for it goes on waiting."""
    record = world.reservations.get(asked.name)
    admin = world.site.is_run_by(asked.by.uid)
    own = record is not None and record.has("USER_DELETE") and record.admits(asked.by, "")
    if not (admin or own):
        raise Denied(USER_ID_MISSING)
    if record is None:
        raise Unknown(INVALID)
    if any(record.name in names_of(job.spec.reservation) for job in _running(world)):
        raise Conflict(IN_USE)
    return Decision([ReservationGone(at=now, actor=asked.by.uid, name=record.name)])


def reservations_due(world: World, now: int) -> list[ReservationSet | ReservationGone]:
    """Facts of reservations that begin, end, come again or were not used for too long."""
    found: list[ReservationSet | ReservationGone] = []
    for one in world.reservations.values():
        if one.end <= now:
            again = one.following()
            while again is not None and again.end <= now:
                again = again.following()
            found.append(
                ReservationGone(at=now, name=one.name)
                if again is None
                else ReservationSet(at=now, record=again)
            )
        elif one.start <= now and not one.begun:
            found.append(ReservationSet(at=now, record=replace(one, begun=True)))
        elif one.purge is not None and one.active(now) and _unused(world, one, now) >= one.purge:
            found.append(ReservationGone(at=now, name=one.name))
    return found


def _unused(world: World, record: Reservation, now: int) -> int:
    """Seconds for which no job has been in it; jobs are known for MinJobAge after their end."""
    mine = [job for job in world.jobs.values() if record.name in names_of(job.spec.reservation)]
    if any(not job.over for job in mine):
        return 0
    return now - max((job.ended or 0 for job in mine), default=record.start)


# ---------------------------------------------------------------- who and when


def _drawn(world: World, asked: SetReservation, before: Reservation | None) -> Reservation:
    """The record with everything but times and nodes."""
    old = before or Reservation(name="", start=0, end=0, nodes=())
    made = replace(
        old,
        users=asked.users.of(old.users) if asked.users else old.users,
        groups=asked.groups.of(old.groups) if asked.groups else old.groups,
        gids=asked.gids if asked.groups else old.gids,
        accounts=asked.accounts.of(old.accounts) if asked.accounts else old.accounts,
        flags=asked.flags.of(old.flags) if asked.flags else old.flags,
        partition=asked.partition or old.partition,
        features=asked.features or old.features,
        purge=old.purge if asked.purge is None else asked.purge,
        max_start_delay=asked.max_start_delay or old.max_start_delay,
        comment=old.comment if asked.comment is None else asked.comment,
    )
    return made if before else replace(made, name=asked.name or _fresh_name(world, made))


def _fresh_name(world: World, record: Reservation) -> str:
    """`alice_3`: after whom it is for first."""
    first = (*record.users, *record.accounts, *record.groups, "resv")[0].removeprefix("-")
    number = 1 + len(world.reservations)
    while f"{first}_{number}" in world.reservations:
        number += 1
    return f"{first}_{number}"


def _timed(
    record: Reservation, asked: SetReservation, before: Reservation | None, *, now: int
) -> Reservation:
    start = record.start if asked.start is None else asked.start
    if asked.start is not None and before is not None and before.start <= now != start:
        raise Conflict(STARTED)
    if (before is None or start != before.start) and start < now - LATE:
        raise Refused(BAD_TIME)
    length = asked.duration or (before.end - before.start if before else OPEN_ENDED)
    end = start + length if asked.end is None else asked.end
    if end <= start or end < now - LATE:
        raise Refused(BAD_TIME)
    begun = record.begun and start <= now
    return replace(record, start=start, end=end, begun=begun)


# ---------------------------------------------------------------- where


def _placed(
    world: World, asked: SetReservation, record: Reservation, *, before: Reservation | None
) -> Reservation:
    """Named nodes if they are free then; else as many as were asked for of the partition's."""
    if asked.nodes is not None:
        names = _named(world.site, asked.nodes, record)
        flags = (BY_NAME, OF_ALL) if asked.nodes == (ALL,) and not asked.partition else (BY_NAME,)
        record = replace(record, nodes=names, flags=_with(record.flags, flags))
        return _must_be_free(world, record)
    if asked.node_count is not None or asked.core_count is not None:
        return _counted(world, asked, record, keeps=before.nodes if before else ())
    if before is None:
        raise Refused(INVALID)
    return _must_be_free(world, record)


def _with(flags: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return (*(flag for flag in flags if flag not in BY_COUNT), *more)


def _named(site: Site, words: Sequence[str], record: Reservation) -> tuple[NodeName, ...]:
    known = [node.name for node in site.nodes]
    if tuple(words) == (ALL,):
        partition = site.partition(record.partition) if record.partition else None
        return partition.nodes if partition is not None else tuple(known)
    if not words or any(word not in known for word in words):
        raise Refused(BAD_NODE)
    return tuple(name for name in known if name in words)


def _must_be_free(world: World, record: Reservation) -> Reservation:
    if any(_taken(world, record, name) for name in record.nodes):
        raise Conflict(OVERLAP)
    if any(_is_busy(world, record, name) for name in record.nodes):
        raise Conflict(BUSY)
    return record


def _counted(
    world: World, asked: SetReservation, record: Reservation, *, keeps: Sequence[NodeName]
) -> Reservation:
    """The first of the partition's nodes that are free then; whole ones also for cores."""
    partition = world.site.partition(record.partition or "") or world.site.default_partition
    names = partition.nodes if partition else ()
    usable = [node for node in world.site.nodes if node.name in names and _is_of(node, record)]
    usable.sort(key=lambda node: node.name not in keeps)
    free = [
        node
        for node in usable
        if not _taken(world, record, node.name) and not _is_busy(world, record, node.name)
    ]
    chosen = _enough(free, asked, most=len(names))
    if not chosen:
        raise Conflict(BUSY)
    return replace(
        record,
        nodes=tuple(node.name for node in world.site.nodes if node in chosen),
        partition=partition.name if partition else None,
        flags=_with(record.flags, ()),
    )


def _enough(
    free: Sequence[DeclaredNode], asked: SetReservation, *, most: int
) -> list[DeclaredNode]:
    """None where they are too few; who asks for more than there ever are gets all that are free."""
    if asked.node_count is not None:
        count = asked.node_count if asked.node_count <= most else len(free)
        return list(free[:count]) if len(free) >= count else []
    cores, chosen = asked.core_count or 0, []
    for node in free:
        if cores > 0:
            chosen.append(node)
            cores -= node.sockets * node.cores_per_socket
    return chosen if cores <= 0 else []


def _is_of(node: DeclaredNode, record: Reservation) -> bool:
    if record.features is None:
        return True
    return holds(parse(record.features), frozenset(word.lower() for word in node.features))


def _taken(world: World, record: Reservation, name: NodeName) -> bool:
    """Whether another reservation has the node then, and neither stands beside others."""
    if any(record.has(flag) for flag in ALONGSIDE):
        return False
    others = (one for one in world.reservations.values() if one.name != record.name)
    return any(
        name in one.nodes
        and not any(one.has(flag) for flag in ALONGSIDE)
        and one.overlaps(record.start, record.end)
        for one in others
    )


def _is_busy(world: World, record: Reservation, name: NodeName) -> bool:
    """Whether a job that is not in it may still run there when it begins."""
    if record.has("IGNORE_JOBS"):
        return False
    return any(
        name in (share.node for share in job.shares) and _until(job) > record.start
        for job in _running(world)
        if record.name not in names_of(job.spec.reservation)
    )


def _running(world: World) -> list[Job]:
    return [world.jobs[job_id] for job_id in world.active if world.jobs[job_id].shares]


def _until(job: Job) -> int:
    if job.time_limit == UNLIMITED:
        return 10**12
    return (job.started or 0) + job.suspended_for + int(job.time_limit)
