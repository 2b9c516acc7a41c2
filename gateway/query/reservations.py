"""Reservations as scontrol, sinfo -T and their JSON show them (22.05's lines, 25.11's keys)."""

from collections.abc import Iterable
from typing import Any

from broker.model.reservation import Reservation
from gateway.query.context import Context
from gateway.query.moments import show_moment
from gateway.query.shape import number
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_long

INDENT = "\n   "
NULL = "(null)"
# fmt: off
FLAG_ORDER = (
    "MAINT", "FLEX", "OVERLAP", "IGNORE_JOBS", "HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY",
    "SPEC_NODES", "ALL_NODES", "ANY_NODES", "STATIC", "PART_NODES", "FIRST_CORES", "TIME_FLOAT",
    "REPLACE", "REPLACE_DOWN", "PURGE_COMP", "NO_HOLD_JOBS_AFTER_END", "MAGNETIC", "USER_DELETE",
)
# fmt: on
ACTIVE, INACTIVE = "ACTIVE", "INACTIVE"
NAME_WIDTH, STATE_WIDTH, MOMENT_WIDTH, LENGTH_WIDTH = 10, 8, 19, 11


def show_reservation(one: Reservation, ctx: Context, *, oneliner: bool = False) -> str:
    """The record as `scontrol show reservation` prints it."""
    cpus = _cpus(one, ctx)
    lines = [
        f"ReservationName={one.name} StartTime={show_moment(one.start, ctx)} "
        f"EndTime={show_moment(one.end, ctx)} Duration={show_long(one.end - one.start)}",
        f"Nodes={fold(one.nodes)} NodeCnt={len(one.nodes)} CoreCnt={_cores(one, ctx)} "
        f"Features={one.features or NULL} PartitionName={one.partition or NULL} "
        f"Flags={','.join(flag_words(one))}",
        f"TRES=cpu={cpus}",
        f"Users={_names(one.users)} Groups={_names(one.groups)} Accounts={_names(one.accounts)} "
        f"Licenses={NULL} State={state(one, ctx.now)} BurstBuffer={NULL}",
        f"MaxStartDelay={NULL if one.max_start_delay is None else show_long(one.max_start_delay)}",
        *([f"Comment={one.comment}"] if one.comment else []),
    ]
    return " ".join(lines) + "\n" if oneliner else INDENT.join(lines) + "\n\n"


def state(one: Reservation, now: int) -> str:
    return ACTIVE if one.active(now) else INACTIVE


def flag_words(one: Reservation) -> list[str]:
    """In Slurm's order; `PURGE_COMP` with its time."""
    words = [flag for flag in FLAG_ORDER if one.has(flag)]
    if one.purge is None:
        return words
    return [f"{w}={show_long(one.purge)}" if w == "PURGE_COMP" else w for w in words]


def _names(names: tuple[str, ...]) -> str:
    return ",".join(names) or NULL


def _cores(one: Reservation, ctx: Context) -> int:
    mine = [node for node in ctx.site.nodes if node.name in one.nodes]
    return sum(node.sockets * node.cores_per_socket for node in mine)


def _cpus(one: Reservation, ctx: Context) -> int:
    return sum(node.whole.cpu for node in ctx.site.nodes if node.name in one.nodes)


def listed(known: Iterable[Reservation], ctx: Context, *, header: bool) -> str:
    """`sinfo -T`; the first column is as wide as the longest name."""
    rows = list(known)
    width = max([NAME_WIDTH, *(len(one.name) for one in rows)])
    lines = [_row(width, ("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST"))]
    for one in rows:
        begins, ends = show_moment(one.start, ctx), show_moment(one.end, ctx)
        length = show_long(one.end - one.start)
        cells = one.name, state(one, ctx.now), begins, ends, length, fold(one.nodes)
        lines.append(_row(width, cells))
    return "".join(f"{line}\n" for line in (lines if header else lines[1:]))


def _row(width: int, cells: tuple[str, str, str, str, str, str]) -> str:
    name, stands, start, end, length, nodes = cells
    return (
        f"{name:<{width}} {stands:>{STATE_WIDTH}}  {start:>{MOMENT_WIDTH}}  {end:>{MOMENT_WIDTH}}  "
        f"{length:>{LENGTH_WIDTH}}  {nodes}"
    )


# ---------------------------------------------------------------- JSON


def record(one: Reservation, ctx: Context) -> dict[str, Any]:
    """The keys of a reservation in slurmrestd's and scontrol's JSON."""
    return {
        "accounts": ",".join(one.accounts),
        "burst_buffer": "",
        "core_count": _cores(one, ctx),
        "core_specializations": [],
        "end_time": number(one.end),
        "features": one.features or "",
        "flags": [flag for flag in FLAG_ORDER if one.has(flag)],
        "groups": ",".join(one.groups),
        "licenses": "",
        "max_start_delay": one.max_start_delay or 0,
        "name": one.name,
        "node_count": len(one.nodes),
        "node_list": fold(one.nodes),
        "partition": one.partition or "",
        "purge_completed": {"time": number(one.purge or 0)},
        "start_time": number(one.start),
        "tres": f"cpu={_cpus(one, ctx)}",
        "users": ",".join(one.users),
    }
