"""Paths below a folder, looked up one component at a time without following links."""

import hashlib
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

LONGEST_NAME = 255


def named(form: str, name: str, mark: "Any") -> str:
    """A name beside another one; of a long name its digest stands for it (255 bytes are a name).

    Raises BadName for a mark that makes a path of it: who sends it may send anything.
    """
    data = name.encode("utf-8", "surrogateescape")
    made = form.format(name, mark)
    if len(made.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
        made = form.format(hashlib.sha256(data).hexdigest(), mark)
    if "/" in made:
        raise BadName(made)
    return made


def entry(found: os.stat_result, target: "Optional[str]") -> "Optional[list[Any]]":
    """Kind, size, time in ns, mode, a link's target; None for what is not carried."""
    mode = found.st_mode & 0o777
    if stat.S_ISREG(found.st_mode):
        return ["f", found.st_size, found.st_mtime_ns, mode, None]
    if stat.S_ISDIR(found.st_mode):
        return ["d", 0, 0, mode, None]
    if stat.S_ISLNK(found.st_mode):
        return ["l", 0, 0, 0, target]
    return None


class BadName(Exception):
    """A path that does not stay below the folder."""


def parts(path: str) -> "list[str]":
    """Components of a relative path. Raises BadName."""
    found = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in found) or "\0" in path:
        raise BadName(path)
    return found


class Below:
    """The folder that holds a path, opened from `root` on without following links."""

    def __init__(self, root: int, path: str, make: bool = False) -> None:
        *self.above, self.name = parts(path)
        self.root = root
        self.make = make
        self.fd = -1

    def __enter__(self) -> "Below":
        self.fd = os.dup(self.root)
        try:
            for part in self.above:
                self._enter(part)
        except BaseException:
            os.close(self.fd)
            raise
        return self

    def _enter(self, part: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            deeper = os.open(part, flags, dir_fd=self.fd)
        except FileNotFoundError:
            if not self.make:
                raise
            os.mkdir(part, 0o777, dir_fd=self.fd)
            deeper = os.open(part, flags, dir_fd=self.fd)
        os.close(self.fd)
        self.fd = deeper

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def stat(self, name: "Optional[str]" = None) -> "Optional[os.stat_result]":
        try:
            return os.stat(name or self.name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None


def reading(place: Below) -> "Any":
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return open(os.open(place.name, flags, dir_fd=place.fd), "rb")
