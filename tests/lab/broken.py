"""Processes of the box's machines, to be killed or held up: agents, who posts, sshd's sessions."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.run.agent import procs


def _words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def machines(state: Path, table: dict[int, procs.Process]) -> dict[int, set[int]]:
    """By the supervisor of each machine of the box in `state` all that descends from it."""
    mark = os.fsencode(state) + b"/m/"
    roots = [pid for pid in table if mark in _words(pid) and b"supervisor.py" in _words(pid)]
    return {root: procs.below(table, [root]) for root in roots}


def agents(state: Path) -> list[int]:
    found = machines(state, procs.table()).values()
    return [pid for below in found for pid in below if _name(pid) == "spz-agent"]


def posters(state: Path) -> list[int]:
    """Agents' processes that post journals."""
    found = machines(state, procs.table()).values()
    return [pid for below in found for pid in below if b"\0push\0" in _words(pid)]


def sessions(state: Path) -> list[int]:
    """sshd's processes but for those that listen, which a machine has one of."""
    table = procs.table()
    return [
        pid
        for root, found in machines(state, table).items()
        for pid in found
        if _name(pid) == "sshd" and table[pid].parent != root
    ]


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@contextmanager
def cut_off(state: Path, seconds: float) -> Iterator[None]:
    """No machine of the box says anything by SSH for so long, counted from the beginning."""
    until = time.monotonic() + seconds
    found = machines(state, procs.table()).values()
    held = [pid for below in found for pid in below if _name(pid) == "sshd"]
    assert held, "there is no sshd to be held up"
    for pid in held:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
        time.sleep(max(0.0, until - time.monotonic()))
    finally:
        for pid in held:
            os.kill(pid, signal.SIGCONT)
