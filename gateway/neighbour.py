"""A site's own Slurm joined: its commands behind ours, and what is read of it."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from broker.model.errors import SpzError
from broker.model.site import Site
from gateway.api.programs.beside import Beside
from gateway.api.stream import Interactive
from gateway.api.text import Program
from gateway.config.service import PassthroughSettings
from gateway.passthrough import pyslurm
from gateway.passthrough.cli import CommandFacts, SiteCommands, site_commands
from gateway.passthrough.facts import SiteFacts, clashes
from gateway.passthrough.learnt import Learnt, first_answer


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The site's commands, and what is known of it."""

    commands: SiteCommands
    learnt: Learnt

    def around(
        self, programs: Mapping[str, Program | Interactive]
    ) -> Mapping[str, Program | Interactive]:
        """Our programs, each asked only for what is ours."""
        return Beside(self.commands, self.learnt).around(programs)

    def attended(self, site: Callable[[], Site]) -> Callable[[], None]:
        """What has to be called now and then; `site` is ours."""
        return lambda: self.learnt.when_due(site())


def neighbour(settings: PassthroughSettings | None, log: Any) -> Neighbour | None:
    """None where the site has no Slurm of its own. Raises Refused."""
    if settings is None:
        return None
    commands = site_commands(settings.bin)
    learnt = Learnt(
        _readers(commands),
        log,
        clock=time.monotonic,
        every=settings.refresh_seconds,
        listed=frozenset(settings.partitions),
    )
    return Neighbour(commands, learnt)


def _readers(commands: SiteCommands) -> list[SiteFacts]:
    """The first that answers is believed."""
    by_library: list[SiteFacts] = [pyslurm.PyslurmFacts()] if pyslurm.importable() else []
    return [*by_library, CommandFacts(commands)]


def site_lines(settings: PassthroughSettings, site: Site) -> list[tuple[bool, str, str]]:
    """What `spz check` says of the site's Slurm: whether it is right, what, and the way out."""
    try:
        facts, by = first_answer(_readers(site_commands(settings.bin)))
    except SpzError as error:
        return [(False, error.message, error.hint or "it is read again while the service runs")]
    names = ", ".join(
        f"{name} (default)" if name == facts.default else name for name in facts.partitions
    )
    text = f"{facts.cluster}, Slurm {facts.version}, by {by}; partitions {names or 'none'}"
    found = clashes(facts, site, frozenset(settings.partitions))
    return [(True, text, ""), *((False, clash.text, clash.hint) for clash in found)]
