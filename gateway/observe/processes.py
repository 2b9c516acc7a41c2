"""What the kernel says of a process."""

from pathlib import Path


def lives(pid: int) -> bool:
    """Whether it is a process that has not ended; one that waits to be reaped has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in {b"Z", b"X"}
