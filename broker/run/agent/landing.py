"""Folders made by root for a user, and rights given up: no link of a user's leads root anywhere."""

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
SYSTEM = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32"),
        *("proc", "root", "run", "sbin", "sys", "usr", "var"),
    )
)
"""Folders of the system's own: below them root makes nothing for anybody else."""
MOST_LINKS = 40
"""As many as the kernel follows on one path."""


def make_folder(path: str, uid: int, gid: int) -> None:
    """The folder and what is above it; the last one is the user's. Done before rights drop.

    Raises OSError, EPERM where a link on the way is not root's own, or it leads into the system's
    folders or, to be made there, into any user's: there the user may make what the user may.
    """
    if os.path.isdir(path):
        return
    if os.geteuid() != 0:
        os.makedirs(path, 0o755, exist_ok=True)
        return
    walk = Walk(path, uid)
    try:
        if walk.to_the_end():
            os.fchown(walk.here, uid, gid)
    finally:
        os.close(walk.here)


class Walk:
    """From the root down, each component opened in the one before: nothing can be exchanged."""

    def __init__(self, path: str, uid: int) -> None:
        self.path = path
        self.uid = uid
        shut = SYSTEM if uid else ()
        self.shut = [os.stat("/" + name) for name in shut if os.path.isdir("/" + name)]
        self.here = os.open("/", FOLDER)
        self.waiting = _components(path)
        self.links = 0

    def to_the_end(self) -> bool:
        """Whether the last folder was made here."""
        made = False
        while self.waiting:
            part = self.waiting.pop()
            target = self.link(part)
            if target is None:
                made = self.enter(part)
            else:
                self.follow(target)
        return made

    def link(self, part: str) -> "Optional[str]":
        """Where it leads, if it is a link: one of root's, in a folder of root's."""
        try:
            fd = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.here)
        except FileNotFoundError:
            return None
        try:
            found = os.fstat(fd)
            if not stat.S_ISLNK(found.st_mode):
                return None
            if found.st_uid != 0 or os.fstat(self.here).st_uid != 0:
                raise self.no_way()
            return os.readlink("", dir_fd=fd)
        finally:
            os.close(fd)

    def follow(self, target: str) -> None:
        self.links += 1
        if self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), self.path)
        if target.startswith("/"):
            self.stand_in(os.open("/", FOLDER))
        self.waiting += _components(target)

    def enter(self, part: str) -> bool:
        """Whether it had to be made."""
        made = False
        try:
            self.stand_in(os.open(part, FOLDER, dir_fd=self.here))
        except FileNotFoundError:
            if self.uid and os.fstat(self.here).st_uid != 0:
                raise self.no_way() from None
            os.mkdir(part, 0o755, dir_fd=self.here)
            self.stand_in(os.open(part, FOLDER, dir_fd=self.here))
            made = True
        if any(os.path.samestat(os.fstat(self.here), one) for one in self.shut):
            raise self.no_way()
        return made

    def no_way(self) -> OSError:
        return OSError(errno.EPERM, os.strerror(errno.EPERM), self.path)

    def stand_in(self, fd: int) -> None:
        os.close(self.here)
        self.here = fd


def _components(path: str) -> "list[str]":
    """The last one first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def become(uid: int, gid: int, groups: "list[int]") -> None:
    """For good. Raises OSError."""
    if os.geteuid() != 0:
        return
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
