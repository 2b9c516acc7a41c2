"""Control groups of steps, of either version, where this host lets us have any.

`skypurza/FOLDER.ATTEMPT/STEP` below the first place that takes them: the hierarchy's root for root,
else the neighbourhood of our own group, which systemd gives to the user.
"""

import contextlib
import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Optional

OURS = "skypurza"
MIB = 1 << 20


class Kind:
    """Names of one version's files."""

    def __init__(self, limit: str, events: str, hierarchy: "tuple[str, str]") -> None:
        self.limit = limit
        self.events = events
        self.hierarchy = hierarchy
        """What has to be written into a group before it may have groups below: file and text."""


SUBTREE = "cgroup.subtree_control"
SECOND = Kind("memory.max", "memory.events", (SUBTREE, "+memory"))
FIRST = Kind("memory.limit_in_bytes", "memory.oom_control", ("memory.use_hierarchy", "1"))
CONTROLLERS = ("cpuset", "cpu", "memory", "io")
"""Of version 2: each is had for itself."""


class Group:
    """The group of one step."""

    def __init__(self, path: str, kind: Kind) -> None:
        self.path = path
        self.kind = kind

    @property
    def door(self) -> str:
        """Who writes its own process id there is in it."""
        return os.path.join(self.path, "cgroup.procs")

    def oom_kills(self) -> int:
        """How often the kernel killed for want of memory in it; 0 where it does not say."""
        return self.rows(self.kind.events).get("oom_kill", 0)

    def write(self, name: str, value: "object") -> None:
        """Into one of its files. Raises OSError."""
        _write(os.path.join(self.path, name), value)

    def lines(self, name: str) -> "list[str]":
        """Of one of its files; none where it has no such."""
        return _lines(os.path.join(self.path, name))

    def number(self, name: str) -> int:
        """What one of its files holds; 0 where it has no such."""
        return int("".join(self.lines(name)[:1]) or 0)

    def rows(self, name: str) -> "dict[str, int]":
        """One of its files of words and their numbers."""
        words = [line.split() for line in self.lines(name)]
        return {row[0]: int(row[1]) for row in words if len(row) == 2 and row[1].isdigit()}

    def close(self) -> None:
        """Gone, once nothing is in it; the job's with its last step's."""
        try:
            os.rmdir(self.path)
            os.rmdir(os.path.dirname(self.path))
        except OSError:
            return  # another step is there, or something is dying yet


def make(
    key: str, limits: "tuple[int, int]", *, places: "Optional[Iterable[tuple[str, Kind]]]" = None
) -> "Optional[Group]":
    """A group for the step of that key, held to its own and its job's MiB; None where none may be
    had. `places` are those of this host.
    """
    for place, kind in found_places() if places is None else places:
        group = Group(_path(place, key), kind)
        if _made(group, place, limits):
            return group
    return None


def make_plain(key: str, *, places: "Optional[Iterable[str]]" = None) -> "Optional[Group]":
    """A group of version 2 for the step of that key that holds it to nothing by itself, with what
    of CONTROLLERS may be had. `places` are those of this host.
    """
    for place in plain_places() if places is None else places:
        group = Group(_path(place, key), SECOND)
        try:
            os.makedirs(group.path, exist_ok=True)
        except OSError:
            continue
        for controller in CONTROLLERS:
            _pass_down(place, group, controller)
        return group
    return None


def _pass_down(place: str, group: Group, controller: str) -> None:
    """The controller, as far as the host lets us have it."""
    job = os.path.dirname(group.path)
    with contextlib.suppress(OSError):
        for folder in (place, os.path.dirname(job), job):
            _allow(folder, SUBTREE, "+" + controller)


def find_plain(key: str, *, places: "Optional[Iterable[str]]" = None) -> "Optional[Group]":
    """That group, where it is."""
    paths = [_path(place, key) for place in (plain_places() if places is None else places)]
    return next((Group(path, SECOND) for path in paths if os.path.isdir(path)), None)


def plain_places() -> "list[str]":
    """Where groups of version 2 may be made, whatever these hold."""
    mounted = [where for where, _options, version in _mounts() if version == "cgroup2"]
    return [place for place in (_place(where, SECOND) for where in mounted) if place]


def _place(mounted: str, kind: Kind) -> str:
    """Below it our groups are; empty where there is none."""
    if os.geteuid() == 0:
        return mounted
    own = _own(kind)
    return os.path.dirname(mounted + own) if own else ""


def _path(place: str, key: str) -> str:
    attempt, _, step = key.rpartition("/")
    job = "{}.{}".format(_folder(), attempt.replace("/", "."))
    return os.path.join(place, OURS, job, step)


def _made(group: Group, place: str, limits: "tuple[int, int]") -> bool:
    """Whether it could be, held to its own limit and its job's."""
    job = os.path.dirname(group.path)
    try:
        if group.kind is SECOND:
            _allow(place, *group.kind.hierarchy)
        for folder in (os.path.dirname(job), job):
            os.makedirs(folder, exist_ok=True)
            _allow(folder, *group.kind.hierarchy)
        os.makedirs(group.path, exist_ok=True)
        for folder, mib in ((job, limits[1]), (group.path, limits[0])):
            _write(os.path.join(folder, group.kind.limit), mib * MIB)
    except OSError:
        return False
    return True


def _allow(folder: str, name: str, text: str) -> None:
    """Groups below it may have that; they may have it already. Raises OSError."""
    if text.lstrip("+") not in _words(os.path.join(folder, name)):
        _write(os.path.join(folder, name), text)


def _write(path: str, value: "object") -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def _folder() -> str:
    """A word for the agent that we belong to: several may be on one host."""
    return hashlib.sha256(os.fsencode(os.getcwd())).hexdigest()[:12]


def found_places() -> "Iterator[tuple[str, Kind]]":
    """Where groups may be made that hold memory, the best first."""
    for mounted, options, version in _mounts():
        kind = SECOND if version == "cgroup2" else FIRST
        if kind is FIRST and "memory" not in options:
            continue
        if kind is SECOND and "memory" not in _words(os.path.join(mounted, "cgroup.controllers")):
            continue
        place = _place(mounted, kind)
        if place:
            yield place, kind


def _mounts() -> "Iterator[tuple[str, list[str], str]]":
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
            rows = [line.split() for line in file]
    except OSError:
        return
    for _device, where, version, options in (row[:4] for row in rows if len(row) >= 4):
        if version in {"cgroup", "cgroup2"}:
            yield where, options.split(","), version


def _own(kind: Kind) -> str:
    """The path of our own group, below the mount."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return ""
    for _number, controllers, path in rows:
        if (not controllers) if kind is SECOND else ("memory" in controllers.split(",")):
            return path
    return ""


def _words(path: str) -> "list[str]":
    return " ".join(_lines(path)).split()


def _lines(path: str) -> "list[str]":
    try:
        with open(path, encoding="ascii") as file:
            return file.read().splitlines()
    except OSError:
        return []


def drop(key: str) -> None:
    """What is left of a step's group whose supervisor is gone."""
    for place, kind in [*found_places(), *((place, SECOND) for place in plain_places())]:
        group = Group(_path(place, key), kind)
        if os.path.isdir(group.path):
            group.close()
