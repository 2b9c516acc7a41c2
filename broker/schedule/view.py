"""What planning looks at and what it decides: the values of `plan(view) -> Plan`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from accounting.ids import JobId
from broker.model.ids import NodeName
from broker.model.job import Job, Share
from broker.model.offer import Need, Ranked
from broker.model.reservation import Reservations
from broker.model.site import Elastic, Site
from broker.schedule.demand import Demand
from broker.schedule.eligible import Asks
from broker.schedule.fit import Room
from broker.schedule.limits import Keeper

FOREVER = 10**12
"""An instant after everything: the end of what has no time limit."""
TARGETS = ("cost", "time")
"""What `--prefer` can name instead of features: which machines are bought first."""
MOST_RUNGS = 50
"""A walk so long has met every kind of refusal."""


class Quote:
    """Ranked offers for a need, found as they are looked at; or why there are none."""

    def __init__(
        self,
        ranking: Iterable[Ranked],
        explain: Callable[[], str] = str,
        *,
        reason: str = "Resources",
    ) -> None:
        self._ranking = iter(ranking)
        self._explain = explain
        self.reason = reason
        """Why those wait for whom there is none, in Slurm's word."""
        self._found: list[Ranked] = []

    @property
    def first(self) -> Ranked | None:
        """The best."""
        return next(iter(self._until(1)), None)

    @property
    def rungs(self) -> tuple[Ranked, ...]:
        """The first MOST_RUNGS."""
        return tuple(self._until(MOST_RUNGS))

    @property
    def explain(self) -> str:
        """Why there is none."""
        return "" if self.first else self._explain()

    def _until(self, most: int) -> list[Ranked]:
        self._found += islice(self._ranking, max(0, most - len(self._found)))
        return self._found


@dataclass(frozen=True, slots=True)
class View:
    """All that planning looks at; instants in whole seconds UTC."""

    now: int
    site: Site
    candidates: Sequence[Job]
    """Jobs that could start, the most important first."""
    rooms: Sequence[Room]
    """Nodes that take work and have some room, in the order in which they are filled."""
    ends: Callable[[NodeName], Sequence[tuple[int, Share]]]
    """When what is held of a node will be free at the latest."""
    taken_names: frozenset[NodeName]
    """Elastic names in use."""
    running_elements: Callable[[JobId], int]
    task_waits: Callable[[Job, int], str | None]
    """Why an array's element waits for its own dependencies, None if it does not."""
    quote: Callable[[Need, Elastic], Quote]
    gang: Callable[[Job], Sequence[Job]]
    """A heterogeneous job's components that wait, the leader first."""
    limits: Keeper
    """Limits of QOS and associations; the pass notes there what it starts."""
    asks: Asks
    volume_waits: Callable[[Job], str | None]
    """Why a job cannot have its volumes now, None if it can."""
    reservations: Reservations = field(default_factory=dict)
    full: Sequence[Room] = ()
    """Bought nodes that take work and have no cpu free now."""
    most_searches: int = 1000
    """A pass searches the nodes for room no more often; what fits nowhere is searched for once."""


@dataclass(frozen=True, slots=True)
class Start:
    """A job, or one element of an array, gets room on nodes that exist."""

    job: JobId
    task: int | None
    partition: str
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Rider:
    """A job, or one element of an array, for which a machine is bought."""

    job: JobId
    task: int | None
    ask: Demand


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes of these names are to be bought from the first rung that works: they are alike."""

    names: tuple[NodeName, ...]
    rungs: tuple[Ranked, ...]


@dataclass(frozen=True, slots=True)
class Buy:
    """What is bought at once: one rider has all of the nodes, or several share the only one.

    Of several batches each is asked for once those before it are had. Every rung has room for
    all riders.
    """

    partition: str
    batches: tuple[Batch, ...]
    riders: tuple[Rider, ...]

    @property
    def names(self) -> tuple[NodeName, ...]:
        return tuple(name for batch in self.batches for name in batch.names)


@dataclass(frozen=True, slots=True)
class Wait:
    reason: str
    detail: str = ""
    own: bool = False
    """Whether it is about whose job it is: others that ask for the same need not wait."""


FOR_ROOM = ("Resources", "Priority")
"""Why those wait whom a new job must not overtake."""
NOT_FREE = "Licenses"
"""Slurm's word for a thing of which there are only so many: a volume is with one job at a time."""
FIRST = Wait("Resources")
BEHIND = Wait("Priority")
GATED = {reason: Wait(reason) for reason in ("Dependency", "BeginTime")}
"""Values shared by the many that wait for the same reason."""


@dataclass(frozen=True, slots=True)
class Plan:
    start: tuple[Start, ...] = ()
    buy: tuple[Buy, ...] = ()
    wait: Mapping[JobId, Wait] = field(default_factory=dict)
    blocked: frozenset[str] = frozenset()
    """Partitions in which somebody waits who could start if there were room."""
    next_begin: int = FOREVER
    """When the first of those may start that wait for their begin time."""
    let_go: tuple[NodeName, ...] = ()
    """Idle machines that serve nobody who waits, and whose names are wanted."""
