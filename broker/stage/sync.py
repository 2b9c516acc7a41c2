"""One folder brought to a node and back: only what changed, never over what was changed here."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from broker.model.errors import Refused
from broker.stage.flow import flow
from broker.stage.ignore import FILE, OF_JOBS
from broker.stage.marks import Marks
from broker.stage.pieces import unpacked
from broker.stage.plan import (
    CONFLICT,
    Entry,
    Mark,
    Move,
    Piece,
    Plan,
    doubtful,
    draft,
    entries,
    long_ones,
    one_way,
)
from broker.stage.sides import Identity, Side, Where, same

GIB = 1 << 30
BESIDE = "beside"
"""What a side says of a file that it kept beside one that had changed meanwhile."""
GONE_ON = "error: it cannot be read, or changed while it was read"
"""Of what a giver leaves out."""
DONE = "done"
FINE = frozenset((DONE, "part", BESIDE))
WORTH_ASKING = 1 << 20
"""Bytes of a file that took another time: it is asked whether its content is the same."""


class TooMuch(Refused):
    """A folder has more than may be brought to a node."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of one folder that travels: bytes, and files."""

    size: int = 10 * GIB
    files: int = 200_000


@dataclass(frozen=True, slots=True)
class Folder:
    """A submit directory as one attempt uses it on one node."""

    where: Where
    """The same path on both sides."""
    node: str
    """Name and launch number: another machine under the same name has another copy."""
    tag: str
    """In the names of files that are kept beside others."""
    outputs: frozenset[str] = frozenset()
    """Paths below the folder that are passed on as they grow instead."""
    apart: tuple[str, ...] = ()
    """Paths below the folder that travel otherwise, with all that they hold."""
    only: str | None = None
    """The one entry of the folder that travels; None: all."""
    rules: tuple[str, ...] = OF_JOBS
    """Files that may say what stays at home; the first that is there counts."""

    def wants(self, path: str) -> bool:
        """Whether it travels."""
        return path not in self.outputs and not any(
            path == one or path.startswith(f"{one}/") for one in self.apart
        )


@dataclass(slots=True)
class Told:
    """What one way came to."""

    moved: int = 0
    size: int = 0
    beside: list[str] = field(default_factory=list)
    """Changed on both sides: the node's stands beside ours, with a suffix."""
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sync:
    """Brings folders to nodes and their changes back; for each node one call at a time."""

    near: Side
    marks: Marks
    limits: Limits = Limits()

    def push(self, folder: Folder, far: Side) -> Told:
        """Raises Refused (TooMuch), FileNotFoundError for no such folder, HereError, OSError."""
        here = _listed(self.near, folder)
        if folder.only is not None and not here.files:
            raise Refused(f"{folder.where.path}/{folder.only}: there is nothing to bring")
        self._must_be_allowed(folder, here.files)
        there = _listed(far, folder, here.ignored, verb="arrive")
        if self._one(folder, far, seen=(here, there)):
            return Told()
        marks = self.marks.load(folder.node, folder.where.path)
        plan = _decided(one_way(here.files, there.files, marks), folder, giver=self.near, taker=far)
        told = _carried(plan.moves, folder, giver=self.near, taker=far)
        self._keep(folder, marks, _marks(plan, told))
        return told

    def pull(self, folder: Folder, far: Side) -> Told:
        """What the node changed. Raises FileNotFoundError as `push`, HereError, OSError."""
        here = _listed(self.near, folder)
        try:
            there = _listed(far, folder, here.ignored)
        except FileNotFoundError:
            return Told()
        if self._one(folder, far, seen=(here, there)):
            return Told()
        marks = self.marks.load(folder.node, folder.where.path)
        turned = {path: mark.turned() for path, mark in marks.items()}
        wanted = self._wanted(one_way(there.files, here.files, turned), folder, here.ignored)
        plan = _decided(wanted, folder, giver=far, taker=self.near)
        clashes = [Move(one.path, one.entry, CONFLICT) for one in plan.clashes]
        told = _carried([*plan.moves, *clashes], folder, giver=far, taker=self.near)
        new = {path: mark.turned() for path, mark in _marks(plan, told).items()}
        beside = [one for one in plan.clashes if one.path not in told.failed]
        new |= {one.path: Mark(here.files[one.path], one.entry, kept=True) for one in beside}
        self._keep(folder, marks, new)
        return told

    def _wanted(self, plan: Plan, folder: Folder, ignored: list[str]) -> Plan:
        """Without what stays at home: an agent of before tells of it, and one that lies."""
        paths = [(move.path, move.entry.kind) for move in (*plan.moves, *plan.clashes)]
        if ignored and paths:
            asked = json.dumps({"lines": ignored, "paths": paths}).encode("ascii")
            stay = frozenset(json.loads(self.near.carry("ignored", folder.where, asked)))
            plan.moves = [move for move in plan.moves if move.path not in stay]
            plan.clashes = [move for move in plan.clashes if move.path not in stay]
        return plan

    def _one(self, folder: Folder, far: Side, *, seen: tuple["_Seen", "_Seen"]) -> bool:
        """Whether both sides see the same folder, so that nothing has to travel."""
        here, there = (one.identity for one in seen)
        return same(self.near, far, folder.where, seen=(here, there))

    def _must_be_allowed(self, folder: Folder, here: Mapping[str, Entry]) -> None:
        size, most = sum(entry.size for entry in here.values()), self.limits
        found = ""
        if size > most.size:
            found = f"{size / GIB:.1f} GiB, at most {most.size / GIB:g} GiB"
        elif len(here) > most.files:
            found = f"{len(here)} files, at most {most.files}"
        if found:
            raise TooMuch(
                f"{folder.where.path} has {found} are brought to a node",
                hint=f"submit from a smaller folder, or name what is not needed in {FILE}",
            )

    def _keep(self, folder: Folder, old: Mapping[str, Mark], new: Mapping[str, Mark]) -> None:
        self.marks.save(folder.node, folder.where.path, {**old, **new})


@dataclass(frozen=True, slots=True)
class _Seen:
    """A folder as one side shows it."""

    files: dict[str, Entry]
    ignored: list[str]
    """Patterns of what stays at home."""
    identity: Identity


def _listed(
    side: Side, folder: Folder, ignored: list[str] | None = None, *, verb: str = "list"
) -> _Seen:
    """What is ignored is said by the folder itself where it is not given."""
    by_file = ignored is None and folder.only is None
    how: dict[str, object] = {"lines": ignored or []}
    how = {"files": folder.rules} if by_file else how
    if folder.only is not None:
        how["only"] = folder.only
    said = side.carry(verb, folder.where, json.dumps(how).encode("ascii"))
    found = json.loads(unpacked(said))
    rows = found["rows"]
    identity = tuple(rows.pop(""))
    wanted = {path: entry for path, entry in entries(rows).items() if folder.wants(path)}
    return _Seen(wanted, found["lines"], identity)


def _decided(plan: Plan, folder: Folder, *, giver: Side, taker: Side) -> Plan:
    """Where times alone differ, and much would travel or what is there stay: contents decide."""
    unsure = doubtful(plan.clashes) + doubtful(plan.moves, WORTH_ASKING)
    if not unsure:
        return plan
    same = _alike_in_content(unsure, folder, giver, taker)
    for move in plan.clashes:
        if move.path in same and move.over is not None:
            plan.settled[move.path] = Mark(move.entry, move.over)
    plan.clashes = [move for move in plan.clashes if move.path not in same]
    plan.moves = [replace(move, same=move.same or move.path in same) for move in plan.moves]
    return plan


def _alike_in_content(paths: list[str], folder: Folder, *ends: Side) -> set[str]:
    """Those of which both ends have the same."""
    asked = json.dumps(paths).encode("ascii")

    def digests(side: Side) -> dict[str, str | None]:
        found: dict[str, str | None] = json.loads(side.carry("digest", folder.where, asked))
        return found

    with ThreadPoolExecutor(len(ends)) as pool:
        one, other = pool.map(digests, ends)
    return {path for path in paths if one[path] is not None and one[path] == other[path]}


def _carried(moves: Sequence[Move], folder: Folder, *, giver: Side, taker: Side) -> Told:
    told, begun = Told(), _begun(moves, folder, taker)
    for batch, answer in flow(moves, folder.where, folder.tag, begun=begun, ends=(giver, taker)):
        said = json.loads(answer)
        for piece in batch:
            _note(told, piece, said.get(piece.move.path, GONE_ON))
    return told


def _begun(moves: Sequence[Move], folder: Folder, taker: Side) -> dict[str, int]:
    """Bytes of long files that an interrupted transfer has brought."""
    drafts = {move.path: draft(move) for move in long_ones(moves)}
    if not drafts:
        return {}
    asked = json.dumps(list(drafts.values())).encode("ascii")
    sizes = json.loads(taker.carry("sizes", folder.where, asked))
    return {path: sizes[name] or 0 for path, name in drafts.items()}


def _note(told: Told, piece: Piece, said: str) -> None:
    path, last = piece.move.path, piece.offset + piece.length >= piece.move.size
    if said == "part" and last:
        said = "error: it was cut off on its way"
    if said not in FINE:
        told.failed.setdefault(path, said.removeprefix("error: "))
        return
    told.size += piece.length
    told.moved += said == DONE and last
    if said == BESIDE:
        told.beside.append(path)


def _marks(plan: Plan, told: Told) -> dict[str, Mark]:
    """What is alike from now on, the giver's as `here`."""
    left = told.failed.keys() | set(told.beside)
    moved = {m.path: Mark(m.entry, m.entry) for m in plan.moves if m.path not in left}
    return plan.settled | moved
