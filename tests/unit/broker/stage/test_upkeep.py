"""When results are fetched and checkpoints taken of jobs that run, and what their ends wait for."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from accounting.tres import Tres
from broker.model.errors import Refused
from broker.model.ids import NodeName
from broker.model.job import Job, JobFlag, JobState, Share
from broker.model.recovery import Artifact, Fetched
from broker.model.spec import Checkpoint, Mount
from broker.stage.checkpoints import Checkpoints, Owned
from broker.stage.mounts import Mounts, Visit
from broker.stage.sides import Side, Where
from broker.stage.upkeep import GIVEN_UP_SECONDS, Upkeep
from tests.contract import records

A, B = records.node("ec2-1"), records.node("ec2-2")


@dataclass
class Kept:
    """In the place of the real checkpoints: notes what is asked of them."""

    told: list[str] = field(default_factory=list)
    begun: bool = False
    fails: Exception | None = None

    def unfinished(self, owned: Owned) -> bool:
        return self.begun

    def save(self, owned: Owned, side: Side, *, seconds: float | None = None) -> None:
        hurry = "" if seconds is None else " a while"
        self.told.append(f"save {owned.rank} of attempt {owned.attempt}{hurry}")
        if self.fails is not None:
            raise self.fails

    def restore(self, owned: Owned, side: Side) -> None:
        self.told.append(f"restore {owned.rank} for attempt {owned.attempt}")


@dataclass
class There:
    """A node's side; only that the folder is made is asked of it here."""

    told: list[str]

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        self.told.append(f"{verb} {where.path}")
        return b""

    def words(self, verb: str, where: Where) -> None:
        return None

    def failure(self, where: Where, said: bytes) -> Exception:
        return OSError(said)


@dataclass
class Log:
    told: list[str] = field(default_factory=list)

    def warning(self, event: str, **fields: object) -> None:
        self.told.append(event)


@dataclass
class Case:
    now: float = 1000.0
    kept: Kept = field(default_factory=Kept)
    log: Log = field(default_factory=Log)

    def __post_init__(self) -> None:
        checkpoints = cast(Checkpoints, self.kept)
        every = {A.name: 60, B.name: 0}
        self.upkeep = Upkeep(
            checkpoints, lambda node: every[node.name], log=self.log, clock=lambda: self.now
        )
        self.side = There(self.kept.told)

    def later(self, seconds: float, job: Job) -> list[str]:
        self.now += seconds
        self.kept.told.clear()
        self.upkeep.now_and_then(job, A, self.side)
        return self.kept.told

    def end(self, job: Job, *, well: bool) -> list[str]:
        self.kept.told.clear()
        self.upkeep.at_end(job, A, self.side, well=well, shared=False)
        return self.kept.told


def job(**changed: Any) -> Job:
    made = records.job(
        1,
        state=JobState.RUNNING,
        attempt=1,
        shares=tuple(Share(node.name, 1, Tres(cpu=1)) for node in (B, A)),
        **changed,
    )
    asked = Checkpoint(folder="/w/ckpt", every=30)
    return replace(made, spec=made.spec.model_copy(update={"checkpoint": asked}))


@pytest.fixture
def case() -> Case:
    return Case()


def test_checkpoints_are_taken_once_in_a_period(case: Case) -> None:
    assert case.later(0, job()) == []
    assert case.later(29, job()) == []
    assert case.later(1, job()) == ["save 1 of attempt 1 a while"]
    assert case.later(29, job()) == []
    assert case.later(1, job()) == ["save 1 of attempt 1 a while"]


def test_one_that_was_begun_goes_on_at_once(case: Case) -> None:
    case.later(0, job())
    case.kept.begun = True
    assert case.later(1, job()) == ["save 1 of attempt 1 a while"]


def test_a_notice_makes_all_of_the_node_due(case: Case) -> None:
    case.later(0, job())
    case.upkeep.hasten(NodeName("ec2-2"))
    assert case.later(1, job()) == []
    case.upkeep.hasten(NodeName("ec2-1"))
    assert case.later(1, job()) == ["save 1 of attempt 1 a while"]
    assert case.later(1, job()) == []


def test_jobs_without_a_checkpoint_cost_nothing(case: Case) -> None:
    plain = records.job(1, state=JobState.RUNNING)
    assert case.later(999, plain) == []
    assert case.end(plain, well=False) == []


def test_results_are_fetched_once_in_the_partitions_period(case: Case) -> None:
    due = []
    for _ in range(5):
        due.append(case.upkeep.fetch_due(job(), A))
        case.now += 30
    assert due == [False, False, True, False, True]
    assert not case.upkeep.fetch_due(job(), B)
    case.now += 1e6
    assert not case.upkeep.fetch_due(job(), B)


ENDS: tuple[tuple[Job, bool, list[str]], ...] = (
    (job(), True, []),
    (job(), False, ["save 1 of attempt 1"]),
    (job(flags=JobFlag.COMPLETING | JobFlag.REQUEUED), True, ["save 1 of attempt 1"]),
    (replace(job(), state=JobState.COMPLETED), False, []),
    (replace(job(), state=JobState.TIMEOUT), False, ["save 1 of attempt 1"]),
)


@pytest.mark.parametrize(("ended", "well", "told"), ENDS)
def test_the_last_one_is_taken_where_somebody_may_go_on(
    case: Case, ended: Job, well: bool, told: list[str]
) -> None:
    assert case.end(ended, well=well) == told


@pytest.mark.parametrize("fails", [OSError("no route"), ValueError("no route"), KeyError("route")])
def test_an_end_waits_for_its_checkpoint_for_a_while_only(case: Case, fails: Exception) -> None:
    case.kept.fails = fails
    for seconds in (0, 1, GIVEN_UP_SECONDS - 2):
        case.now += seconds
        with pytest.raises(OSError, match="route"):
            case.end(job(), well=False)
    case.now += 1
    case.end(job(), well=False)
    assert case.log.told == ["results.lost"]


def test_the_folder_is_there_and_a_later_attempt_finds_its_checkpoint(case: Case) -> None:
    case.upkeep.bring(job(), B, case.side, shared=False)
    case.upkeep.bring(replace(job(), attempt=2), B, case.side, shared=False)
    assert case.kept.told == ["make /w/ckpt", "make /w/ckpt", "restore 0 for attempt 2"]


@dataclass
class Fetching:
    """In the place of the real mounts: what comes of fetching."""

    comes: Fetched | Exception

    def fetch(self, visit: Visit) -> Fetched:
        if isinstance(self.comes, Exception):
            raise self.comes
        return self.comes


STORED = (Artifact("s3://b/k", 1, ""),)
RESULTS: tuple[tuple[Fetched | Exception, Fetched, list[str]], ...] = (
    (Fetched(STORED), Fetched(STORED), []),
    (Fetched(STORED, ("x: no",)), Fetched(STORED, ("x: no",)), ["results.lost"]),
    (Refused("not yours"), Fetched(failed=("not yours",)), ["results.lost"]),
)


@pytest.mark.parametrize(("comes", "heard", "logged"), RESULTS)
def test_lost_results_are_logged_and_told(
    case: Case, comes: Fetched | Exception, heard: Fetched, logged: list[str]
) -> None:
    told: list[Fetched] = []
    case.upkeep.mounts = cast(Mounts, Fetching(comes))
    case.upkeep.fetched = lambda job, results: told.append(results)
    asked = job()
    wants = asked.spec.model_copy(update={"results": (Mount(source="/w/a", target="s3://b/k"),)})
    case.end(replace(asked, spec=wants), well=True)
    assert (told, case.log.told) == ([heard], logged)
