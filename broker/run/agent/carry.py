"""Files of one folder, listed, packed and unpacked; the same program on node and login node.

Runs with the rights of the user whose files they are. Every name is looked up below the folder
one component at a time without following links, so that nothing outside it is written.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import sys
import zlib

from . import arrived, away, ignore, landing
from .below import Below, entry, reading
from .packed import FAST, PIECE, Packer, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Iterator, Optional

    Header = dict[str, Any]

MOST_READ = 4 << 20
GIT_IGNORE = ".gitignore"
BOM = b"\xef\xbb\xbf"
"""What some editors begin a text with."""
OURS = re.compile(r"\.spz-(-?[0-9]+|link|restored-[0-9]+)$")
"""In names of what is on its way, or was put beside something: none of it travels."""


# ---------------------------------------------------------------- names


def encode(value: "Any") -> bytes:
    return json.dumps(value).encode("ascii")


def decode(data: bytes) -> "Any":
    return json.loads(data.decode("ascii")) if data else {}


# ---------------------------------------------------------------- listing


def listing(
    folder: str, ignored: "ignore.Ignored", only: "Optional[str]" = None
) -> "Iterator[tuple[str, list[Any]]]":
    """All below that is not ignored, folders before what they hold.

    With `only` that one entry of the folder, and what it holds.
    """
    waiting = [""]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, here)) as found:
                items = sorted(found, key=lambda item: item.name)
        except OSError:
            if not here:
                raise
            continue  # not readable for its owner, or gone meanwhile
        for item in items:
            if only is not None and not here and item.name != only:
                continue
            path = os.path.join(here, item.name)
            row = _row(item)
            if row is None or OURS.search(item.name) or ignored.has(path, row[0] == "d"):
                continue
            yield path, row
            if row[0] == "d":
                waiting.append(path)


def _row(item: "os.DirEntry[str]") -> "Optional[list[Any]]":
    try:
        target = os.readlink(item.path) if item.is_symlink() else None
        return entry(item.stat(follow_symlinks=False), target)
    except OSError:
        return None


def do_list(folder: str, asked: bytes) -> "Iterator[bytes]":
    """What is ignored, by the patterns of a file or as they are given, and all else below."""
    how = decode(asked)
    lines = how["lines"] if "lines" in how else rules(folder, how["files"])
    rows = {"": identity(folder)}  # type: dict[str, list[Any]]
    rows.update(listing(folder, ignore.Ignored(lines), how.get("only")))
    yield zlib.compress(encode({"lines": lines, "rows": rows}), FAST)


def do_ignored(_folder: str, asked: bytes) -> "Iterator[bytes]":
    """Which of the paths, each with its kind, stay at home."""
    how = decode(asked)
    ignored = ignore.Ignored(how["lines"])
    yield encode([path for path, kind in how["paths"] if ignored.covers(path, kind == "d")])


def rules(folder: str, names: "list[str]") -> "list[str]":
    """Patterns of the first of the files that is there; git's with those of its other files."""
    for name in names:
        if not os.path.lexists(os.path.join(folder, name)):
            continue
        lines = _lines(folder, name)
        if name != GIT_IGNORE:
            return lines
        lines = _lines(folder, ".git/info/exclude") + lines
        found = listing(folder, ignore.Ignored(lines))
        further = (path for path, _ in found if _further(path))
        return lines + [_below(path, line) for path in further for line in _lines(folder, path)]
    return []


def _further(path: str) -> bool:
    return path.endswith("/" + GIT_IGNORE)


def _below(path: str, line: str) -> str:
    """A pattern of a .gitignore further down, as the one at the top would say it."""
    sign, body = ("!", line[1:]) if line.startswith("!") else ("", line)
    if not body.strip() or body.startswith("#"):
        return line
    here = "".join("\\" + char if char in "*?[\\" else char for char in os.path.dirname(path))
    deep = "" if "/" in body.rstrip("/ ") else "**/"
    return "{}/{}/{}{}".format(sign, here, deep, body.lstrip("/"))


def _lines(folder: str, name: str) -> "list[str]":
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        data = _tail(root, name, 0)
    finally:
        os.close(root)
    text = data[len(BOM) if data.startswith(BOM) else 0 :].decode("utf-8", "surrogateescape")
    return text.replace("\r\n", "\n").split("\n")


def identity(folder: str) -> "list[int]":
    """The same on both sides only where both see one and the same folder."""
    found = os.stat(folder)
    return [found.st_ino, found.st_ctime_ns]


def do_sizes(folder: str, asked: bytes) -> "Iterator[bytes]":
    """Bytes of each file, null where there is none; the folder itself under the empty name."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    told = {"": identity(folder)}  # type: dict[str, Any]
    told.update((path, _size(root, path)) for path in decode(asked))
    yield encode(told)


def _size(root: int, path: str) -> "Optional[int]":
    try:
        with Below(root, path) as place:
            found = place.stat()
    except OSError:
        return None
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None


def do_tail(folder: str, asked: bytes) -> "Iterator[bytes]":
    """Of each file that is asked for what stands behind an offset, at most MOST_READ bytes."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for path, offset in decode(asked):
        data = _tail(root, path, offset)
        yield b"%d\n" % len(data) + data


def _tail(root: int, path: str, offset: int) -> bytes:
    try:
        with Below(root, path) as place, reading(place) as file:
            file.seek(offset)
            return bytes(file.read(MOST_READ))
    except OSError:
        return b""


def do_digest(folder: str, asked: bytes) -> "Iterator[bytes]":
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield encode({path: _digest(root, path) for path in decode(asked)})


def _digest(root: int, path: str) -> "Optional[str]":
    sum_ = hashlib.sha256()
    try:
        with Below(root, path) as place, reading(place) as file:
            for piece in iter(lambda: file.read(PIECE), b""):
                sum_.update(piece)
    except OSError:
        return None
    return sum_.hexdigest()


# ---------------------------------------------------------------- packing


def do_pack(folder: str, asked: bytes) -> "Iterator[bytes]":
    """Of each header that is asked for, itself on a line and its piece of the file behind it."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    packer = None  # type: Optional[Packer]
    for header in decode(asked):
        data = _piece(root, header)
        if data is None:
            continue
        if packer is None:
            packer = Packer(data)
            yield packer.mark
        header["length"] = len(data)
        yield packer.pack(encode(header) + b"\n")
        yield packer.pack(data)
    if packer is not None:
        yield packer.end()


def do_send(folder: str, asked: bytes) -> "Iterator[bytes]":
    """What `pack` would say, put where a signed URL says."""
    how = decode(asked)
    stream = b"".join(do_pack(folder, encode(how["asked"])))
    with away.opened(how["url"], stream):
        return iter(())


def _piece(root: int, header: "Header") -> "Optional[bytes]":
    """None for a file that is no longer what it was when it was listed."""
    if header["kind"] != "f" or header.get("same"):
        return b""
    try:
        with Below(root, header["path"]) as place, reading(place) as file:
            file.seek(header["offset"])
            data = file.read(header["length"])  # type: bytes
            now = os.fstat(file.fileno())
    except OSError:
        return None
    same = [now.st_size, now.st_mtime_ns] == [header["size"], header["mtime"]]
    return data if same and len(data) == header["length"] else None


# ---------------------------------------------------------------- unpacking


def do_unpack(folder: str, source: "BinaryIO") -> "Iterator[bytes]":
    """What became of each path: `done`, `part`, `beside` (somebody changed it) or an error."""
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    stream, told = Stream(source), {}
    for line in iter(stream.line, b""):
        header = decode(line)
        data = stream.take(header["length"])
        if len(data) == header["length"]:
            told[header["path"]] = arrived.put(root, header, data)
    yield encode(told)


def do_load(folder: str, asked: bytes) -> "Iterator[bytes]":
    """As `unpack`, of a stream that lies where a signed URL says."""
    with away.opened(decode(asked)["url"]) as stream:
        return iter(list(do_unpack(folder, stream)))


def do_adopt(folder: str, asked: bytes) -> "Iterator[bytes]":
    """The folder holds what one below it held, and nothing else; that one is gone."""
    name = decode(asked)["from"]
    inner = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for path in (os.path.join(folder, one) for one in os.listdir(root) if one != name):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    for one in os.listdir(inner):
        os.rename(one, one, src_dir_fd=inner, dst_dir_fd=root)
    os.rmdir(name, dir_fd=root)
    return iter(())


def do_make(_folder: str, _asked: bytes) -> "Iterator[bytes]":
    """Nothing more: `main` has made the folder."""
    return iter(())


MAKING = ("make", "arrive")
VERBS = {
    "make": do_make,
    "adopt": do_adopt,
    "arrive": do_list,
    "list": do_list,
    "ignored": do_ignored,
    "sizes": do_sizes,
    "tail": do_tail,
    "digest": do_digest,
    "pack": do_pack,
    "send": do_send,
    "load": do_load,
}
"""All that is asked comes first; `unpack` takes its stream as it comes."""

# ---------------------------------------------------------------- as whom


def main(argv: "list[str]") -> int:
    """`carry [alone] VERB UID GID GROUPS UMASK FOLDER`; what is asked comes on standard input.

    Folders that are missing root makes for the user, but not `alone`.
    """
    *alone, verb, uid, gid, groups, umask, folder = argv
    source = sys.stdin.buffer
    try:
        shut = verb in MAKING and (alone or not _made(folder, int(uid), int(gid)))
        landing.become(int(uid), int(gid), [int(one) for one in groups.split(",") if one])
        os.umask(int(umask, 8))
        if shut:
            os.makedirs(folder, 0o755, exist_ok=True)  # the user may be allowed to
        act = VERBS.get(verb)
        pieces = act(folder, source.read()) if act is not None else do_unpack(folder, source)
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except OSError as error:
        sys.stderr.write("{}: {}\n".format(error.filename or folder, error.strerror))
        return 1
    return 0


def _made(folder: str, uid: int, gid: int) -> bool:
    """Whether root's rights may make it, or it is there."""
    try:
        landing.make_folder(folder, uid, gid)
    except PermissionError:
        return False
    return True
