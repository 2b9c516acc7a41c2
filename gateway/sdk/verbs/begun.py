"""What a verb has begun: followed here, or with `--async` by who asks for its request."""

from dataclasses import dataclass, field
from typing import Any

from gateway.sdk.client import Json
from gateway.sdk.requested import begun
from gateway.sdk.verbs.counter import Counter


@dataclass(slots=True)
class Begun:
    """Lines for people, and what each thing is to become."""

    verb: str
    counter: Counter
    apart: bool
    """Whether `--async` is given: then standard output has the request's id alone."""
    goals: list[Json] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        if self.apart:
            self._lines.append(text)
        else:
            print(text)

    def wants(self, to: str, **of: Any) -> None:
        """A thing of a job, run or volume is to become so."""
        self.goals.append({"to": to, **of})

    def told(self, *, again: bool = False) -> int:
        """Hands over what is begun where nobody waits for it here; the exit status. Raises Told."""
        return self.seen_to(again=again) if self.apart else 0

    def seen_to(self, *, again: bool = False) -> int:
        """Hands it over in any case: the service still has to do something for it. Raises Told."""
        service = self.counter.service
        made = begun(service, self.verb, self.goals, said=self._lines, again=again)
        return self.counter.requested(made) if self.apart else 0
