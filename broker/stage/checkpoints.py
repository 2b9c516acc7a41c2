"""Checkpoints: a job's folder copied away piece by piece, and put in place for its next attempt.

A copy counts once its record is written, after all of its parts, each read from a file that was as
the folder's listing had it: it is the folder of that moment. What was brought stays brought, so an
interrupted copy goes on where it stopped.
"""

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256

from accounting.ids import JobId
from broker.model.recovery import Copy
from broker.stage.objects import Objects
from broker.stage.pieces import asked, header, read, unpacked, written
from broker.stage.plan import PART, Entry, Move, Piece, alike, batches, entries
from broker.stage.saved import CorruptError, Kept, Saved, saved
from broker.stage.sides import Side, Where

KEPT = 2
"""Whole checkpoints of a job that stay: should the newest be corrupt, the one before it is used."""
INNER = ".spz-restored-{}"
"""Where one grows below its folder until all of it is there."""
FINE = frozenset(("done", "part"))
QUARANTINE = "quarantine/"


@dataclass(frozen=True, slots=True)
class Owned:
    """Whose checkpoints, and the folder that they are of."""

    id: JobId
    job: str
    """An id that no other job ever has, of any cluster."""
    rank: int
    """Place of the node among the job's: each has a folder of its own."""
    attempt: int
    where: Where

    @property
    def home(self) -> str:
        """What their keys begin with."""
        return f"{self.job}/{self.rank}/"

    def record(self, number: int, aside: str = "") -> str:
        return f"{self.home}{aside}{number:08}.json"

    def part(self, digest: str) -> str:
        return f"{self.home}parts/{digest}"


Tell = Callable[[Owned, "News"], None]
Progress = dict[str, tuple[Entry, list[str]]]
"""Parts of each file that are in the store already, from its begin on."""


@dataclass(frozen=True, slots=True)
class News:
    """What became of a checkpoint."""

    what: Copy
    number: int
    text: str


@dataclass(slots=True)
class Checkpoints:
    """Those of all jobs, in one store; for each job and node one call at a time."""

    objects: Objects
    clock: Callable[[], float] = time.time
    tell: Tell = lambda owned, news: None
    _progress: dict[str, Progress] = field(default_factory=dict)
    _latest: dict[str, Saved] = field(default_factory=dict)

    # --- saving

    def unfinished(self, owned: Owned) -> bool:
        """Whether one was begun that is not whole yet."""
        return owned.home in self._progress

    def save(self, owned: Owned, side: Side, *, seconds: float | None = None) -> Saved | None:
        """The new checkpoint; None where there is nothing new, a file changed meanwhile, or
        `seconds` did not suffice: then the next call goes on.

        Raises OSError, Refused, HereError.
        """
        until = None if seconds is None else time.monotonic() + seconds
        before = _listed(side, owned.where)
        last = self._last(owned)
        if not any(entry.kind == "f" for entry in before.values()) or _same(before, last):
            self._progress.pop(owned.home, None)
            return None
        progress = self._known(owned, before, last)
        if not self._bring(owned, side, before, progress=progress, until=until):
            return None
        return self._write(owned, before, progress)

    def _known(self, owned: Owned, now: dict[str, Entry], last: Saved | None) -> Progress:
        """Parts of files as they are now; of those that look otherwise all is forgotten."""
        kept = {} if last is None else last.files
        known: Progress = {path: (one.entry, list(one.parts)) for path, one in kept.items()}
        known |= self._progress.get(owned.home, {})
        fresh = {
            path: known[path] if path in known and known[path][0] == entry else (entry, [])
            for path, entry in now.items()
        }
        self._progress[owned.home] = fresh
        return fresh

    def _bring(
        self,
        owned: Owned,
        side: Side,
        files: dict[str, Entry],
        *,
        progress: Progress,
        until: float | None,
    ) -> bool:
        """Whether every part is in the store now."""
        left = [
            Move(path, entry)
            for path, entry in files.items()
            if len(progress[path][1]) < _count(entry)
        ]
        begun = {move.path: len(progress[move.path][1]) * PART for move in left}
        for batch in batches(left, begun):
            if until is not None and time.monotonic() > until:
                return False
            came = 0
            for head, data in read(side.carry("pack", owned.where, asked(batch, ""))):
                parts = progress[head["path"]][1]
                if head["offset"] != len(parts) * PART:
                    break
                digest = sha256(data).hexdigest()
                self.objects.put(owned.part(digest), io.BytesIO(data), digest=digest)
                parts.append(digest)
                came += 1
            if came < len(batch):
                return False  # a file changed while it was read
        return True

    def _write(self, owned: Owned, files: dict[str, Entry], progress: Progress) -> Saved:
        number = 1 + max([*self._numbers(owned), *self._numbers(owned, QUARANTINE)], default=0)
        kept = {path: Kept(entry, tuple(progress[path][1])) for path, entry in files.items()}
        new = Saved(number, owned.attempt, int(self.clock()), owned.where.path, kept)
        self.objects.put(owned.record(number), io.BytesIO(new.text()))
        self._latest[owned.home] = new
        del self._progress[owned.home]
        self.tell(owned, News(Copy.SAVED, number, f"{len(kept)} files, {new.size} bytes"))
        self._prune(owned, new)
        return new

    def _prune(self, owned: Owned, newest: Saved) -> None:
        """Drops older ones, and parts that no kept one has."""
        numbers = self._numbers(owned)
        kept = [newest]
        for number in numbers[1:KEPT]:
            with suppress(CorruptError):
                kept.append(self._record(owned, number))
        wanted = {owned.part(digest) for one in kept for digest in one.parts}
        old = [owned.record(number) for number in numbers[KEPT:]]
        parts = [one.key for one in self.objects.found(f"{owned.home}parts/")]
        self.objects.drop([*old, *(key for key in parts if key not in wanted)])

    # --- restoring

    def restore(self, owned: Owned, side: Side) -> Saved | None:
        """The newest whole one is what the folder holds, once in an attempt; None without one.

        What is corrupt is put aside and the one before it used. Raises OSError, Refused.
        """
        mark = f"{owned.home}restored/{owned.attempt}"
        if self.objects.head(mark) is not None:
            return None
        found = next(self._restored(owned, side), None)
        self.objects.put(mark, io.BytesIO(b"" if found is None else b"%d" % found.number))
        if found is not None:
            self.tell(owned, News(Copy.RESTORED, found.number, f"of attempt {found.attempt}"))
        return found

    def _restored(self, owned: Owned, side: Side) -> Iterator[Saved]:
        for number in self._numbers(owned):
            try:
                one = self._record(owned, number)
                self._put(owned, one, side)
            except CorruptError as error:
                self._quarantine(owned, number, str(error))
            else:
                self._latest[owned.home] = one
                yield one

    def _put(self, owned: Owned, one: Saved, side: Side) -> None:
        inner = INNER.format(one.number)
        below = owned.where.below(inner)
        side.carry("make", owned.where)
        side.carry("make", below)
        there = _listed(side, below)
        moves = [
            Move(path, kept.entry, there.get(path))
            for path, kept in one.files.items()
            if path not in there or not alike(there[path], kept.entry)
        ]
        for batch in batches(moves, {}):
            stream = written((header(piece, ""), self._data(owned, one, piece)) for piece in batch)
            said = json.loads(side.carry("unpack", below, stream))
            wrong = {path: text for path, text in said.items() if text not in FINE}
            if wrong:
                raise OSError(f"{owned.where.path}: a checkpoint cannot be put there: {wrong}")
        side.carry("adopt", owned.where, json.dumps({"from": inner}).encode("ascii"))

    def _data(self, owned: Owned, one: Saved, piece: Piece) -> bytes:
        """Raises CorruptError for a part that is not there, or is not what it was."""
        parts = one.files[piece.move.path].parts
        if not parts:
            return b""
        digest = parts[piece.offset // PART]
        try:
            data = self.objects.read(owned.part(digest))
        except FileNotFoundError:
            raise CorruptError(f"a part of {piece.move.path} is missing") from None
        if sha256(data).hexdigest() != digest:
            self.objects.drop([owned.part(digest)])  # else it would seem to be there already
            raise CorruptError(f"a part of {piece.move.path} is not what was written")
        return data

    def _quarantine(self, owned: Owned, number: int, why: str) -> None:
        aside = owned.record(number, QUARANTINE)
        with suppress(FileNotFoundError):
            text = self.objects.read(owned.record(number))
            self.objects.put(aside, io.BytesIO(text))
        self.objects.drop([owned.record(number)])
        self._latest.pop(owned.home, None)
        self.tell(owned, News(Copy.QUARANTINED, number, why))

    # --- the store

    def forget(self, job: str) -> None:
        """Drops all that is kept of a job that needs it no more."""
        for home in [home for home in self._latest if home.startswith(f"{job}/")]:
            del self._latest[home]
        self.objects.drop([one.key for one in self.objects.found(f"{job}/")])

    def tidy(self, before: int) -> None:
        """Drops what is kept of jobs of which nothing was saved since that instant."""
        latest: dict[str, int] = {}
        for one in self.objects.found():
            job = one.key.partition("/")[0]
            latest[job] = max(one.at, latest.get(job, 0))
        for job in [job for job, at in latest.items() if at < before]:
            self.forget(job)

    def _last(self, owned: Owned) -> Saved | None:
        """The newest one that can be read, corrupt or not in its parts."""
        if owned.home not in self._latest:
            for number in self._numbers(owned):
                with suppress(CorruptError):
                    self._latest[owned.home] = self._record(owned, number)
                    break
        return self._latest.get(owned.home)

    def _record(self, owned: Owned, number: int) -> Saved:
        try:
            return saved(self.objects.read(owned.record(number)))
        except FileNotFoundError:
            raise CorruptError("its record is missing") from None

    def _numbers(self, owned: Owned, aside: str = "") -> list[int]:
        """Those with a record, the newest first."""
        home = owned.home + aside
        names = (one.key.removeprefix(home) for one in self.objects.found(home))
        found = [name.removesuffix(".json") for name in names if "/" not in name]
        return sorted((int(name) for name in found if name.isdecimal()), reverse=True)


def _listed(side: Side, where: Where) -> dict[str, Entry]:
    """Empty where the folder does not exist."""
    try:
        said = side.carry("list", where, json.dumps({"lines": []}).encode("ascii"))
    except FileNotFoundError:
        return {}
    rows = json.loads(unpacked(said))["rows"]
    rows.pop("")
    return entries(rows)


def _same(now: dict[str, Entry], last: Saved | None) -> bool:
    return last is not None and now == {path: one.entry for path, one in last.files.items()}


def _count(entry: Entry) -> int:
    """Parts of a file; an empty one has one, of no bytes."""
    return max(1, -(-entry.size // PART)) if entry.kind == "f" else 0
