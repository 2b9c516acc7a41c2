"""What the processes of a job's steps use on this node, told by their environment."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Optional

PROC = "/proc"
TICKS = os.sysconf("SC_CLK_TCK")
MICROSECONDS = 1000000
BATCH = "batch"
FIELDS = ("cpu_us", "rss_kib", "size_kib", "read", "written")


def of_job(
    job: int, root: str = PROC, *, grouped: "Optional[dict[str, dict[str, int]]]" = None
) -> "dict[str, Any]":
    """By step its processes and the sums of what they use; the clock of the cpus in kHz.

    `grouped` is what control groups tell of steps: those who are not found by their environment,
    or ended already, are in it too.
    """
    steps = {}  # type: dict[str, dict[str, Any]]
    for pid in sorted(_numbers(root)):
        found = _process(os.path.join(root, str(pid)), job)
        if found is None:
            continue
        step, sizes = found
        together = steps.setdefault(step, dict.fromkeys(FIELDS, 0))
        together.setdefault("pids", []).append(pid)
        for name, size in zip(FIELDS, sizes):
            together[name] += size
    for step, used in (grouped or {}).items():
        together = steps.setdefault(step, dict.fromkeys(FIELDS, 0))
        together.setdefault("pids", [])
        together.update((name, max(size, together[name])) for name, size in used.items())
    return {"steps": steps, "khz": _clock(root)}


def _numbers(root: str) -> "Iterator[int]":
    return (int(name) for name in os.listdir(root) if name.isdigit())


def _process(folder: str, job: int) -> "Optional[tuple[str, list[int]]]":
    """The step of a process of the job, and its figures in the order of FIELDS."""
    try:
        environ = _environ(folder)
        if environ.get(b"SLURM_JOB_ID") != str(job).encode("ascii"):
            return None
        sizes = _rows(folder, "status")
        moved = _rows(folder, "io")
        figures = [_cpu(folder), sizes.get("VmHWM", 0), sizes.get("VmPeak", 0)]
    except OSError:
        return None  # it ended meanwhile, or is not to be looked at
    step = environ.get(b"SLURM_STEP_ID", BATCH.encode()).decode("utf-8", "replace")
    return step, [*figures, moved.get("rchar", 0), moved.get("wchar", 0)]


def _environ(folder: str) -> "dict[bytes, bytes]":
    with open(os.path.join(folder, "environ"), "rb") as file:
        entries = file.read().split(b"\0")
    pairs = (entry.partition(b"=") for entry in entries if entry.startswith(b"SLURM_"))
    return {name: value for name, _, value in pairs}


def _rows(folder: str, name: str) -> "dict[str, int]":
    """Lines of a name, a colon and a number."""
    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
        rows = [line.split() for line in file]
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _cpu(folder: str) -> int:
    """User and system time, that of children that are gone included."""
    with open(os.path.join(folder, "stat"), encoding="utf-8", errors="replace") as file:
        words = file.read().rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) * MICROSECONDS // TICKS


def _clock(root: str) -> int:
    """The mean clock of the cpus; 0 where the node does not say."""
    try:
        with open(os.path.join(root, "cpuinfo"), encoding="utf-8", errors="replace") as file:
            rows = [line.partition(":") for line in file]
    except OSError:
        return 0
    speeds = [float(value) for name, _, value in rows if name.strip() == "cpu MHz"]
    return round(sum(speeds) / len(speeds) * 1000) if speeds else 0
