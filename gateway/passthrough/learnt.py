"""What is known of the site's own Slurm: read now and then, and kept while it does not answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.model.errors import Busy
from broker.model.site import Site
from gateway.passthrough.facts import Clash, Facts, SiteFacts, clashes


def first_answer(readers: Sequence[SiteFacts]) -> tuple[Facts, str]:
    """What the first says that answers, and its name. Raises Busy with all that was said."""
    wrong = []
    for reader in readers:
        try:
            return reader.read(), reader.name
        except Busy as error:
            wrong.append(error.message)
    raise Busy("; ".join(wrong))


@dataclass(slots=True)
class Learnt:
    """The latest facts; the log tells of what changes, of failures, and of clashes."""

    readers: Sequence[SiteFacts]
    log: Any
    clock: Callable[[], float]
    every: float
    """Seconds between two readings."""
    listed: frozenset[str] = frozenset()
    """The site's partitions as the configuration names them."""
    facts: Facts | None = None
    _wrong: str = ""
    _told: list[Clash] = field(default_factory=list)
    _next: float = 0.0

    @property
    def partitions(self) -> frozenset[str]:
        """The site's; empty while they are not known."""
        return self.listed or frozenset(self.facts.partitions if self.facts else ())

    def expire(self) -> None:
        """It is time to read again: ours may meet the site's elsewhere now."""
        self._next = 0.0

    def when_due(self, site: Site) -> None:
        """Reads again where it is time; `site` is ours."""
        if self.clock() >= self._next:
            self.refresh(site)

    def refresh(self, site: Site) -> None:
        """Reads again; a failure leaves what was known."""
        self._next = self.clock() + self.every
        try:
            facts, by = first_answer(self.readers)
        except Busy as error:
            if error.message != self._wrong:
                self.log.warning("site.unread", error=error.message, known=self.facts is not None)
            self._wrong = error.message
            return
        if self.facts is None or self.facts.partitions != facts.partitions or self._wrong:
            names = ",".join(facts.partitions)
            self.log.info("site.read", by=by, cluster=facts.cluster, partitions=names)
        self.facts, self._wrong = facts, ""
        self._warn(clashes(facts, site, self.listed))

    def _warn(self, found: list[Clash]) -> None:
        for clash in found:
            if clash not in self._told:
                self.log.warning("site.clash", what=clash.text, hint=clash.hint)
        self._told = found
