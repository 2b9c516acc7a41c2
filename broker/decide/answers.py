"""What requests were answered with: a command line that comes again is answered the same."""

from collections.abc import Mapping
from typing import Any

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.errors import Conflict, SpzError
from broker.model.ids import StepId
from broker.model.inbox import Message

ANSWERED_ONCE = (cmd.Submit, cmd.AddStep)
"""Commands that name the request which they came with."""
MOST_ANSWERS = 20_000
"""A request is asked again within seconds, or not at all."""
DONE = "done "
"""What begins the answer to a request that made no job and no step."""


class Answers:
    """By request id: `4711` for a job, `4711.3` for a step; those of a step stand once it does."""

    def __init__(self, kept: Mapping[str, str]) -> None:
        self.kept = dict(kept)
        self.fresh: dict[str, str] = {}
        """Of the step under way."""

    def find(self, request: str) -> str | None:
        return self.fresh.get(request) or self.kept.get(request)

    def settle(self) -> None:
        """Keeps the answers of the step, and of all before only the latest MOST_ANSWERS."""
        self.kept.update(self.fresh)
        if len(self.kept) > 2 * MOST_ANSWERS:
            self.kept = dict(list(self.kept.items())[-MOST_ANSWERS:])

    def known(self, message: Message) -> JobId | StepId | Conflict | None:
        """What the same request was answered with before."""
        if not isinstance(message, ANSWERED_ONCE):
            return None
        known = self.find(message.request)
        if known is None:
            return None
        job, is_step, step = known.partition(".")
        if isinstance(message, cmd.AddStep) is not bool(is_step):
            return Conflict(f"request {message.request} was made before, for something else")
        return StepId(step) if is_step else JobId(int(job))

    def note(self, message: cmd.Submit | cmd.AddStep, reply: object) -> None:
        of_job = f"{message.job}." if isinstance(message, cmd.AddStep) else ""
        self.fresh[message.request] = f"{of_job}{reply}"

    def note_done(self, message: cmd.Once, reply: Any) -> None:
        """A refusal is no answer that is kept."""
        if not isinstance(reply, SpzError):
            self.fresh[message.request] = DONE + ("" if reply is None else str(reply))

    def remember(self, message: cmd.Remember) -> str:
        """The first text of that name stands."""
        return self.find(message.request) or self.fresh.setdefault(message.request, message.text)


def reply_of(answer: str) -> str | None:
    """The reply that was noted as done."""
    return answer.removeprefix(DONE) or None
