"""The engine's thread and those who ask it."""

from accounting.ids import JobId
from broker.heart import Heart
from broker.model import commands as cmd
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
        log=Log(),  # type: ignore[arg-type]
        sweep=lambda: None,  # type: ignore[arg-type,return-value]
    )
    answers = [
        heart.ask(cmd.Cancel(target=cmd.Target(JobId(number)), by=ALICE)) for number in (1, 2)
    ]
    assert not answers[0].cancel()
    batch = heart._drain()
    heart._answer(batch, heart._step([asked.message for asked in batch]))
    assert all(answer.exception() is not None for answer in answers)
