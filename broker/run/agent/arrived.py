"""What comes for a folder put in its place: never over what looks otherwise than was expected."""

import errno
import os
import stat

from .below import BadName, Below, entry, named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Header = dict[str, Any]

HOLE = bytes(1 << 16)
AT_ONCE = 1 << 18
"""Bytes of one write: a kernel that gives ext4 large folios takes ten times as long for 8 MiB."""
MODES = 0o777
"""What may come: who sends it must not leave a program here that runs with its owner's rights."""
DRAFT = ".{}.spz-{}"
"""By the time of what is coming: another version is another draft."""
BESIDE = "{}.spz-{}"


def put(root: int, header: "Header", data: bytes) -> str:
    """One piece; what became of its path, as `carry unpack` tells it."""
    try:
        with Below(root, header["path"], make=True) as place:
            make = _alike if header.get("same") else MAKERS[header["kind"]]
            return make(place, header, data)
    except BadName as error:
        return "error: {!r} leads out of the folder".format(str(error))
    except OSError as error:
        return "error: {}".format(error.strerror)


def _folder(place: Below, header: "Header", _data: bytes) -> str:
    found = place.stat()
    if found is not None and not stat.S_ISDIR(found.st_mode):
        if not _fits(place, header, found):
            return "error: " + os.strerror(errno.ENOTDIR)
        os.unlink(place.name, dir_fd=place.fd)
        found = None
    if found is None:
        os.mkdir(place.name, 0o700, dir_fd=place.fd)
        os.chmod(place.name, header["mode"] & MODES | 0o700, dir_fd=place.fd)
    return "done"


def _link(place: Below, header: "Header", _data: bytes) -> str:
    draft = named(DRAFT, place.name, "link")
    if place.stat(draft) is not None:
        os.unlink(draft, dir_fd=place.fd)
    os.symlink(header["target"], draft, dir_fd=place.fd)
    return _settle(place, header, draft)


def _file(place: Below, header: "Header", data: bytes) -> str:
    """A part of it into the draft, which takes the name when it is whole."""
    draft = named(DRAFT, place.name, header["mtime"])
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600, dir_fd=place.fd)
    try:
        if header["offset"] == 0:
            os.ftruncate(fd, 0)
        elif os.fstat(fd).st_size < header["offset"]:
            return "error: the part before it is missing"
        _fill(fd, data, header["offset"])
        if header["offset"] + len(data) < header["size"]:
            return "part"
        os.ftruncate(fd, header["size"])
        os.fchmod(fd, header["mode"] & MODES)
        os.utime(fd, ns=(header["mtime"], header["mtime"]))
    except OSError:
        os.unlink(draft, dir_fd=place.fd)  # it takes room that is wanting
        raise
    finally:
        os.close(fd)
    return _settle(place, header, draft)


def _alike(place: Below, header: "Header", _data: bytes) -> str:
    """A file that has the content already gets its time and mode."""
    found = place.stat()
    if found is None or not _fits(place, header, found):
        return "error: it changed meanwhile"
    fd = os.open(place.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place.fd)
    try:
        opened = "/proc/self/fd/{}".format(fd)  # never what a link leads to, and without any right
        os.chmod(opened, header["mode"] & MODES)
        os.utime(opened, ns=(header["mtime"], header["mtime"]))
    finally:
        os.close(fd)
    return "done"


def _fill(fd: int, data: bytes, offset: int) -> None:
    """Where nothing was written yet: what is empty stays a hole."""
    if HOLE not in data:
        _write(fd, data, offset)
        return
    for start in range(0, len(data), len(HOLE)):
        block = data[start : start + len(HOLE)]
        if block.strip(b"\0"):
            _write(fd, block, offset + start)
    os.ftruncate(fd, max(os.fstat(fd).st_size, offset + len(data)))


def _write(fd: int, data: bytes, offset: int) -> None:
    view, done = memoryview(data), 0
    while done < len(data):
        done += os.pwrite(fd, view[done : done + AT_ONCE], offset + done)


def _settle(place: Below, header: "Header", draft: str) -> str:
    """The draft takes the name, or one beside it where the name is not as it was expected."""
    found = place.stat()
    fits = _fits(place, header, found)
    name = place.name if fits else named(BESIDE, place.name, header["tag"])
    try:
        if fits and found is not None and stat.S_ISDIR(found.st_mode):
            os.rmdir(name, dir_fd=place.fd)
        os.rename(draft, name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
    except OSError:
        os.unlink(draft, dir_fd=place.fd)
        raise
    return "done" if fits else "beside"


def _fits(place: Below, header: "Header", found: "Optional[os.stat_result]") -> bool:
    """Whether nobody changed what was there; never for a pipe, socket or device."""
    if found is None:
        return header["expect"] is None
    target = os.readlink(place.name, dir_fd=place.fd) if stat.S_ISLNK(found.st_mode) else None
    row = entry(found, target)
    if row is None:
        return False
    return bool(row[:3] == header["expect"] and row[4] == header.get("expect_target"))


def _more(place: Below, header: "Header", data: bytes) -> str:
    """Adds to a file that has exactly `offset` bytes; offset 0 begins it anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = os.open(place.name, flags, 0o666, dir_fd=place.fd)
    try:
        if header["offset"] == 0 and header.get("anew"):
            os.ftruncate(fd, 0)
        size = os.fstat(fd).st_size
        if size != header["offset"]:
            return "error: it has {} bytes, not {}".format(size, header["offset"])
        _write(fd, data, size)
    finally:
        os.close(fd)
    return "done"


MAKERS = {"d": _folder, "l": _link, "f": _file, "more": _more}
