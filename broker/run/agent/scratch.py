"""The disks that a rented machine has of its own: made one file system, for folders of jobs.

They are empty at each start of the machine, and nobody else formats them; what is on one that is in
use already is left alone.
"""

import os

from . import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    Run = Callable[[list[str]], bool]

BLOCKS = "/sys/block"
MOUNTS = "/proc/self/mounts"
MODEL = "Amazon EC2 NVMe Instance Storage"
PLACE = "/mnt/skypurza"
ARRAY = "/dev/md/skypurza"
LAZY = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
FORMAT = ["mkfs.ext4", "-q", "-F", "-m", "0", "-E", LAZY]
JOIN = ["mdadm", "--create", ARRAY, "--level=0", "--force", "--run"]


def place(run: "Optional[Run]" = None, *, blocks: str = BLOCKS, mounts: str = MOUNTS) -> str:
    """Where they are mounted, from now on if not before; empty where there are none to be had."""
    act = run or programs.done
    there = _mounted(mounts)
    if PLACE in there.values():
        return PLACE
    disks = [disk for disk in _disks(blocks) if disk not in there]
    if not disks:
        return ""
    device = _joined(disks, act)
    if not act([*FORMAT, device]):
        return ""
    os.makedirs(PLACE, 0o755, exist_ok=True)
    return PLACE if act(["mount", "-o", "noatime", device, PLACE]) else ""


def give(
    step: "dict[str, Any]", attempt: str, *, blocks: str = BLOCKS, mounts: str = MOUNTS
) -> None:
    """A folder there for a job whose site names none; nothing on a machine without such disks."""
    if step.get("tmpdir"):
        return
    if PLACE in _mounted(mounts).values() or _disks(blocks):
        step["tmpdir"] = folder(attempt)
        step["own_tmpdir"] = True


def folder(attempt: str) -> str:
    """Of an attempt, once they are mounted."""
    return os.path.join(PLACE, attempt.replace("/", "."))


def add(values: "dict[bytes, bytes]", step: "dict[str, Any]") -> None:
    """The variable that tells of a folder which the service does not know of."""
    if step.get("own_tmpdir"):
        values[b"SLURM_TMPDIR"] = os.fsencode(step["tmpdir"])


def _joined(disks: "list[str]", run: "Run") -> str:
    """All of them as one; where that cannot be, the first."""
    several = len(disks) > 1 and run([*JOIN, "--raid-devices={}".format(len(disks)), *disks])
    return ARRAY if several else disks[0]


def _disks(blocks: str) -> "list[str]":
    """Whole disks of the machine's own, without parts."""
    found = []
    for name in sorted(os.listdir(blocks)) if os.path.isdir(blocks) else []:
        folder = os.path.join(blocks, name)
        if _text(os.path.join(folder, "device", "model")) != MODEL:
            continue
        parts = [part for part in os.listdir(folder) if part.startswith(name)]
        if not parts and not os.listdir(os.path.join(folder, "holders")):
            found.append("/dev/" + name)
    return found


def _mounted(mounts: str) -> "dict[str, str]":
    """Where each device is."""
    with open(mounts, encoding="utf-8", errors="replace") as file:
        rows = [line.split() for line in file]
    return {row[0]: row[1] for row in rows if len(row) > 1}


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
