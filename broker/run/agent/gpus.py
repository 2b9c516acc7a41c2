"""What a step's GPUs do, by nvidia-smi's word now and then; nothing where that is not."""

import os
import shutil

from . import journal, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .loop import Loop
    from .order import Order
    from .spool import Place

PROGRAM = "nvidia-smi"
QUERY = ["--query-gpu=utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
LATEST = "gpu"
"""The file of a step with its latest figures."""


class Gpus:
    """Of one step: percent of use, summed over its devices, and their memory in MiB."""

    def __init__(self, order: "Order", loop: "Loop") -> None:
        self.order = order
        self.loop = loop
        self.ids = [str(number) for number in order.step.get("gpus") or ()]
        path = os.environ.get("PATH", "") + ":" + programs.PATH
        self.program = shutil.which(PROGRAM, path=path) if self.ids else None
        self.pipe = -1
        self.said = b""
        self.looks = self.util_sum = self.util_max = self.mem_max = 0

    def look(self) -> None:
        """Asks; what is said comes later, and the next look waits for it."""
        if self.program is None or self.pipe >= 0:
            return
        self.pipe, end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.said = b""
        if os.fork() == 0:
            self._become(end)
        os.close(end)
        self.loop.watch(self.pipe, self.hear)

    def _become(self, end: int) -> None:
        try:
            os.set_blocking(end, True)
            nothing = os.open(os.devnull, os.O_RDWR)
            for number, fd in enumerate((nothing, end, nothing)):
                os.dup2(fd, number)
            program = self.program or PROGRAM
            os.execv(program, [program, "--id=" + ",".join(self.ids), *QUERY])
        finally:
            os._exit(127)

    def hear(self) -> None:
        data = os.read(self.pipe, 1 << 16)
        self.said += data
        if not data:
            self.loop.ignore(self.pipe)
            os.close(self.pipe)
            self.pipe = -1
            self.note(read(self.said))

    def note(self, devices: "list[tuple[int, int]]") -> None:
        if not devices:
            return
        util, memory = (sum(one[place] for one in devices) for place in (0, 1))
        self.looks += 1
        self.util_sum += util
        self.util_max = max(self.util_max, util)
        self.mem_max = max(self.mem_max, memory)
        try:
            journal.save(self.order.file(LATEST), self.record())
        except OSError:
            return  # the disk is full: the next look may find room

    def record(self) -> "dict[str, Any]":
        """For the journal; nothing where nothing was heard."""
        if not self.looks:
            return {}
        return {
            "gpu_util": self.util_sum // self.looks,
            "gpu_util_max": self.util_max,
            "gpu_mem_mib": self.mem_max,
        }


def of_job(live: "Iterable[Place]", job: int) -> "dict[str, dict[str, Any]]":
    """By step what was last measured of the job's."""
    found = {}
    for place in live:
        owner, _attempt, step = place.key.split("/")
        latest = journal.load(place.file(LATEST)) if owner == str(job) else None
        if latest is not None:
            found[step] = latest
    return found


def read(said: bytes) -> "list[tuple[int, int]]":
    """Percent and MiB of each device; what a device does not tell (`[N/A]`) counts as 0."""
    found = []
    for line in said.decode("utf-8", "replace").splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == 2:
            found.append(tuple(int(word) if word.isdigit() else 0 for word in words))
    return found  # type: ignore[return-value]
