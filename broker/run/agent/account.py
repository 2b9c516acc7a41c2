"""A step's own control group of version 2: the cpus that it has, and what all within it used.

Who left the step's session, cleared its environment or was waited for by nobody is in it all the
same. Where none may be had the cpus are held by affinity alone, and processes are looked at.
"""

import contextlib
import os

from . import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

KIB = 1024
FIELDS = {"user_us": "user_us", "sys_us": "sys_us", "max_rss_kib": "rss_kib"}
FIELDS.update(read="read", written="written")
"""Of a step's record, and what of a group's use is in them."""


class Account:
    """Of one step."""

    def __init__(self, step: "dict[str, Any]", key: str) -> None:
        self.group = groups.make_plain(key)
        step["account"] = ""
        if self.group is not None:
            step["account"] = self.group.door
            hold_to(self.group, step.get("cpu_ids") or ())

    def settle(self, record: "dict[str, Any]") -> "dict[str, Any]":
        """The step's record, with what its processes alone do not show."""
        used = use(self.group) if self.group is not None else {}
        return dict(
            record, **{name: max(record[name], used.get(FIELDS[name], 0)) for name in FIELDS}
        )

    def close(self) -> None:
        if self.group is not None:
            self.group.close()


def hold_to(group: "groups.Group", cpus: "Any") -> None:
    """These of the node's cpus, so far as they are there; affinity holds to them anyway."""
    there = sorted(set(cpus) & os.sched_getaffinity(0))
    if there:
        with contextlib.suppress(OSError):  # the controller is not ours to use
            group.write("cpuset.cpus", ",".join(map(str, there)))


def use(group: "groups.Group") -> "dict[str, int]":
    """What all in it used so far; nothing of what the kernel does not tell."""
    cpu, moved = group.rows("cpu.stat"), _moved(group.lines("io.stat"))
    peak = group.number("memory.peak") or group.number("memory.current")
    kept = group.rows("memory.stat").get("file", 0)  # what was read of files is not the step's own
    return {
        "user_us": cpu.get("user_usec", 0),
        "sys_us": cpu.get("system_usec", 0),
        "rss_kib": max(0, peak - kept) // KIB,
        "read": moved["rbytes"],
        "written": moved["wbytes"],
    }


def _moved(lines: "list[str]") -> "dict[str, int]":
    """Bytes over all devices: `259:0 rbytes=4096 wbytes=0 rios=1 ...`."""
    sums = {"rbytes": 0, "wbytes": 0}
    for word in " ".join(lines).split():
        name, _, number = word.partition("=")
        if name in sums:
            sums[name] += int(number)
    return sums


def of_job(keys: "Iterable[str]", job: int) -> "dict[str, dict[str, int]]":
    """By step what the job's live ones used so far, where they have groups."""
    found = {}
    for key in keys:
        owner, _attempt, step = key.split("/")
        group = groups.find_plain(key) if owner == str(job) else None
        if group is not None:
            used = use(group)
            found[step] = dict(used, cpu_us=used.pop("user_us") + used.pop("sys_us"))
    return found
