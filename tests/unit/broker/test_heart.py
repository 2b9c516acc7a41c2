"""The engine's thread and those who ask it."""

import pytest

from accounting.ids import JobId
from broker.engine import Outcome
from broker.heart import SOON, Heart
from broker.model import commands as cmd
from broker.model.errors import Busy, Unforeseen
from broker.model.events import Event, Queued
from broker.model.ids import NodeName
from broker.model.spec import StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, DECLARED, Bench


class Clock:
    def now(self) -> int:
        return 1_000_000


class Log:
    def warning(self, event: str, **fields: object) -> None: ...
    def error(self, event: str, **fields: object) -> None: ...


def test_who_asks_and_goes_away_leaves_the_engine_alive() -> None:
    heart = Heart(
        engine=Bench(DECLARED).engine,
        clock=Clock(),
        log=Log(),
        sweep=lambda: None,
    )
    answers = [
        heart.ask(cmd.Cancel(target=cmd.Target(JobId(number)), by=ALICE)) for number in (1, 2)
    ]
    assert not answers[0].cancel()
    batch = heart._drain()
    heart._answer(batch, heart._step([asked.message for asked in batch]))
    assert all(answer.exception() is not None for answer in answers)


def test_what_was_committed_is_told() -> None:
    heard: list[Event] = []
    heart = Heart(
        engine=Bench(DECLARED).engine,
        clock=Clock(),
        log=Log(),
        tell=heard.extend,
    )
    spec = TaskSpec(name="job", batch=StepSpec(name="batch"))
    heart.ask(cmd.Submit(spec=spec, owner=ALICE, request="r1"))
    heart._turn(heart._drain())
    assert Queued in {type(fact) for fact in heard}


def test_why_nothing_could_be_written_is_in_the_log() -> None:
    told: list[tuple[str, dict[str, object]]] = []

    class Listening(Log):
        def error(self, event: str, **fields: object) -> None:
            told.append((event, fields))

    heart = Heart(engine=Bench(DECLARED).engine, clock=Clock(), log=Listening())
    heart.stop()
    heart._again([], Outcome(replies=[Busy("the disk is full")], committed=False))
    assert told == [("store.busy", {"reports": 0, "error": "the disk is full"})]


def test_a_node_that_cannot_call_is_looked_at_several_times_soon() -> None:
    heart = Heart(engine=Bench(DECLARED).engine, clock=Clock(), log=Log())
    heart.expect(NodeName("n1"))
    heart._drain()
    assert [node for _, node in heart._soon] == ["n1"] * len(SOON)
    looks = sorted(due for due, _ in heart._soon)
    assert [late - looks[0] for late in looks] == pytest.approx([s - SOON[0] for s in SOON])


def test_what_nobody_foresaw_refuses_its_own_message_and_is_in_the_log() -> None:
    told: list[tuple[str, dict[str, object]]] = []

    class Listening(Log):
        def error(self, event: str, **fields: object) -> None:
            told.append((event, fields))

    heart = Heart(engine=Bench(DECLARED).engine, clock=Clock(), log=Listening())
    broken = heart.ask(cmd.Cancel(target=None, by=ALICE))  # type: ignore[arg-type]
    spec = TaskSpec(name="job", batch=StepSpec(name="batch"))
    sound = heart.ask(cmd.Submit(spec=spec, owner=ALICE, request="r1"))
    heart._turn(heart._drain())
    assert isinstance(broken.exception(), Unforeseen)
    assert heart.engine.world.jobs[sound.result()].spec.name == "job"
    ((event, fields),) = told
    assert (event, type(fields["exc_info"])) == ("decision.failed", AttributeError)
