"""A step's memory: looked at now and then, and held to its limit as Slurm's cgroups do.

Where the host lets us make control groups the kernel holds it; else we look each second, and kill
the largest process of a step that has too much, as the kernel would.
"""

import resource
import signal

from . import groups, procs, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
"""Seconds between looks; they double from the first to the longest."""
HELD_PAUSE = 1.0
"""The longest where a limit is ours to keep."""
KIB = 1024


class Memory:
    """Of one step; a limit of 0 or none is none."""

    def __init__(
        self, step: "dict[str, Any]", key: str, *, everything: "Callable[[], set[int]]"
    ) -> None:
        self.everything = everything
        self.limit_kib = int(step.get("memory_limit_mib") or 0) * KIB
        self.whole_step = bool(step.get("oom_kill_step"))
        self.peak_kib = 0
        self.peak_size_kib = 0
        """Of the address spaces."""
        self.read = self.written = 0
        """Bytes, as far as somebody looked before the end."""
        self.pause = FIRST_PAUSE
        self.kills = 0
        """How often we killed for too much of it ourselves."""
        self.group = None  # type: groups.Group | None
        if self.limit_kib:
            limit = self.limit_kib // KIB
            self.group = groups.make(key, (limit, int(step.get("job_memory_mib") or limit)))
        step["group"] = self.group.door if self.group is not None else ""

    def look(self) -> float:
        """What all processes hold together; seconds until the next look."""
        pids = self.everything()
        seen = {pid: procs.memory_kib(pid) for pid in pids}
        sizes = {pid: resident for pid, (resident, _) in seen.items()}
        total = sum(sizes.values())
        self.peak_kib = max(self.peak_kib, total)
        self.peak_size_kib = max(self.peak_size_kib, sum(size for _, size in seen.values()))
        moved = [procs.moved_bytes(pid) for pid in pids]
        self.read = max(self.read, sum(read for read, _ in moved))
        self.written = max(self.written, sum(written for _, written in moved))
        alone = self.limit_kib and self.group is None
        if alone and total > self.limit_kib:
            self._kill(sizes)
        longest = HELD_PAUSE if alone or (self.limit_kib and self.whole_step) else LONGEST_PAUSE
        self.pause = min(2 * self.pause, longest)
        return self.pause

    def _kill(self, sizes: "dict[int, int]") -> None:
        """The largest process, or all of them (`--oom-kill-step`)."""
        self.kills += 1
        largest = max(sizes, key=lambda pid: sizes[pid])
        procs.send(sizes if self.whole_step else [largest], signal.SIGKILL)

    def oom_kills(self) -> int:
        """How often processes were killed for want of memory."""
        return self.kills + (self.group.oom_kills() if self.group is not None else 0)

    def whole_is_over(self) -> bool:
        """Whether one was killed where that is to be the end of all."""
        return self.whole_step and self.oom_kills() > 0

    def close(self) -> None:
        if self.group is not None:
            self.group.close()


def told(kills: int, step: str, now: float) -> bytes:
    """Slurmstepd's line about it (25.11)."""
    events = "{} oom_kill event{}".format(kills, "" if kills == 1 else "s")
    text = "Detected {} in StepId={}. Some of the step tasks have been OOM Killed.".format(
        events, step
    )
    return words.error(text.encode("utf-8"), now)


def own_peak(peak_kib: int) -> int:
    """The largest process's peak; 0 where it may be no more than that of our fork before exec."""
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_kib if peak_kib > 1.25 * ours else 0
