"""What must hold after every step of the simulation (DESIGN section 4), told with what broke it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from accounting.ids import JobId
from accounting.tres import Tres, gres_counts
from broker.model import events as ev
from broker.model import nodeevents as nev
from broker.model.boots import BootsEvent, FailedBoots
from broker.model.facts import after
from broker.model.ids import NodeName
from broker.model.job import Job
from broker.model.lifecycle import Life, apply, life
from broker.model.node import Node
from broker.model.nodelife import apply_node
from broker.model.offer import Machine, MachineState, Market
from broker.schedule.parts import placeable
from broker.world import World
from tests.sim.harness import Simulation

INDEXES = ("pending", "active", "timed", "todo_jobs", "todo_nodes", "waiters", "singletons")
MINIMUM_SECONDS = 60
FREE_SPOT_SECONDS = 3600
BESIDE = {"volume": 30 * 80_000 // 730, "address": 5_000}
"""Micro-dollars an hour of what each machine has beside itself."""


@dataclass(slots=True)
class Audit:
    """Keeps its own record of the past, folded from the events and seen at the cloud itself."""

    indexes_every: int = 1
    """Steps between comparisons of the world's indexes with those of a fresh start."""
    jobs: dict[JobId, Job] = field(default_factory=dict)
    seen: dict[JobId, Job] = field(default_factory=dict)
    """Records in memory that were compared already."""
    nodes: dict[NodeName, Node] = field(default_factory=dict)
    boots: dict[str, FailedBoots] = field(default_factory=dict)
    past: dict[tuple[NodeName, int], Node] = field(default_factory=dict)
    machines: dict[tuple[NodeName, int], Machine] = field(default_factory=dict)
    """As last seen."""
    strays: dict[tuple[NodeName, int], int] = field(default_factory=dict)
    """Since when nobody owns it."""
    paid: Counter[str] = field(default_factory=Counter)
    """Micro-dollars by machine."""
    checks: int = 0
    _events: int = 0
    _entries: int = 0

    def __call__(self, sim: Simulation) -> None:
        self.checks += 1
        self._fold(sim)
        self._ids(sim)
        self._attempts(sim)
        self._capacity(sim.world)
        self._parts(sim.world)
        self._see(sim)
        self._ownership(sim)
        self._money(sim)
        if self.checks % self.indexes_every == 0:
            same_after_restart(sim)

    def _fold(self, sim: Simulation) -> None:
        """Each row in the store and in memory is the fold of its events."""
        touched: set[Any] = set()
        for number, event in sim.store.events[self._events :]:
            if isinstance(event, nev.NodeEvent):
                self._fold_node(event)
                touched.add(event.node)
            elif isinstance(event, BootsEvent):
                self.boots = after(self.boots, event)
            else:
                before = self.jobs.get(event.job)
                if isinstance(event, ev.Waits) and before is not None:
                    assert life(before) is Life.PENDING, f"{event} of one that does not wait"
                self.jobs[event.job] = apply(before, event, version=number)
                touched.add(event.job)
        self._events = len(sim.store.events)
        for key in touched:
            folded = self.jobs.get(key) if isinstance(key, int) else self.nodes.get(key)
            stored = sim.store.jobs.get(key) if isinstance(key, int) else sim.store.nodes.get(key)
            assert stored == folded, f"row of {key} is not the fold of its events"
        for job_id, job in sim.world.jobs.items():
            if self.seen.get(job_id) is not job:
                assert job == self.jobs[job_id], f"job {job_id} in memory is not what is stored"
                self.seen[job_id] = job
        assert sim.world.nodes == sim.store.nodes
        assert sim.world.boots == self.boots
        assert len(sim.world.facts) == 0 or sim.world.last_event == sim.store.events[-1][0]

    def _fold_node(self, event: nev.NodeEvent) -> None:
        before = self.nodes.pop(event.node, None)
        after = apply_node(before, event)
        if after is not None:
            self.nodes[event.node] = after
        elif before is not None:
            self.past[before.identity] = before

    def _ids(self, sim: Simulation) -> None:
        assert len(set(sim.printed)) == len(sim.printed), "an id was printed for two submissions"
        for job_id in sim.printed[-50:]:
            assert job_id in sim.store.jobs, f"job {job_id} was printed and is not on disk"
        assert sim.store.told is None or all(i < sim.store.told.next_job_id for i in sim.printed)

    def _attempts(self, sim: Simulation) -> None:
        """The agents' own word: one attempt of a job lives, and none where nobody holds a node."""
        live: dict[str, str] = {}
        for cloud in (sim.cloud, sim.ground):
            for identity, agent in cloud.agents():
                for key in agent.live:
                    job, attempt, _ = key.split("/")
                    assert live.setdefault(job, attempt) == attempt, f"job {job} runs twice"
                    held = sim.world.holders.get(identity[0], {})
                    assert JobId(int(job)) in held, f"{key} runs on {identity}, which it lost"

    def _capacity(self, world: World) -> None:
        for name, held in world.holders.items():
            if not held:
                continue
            node = world.nodes.get(name)
            if node is None:
                leaving = all(world.jobs[job_id].completing for job_id in held)
                assert leaving, f"{sorted(held)} hold {name}, which is not there"
                continue
            total, cpus, gpus = Tres(), [], []
            for job_id, share in held.items():
                assert share.launch == node.launch, f"{job_id} holds an older {name}"
                total = total + share.tres
                cpus += share.cpu_ids
                gpus += share.gpu_ids
                own = dict(share.tres.gres).get("gpu", 0)
                assert len(share.gpu_ids) == own, f"{job_id} got {share.gpu_ids} of {own} GPUs"
                assert len(share.cpu_ids) == share.tres.cpu
            assert replace(total, node=0).fits(node.whole), f"{name}: {total} of {node.whole}"
            assert len(set(cpus)) == len(cpus), f"{name}: cpus {sorted(cpus)} are given twice"
            assert len(set(gpus)) == len(gpus), f"{name}: GPUs {sorted(gpus)} are given twice"
            assert all(cpu < node.whole.cpu for cpu in cpus), f"{name} has no cpus {cpus}"
            assert gres_counts(node.whole.gres) == node.whole.gres
            self._shared(world, node)

    def _shared(self, world: World, node: Node) -> None:
        """Who wants a machine alone has it; those that are bought serve one user, or say so."""
        holding = world.holders_of(node.name)
        alone = [job.id for job in holding if job.spec.resources.exclusive]
        assert not alone or len(holding) == 1, f"{node.name}: {alone} wanted it alone"
        parts = [part for part in world.site.partitions if part.name in node.partitions]
        shares = any(part.elastic and part.elastic.share_users for part in parts)
        users = {job.owner.user for job in holding}
        assert node.declared or shares or len(users) == 1, f"{node.name} serves {users}"

    def _parts(self, world: World) -> None:
        """Steps use no more than their job holds, and none waits for what is free."""
        for job in world.jobs.values():
            if not job.shares or life(job) is not Life.RUNNING:
                continue
            mine = [s for s in job.steps if s.share and s.spec and not s.state.final]
            alone = [x for s in mine if s.spec and not s.spec.overlap for x in s.shares]
            for whole in job.shares:
                here = [share for share in alone if share.node == whole.node]
                cpus = [cpu for share in here for cpu in share.cpu_ids]
                assert len(cpus) == len(set(cpus)), f"steps of job {job.id} share cpus"
                assert set(cpus) <= set(whole.cpu_ids), f"cpus of job {job.id}'s steps"
                assert sum(share.tres.mem_mib for share in here) <= whole.tres.mem_mib
            assert placeable(job) == [], f"a step of job {job.id} waits for what is free"

    def _see(self, sim: Simulation) -> None:
        for machine in sim.cloud.machines():
            self.machines[machine.node, machine.launch] = machine

    def _ownership(self, sim: Simulation) -> None:
        now = sim.clock.time
        for identity, machine in self.machines.items():
            node = sim.store.nodes.get(identity[0])
            owned = node is not None and node.launch == identity[1]
            leaving = machine.state in (MachineState.STOPPING, MachineState.TERMINATED)
            if owned or leaving:
                self.strays.pop(identity, None)
                continue
            since = self.strays.setdefault(identity, now)
            patience = 3 * sim.sweep_every + sim.chaos.delay
            assert now - since <= patience, f"nobody knows {identity}, which runs"

    def _money(self, sim: Simulation) -> None:
        """What was posted of each machine is what it has cost up to where its meter stands."""
        entries = list(sim.store.entries.values())[self._entries :]
        self._entries += len(entries)
        changed = set()
        for entry in entries:
            if entry.machine is not None:
                self.paid[entry.machine] += entry.cost
                changed.add(entry.machine)
        for name in changed:
            owner, _, launch = name.partition("/")[0].rpartition(".")
            self._settled(sim, (NodeName(owner), int(launch)), name)

    def _settled(self, sim: Simulation, identity: tuple[NodeName, int], name: str) -> None:
        paid, part = self.paid[name], name.partition("/")[2]
        node = sim.store.nodes.get(identity[0])
        if node is not None and node.launch == identity[1]:
            assert node.meter is not None
            assert node.meter.posted_until is not None
            price = BESIDE[part] if part else node.micro_usd_per_hour
            assert paid == price * (node.meter.posted_until - node.meter.running_at) // 3600
        elif identity in self.machines:
            assert paid == billed(self.machines[identity], part), f"{name} was not billed that"

    def finish(self, sim: Simulation) -> None:
        """When all is over: nothing runs, and the ledger's sum is the cloud's bill."""
        self(sim)
        assert not sim.paid_machines(), "machines were left behind"
        bill = sum(billed(m, part) for m in self.machines.values() for part in ("", *BESIDE))
        bought = {f"{name}.{launch}" for name, launch in self.machines}
        paid = (cost for name, cost in self.paid.items() if name.partition("/")[0] in bought)
        assert sum(paid) == bill
        for job_id in sim.printed:
            assert job_id in sim.store.jobs


def billed(machine: Machine, part: str) -> int:
    """Micro-dollars that EC2 would ask for a machine that has ended, or for a part of it."""
    start, end = machine.running_at, machine.terminated_at
    if start is None or end is None:
        return 0
    if part:
        return BESIDE[part] * max(end - start, MINIMUM_SECONDS) // 3600
    spot = machine.market is Market.SPOT
    if spot and machine.ended_by_provider and end - start < FREE_SPOT_SECONDS:
        return 0
    return machine.micro_usd_per_hour * max(end - start, MINIMUM_SECONDS) // 3600


def same_after_restart(sim: Simulation) -> None:
    """A world that is loaded from the store has the indexes of the one that has grown."""
    fresh = World(sim.site)
    since = sim.clock.time - sim.site.min_job_age
    fresh.load(sim.store.live_jobs(ended_after=since), sim.store.live_nodes())
    live = sim.world
    for name in INDEXES:
        assert _known(getattr(fresh, name)) == _known(getattr(live, name)), f"index {name}"
    held = {name: held for name, held in live.holders.items() if held}
    assert {name: held for name, held in fresh.holders.items() if held} == held
    unfinished = [job for job in fresh.jobs.values() if not job.over]
    assert all(live.jobs[job.id] == job for job in unfinished)


def _known(index: Any) -> Any:
    return {key: set(ids) for key, ids in index.items()} if isinstance(index, dict) else index
