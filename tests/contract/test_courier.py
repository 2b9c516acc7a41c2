"""What the courier takes from machines: no nonsense, nothing of attempts that are over, and outputs
whole whatever is asked twice.
"""

import json
import os
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from accounting.ids import JobId
from broker.model.errors import Refused
from broker.model.job import Job
from broker.model.recovery import Fetched
from broker.ports import EndSeen, Place
from broker.stage.courier import Courier
from broker.stage.sides import Side, Where
from broker.stage.upkeep import GIVEN_UP_SECONDS
from tests.contract import records
from tests.contract.test_stage import Pair

ROWS = (
    *('["f", 1e999, 1, 420, null]', '["f", -1, 1, 420, null]', '["f", 1, "1/../x", 420, null]'),
    *('["x", 1, 1, 420, null]', '["f", 1, 1, 70000, null]', '["l", 0, 0, 0, null]', "[]", "7"),
)
JUNK = (
    *(b"", b"\xff\x00", b"{}", b"[]", b"null", b"x\x9c", b'{"": 1}', b"9" * 5000),
    *(zlib.compress(said) for said in (b"[" * 10**6, b'{"rows": [], "lines": []}', b'"rows"')),
    *(zlib.compress(b'{"lines": [], "rows": {"": [1, 2], "a": %b}}' % r.encode()) for r in ROWS),
)


@dataclass
class Nonsense:
    """A channel on which every command succeeds and says the same."""

    said: bytes

    def run(self, *_: object, **__: object) -> Any:
        return SimpleNamespace(code=0, out=self.said, err=b"")


def made(tmp_path: Path, said: bytes) -> tuple[Courier, Job, Any, Place]:
    """A courier of one job on a machine that says the same to everything."""
    pair = Pair(tmp_path)
    old = records.job(1, attempt=2)
    me = replace(old.owner, uid=os.getuid(), gid=os.getgid())
    job = replace(old, owner=me, spec=old.spec.model_copy(update={"cwd": str(pair.here)}))
    node = records.node("n1")
    place = SimpleNamespace(
        channel=Nonsense(said), python="p", archive="a", shared=False, stream=lambda _: None
    )
    outputs = (f"{pair.here}/out",)
    courier = Courier(pair.sync, lambda: {job.id: job}, lambda *_: outputs, cast(Any, None))
    return courier, job, node, cast(Place, place)


@pytest.mark.parametrize("said", JUNK, ids=range(len(JUNK)))
def test_nonsense_is_told_as_no_answer(said: bytes, tmp_path: Path) -> None:
    courier, job, node, place = made(tmp_path, said)
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.bring(job, node, place)
    with pytest.raises(OSError, match="answers what cannot be read"):
        courier.fetch([EndSeen(job.id, job.attempt, True)], node, place)


def test_late_words_of_an_older_attempt_bring_nothing(tmp_path: Path) -> None:
    courier, job, node, place = made(tmp_path, b"nothing that could be read")
    courier.fetch([EndSeen(job.id, job.attempt - 1, True)], node, place)


class Case:
    """A courier of jobs of one folder, whose node is another root here, or this one."""

    def __init__(self, home: Path, *, far: Callable[[Pair], Side] = lambda pair: pair.far) -> None:
        self.pair = Pair(home)
        self.jobs = {job.id: job for job in (self._job(1), self._job(2))}
        self.node: Any = records.node("n1")
        self.place = cast(Place, SimpleNamespace(shared=False, **dict.fromkeys(CHANNEL)))
        self.courier = self.started(far(self.pair))
        self.warned = False
        """Whether warnings are expected."""

    def started(self, far: Side) -> Courier:
        def outputs(job: Job, _node: object) -> list[str]:
            return [f"{self.pair.here}/{job.id}.out"]

        quiet = SimpleNamespace(warning=self.warning)
        return Courier(
            self.pair.sync, lambda: self.jobs, outputs, quiet, way=lambda _node, _far: far
        )

    def warning(self, event: str, **fields: object) -> None:
        assert self.warned, f"{event}: {fields}"

    def _job(self, id: int) -> Job:
        old = records.job(id)
        me = replace(old.owner, uid=os.getuid(), gid=os.getgid())
        cwd = str(self.pair.here)
        return replace(old, owner=me, attempt=1, spec=old.spec.model_copy(update={"cwd": cwd}))

    def bring(self, job: Job) -> None:
        self.courier.bring(job, self.node, self.place)

    def end(self, job: Job) -> None:
        self.courier.fetch([EndSeen(job.id, job.attempt, True)], self.node, self.place)


CHANNEL = ("channel", "python", "archive", "stream")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_start_that_is_asked_again_leaves_what_was_written_meanwhile(
    tmp_path: Path, restarted: bool
) -> None:
    case = Case(tmp_path)
    job = case.jobs[JobId(1)]
    (case.pair.here / "1.out").write_text("of an earlier job")
    case.bring(job)
    assert (case.pair.here / "1.out").read_text() == ""
    (case.pair.there / "1.out").write_text("whole\n")
    case.end(job)
    if restarted:
        case.courier = case.started(case.pair.far)
    case.bring(job)
    assert (case.pair.here / "1.out").read_text() == "whole\n"
    again = replace(job, attempt=2)
    case.jobs[job.id] = again
    case.bring(again)
    assert (case.pair.here / "1.out").read_text() == "", "another attempt begins anew"


def test_what_another_job_is_writing_is_its_own_to_pass_on(tmp_path: Path) -> None:
    case = Case(tmp_path)
    one, other = case.jobs.values()
    case.bring(one)
    case.bring(other)
    (case.pair.there / "1.out").write_text("of one\n")
    (case.pair.there / "2.out").write_text("of the ")
    case.end(one)
    assert (case.pair.here / "2.out").read_text() == ""
    with (case.pair.there / "2.out").open("a") as out:
        out.write("other\n")
    case.end(other)
    names = sorted(path.name for path in case.pair.here.iterdir())
    assert names == ["1.out", "2.out"]
    assert (case.pair.here / "2.out").read_text() == "of the other\n"


@dataclass
class Around:
    """A side with something around it."""

    side: Side

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        return self.side.carry(verb, where, asked)

    def words(self, verb: str, where: Where) -> list[str] | None:
        return None

    def failure(self, where: Where, said: bytes) -> Exception:
        return self.side.failure(where, said)


@dataclass
class Busy(Around):
    """A node that shares the folder, in which somebody makes a file before each answer."""

    folder: Path
    times: int
    made: int = 0

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        if self.made < self.times:
            self.made += 1
            (self.folder / f"made{self.made}").write_text("here")
        return super().carry(verb, where, asked)


@pytest.mark.parametrize("times", [0, 1, 2, 7])
def test_a_shared_folder_is_known_as_such_whatever_is_made_in_it_meanwhile(
    tmp_path: Path, times: int
) -> None:
    case = Case(tmp_path, far=lambda pair: Busy(pair.near, pair.here, times))
    job = case.jobs[JobId(1)]
    (case.pair.here / "1.out").write_text("written by the node\n")
    case.bring(job)
    case.end(job)
    assert (case.pair.here / "1.out").read_text() == "written by the node\n"
    assert not list(case.pair.here.glob("*.spz-*"))


def test_a_shared_folder_that_never_rests_is_looked_at_again_later(tmp_path: Path) -> None:
    case = Case(tmp_path, far=lambda pair: Busy(pair.near, pair.here, 1000))
    with pytest.raises(OSError, match="changes all the time"):
        case.bring(case.jobs[JobId(1)])


class Full(Around):
    """A side whose disk takes nothing more."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        said = super().carry(verb, where, asked)
        if verb != "unpack":
            return said
        for path in json.loads(said):
            (Path(where.path) / path).unlink(missing_ok=True)
        full = "error: No space left on device"
        return json.dumps(dict.fromkeys(json.loads(said), full)).encode()


def test_a_job_is_not_begun_without_files_that_its_node_has_no_room_for(tmp_path: Path) -> None:
    case = Case(tmp_path, far=lambda pair: Full(pair.far))
    case.warned = True
    (case.pair.here / "data").write_text("needed")
    with pytest.raises(Refused, match="n1: data: No space left on device"):
        case.bring(case.jobs[JobId(1)])


@pytest.mark.parametrize("frees", [True, False])
def test_an_end_waits_a_little_for_room_here_and_then_tells_what_is_lost(
    tmp_path: Path, frees: bool
) -> None:
    case, told = Case(tmp_path), []
    case.warned = True
    case.courier.upkeep.fetched = lambda _job, found: told.append(found)
    instants = iter((0, GIVEN_UP_SECONDS - 1, GIVEN_UP_SECONDS))
    case.courier.upkeep.clock = lambda: next(instants)
    job = case.jobs[JobId(1)]
    case.bring(job)
    for name in ("result", "results"):
        (case.pair.there / name).write_text("of days")
    case.courier.sync = replace(case.pair.sync, near=Full(case.pair.near))
    for _ in range(2):
        with pytest.raises(OSError, match="result: No space left on device"):
            case.end(job)
    if frees:
        case.courier.sync = case.pair.sync
    case.end(job)
    assert (case.pair.here / "result").exists() is frees
    assert [one.failed for one in told] == (
        []
        if frees
        else [
            ("[Errno 28] result: No space left on device",),
            ("results: No space left on device",),
        ]
    )


def test_what_is_lost_or_stands_beside_is_told_to_its_user(tmp_path: Path) -> None:
    case, told = Case(tmp_path), []
    case.warned = True
    case.courier.upkeep.fetched = lambda _job, found: told.append(found)
    job, other = case.jobs[JobId(1)], case.jobs[JobId(2)]
    for one in (job, other):
        case.bring(one)
    odd = os.fsdecode(b"caf\xe9")
    for side in (case.pair.here, case.pair.there):
        (side / odd).write_text(str(side))
    case.end(job)
    assert told == [Fetched(beside=("caf\\xe9.spz-1",))]
    shutil.rmtree(case.pair.here)
    case.end(other)
    gone = f"[Errno 2] No such file or directory: {str(case.pair.here)!r}"
    assert told[1:] == [Fetched(failed=(f"2.out: {gone}", gone))]
