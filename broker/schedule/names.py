"""Names of machines that can be bought, in one pass: for whom there are none; which are let go."""

from collections.abc import Iterator
from itertools import islice

from broker.model.ids import NodeName
from broker.model.offer import Need
from broker.model.site import Elastic, Partition
from broker.schedule.pool import Pool
from broker.schedule.view import View, Wait


class Names:
    """What jobs want of names, and of the machines that bear them."""

    def __init__(self, view: View, pool: Pool) -> None:
        self._view = view
        self._pool = pool
        self._asked: dict[tuple[str, str], int] = {}
        """Cpus of bought machines that lots ask for, by prefix and user."""
        self._room_for: dict[int, int] = {}
        """Cpus of bought machines that might serve, by signature."""
        self._short: dict[str, int] = {}
        """How many names of a prefix are missing."""

    def most(self, elastic: Elastic) -> int:
        """Machines of it that there may be."""
        ceiling = self._view.site.max_bought
        return elastic.max_nodes if ceiling is None else min(elastic.max_nodes, ceiling)

    def may_find_room(self, need: Need, user: str, *, signature: int, elastic: Elastic) -> bool:
        """Whether there are names for more machines, or cpus that nobody before it asked for.

        Machines serve one user, or "" where they serve all.
        """
        if self._pool.unused(elastic):
            return True
        asked = self._asked.get((elastic.prefix, user), 0)
        self._asked[elastic.prefix, user] = asked + need.cpus
        if signature not in self._room_for:
            self._room_for[signature] = self._pool.cpus_for(user, need)
        return asked < self._room_for[signature]

    def in_use(self, elastic: Elastic, partition: Partition, *, missing: int = 1) -> Wait:
        """Why somebody waits for whom so many are missing, which is noted."""
        self._short[elastic.prefix] = self._short.get(elastic.prefix, 0) + missing
        most = self.most(elastic)
        whose = partition.name if most == elastic.max_nodes else "the site's ceiling"
        return Wait("Resources", f"all {most} nodes of {whose} are in use")

    def let_go(self) -> Iterator[NodeName]:
        """Idle machines whose names are wanted: who waits could not use them, or would have."""
        for prefix, wanted in self._short.items():
            idle = (one for one in self._pool.rooms.values() if self._pool.is_idle(one, prefix))
            for one in islice(idle, wanted):
                yield one.name
