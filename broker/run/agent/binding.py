"""To which of the node's cpus each task of a step is held, and what it is told (srun --cpu-bind).

What cannot be had is not feigned: where tasks need more cpus than the node has for the step, they
run on all of these and read that they are held to none.
"""

import errno
import os
import time

from . import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

SYSTEM = "/sys/devices/system"
NAMES = {
    "none": "NONE",
    "rank": "RANK",
    "map_cpu": "MAP ",
    "rank_ldom": "LDRANK",
    "map_ldom": "LDMAP ",
    "mask_ldom": "LDMASK",
}
"""Slurm's of kinds in its lines; those that are not here are masks."""
UNBOUND = ("", "none")
MOST_CPUS = 1024
"""A set of the C library's has no cpu beyond; who names one is held to it in no set (glibc)."""
TOLD = "cpu-bind={} - {}, task {:2d} {:2d} [{}]: mask {}{}\n"


def hold(step: "dict[str, Any]", place: int) -> "dict[bytes, bytes]":
    """Holds this process to what is the task's of that place; the variables that tell it.

    Writes Slurm's line about it to standard error where that was asked for.
    """
    bind = step.get("bind")
    if not bind:
        return {}
    kind, there = bind["kind"], available(bind["cpus"])
    sets = wanted(bind, len(step["tasks"]), there)
    failed = bool(sets) and not _held(sets[place % len(sets)])
    if bind["verbose"]:
        _say(step, place, kind if sets else "none", failed=failed)
    return variables(bind, sets)


def available(cpus: "Iterable[int]") -> "list[int]":
    """The step's cpus; of a node that has none of these all that this process may use."""
    may = os.sched_getaffinity(0)
    return sorted(set(cpus) & may or may)


def wanted(bind: "dict[str, Any]", count: int, there: "list[int]") -> "list[set[int]]":
    """The cpus of each place of `count`; none where nothing is to be, or can be, held."""
    kind, items = bind["kind"], bind["items"]
    if kind in UNBOUND:
        return []
    if kind in LISTED:
        return [LISTED[kind](item) & set(range(MOST_CPUS)) for item in items]
    if kind == "rank":
        return [{there[place % len(there)]} for place in range(count)]
    if kind == "rank_ldom":
        domains = _units("ldoms", there)
        return [domains[place % len(domains)] for place in range(count)]
    return _shared_out(_units(kind, there), bind["each"], count)


def _shared_out(units: "list[set[int]]", each: int, count: int) -> "list[set[int]]":
    """So many cpus for each, one unit after the other, then the whole of the units touched."""
    in_order = [cpu for unit in units for cpu in sorted(unit)]
    if count * each > len(in_order):
        return []
    found = []
    for place in range(count):
        own = set(in_order[place * each : (place + 1) * each])
        found.append(set().union(*(unit for unit in units if unit & own)))
    return found


def _units(kind: str, there: "list[int]") -> "list[set[int]]":
    """Cpus that belong together, so far as they are the step's."""
    if kind == "threads":
        return [{cpu} for cpu in there]
    named = {}  # type: dict[str, set[int]]
    for cpu in there:
        named.setdefault(UNITS[kind](cpu), set()).add(cpu)
    return [named[name] for name in sorted(named, key=lambda name: min(named[name]))]


def _core(cpu: int) -> str:
    """A core of one cpu where the system does not tell."""
    return _read("{}/cpu/cpu{}/topology/thread_siblings_list".format(SYSTEM, cpu)) or str(cpu)


def _socket(cpu: int) -> str:
    return _read("{}/cpu/cpu{}/topology/physical_package_id".format(SYSTEM, cpu))


def _domain(cpu: int) -> str:
    return next((name for name in _domains() if cpu in _of_domain(name)), "")


def _domains() -> "list[str]":
    try:
        names = os.listdir(SYSTEM + "/node")
    except OSError:
        return []
    return [name for name in sorted(names) if name[:4] == "node" and name[4:].isdigit()]


def _of_domain(name: str) -> "set[int]":
    return spread(_read("{}/node/{}/cpulist".format(SYSTEM, name)))


def spread(text: str) -> "set[int]":
    """`0-3,8` as numbers."""
    found = set()  # type: set[int]
    for piece in text.split(","):
        low, _, high = piece.partition("-")
        if low:
            found.update(range(int(low), int(high or low) + 1))
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _of_mask(mask: str) -> "set[int]":
    number = int(mask, 16)
    return {bit for bit in range(number.bit_length()) if number >> bit & 1}


def _of_domains(mask: str) -> "set[int]":
    return set().union(*(_of_domain("node{}".format(one)) for one in _of_mask(mask)))


UNITS = {"cores": _core, "sockets": _socket, "ldoms": _domain}
LISTED: "dict[str, Callable[[str], set[int]]]" = {
    "map_cpu": lambda item: {int(item)},
    "mask_cpu": _of_mask,
    "map_ldom": lambda item: _of_domain("node" + item),
    "mask_ldom": _of_domains,
}


def _held(cpus: "set[int]") -> bool:
    """Whether that could be; if not, why is told as slurmstepd does."""
    try:
        os.sched_setaffinity(0, cpus)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or os.strerror(errno.EINVAL)
        text = "sched_setaffinity({},{}) failed: {}".format(os.getpid(), shown(cpus), reason)
        os.write(2, words.error(text.encode("ascii"), time.time()))
        return False
    return True


def shown(cpus: "Iterable[int]") -> str:
    """As a mask: `0x5`."""
    return hex(sum(1 << cpu for cpu in cpus))


def _say(step: "dict[str, Any]", place: int, kind: str, *, failed: bool) -> None:
    name = NAMES.get(kind, "MASK")
    action = "" if kind == "none" else " set"
    rank = step["tasks"][place].get("rank") or 0
    mask = shown(os.sched_getaffinity(0))
    end = action + (" FAILED" if failed else "")
    line = TOLD.format(name, step["node"], rank, place, os.getpid(), mask, end)
    os.write(2, line.encode("utf-8", "surrogateescape"))


def variables(bind: "dict[str, Any]", sets: "list[set[int]]") -> "dict[bytes, bytes]":
    """What tasks are told: kinds without a list of their own as the masks that came of them."""
    loud = "verbose" if bind["verbose"] else "quiet"
    kind, items = bind["kind"], ",".join(bind["items"])
    if kind in UNITS or kind == "threads":
        kind, items = ("mask_cpu", ",".join(map(shown, sets))) if sets else ("none", "")
    colon = kind + ":" if kind in LISTED else kind
    whole = ",".join(part for part in (loud, colon) if part) + items
    told = {"": whole, "_LIST": items, "_TYPE": colon, "_VERBOSE": loud}
    return {b"SLURM_CPU_BIND" + name.encode(): text.encode() for name, text in told.items()}
