"""What the kernel says of a process."""

from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


def lives(pid: int) -> bool:
    """Whether it is a process that has not ended; one that waits to be reaped has."""
    return bool(_stat(pid))


def birth(pid: int) -> str:
    """What no other process has, on no host and after no boot; empty where it has ended."""
    stat = _stat(pid)
    return f"{BOOT.read_text(encoding='ascii').strip()} {stat[19].decode()}" if stat else ""


def _stat(pid: int) -> list[bytes]:
    """From the third field on, proc(5); none of what has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []
    return [] if fields[0] in {b"Z", b"X"} else fields
