"""A disk that was attached to this machine: a file system on it, put where its user wants it.

Where the service keeps volumes as folders, a link takes the place of the mount.
"""

import os
import stat
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator

NOT_YET = 75
"""Exit code where a later try may do: the disk is not to be seen, or something still uses it."""
REFUSED = 1
NO_FILE_SYSTEM = 2
"""What blkid exits with where it finds nothing at all."""
MOUNTS = "/proc/self/mounts"
USAGE = "usage: agent disk mount|unmount PATH UID GID DEVICE...\n"


class WrongError(Exception):
    """What a later try would not mend, in words."""


class Wish:
    """Which disk, by the names that it may have here, whose, and where it goes."""

    def __init__(self, argv: "list[str]") -> None:
        self.path, self.uid, self.gid = argv[0], int(argv[1]), int(argv[2])
        self.device = next((one for one in argv[3:] if os.path.exists(one)), None)

    def as_user(self, act: "Callable[[str, str], None]") -> int:
        """What is done in a user's folder is done with the user's rights."""
        if os.geteuid() == 0 and self.uid != 0:
            os.setgroups([])
            os.setgid(self.gid)
            os.setuid(self.uid)
        act(str(self.device), self.path)
        return 0


def main(argv: "list[str]") -> int:
    verbs = {"mount": mount, "unmount": unmount}
    if len(argv) < 5 or argv[0] not in verbs:
        sys.stderr.write(USAGE)
        return 2
    try:
        return verbs[argv[0]](Wish(argv[1:]))
    except (WrongError, OSError) as error:
        sys.stderr.write("{}: {}\n".format(argv[1], getattr(error, "strerror", None) or error))
        return REFUSED


def mount(wish: Wish) -> int:
    """Safe to repeat; only a disk on which there is nothing at all gets a file system."""
    device, path = wish.device, wish.path
    if device is None:
        return NOT_YET
    if os.path.isdir(device):
        return wish.as_user(_link)
    if any(place == os.path.realpath(path) for place in _places(device)):
        return 0
    fresh = _is_blank(device)
    if fresh:
        _run(["mkfs.ext4", "-q", device])
    _make_empty(path)
    _run(["mount", "-o", "nosuid,nodev", device, path])
    if fresh:
        os.chown(path, wish.uid, wish.gid)
    return 0


def unmount(wish: Wish) -> int:
    """Safe to repeat."""
    if wish.device is None:
        return 0
    if os.path.isdir(wish.device):
        return wish.as_user(_unlink)
    busy = [place for place in _places(wish.device) if subprocess.call(["umount", place]) != 0]
    return NOT_YET if busy else 0


def _places(device: str) -> "Iterator[str]":
    """Where it is mounted."""
    real = os.path.realpath(device)
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines.readlines():
            source, place = line.split(" ")[:2]
            if source.startswith("/") and os.path.realpath(source) == real:
                yield place.encode("utf-8", "surrogateescape").decode("unicode_escape")


def _is_blank(device: str) -> bool:
    if not stat.S_ISBLK(os.stat(device).st_mode):
        raise WrongError("{} is no disk".format(device))
    code = subprocess.call(["blkid", "-p", device], stdout=subprocess.DEVNULL)
    if code not in {0, NO_FILE_SYSTEM}:
        raise WrongError("what is on {} cannot be told".format(device))
    return code == NO_FILE_SYSTEM


def _make_empty(path: str) -> None:
    """Nothing is hidden by what is mounted over it."""
    os.makedirs(path, exist_ok=True)
    if os.path.islink(path) or os.listdir(path):
        raise WrongError("there is something already, a volume needs an empty folder")


def _run(argv: "list[str]") -> None:
    done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise WrongError("{}: {}".format(argv[0], told[-1] if told else done.returncode))


def _link(folder: str, path: str) -> None:
    if os.path.islink(path) and os.readlink(path) == folder:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path):
        os.rmdir(path)
    if os.path.lexists(path):
        raise WrongError("there is something already, a volume needs an empty folder")
    os.symlink(folder, path)


def _unlink(folder: str, path: str) -> None:
    if os.path.islink(path) and os.readlink(path) == folder:
        os.unlink(path)
