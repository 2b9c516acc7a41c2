"""The end of a file, told by a process of its own that gives up its rights before it looks.

Started as a program with the standard library alone; what it may not do it says on its standard
error. A pipe or device is not read: whoever owns it could keep its reader waiting.
"""

import os
import stat
import sys

ROOT = 0


def become(uid: int, gid: int, groups: list[int]) -> None:
    """For good. Not by the kernel's word at `exec`: so the user cannot look into this process."""
    if os.geteuid() == ROOT:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    elif os.geteuid() != uid:
        raise PermissionError(f"this service is not uid {uid}'s, nor root's")


def ending(path: bytes, size: int) -> bytes:
    """At most so many of its last bytes. Raises OSError."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path.decode('utf-8', 'replace')} is no regular file")
        file.seek(max(0, found.st_size - size))
        return file.read(size)


def main(argv: list[str]) -> int:
    """`UID GID GROUPS SIZE PATH`."""
    uid, gid, groups, size, path = argv
    try:
        become(int(uid), int(gid), [int(one) for one in groups.split(",") if one])
        sys.stdout.buffer.write(ending(os.fsencode(path), int(size)))
    except OSError as error:
        named = f"cannot open {path!r} for reading: {error.strerror}" if error.errno else str(error)
        sys.stderr.write(f"{named}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
