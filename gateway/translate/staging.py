"""`#SPZ` lines of a batch script: files that travel with the job, and its checkpoints.

They stand where `#SBATCH` lines may stand, and their words are cut as those of these lines.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from broker.model.spec import Checkpoint, Mount
from gateway.config.problems import near
from gateway.translate.buckets import S3, can_be
from sbatch_shim.grammar.errors import GrammarError, failed
from sbatch_shim.grammar.filenames import FileJob, fill
from sbatch_shim.grammar.script import Place, marked, words_of
from sbatch_shim.grammar.values import read_seconds

MARK: Final = "#SPZ"
SCHEME: Final = "://"
EXAMPLE: Final = FileJob(1, 1, 1, "user", "name", "a", 0, "sluid")
"""What patterns are tried with."""
SIDES = re.compile(r"((?:\w+://)?[^:]*)(?::(.*))?", re.DOTALL)


@dataclass(slots=True)
class Staging:
    """What the lines of a script ask for; paths are full ones."""

    cwd: str
    files: list[Mount] = field(default_factory=list)
    results: list[Mount] = field(default_factory=list)
    folder: str = ""
    every: int | None = None

    @property
    def checkpoint(self) -> Checkpoint | None:
        return Checkpoint(folder=self.folder, every=self.every) if self.folder else None

    def must_suit_array(self, program: str) -> None:
        """Raises GrammarError where its tasks would have one folder: each empties it for itself."""
        other = EXAMPLE._replace(id=2, task=2)
        if self.folder and fill(self.folder, EXAMPLE) == fill(self.folder, other):
            said = f"{MARK} checkpoint={self.folder}: tasks of an array need a folder each"
            way_out = f"write checkpoint={self.folder}/%a, or %A_%a or %j in its name"
            raise failed(program, f"{said}; {way_out}")


class _BadWordError(Exception):
    """What is wrong with a word."""


def read_staging(text: str, *, name: str, program: str, cwd: str) -> Staging:
    """Raises GrammarError that names the line; `name` is the script's, for messages."""
    found = Staging(cwd)
    for place, _, rest in marked(text, (MARK,), name, program=program):
        for word in words_of(rest, place):
            try:
                _take(word, found)
            except _BadWordError as error:
                raise _refusal(place, str(error)) from None
    if found.every is not None and not found.folder:
        raise failed(program, f"{name}: {MARK} every=... needs checkpoint=DIR")
    return found


def _refusal(place: Place, text: str) -> GrammarError:
    where = f"{place.name}: line {place.line}: {MARK} {text}"
    return failed(place.program, where)


def _take(word: str, found: Staging) -> None:
    key, equals, value = word.partition("=")
    if key not in KEYS:
        raise _BadWordError(f"{word}: {key} is not known; {near(key, list(KEYS))}")
    if not equals or not value:
        raise _BadWordError(f"{word}: nothing is given; write {key}={FORMS[key]}")
    KEYS[key](value, found)


def _stage_in(value: str, found: Staging) -> None:
    for source, target in _sides(value):
        if target.startswith(S3):
            raise _BadWordError(f"stage-in={value}: what is brought comes from {target}")
        if source.startswith(S3):
            to = target or posixpath.basename(source.rstrip("/"))
            if source.count("/") < 3 or not to:
                raise _BadWordError(f"stage-in={value}: write {S3}BUCKET/KEY")
            found.files.append(Mount(source=source, target=_path(to, found)))
        else:
            here = _path(source, found)
            found.files.append(Mount(source=here, target=_path(target, found) if target else here))


def _stage_out(value: str, found: Staging) -> None:
    for source, target in _sides(value):
        if source.startswith(S3):
            if target:
                raise _BadWordError(f"stage-out={value}: write PATH:{source}")
            found.results.append(Mount(source=found.cwd, target=source))
            continue
        there = _path(source, found)
        to = target if target.startswith(S3) else _path(target, found) if target else there
        found.results.append(Mount(source=there, target=to))


def _checkpoint(value: str, found: Staging) -> None:
    if SCHEME in value:
        raise _BadWordError(f"checkpoint={value}: name a folder; where copies lie is configured")
    folder = _path(value, found)
    if found.folder and found.folder != folder:
        raise _BadWordError(f"checkpoint={value}: a job has one; {found.folder} is named before")
    filled = fill(folder, EXAMPLE)
    if f"{found.cwd}/".startswith(f"{posixpath.normpath(filled).rstrip('/')}/"):
        raise _BadWordError(f"checkpoint={value}: name a folder that holds nothing else")
    if filled != fill(folder, EXAMPLE._replace(node="b", restarts=1)):
        raise _BadWordError(f"checkpoint={value}: name one that is the same after a restart")
    found.folder = folder


def _every(value: str, found: Staging) -> None:
    seconds = read_seconds(value)
    if not isinstance(seconds, int) or seconds < 1:
        raise _BadWordError(f"every={value}: write minutes, or HOURS:MINUTES:SECONDS")
    found.every = seconds


KEYS: Mapping[str, Callable[[str, Staging], None]] = {
    "stage-in": _stage_in,
    "stage-out": _stage_out,
    "checkpoint": _checkpoint,
    "every": _every,
}
FORMS: Mapping[str, str] = {
    "stage-in": "PATH[,PATH...]",
    "stage-out": "PATH[,PATH...]",
    "checkpoint": "DIR",
    "every": "MINUTES",
}


def _sides(value: str) -> Iterator[tuple[str, str]]:
    """`SOURCE` or `SOURCE:TARGET`, of each; the target is empty where it is not given."""
    for one in filter(None, value.split(",")):
        source, target = SIDES.fullmatch(one).groups("")  # type: ignore[union-attr]  # any text
        for side in (source, target):
            if SCHEME in side and not side.startswith(S3):
                raise _BadWordError(f"{side}: only {S3} is served")
            if side.startswith(S3) and side != S3 and not can_be(side):
                raise _BadWordError(f"{side}: names no bucket; write {S3}BUCKET/KEY")
        yield source, target


def _path(text: str, found: Staging) -> str:
    return posixpath.normpath(posixpath.join(found.cwd, text))
