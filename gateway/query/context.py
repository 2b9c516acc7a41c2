"""What a reader brings along: the moment, the time zone, how values are to be written."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace

from accounting.ids import JobId
from accounting.tres import Weights, parse_weights
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.node import Node
from broker.model.site import Site, kept_for_site
from broker.schedule.forecast import Forecast
from broker.schedule.priority import Ranks
from sbatch_shim.grammar.arrays import BITSTR_LEN
from sbatch_shim.grammar.instants import Zone


def utc(_: int) -> int:
    """The zone that is never ahead of UTC."""
    return 0


def nobody(uid: int) -> str:
    """The name of a user about whom nothing is known."""
    return str(uid)


@dataclass(frozen=True, slots=True)
class PartFacts:
    """What columns need to know of a partition."""

    weights: Weights | None
    largest_cpus: int
    """Cpus of its largest declared node; 0 if it has none."""
    largest_mem_mib: int
    largest_gpus: int


@kept_for_site
def part_facts(site: Site) -> Mapping[str, PartFacts]:
    """The facts of every partition, by name."""
    whole = {node.name: node.whole for node in site.nodes}
    return {
        part.name: PartFacts(
            parse_weights(part.billing_weights),
            max((whole[name].cpu for name in part.nodes if name in whole), default=0),
            max((whole[name].mem_mib for name in part.nodes if name in whole), default=0),
            max(
                (dict(whole[name].gres).get("gpu", 0) for name in part.nodes if name in whole),
                default=0,
            ),
        )
        for part in site.partitions
    }


@dataclass(frozen=True, slots=True)
class Context:
    """How the values of records become text for one caller; `now` in whole seconds UTC."""

    now: int
    site: Site
    zone: Zone = utc
    jobs: Mapping[JobId, Job] = field(default_factory=dict)
    """Jobs that others may name (dependencies)."""
    nodes: Mapping[NodeName, Node] = field(default_factory=dict)
    ranks: Ranks | None = None
    """By what waiting jobs are ranked; None: in the order of submission."""
    costs: Mapping[JobId, int] = field(default_factory=dict)
    """Micro-dollars posted to each job."""
    user_name: Callable[[int], str] = nobody
    time_format: str = ""
    """SLURM_TIME_FORMAT: empty or `standard`, `relative`, or a pattern of strftime."""
    array_width: int = BITSTR_LEN
    """Bytes of a list of array indexes that are shown; 0 for all (SLURM_BITSTR_LEN)."""
    unit: str = ""
    """The unit that sizes are forced to (sacct --units); empty takes the largest that is exact."""
    noconvert: bool = False
    expand_patterns: bool = False
    """Whether names of output files are shown with their patterns filled in."""
    tres_ids: Mapping[str, int] = field(default_factory=dict)
    """Accounting's numbers of TRES."""
    host: str = ""
    """This host's name, where it was asked."""
    forecasts: Mapping[JobId, Forecast] = field(default_factory=dict)
    """When jobs that wait for room may start, where that was asked."""
    load: float | None = None
    """This host's load of the last minute, where it was asked."""
    free_mib: int | None = None
    """MiB that nothing uses on this host, where it was asked."""
    swept: Container[NodeName] = ()
    """Nodes that should post their reports and do not, where it was asked."""
    parts: Mapping[str, PartFacts] = field(init=False)
    """Facts of the site's partitions, by name."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", part_facts(self.site))

    def with_names(self, user_name: Callable[[int], str]) -> "Context":
        """The same, knowing users by name."""
        return replace(self, user_name=user_name)
