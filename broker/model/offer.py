"""Offers, machines and needs: what can be bought, what was bought, what is asked for."""

from dataclasses import dataclass, field
from enum import StrEnum

from accounting.rates import Price
from accounting.tres import GresCounts
from broker.model.build import Build
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName

RESERVED = "reserved"
"""Feature of what is bought from a reservation, of whatever kind."""
TARGETED = "targeted"
"""Feature of a reservation into which a launch goes only by its id."""
BLOCK = "capacity-block"
"""Feature of what is bought from a capacity block; EC2's name of that market."""
ALL_RESERVATIONS = "ALL"


class Market(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class Offer:
    """One purchasable configuration as quoted; on demand it names every zone that has the type."""

    provider: str
    region: str
    zones: tuple[str, ...]
    """Zone ids (`use1-az4`); a spot offer has exactly one."""
    instance_type: str
    market: Market
    micro_usd_per_hour: int
    cpus: int
    """vCPUs."""
    mem_mib: int
    gres: GresCounts = ()
    arch: str = "x86_64"
    family: str = ""
    features: tuple[str, ...] = ()
    """What `--constraint` can name: family, type, region, zones, arch, market and more."""
    as_of: str = ""
    """Day of the price, ISO 8601."""
    estimate: bool = False
    tmp_mib: int = 0
    """Instance store, all disks together; what `--tmp` asks for."""
    band: str = ""
    """Share of such spot machines that is taken back in a month, such as `5-10%`."""
    reservation: str = ""
    """Id of the capacity reservation or block that it is bought from: paid for already."""
    free: int = 0
    """Machines that are left of the reservation."""
    until: int | None = None
    """When the reservation ends, instant; a block ends its machines then."""
    on_demand_micro_usd: int = 0
    """What an hour of the type costs on demand there, where that is known: of spot offers alone,
    which never cost more."""

    @property
    def dearest(self) -> int:
        """Micro-dollars an hour that it may come to while it runs."""
        return max(self.micro_usd_per_hour, self.on_demand_micro_usd)


class MachineState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    """On its way to its end."""
    TERMINATED = "terminated"
    HALTING = "halting"
    """On its way to being stopped."""
    STOPPED = "stopped"
    """It runs no more; its disks are kept, and billed."""


@dataclass(frozen=True, slots=True)
class Unstarted:
    """A refusal that came late: the machine was taken on, and then could not be started."""

    refusal: Refusal
    width: Width
    message: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that a provider holds for us; instants are whole seconds UTC."""

    id: str
    """The provider's own id."""
    node: NodeName
    launch: int
    """Launch number: with the node's name it identifies this machine for ever."""
    token: str
    state: MachineState
    region: str
    zone: str
    instance_type: str
    market: Market
    micro_usd_per_hour: int
    launched_at: int
    running_at: int | None = None
    """When the provider's billing begins."""
    terminated_at: int | None = None
    stopped_at: int | None = None
    """When it was stopped, as long as it is."""
    ended_by_provider: bool = False
    unstarted: Unstarted | None = None
    """Why it never ran, where its provider told."""
    address: str = ""
    """How a Channel reaches it: a host for SSH, a directory for local machines."""
    inside: str = ""
    """How machines beside it reach it; empty where that is the same or not known."""
    price_of: str = ""
    """Day of the price that it was bought at, ISO 8601."""
    parts: tuple[tuple[str, str], ...] = ()
    """The provider's ids of what is billed beside it, by part: `volume`, `address`."""
    prices: tuple[Price, ...] = ()
    """What its pool cost since it was launched, as the provider told: of spot machines alone."""

    @property
    def identity(self) -> tuple[NodeName, int]:
        """As the node has it."""
        return self.node, self.launch


def pool_of(machine: Machine, provider: str) -> Offer:
    """Where a machine was bought, as far as a refusal or a ceiling can be about it."""
    return Offer(
        provider=provider,
        region=machine.region,
        zones=(machine.zone,),
        instance_type=machine.instance_type,
        market=machine.market,
        micro_usd_per_hour=machine.micro_usd_per_hour,
        cpus=0,
        mem_mib=0,
        family=machine.instance_type.partition(".")[0],
    )


@dataclass(frozen=True, slots=True)
class Alternative:
    """One acceptable place or shape; None and empty mean any (SkyPilot's `any_of`)."""

    regions: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    markets: tuple[Market, ...] = ()
    gpu: tuple[str, int] | None = None
    """GPU type as typed and count per node, when the alternative names its own."""
    max_micro_usd_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What each node of a job must give; the same for all nodes."""

    cpus: int = 1
    mem_mib: int = 0
    nodes: int = 1
    gpu_type: str | None = None
    """As typed; matched ignoring case. None with gpus > 0 means any type."""
    gpus: int = 0
    tmp_mib: int = 0
    cpus_exactly: int | None = None
    constraint: str | None = None
    """Feature expression with `&`, `|` and parentheses, read left to right as Slurm does."""
    alternatives: tuple[Alternative, ...] = ()
    ordered: bool = False
    """Whether alternatives are in order of liking (SkyPilot's `ordered`) instead of by price."""
    run_seconds: int = 3600
    """Expected length of the run, for expected cost."""
    whole_node: bool = False
    data_gib: int = 0
    """Data that has to be where the job runs."""
    data_region: str = ""
    """Where it lies now; "" where that makes no difference."""
    first_region: str | None = None
    """Before all others, whatever they cost."""
    last_regions: tuple[str, ...] = ()
    """Behind all others, the last one last."""
    build: Build | None = None
    """What the machines are made of; None: as the site has it."""


@dataclass(frozen=True, slots=True)
class BuyPolicy:
    """A partition's settings of what may be bought: what "cheapest" leaves out by default."""

    provider: str = "local"
    arch: str = "x86_64"
    burstable: bool = False
    opt_in_regions: bool = False
    gpu_fractions: bool = False
    spot: bool = False
    regions: tuple[str, ...] = ()
    """Empty means all that are not opt-in."""
    instance_types: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """Words in lower case that all of its machines have for constraints."""
    memory_share_percent: int = 95
    """How much of a type's memory can be scheduled."""
    efa_percent: int = 0
    """For several nodes a type with EFA may cost so much more than one without."""
    reservations: tuple[str, ...] = ()
    """Targeted reservations and capacity blocks that may be used, by id, or ALL of them."""
    prefer: str = "cost"
    """`cost` or `time`."""
    boot_seconds: int = 60
    max_micro_usd_per_hour: int | None = None
    root_gib: int = 0
    """Root volume that each machine is billed for."""
    public_address: bool = False
    """Whether each machine has a public address, which is billed."""
    old_days: int = 30
    """Prices that are older are said to be old."""
    spot_price_seconds: int = 3600
    """A spot machine costs for so long what its pool costs when that time begins."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """An offer in its place, with the reason for the place."""

    offer: Offer
    expected_micro_usd: int
    """Expected cost of the whole job on it: nodes x (price + volume + address) x (run + boot, at
    least 60 s, and what spot is expected to lose) + bringing its data there."""
    reason: str
    notes: tuple[str, ...] = field(default=())
    cooling_until: int | None = None
    """Refused lately: better not tried before this instant, unless nothing else is left."""
    old_price: str = ""
    """What is said of a price that is old; "" where it is not."""
    beside_micro_usd: int = 0
    """An hour of what is billed beside one machine."""

    @property
    def dearest(self) -> int:
        """Micro-dollars an hour that one machine may come to, with what is beside it."""
        return self.offer.dearest + self.beside_micro_usd
