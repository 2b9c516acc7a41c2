"""A whole cloud in memory, for simulated time: what it does is scripted, and by the clock."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from accounting.rates import Price
from broker.model.errors import ProviderError, Refusal, Unknown, Width
from broker.model.ids import NodeName
from broker.model.node import Node
from broker.model.offer import Machine, MachineState, Market, Offer
from broker.ports import Clock, Done, Place
from broker.providers.fake_agent import FakeAgent, Fate, Fates
from broker.providers.refusals import Rule, Script

Identity = tuple[NodeName, int]
PoolPrices = Callable[[Machine, int], tuple[Price, ...]]
"""What the pool of a spot machine was told to cost up to an instant."""
LISTED_SECONDS = 3600
"""So long a terminated machine is still listed, about as EC2 does."""


@dataclass(slots=True)
class _Held:
    """A machine as last looked at, when it comes up, and when it ends if that is known."""

    machine: Machine
    up_at: int
    ends_at: int | None = None
    taken_back: bool = False
    """Whether the end is the provider's doing."""
    asked_at: int | None = None
    agent: FakeAgent | None = None
    stops_at: int | None = None
    """When it is stopped, once that was asked for."""
    disk: FakeAgent | None = None
    """The agent of before it was stopped: its journal is kept."""
    told: int = 0
    """Length of the journal when its news was last asked for."""

    def at(self, now: int) -> Machine:
        if self.machine.state is MachineState.TERMINATED:
            return self.machine
        over = self.ends_at is not None and now >= self.ends_at
        up = self.up_at <= (min(now, self.ends_at) if self.ends_at is not None else now)
        state, running_at = self._state(now, over=over, up=up), self.up_at if up else None
        stopped_at = self.stops_at if state is MachineState.STOPPED else None
        if (state, running_at) != (self.machine.state, self.machine.running_at):
            self.machine = replace(
                self.machine,
                state=state,
                running_at=running_at,
                terminated_at=self.ends_at if over else None,
                stopped_at=stopped_at,
                ended_by_provider=over and self.taken_back,
            )
        return self.machine

    def _state(self, now: int, *, over: bool, up: bool) -> MachineState:
        if over:
            return MachineState.TERMINATED
        if self.asked_at is not None and now >= self.asked_at:
            return MachineState.STOPPING
        if self.stops_at is not None:
            return MachineState.STOPPED if now >= self.stops_at else MachineState.HALTING
        return MachineState.RUNNING if up else MachineState.PENDING


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Seconds that things take."""

    boot: int = 60
    stop: int = 0
    """Between the order to terminate and the certain end."""


_RUNS = frozenset({MachineState.PENDING, MachineState.RUNNING})


class FakeCloud:
    """A provider and all that runs on its machines."""

    def __init__(
        self,
        clock: Clock,
        offers: Iterable[Offer],
        *,
        fates: Fates = lambda _key, _step: Fate(60),
        delays: Delays = Delays(),
        name: str = "fake",
    ) -> None:
        self.name = name
        self.delays = delays
        self.capacity: dict[str, int] = {}
        """Machines that exist at a time, by instance type."""
        self.pool_prices: PoolPrices | None = None
        """None: a machine costs what it was bought at."""
        self.lost_replies = 0
        """So many of the next launches buy, and then fail as if the network had."""
        self._clock = clock
        self._offers = list(offers)
        self._fates = fates
        self._script = Script()
        self._held: dict[Identity, _Held] = {}
        """Machines that are listed."""
        self._next_purge = clock.now() + LISTED_SECONDS
        self._purchases: dict[str, list[Identity]] = {}

    # --- script

    def refuse(self, rule: Rule) -> None:
        self._script.add(rule)

    def quote(self, offers: Iterable[Offer]) -> None:
        """From now on these are the offers; machines keep the price they were bought at."""
        self._offers = list(offers)

    def interrupt(self, node: NodeName, launch: int, *, at: int) -> None:
        """The provider takes the machine back at that instant; nobody is warned."""
        held = self._held[node, launch]
        if held.ends_at is None or self._clock.now() <= at < held.ends_at:
            held.ends_at, held.taken_back = at, True

    # --- Provider

    def offers(self) -> Iterable[Offer]:
        return list(self._offers)

    def launch(self, offer: Offer, nodes: Sequence[Identity], *, token: str) -> list[Machine]:
        if token not in self._purchases:
            self._buy(offer, nodes, token=token)
            if self.lost_replies:
                self.lost_replies -= 1
                raise ConnectionResetError("the reply was lost")
        now = self._clock.now()
        bought = [self._held[i].at(now) for i in self._purchases[token] if i in self._held]
        if len(bought) < len(nodes):
            message = f"what was bought as {token} ended long ago"
            raise ProviderError(Refusal.INVALID, Width.NOTHING, message)
        return bought

    def machines(self) -> list[Machine]:
        now = self._clock.now()
        self._purge(now)
        return [self._priced(held.at(now), now) for held in self._held.values()]

    def _priced(self, machine: Machine, now: int) -> Machine:
        if self.pool_prices is None or machine.market is not Market.SPOT:
            return machine
        return replace(machine, prices=self.pool_prices(machine, now))

    def _purge(self, now: int) -> None:
        """Forgets what ended long ago."""
        if now < self._next_purge:
            return
        self._next_purge = now + LISTED_SECONDS // 4
        self._held = {
            identity: held
            for identity, held in self._held.items()
            if held.ends_at is None or held.ends_at + LISTED_SECONDS > now
        }

    def terminate(self, machines: Sequence[Machine]) -> None:
        now = self._clock.now()
        for machine in machines:
            held = self._held.get(machine.identity)
            if held is None or held.asked_at is not None:
                continue
            held.asked_at = now
            if held.ends_at is None or held.ends_at > now + self.delays.stop:
                held.ends_at, held.taken_back = now + self.delays.stop, False

    def stop(self, machines: Sequence[Machine]) -> None:
        now = self._clock.now()
        for machine in machines:
            held = self._held.get(machine.identity)
            if held is not None and held.at(now).state in _RUNS:
                held.stops_at, held.disk, held.agent = now + self.delays.stop, held.agent, None

    def start(self, machines: Sequence[Machine]) -> None:
        now = self._clock.now()
        for machine in machines:
            held = self._held.get(machine.identity)
            if held is not None and held.at(now).state is MachineState.STOPPED:
                self._check_room(machine.instance_type, 1)
                held.stops_at, held.up_at = None, now + self.delays.boot
                held.machine = replace(held.machine, launched_at=now)

    def _buy(self, offer: Offer, nodes: Sequence[Identity], *, token: str) -> None:
        self._check_room(offer.instance_type, len(nodes))
        zone = self._script.zone(offer)
        now = self._clock.now()
        for node, launch in nodes:
            machine = Machine(
                id=f"i-{node}.{launch}",
                node=node,
                launch=launch,
                token=token,
                state=MachineState.PENDING,
                region=offer.region,
                zone=zone,
                instance_type=offer.instance_type,
                market=offer.market,
                micro_usd_per_hour=offer.micro_usd_per_hour,
                price_of=offer.as_of,
                launched_at=now,
                address=f"/fake/{node}.{launch}",
            )
            self._held[node, launch] = _Held(machine, now + self.delays.boot)
        self._purchases[token] = list(nodes)

    def _check_room(self, kind: str, wanted: int) -> None:
        taken = (m for m in self.machines() if m.terminated_at is None and m.stopped_at is None)
        there = sum(m.instance_type == kind for m in taken)
        most = self.capacity.get(kind)
        if most is not None and there + wanted > most:
            message = f"{there} of {most} {kind} are there"
            raise ProviderError(Refusal.CAPACITY, Width.TYPE_IN_REGION, message)

    # --- what runs on the machines

    def place(self, node: Node) -> Place:
        """The way to a node's agent, as `Reach` promises it."""
        if node.identity not in self._held:
            raise Unknown(f"no machine of {node.label} is known")
        return Place(FakeChannel(self, node.identity), f"/fake/{node.label}")

    def agent_of(self, identity: Identity) -> FakeAgent | None:
        """Brought to the present. Raises OSError while the machine cannot be reached."""
        now = self._clock.now()
        held = self._held[identity]
        if held.at(now).state is not MachineState.RUNNING:
            raise OSError(f"no route to {identity[0]}.{identity[1]}")
        if held.agent is not None:
            held.agent.advance(now)
        return held.agent

    def start_agent(self, identity: Identity) -> None:
        if self.agent_of(identity) is None:
            held = self._held[identity]
            held.agent = held.disk or FakeAgent(self._fates)

    def ask(self, identity: Identity, request: bytes) -> bytes:
        agent = self.agent_of(identity)
        if agent is None:
            raise ConnectionRefusedError(f"no agent on {identity[0]}.{identity[1]}")
        return agent.ask(request, self._clock.now())

    def agents(self) -> Iterator[tuple[Identity, FakeAgent]]:
        """Those that live now, brought to the present."""
        for identity, held in self._running():
            assert held.agent is not None
            held.agent.advance(self._clock.now())
            yield identity, held.agent

    def news(self) -> set[NodeName]:
        """Nodes whose journals have grown since the last call: whom a real agent would wake for."""
        grown = set()
        for (node, _launch), held in self._running():
            assert held.agent is not None
            held.agent.advance(self._clock.now())
            if len(held.agent.journal) > held.told:
                held.told = len(held.agent.journal)
                grown.add(node)
        return grown

    def next_event(self) -> int | None:
        """The next instant at which something here changes by itself."""
        now = self._clock.now()
        return min((at for at in self._coming() if at > now), default=None)

    def _running(self) -> Iterator[tuple[Identity, _Held]]:
        now = self._clock.now()
        for identity, held in self._held.items():
            alive = held.ends_at is None or now < held.ends_at
            if held.agent is not None and held.asked_at is None and alive:
                yield identity, held

    def _coming(self) -> Iterator[int]:
        for held in self._held.values():
            if held.machine.state is MachineState.TERMINATED:
                continue
            yield held.up_at
            if held.stops_at is not None:
                yield held.stops_at
            if held.ends_at is not None:
                yield held.ends_at
        for _identity, held in self._running():
            event = held.agent.next_event() if held.agent else None
            if event is not None:
                yield event


class FakeChannel:
    """The way to one machine of a fake cloud."""

    def __init__(self, cloud: FakeCloud, identity: Identity) -> None:
        self._cloud = cloud
        self._identity = identity

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        """Whatever is run is the start of the agent."""
        self._cloud.start_agent(self._identity)
        return Done(0, b"ready\n", b"")

    def put(self, data: bytes, path: str, mode: int) -> None:
        self._cloud.agent_of(self._identity)

    def read(self, path: str, offset: int) -> bytes:
        agent = self._cloud.agent_of(self._identity)
        if agent is None or not path.endswith("/journal"):
            return b""
        return bytes(agent.journal[offset:])

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        return self._cloud.ask(self._identity, request)
