"""Control groups of steps, of either version, where this host lets us have any.

`skypurza/FOLDER.ATTEMPT/STEP` below the first place that takes them: the hierarchy's root for root,
else the neighbourhood of our own group, which systemd gives to the user.
"""

import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Iterator, Optional

OURS = "skypurza"
MIB = 1 << 20


class Kind:
    """Names of one version's files."""

    def __init__(self, limit: str, events: str, hierarchy: str) -> None:
        self.limit = limit
        self.events = events
        self.hierarchy = hierarchy
        """What has to be written into a group before it may have groups below: file and text."""


SECOND = Kind("memory.max", "memory.events", "cgroup.subtree_control=+memory")
FIRST = Kind("memory.limit_in_bytes", "memory.oom_control", "memory.use_hierarchy=1")


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
        try:
            with open(os.path.join(self.path, self.kind.events), encoding="ascii") as file:
                words = dict(line.split(None, 1) for line in file if " " in line)
        except OSError:
            return 0
        return int(words.get("oom_kill", "0"))

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


def make_plain(key: str) -> "Optional[Group]":
    """A group of version 2 for the step of that key that holds it to nothing by itself."""
    for mounted in plain_places():
        group = Group(_path(mounted, key), SECOND)
        try:
            os.makedirs(group.path, exist_ok=True)
        except OSError:
            continue
        return group
    return None


def plain_places() -> "list[str]":
    """Where groups of version 2 are, whatever these hold."""
    return [mounted for mounted, _options, version in _mounts() if version == "cgroup2"]


def _path(place: str, key: str) -> str:
    attempt, _, step = key.rpartition("/")
    job = "{}.{}".format(_folder(), attempt.replace("/", "."))
    return os.path.join(place, OURS, job, step)


def _made(group: Group, place: str, limits: "tuple[int, int]") -> bool:
    """Whether it could be, held to its own limit and its job's."""
    job = os.path.dirname(group.path)
    try:
        if group.kind is SECOND:
            _allow(place, group.kind)
        for folder in (os.path.dirname(job), job):
            os.makedirs(folder, exist_ok=True)
            _allow(folder, group.kind)
        os.makedirs(group.path, exist_ok=True)
        for folder, mib in ((job, limits[1]), (group.path, limits[0])):
            _write(os.path.join(folder, group.kind.limit), mib * MIB)
    except OSError:
        return False
    return True


def _allow(folder: str, kind: Kind) -> None:
    """Groups below it may be held to their memory; it may be so already."""
    name, _, text = kind.hierarchy.partition("=")
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            there = file.read().split()
    except OSError:
        there = []
    if text.lstrip("+") not in there:
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
        own = _own(kind)
        if os.geteuid() == 0:
            yield mounted, kind
        elif own:
            yield os.path.dirname(mounted + own), kind


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
    try:
        with open(path, encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def drop(key: str) -> None:
    """What is left of a step's group whose supervisor is gone."""
    for place, kind in [*found_places(), *((place, SECOND) for place in plain_places())]:
        group = Group(_path(place, key), kind)
        if os.path.isdir(group.path):
            group.close()
