"""The commands as the present configuration has them, behind names that stay."""

from collections.abc import Callable, Mapping
from typing import cast

from gateway.api.desk import Desk
from gateway.api.programs.table import programs
from gateway.api.stream import Interactive
from gateway.api.text import Program
from gateway.api.wire import Answer, Call
from gateway.config.settings import Config

Known = Mapping[str, Program | Interactive]


def alone(known: Known) -> Known:
    """Where the site has no Slurm of its own."""
    return known


class Commands:
    """`around` puts the site's own commands behind ours."""

    def __init__(self, config: Config, around: Callable[[Known], Known] = alone) -> None:
        self._around = around
        self._now: dict[str, Program | Interactive] = {}
        self._own: dict[str, Program | Interactive] = {}
        self.take(config)

    def take(self, config: Config) -> None:
        """As this configuration has them, from now on."""
        known = programs(config)
        self._own.update(known)
        self._now.update(self._around(known))

    def standing(self) -> dict[str, Program | Interactive]:
        """Programs that ask the present ones; what is interactive depends on no configuration."""
        return {
            name: one if isinstance(one, Interactive) else _standing(self._now, name)
            for name, one in self._now.items()
        }

    def ours(self) -> dict[str, Program]:
        """The same of what is ours alone, and not interactive."""
        names = (name for name, one in self._own.items() if not isinstance(one, Interactive))
        return {name: _standing(self._own, name) for name in names}


def _standing(known: Known, name: str) -> Program:
    async def run(desk: Desk, call: Call) -> Answer:
        return await cast("Program", known[name])(desk, call)

    return run
