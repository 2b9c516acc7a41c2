"""Processes of jobs on this host, told by their environment: step, task, and what they use."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
MICROSECONDS = 1_000_000
BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a step; `local` and `rank` None where it is no task's."""

    pid: int
    job: int
    step: str
    local: int | None = None
    rank: int | None = None
    cpu_us: int = 0
    rss_kib: int = 0
    size_kib: int = 0
    read: int = 0
    written: int = 0
    """Bytes."""


def processes(jobs: frozenset[int], root: Path = PROC) -> list[Process]:
    """Those of these jobs that may be looked at, by number; blocks."""
    found = [one for folder in _folders(root) if (one := _process(folder, jobs)) is not None]
    return sorted(found, key=lambda one: one.pid)


def _folders(root: Path) -> Iterator[Path]:
    try:
        yield from (folder for folder in root.iterdir() if folder.name.isdigit())
    except OSError:
        return


def _process(folder: Path, jobs: frozenset[int]) -> Process | None:
    try:
        environ = _environ((folder / "environ").read_bytes())
        job = environ.get("SLURM_JOB_ID", "")
        if not job.isdigit() or int(job) not in jobs:
            return None
        return Process(
            int(folder.name),
            int(job),
            environ.get("SLURM_STEP_ID", BATCH),
            _number(environ.get("SLURM_LOCALID")),
            _number(environ.get("SLURM_PROCID")),
            _cpu((folder / "stat").read_text()),
            *_sizes((folder / "status").read_text()),
            *_moved(folder / "io"),
        )
    except OSError:
        return None


def _environ(content: bytes) -> dict[str, str]:
    text = content.decode("utf-8", "replace")
    pairs = (entry.partition("=") for entry in text.split("\0") if entry.startswith("SLURM_"))
    return {name: value for name, _, value in pairs}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _cpu(stat: str) -> int:
    """User and system time, that of children that are gone included."""
    words = stat.rpartition(")")[2].split()
    return sum(int(word) for word in words[11:15]) * MICROSECONDS // TICKS


def _sizes(status: str) -> tuple[int, int]:
    """Highest resident and virtual size in KiB."""
    rows = (line.split() for line in status.splitlines())
    sizes = {row[0]: int(row[1]) for row in rows if len(row) == 3 and row[2] == "kB"}
    return sizes.get("VmHWM:", 0), sizes.get("VmPeak:", 0)


def _moved(path: Path) -> tuple[int, int]:
    """Bytes read and written."""
    rows = (line.split() for line in path.read_text().splitlines())
    counts = {row[0]: int(row[1]) for row in rows if len(row) == 2}
    return counts.get("rchar:", 0), counts.get("wchar:", 0)


@dataclass(frozen=True, slots=True)
class Use:
    """What the processes of a step on this host use together."""

    pids: tuple[int, ...]
    cpu_us: int
    rss_kib: int
    size_kib: int
    read: int
    written: int
    khz: int
    gpu_util: int | None = None
    """Mean percent of its devices' use, summed; None where no node tells."""
    gpu_util_max: int = 0
    gpu_mem_mib: int = 0


def uses(jobs: frozenset[int], root: Path = PROC) -> dict[tuple[int, str], Use]:
    """By job and step; blocks."""
    khz = clock(root)
    groups: dict[tuple[int, str], list[Process]] = {}
    for one in processes(jobs, root):
        groups.setdefault((one.job, one.step), []).append(one)
    return {key: _together(group, khz) for key, group in groups.items()}


def _together(group: list[Process], khz: int) -> Use:
    return Use(
        tuple(one.pid for one in group),
        sum(one.cpu_us for one in group),
        sum(one.rss_kib for one in group),
        sum(one.size_kib for one in group),
        sum(one.read for one in group),
        sum(one.written for one in group),
        khz,
    )


def clock(root: Path = PROC) -> int:
    """The mean clock of this host's cpus in kHz; 0 where it does not say."""
    try:
        rows = (line.partition(":") for line in (root / "cpuinfo").read_text().splitlines())
    except OSError:
        return 0
    speeds = [float(value) for name, _, value in rows if name.strip() == "cpu MHz"]
    return round(sum(speeds) / len(speeds) * 1000) if speeds else 0
