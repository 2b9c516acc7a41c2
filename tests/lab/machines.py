"""The machines of the box: their states in time, what they cost, when they can be seen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

USER = "Client.UserInitiatedShutdown"
ITSELF = "Client.InstanceInitiatedShutdown"
SPOT_LOSS = "Server.SpotInstanceTermination"
REASONS: Mapping[str, str] = {
    USER: "User initiated shutdown",
    ITSELF: "Instance initiated shutdown",
    SPOT_LOSS: "Spot instance termination",
    "Server.InsufficientInstanceCapacity": "There was insufficient capacity available",
    "Server.InternalError": "An internal error occurred during instance launch",
    "Client.InternalError": "A client error caused the instance to terminate on launch",
}
CODES = {
    **{"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48},
    **{"stopping": 64, "stopped": 80},
}
FINAL = {"shutting-down": "terminated", "stopping": "stopped"}
NOTICE_SECONDS = 120


class Hosts(Protocol):
    """Where machines run; `tests.lab.host`, or nothing at all in tests of the states alone."""

    def address(self, number: int) -> str: ...
    def start(self, number: int, *, id: str, user_data: bytes) -> None: ...
    def halted(self) -> list[int]: ...
    def cut(self, number: int) -> None: ...
    def alive(self, number: int) -> bool: ...
    def remove(self, number: int) -> None: ...


class NoHosts:
    """Machines of which nothing runs."""

    def address(self, number: int) -> str:
        return f"127.63.{number // 250}.{number % 250 + 1}"

    def start(self, number: int, *, id: str, user_data: bytes) -> None:
        """There is nothing to start."""

    def halted(self) -> list[int]:
        return []

    def cut(self, number: int) -> None:
        """There is nothing to end."""

    def alive(self, number: int) -> bool:
        return False

    def remove(self, number: int) -> None:
        """There is nothing to remove."""


@dataclass(slots=True)
class Delays:
    """Seconds as they are on EC2; `speed` divides all but `listed` and `price`."""

    boot: float = 17.0
    ssh: float = 3.0
    """From running to an sshd that answers."""
    stop: float = 30.0
    """From shutting-down to terminated, or stopping to stopped; the processes end half way."""
    visible: float = 1.0
    """Until a new machine is found by those who ask for it."""
    listed: float = 3600.0
    """So long a terminated machine is still listed."""
    price: float = 3600.0
    """So long a spot machine costs what its pool costs when that time begins."""
    speed: float = 1.0

    def of(self, name: str) -> float:
        seconds = float(getattr(self, name))
        return seconds if name in {"listed", "price"} else seconds / self.speed


@dataclass(slots=True, kw_only=True)
class Machine:
    """`launched_at` to `gone_at` are instants with fractions; those billed are whole seconds."""

    id: str
    number: int
    region: str
    zone: str
    """The zone's id."""
    instance_type: str
    market: str
    micro_usd_per_hour: int
    repriced: list[tuple[float, int]] = field(default_factory=list)
    """What its pool cost later, from when on."""
    address: str
    launched_at: float
    boots_at: float
    visible_at: float
    user_data: bytes = b""
    index: int = 0
    """Among those of its launch."""
    beside: tuple[int, ...] = ()
    """Micro-dollars an hour of its volumes and addresses."""
    tags: dict[str, str] = field(default_factory=dict)
    reservation: str = ""
    """Of which it came: paid for already."""
    ends_itself: bool = True
    """Whether `shutdown` terminates it; else it would stop, and still cost its volume."""
    state: str = "pending"
    ssh_at: float | None = None
    running_at: int | None = None
    notice_at: float | None = None
    taken_at: float | None = None
    """When a spot machine is taken back."""
    down_at: float | None = None
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Times that it ran before it was stopped."""
    stopped_at: int | None = None
    gone_at: float | None = None
    reason: str = ""
    show: Callable[["Machine"], None] = lambda _machine: None
    """Told of each new state."""

    @property
    def taken_back(self) -> bool:
        return self.reason == SPOT_LOSS

    @property
    def ended_at(self) -> int | None:
        """When its end began, for good."""
        over = self.state in {"shutting-down", "terminated"}
        return int(self.down_at) if over and self.down_at is not None else None

    @property
    def lives(self) -> bool:
        """Whether it takes up room."""
        return self.state in {"pending", "running"}

    def transition_reason(self) -> str:
        """As DescribeInstances words it, and when; EC2 leaves that out of what it took back."""
        at = f" ({moment(self.down_at)} GMT)" if self.down_at is not None else ""
        if self.reason == USER and at:
            return f"User initiated{at}"
        if self.reason.startswith("Server."):
            return f"{self.reason}: {REASONS.get(self.reason, '')}{at}"
        return ""


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(slots=True)
class Machines:
    """All there are and were; `advance` brings them to the present."""

    hosts: Hosts
    delays: Delays
    made: dict[str, Machine] = field(default_factory=dict)
    past: list[Machine] = field(default_factory=list)
    """No longer listed, still on the bill."""
    _next: int = 0

    def number(self) -> int:
        self._next += 1
        return self._next

    def add(self, machine: Machine) -> None:
        self.made[machine.id] = machine

    def living(self) -> list[Machine]:
        return [machine for machine in self.made.values() if machine.lives]

    def hidden(self, now: float) -> set[str]:
        """Ids that are not found yet."""
        return {m.id for m in self.made.values() if now < m.visible_at}

    def billed(self) -> Iterator[Machine]:
        yield from self.past
        yield from self.made.values()

    def advance(self, now: float) -> list[Machine]:
        """Returns those that are listed no more."""
        halted = set(self.hosts.halted())
        for machine in self.made.values():
            if machine.number in halted and machine.lives:
                self.end(machine, ITSELF, now)
            self._advance(machine, now)
        gone = [m for m in self.made.values() if self._forgotten(m, now)]
        for machine in gone:
            del self.made[machine.id]
            self.past.append(machine)
            self.hosts.remove(machine.number)
        return gone

    def _advance(self, machine: Machine, now: float) -> None:
        if machine.state == "pending" and now >= machine.boots_at:
            machine.running_at = int(machine.boots_at)
            machine.ssh_at = machine.boots_at + self.delays.of("ssh")
            self._enter(machine, "running")
        if machine.state == "running" and machine.ssh_at is not None and now >= machine.ssh_at:
            machine.ssh_at = None
            self.hosts.start(machine.number, id=machine.id, user_data=machine.user_data)
        if machine.lives and machine.taken_at is not None and now >= machine.taken_at:
            self.end(machine, SPOT_LOSS, machine.taken_at)
        if machine.state in FINAL and machine.down_at is not None:
            self._go_down(machine, now, machine.down_at)

    def _go_down(self, machine: Machine, now: float, since: float) -> None:
        stop = self.delays.of("stop")
        if now >= since + stop / 2:
            self.hosts.cut(machine.number)
        if now >= since + stop and not self.hosts.alive(machine.number):
            machine.gone_at = now if machine.state == "shutting-down" else None
            self._enter(machine, FINAL[machine.state])

    def end(self, machine: Machine, reason: str, now: float) -> None:
        """From here on it is not billed. An end that has begun stays what it is."""
        if machine.ended_at is not None:
            return
        machine.reason, machine.down_at = reason, now
        machine.stopped_at = int(now) if machine.running_at is not None else None
        self._enter(machine, "shutting-down")
        self._go_down(machine, now, now)

    def halt(self, machine: Machine, now: float) -> None:
        """Its processes end, its folder stays."""
        if not machine.lives:
            return
        if machine.running_at is not None:
            machine.spans.append((machine.running_at, int(now)))
        machine.reason, machine.down_at, machine.running_at = USER, now, None
        self._enter(machine, "stopping")
        self._go_down(machine, now, now)

    def wake(self, machine: Machine, now: float) -> None:
        """Boots once more."""
        machine.reason, machine.down_at, machine.launched_at = "", None, now
        machine.boots_at = now + self.delays.of("boot")
        self._enter(machine, "pending")

    def reprice(self, pool: tuple[str, str, str], now: float, price: int) -> None:
        """Of what is there, spot machines of that type, market and zone cost otherwise from now."""
        for machine in self.made.values():
            if (machine.instance_type, machine.market, machine.zone) == pool:
                machine.repriced.append((now, price))

    def interrupt(self, machine: Machine, now: float, *, notice: float = NOTICE_SECONDS) -> None:
        """Takes a spot machine back after so many seconds' notice.

        Not in the second of its launch, which in EC2 only those have that never ran: no boot there
        is as quick as ours.
        """
        if machine.lives and machine.taken_at is None:
            machine.notice_at = now
            machine.taken_at = max(now + notice / self.delays.speed, int(machine.launched_at) + 1)

    def _enter(self, machine: Machine, state: str) -> None:
        machine.state = state
        machine.show(machine)

    def _forgotten(self, machine: Machine, now: float) -> bool:
        return machine.gone_at is not None and now >= machine.gone_at + self.delays.of("listed")


def by_luck(machines: Sequence[Machine], share: float, luck: Callable[[], float]) -> list[Machine]:
    """About that share of them."""
    return [machine for machine in machines if luck() < share]
