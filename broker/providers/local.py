"""Machines that are folders of this host: the embedded default, priced from the catalogue."""

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market, Offer
from broker.providers.durable import write
from broker.providers.refusals import Rule, Script

PURCHASES = "purchases"
MACHINE = "machine.json"
BEHAVIOUR = "behaviour.json"
KEPT_SECONDS = 3600
"""How long a terminated machine is still listed, as in EC2, before its folder is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """How this cloud behaves; `behaviour.json` in its folder changes any of it at run time."""

    boot_seconds: float = 1.0
    max_machines: int | None = 64
    """Machines that exist at a time; None is no limit."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Machines that exist at a time, by instance type."""
    refusals: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Processes:
    """What lives in a machine's folder."""

    end: Callable[[Path], None]
    """Ends every process there for certain, or raises OSError."""
    reopen: Callable[[Path], None]
    """Lets new ones begin."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A machine as it is on disk; `up_at` in seconds UTC, with their fractions."""

    machine: Machine
    up_at: float

    def at(self, now: float) -> Machine:
        """As it is seen now: it comes up by the passing of time alone."""
        if self.machine.state is not MachineState.PENDING or now < self.up_at:
            return self.machine
        return replace(self.machine, state=MachineState.RUNNING, running_at=int(self.up_at))


class LocalProvider:
    """Folders below `root`, one per machine; the only process that may write there."""

    name = "local"

    def __init__(
        self,
        root: Path,
        *,
        catalog: Callable[[], Iterable[Offer]],
        processes: Processes,
        clock: Callable[[], float],
        behaviour: Behaviour,
    ) -> None:
        self._root = root
        self._catalog = catalog
        self._end, self._reopen = processes.end, processes.reopen
        self._clock = clock
        self._usual = behaviour
        self._lock = threading.RLock()
        self._script = Script(behaviour.refusals)
        self._read: tuple[int, Behaviour] = (0, behaviour)
        (root / PURCHASES).mkdir(mode=0o711, parents=True, exist_ok=True)
        root.chmod(0o711)
        self._held = {held.machine.identity: held for held in self._load()}

    # --- Provider

    def offers(self) -> Iterable[Offer]:
        return self._catalog()

    def launch(
        self, offer: Offer, nodes: Sequence[tuple[NodeName, int]], *, token: str
    ) -> list[Machine]:
        """The purchase is on disk before this returns, as a whole or not at all."""
        with self._lock:
            bought = self._purchase(token)
            if bought is None:
                bought = self._buy(offer, nodes, token=token)
            for held in bought:
                if held.machine.identity not in self._held:
                    self._held[held.machine.identity] = held
                    self._save(held)
            now = self._clock()
            return [self._held[held.machine.identity].at(now) for held in bought]

    def machines(self) -> list[Machine]:
        now = self._clock()
        with self._lock:
            return [held.at(now) for held in self._held.values()]

    def terminate(self, machines: Sequence[Machine]) -> None:
        """Returns when no process of theirs is left. Raises OSError if some does not end."""
        for machine in machines:
            held = self._change(machine.identity, state=MachineState.STOPPING)
            if held is None or held.machine.state is MachineState.TERMINATED:
                continue
            self._end(self.folder(machine))
            self._change(
                machine.identity,
                state=MachineState.TERMINATED,
                terminated_at=int(self._clock()),
            )

    def stop(self, machines: Sequence[Machine]) -> None:
        """Returns when no process of theirs is left; the folders stay. Raises OSError."""
        for machine in machines:
            held = self._held.get(machine.identity)
            if held is not None and held.at(self._clock()).state in _RUNS:
                self._change(machine.identity, state=MachineState.HALTING)
                self._halt(machine)

    def _halt(self, machine: Machine) -> None:
        self._end(self.folder(machine))
        now = int(self._clock())
        self._change(machine.identity, state=MachineState.STOPPED, stopped_at=now)

    def start(self, machines: Sequence[Machine]) -> None:
        """Those that were stopped boot again. Raises ProviderError where there is no room."""
        with self._lock:
            for machine in machines:
                held = self._held.get(machine.identity)
                if held is None or held.machine.state is not MachineState.STOPPED:
                    continue
                behaviour, now = self._behaviour(), self._clock()
                self._check_type(machine.instance_type, 1, behaviour)
                self._reopen(self.folder(machine))
                again = replace(
                    held.machine,
                    state=MachineState.PENDING,
                    launched_at=int(now),
                    running_at=None,
                    stopped_at=None,
                )
                self._keep(_Held(again, now + behaviour.boot_seconds))

    # --- beyond

    def folder(self, machine: Machine) -> Path:
        return self._root / f"{machine.node}.{machine.launch}"

    def is_up(self, node: NodeName, launch: int) -> bool:
        """Whether the machine has booted and is not being terminated."""
        with self._lock:
            held = self._held.get((node, launch))
        return held is not None and held.at(self._clock()).state is MachineState.RUNNING

    def sweep(self) -> None:
        """Ends what a terminated or half terminated machine left, forgets those long terminated."""
        now = self._clock()
        for machine in self.machines():
            if machine.state is MachineState.STOPPING:
                self.terminate([machine])
            elif machine.state is MachineState.HALTING:
                self._halt(machine)
            elif machine.terminated_at is not None:
                self._end(self.folder(machine))
        self._forget_long_gone(now)

    # --- buying

    def _buy(
        self, offer: Offer, nodes: Sequence[tuple[NodeName, int]], *, token: str
    ) -> list[_Held]:
        behaviour = self._behaviour()
        self._check_room(offer, len(nodes), behaviour)
        zone = self._script.zone(offer)
        now = self._clock()
        bought = [
            _Held(self._machine(offer, node, token=token, zone=zone), now + behaviour.boot_seconds)
            for node in nodes
        ]
        value = {"machines": [_to_json(held) for held in bought]}
        write(self._purchase_file(token), json.dumps(value))
        return bought

    def _machine(
        self, offer: Offer, node: tuple[NodeName, int], *, token: str, zone: str
    ) -> Machine:
        name, launch = node
        if node in self._held:
            raise ProviderError(
                Refusal.INVALID, Width.NOTHING, f"{name}.{launch} exists already, bought otherwise"
            )
        digest = hashlib.sha256(f"{self._root} {name}.{launch}".encode()).hexdigest()
        return Machine(
            id=f"i-{digest[:17]}",
            node=name,
            launch=launch,
            token=token,
            state=MachineState.PENDING,
            region=offer.region,
            zone=zone,
            instance_type=offer.instance_type,
            market=offer.market,
            micro_usd_per_hour=offer.micro_usd_per_hour,
            price_of=offer.as_of,
            launched_at=int(self._clock()),
            address=str(self._root / f"{name}.{launch}"),
        )

    def _check_room(self, offer: Offer, wanted: int, behaviour: Behaviour) -> None:
        there = [held.machine for held in self._held.values() if held.machine.terminated_at is None]
        most = behaviour.max_machines
        if most is not None and len(there) + wanted > most:
            raise _no_room(f"{len(there)} of {most} machines are there", Width.PROVIDER)
        self._check_type(offer.instance_type, wanted, behaviour)

    def _check_type(self, kind: str, wanted: int, behaviour: Behaviour) -> None:
        """Those that are stopped take no room of their type, as in EC2."""
        machines = (held.machine for held in self._held.values())
        taken = (m for m in machines if m.terminated_at is None and m.stopped_at is None)
        of_type = sum(machine.instance_type == kind for machine in taken)
        most = behaviour.capacity.get(kind)
        if most is not None and of_type + wanted > most:
            raise _no_room(f"{of_type} of {most} {kind} are there", Width.TYPE_IN_REGION)

    def _behaviour(self) -> Behaviour:
        """With what the file says; a rule's count begins anew when the file changes."""
        path = self._root / BEHAVIOUR
        stamp = path.stat().st_mtime_ns if path.exists() else 0
        if stamp != self._read[0]:
            found = _parse(path, self._usual) if stamp else self._usual
            self._read = (stamp, found)
            self._script = Script(found.refusals)
        return self._read[1]

    # --- on disk

    def _purchase_file(self, token: str) -> Path:
        return self._root / PURCHASES / hashlib.sha256(token.encode()).hexdigest()[:32]

    def _purchase(self, token: str) -> list[_Held] | None:
        path = self._purchase_file(token)
        if not path.exists():
            return None
        return [_from_json(value) for value in json.loads(path.read_text())["machines"]]

    def _load(self) -> Iterable[_Held]:
        """Every machine ever bought, as its own folder has it, else as it was bought."""
        for path in sorted((self._root / PURCHASES).iterdir()):
            if path.suffix:
                continue  # the draft of a purchase that was not made
            for value in json.loads(path.read_text())["machines"]:
                bought = _from_json(value)
                own = self.folder(bought.machine) / MACHINE
                yield _from_json(json.loads(own.read_text())) if own.exists() else bought

    def _change(self, identity: tuple[NodeName, int], **changes: object) -> _Held | None:
        with self._lock:
            held = self._held.get(identity)
            if held is None or held.machine.state is MachineState.TERMINATED:
                return held
            now = held.at(self._clock())
            changed = replace(held, machine=replace(now, **changes))  # type: ignore[arg-type]
            self._keep(changed)
            return changed

    def _keep(self, held: _Held) -> None:
        self._save(held)
        self._held[held.machine.identity] = held

    def _save(self, held: _Held) -> None:
        folder = self.folder(held.machine)
        folder.mkdir(mode=0o711, exist_ok=True)
        write(folder / MACHINE, json.dumps(_to_json(held)))

    def _forget_long_gone(self, now: float) -> None:
        """Purchases of which every machine ended long ago, with their folders."""
        groups: dict[str, list[Machine]] = {}
        for machine in self.machines():
            groups.setdefault(machine.token, []).append(machine)
        for token, machines in groups.items():
            ends = [machine.terminated_at for machine in machines]
            if all(end is not None and now - end > KEPT_SECONDS for end in ends):
                self._forget(token, machines)

    def _forget(self, token: str, machines: Iterable[Machine]) -> None:
        self._purchase_file(token).unlink(missing_ok=True)
        for machine in machines:
            with self._lock:
                del self._held[machine.identity]
            shutil.rmtree(self.folder(machine), ignore_errors=True)


_RUNS = frozenset({MachineState.PENDING, MachineState.RUNNING, MachineState.HALTING})
"""Machines that may have processes which are to end before they are stopped."""


def _no_room(reason: str, width: Width) -> ProviderError:
    return ProviderError(Refusal.CAPACITY, width, f"no room on this host: {reason}")


def _to_json(held: _Held) -> dict[str, object]:
    return {**asdict(held.machine), "up_at": held.up_at}


def _from_json(value: dict[str, object]) -> _Held:
    rest = {item.name: value[item.name] for item in fields(Machine) if item.name in value}
    rest |= {"state": MachineState(str(rest["state"])), "market": Market(str(rest["market"]))}
    rest |= {"prices": (), "parts": ()}  # here they never change, and nothing is billed beside it
    return _Held(Machine(**rest), float(str(value["up_at"])))  # type: ignore[arg-type]


def _parse(path: Path, usual: Behaviour) -> Behaviour:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        rules = value.pop("refusals", None)
        if rules is not None:
            value["refusals"] = tuple(_rule(rule) for rule in rules)
        return replace(usual, **value)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        message = f"{path}: {error}"
        raise ProviderError(Refusal.TRANSIENT, Width.PROVIDER, message) from error


def _rule(value: Mapping[str, object]) -> Rule:
    given = dict(value)
    if "refusal" in given:
        given["refusal"] = Refusal(str(given["refusal"]))
    if "width" in given:
        given["width"] = Width(str(given["width"]))
    return Rule(**given)  # type: ignore[arg-type]
