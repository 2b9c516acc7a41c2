"""Seeded random cluster life: what is submitted, what users then do, what goes wrong outside."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model.ids import StepId
from broker.model.job import ExitCode, Hold, Owner
from broker.model.lifecycle import Life, life
from broker.model.spec import (
    ALL,
    ArraySpec,
    Dependency,
    DependencyKind,
    Gres,
    Output,
    Resources,
    StepSpec,
    TaskSpec,
)
from broker.providers.fake import Delays
from broker.providers.fake_agent import Fate
from broker.providers.refusals import Rule
from tests.sim.harness import START, USUAL, Simulation
from tests.sim.site import ALICE, BOB, ROOT

GPU = Gres(name="gpu")
SHAPES: tuple[tuple[str, Resources], ...] = (
    ("ec2", Resources()),
    ("ec2", Resources(cpus_per_task=2)),
    ("ec2", Resources(cpus_per_task=8, mem_per_node_mib=12_000)),
    ("ec2", Resources(tasks=3)),
    ("ec2", Resources(min_nodes=2, max_nodes=2, tasks=4)),
    ("ec2", Resources(min_nodes=3, max_nodes=3)),
    ("ec2", Resources(min_nodes=2, max_nodes=2, exclusive=True)),
    ("ec2", Resources(min_nodes=2, max_nodes=2, mem_per_node_mib=ALL)),
    ("ec2", Resources(gres=(GPU,))),
    ("ec2", Resources(gpus=(Gres(name="gpu", count=3),), min_nodes=2, max_nodes=2)),
    ("ec2", Resources(gres=(Gres(name="gpu", type="A10G"),))),
    ("spot", Resources(cpus_per_task=4)),
    ("spot", Resources(min_nodes=2, max_nodes=2)),
    ("spot", Resources(gres=(GPU,))),
    ("own", Resources()),
    ("own", Resources(tasks=6)),
    ("own", Resources(gres=(GPU,))),
    ("own", Resources(gpus_per_task=(GPU,), tasks=3)),
    ("own", Resources(exclusive=True)),
    ("own", Resources(min_nodes=4, max_nodes=4, exclusive=True)),
    ("both", Resources(cpus_per_task=3)),
    ("both", Resources(gres=(GPU,))),
    ("both", Resources(min_nodes=2, max_nodes=2)),
    ("both", Resources(exclusive=True)),
    ("ec2", Resources(exclusive=True, gres=(GPU,))),
    ("own,both", Resources(cpus_per_task=2)),
    ("ec2", Resources(constraint="[c7i*2&m7i*1]")),
    ("spot", Resources(constraint="[spot*2&ondemand*1]", tasks=4, exclusive=True)),
)
KINDS = tuple(kind for kind in DependencyKind)


def fates(seed: int) -> Callable[[str, Mapping[str, Any]], Fate]:
    """How long each step takes and how it ends: a function of its key alone."""

    def fate(key: str, _order: Mapping[str, Any]) -> Fate:
        rng = random.Random(f"{seed} {key}")
        code = rng.choice((0, 0, 0, 1, 7))
        died = rng.random() < 0.1
        seconds = rng.choice((0, 1, 20, 90, 200, 700))
        return Fate(seconds, 0 if died else code, 11 if died else 0, rng.random() < 0.2)

    return fate


def submission(rng: random.Random, number: int, known: list[JobId]) -> cmd.Submit:
    """One random sbatch; dependencies are on jobs that were printed before."""
    partition, resources = rng.choice(SHAPES)
    fields: dict[str, Any] = {"partitions": tuple(partition.split(",")), "resources": resources}
    fields["name"] = rng.choice(("train", "prep", "eval"))
    fields["time_limit"] = rng.choice((60, 300, 3600, 3600))
    fields["requeue"] = rng.choice((None, True, False))
    if rng.random() < 0.2:
        tasks = tuple(range(rng.randint(1, 5)))
        fields["array"] = ArraySpec(tasks=tasks, limit=rng.choice((None, 1, 2)))
    if rng.random() < 0.3:
        fields["after"] = tuple(_dependencies(rng, known))
        fields["after_any"] = rng.random() < 0.3
        fields["kill_on_invalid_dep"] = rng.random() < 0.8
    if rng.random() < 0.1:
        fields["hold"] = True
    if rng.random() < 0.1:
        fields["begin"] = START + rng.randint(0, 1500)
    if rng.random() < 0.05:
        fields["deadline"] = START + 5000
    if rng.random() < 0.05:
        fields |= {"batch": None, "steps": (StepSpec(name="x"), StepSpec(name="y"))}
        fields["time_limit"] = 300
    spec = TaskSpec(**{"batch": StepSpec(name="batch"), **fields})
    return cmd.Submit(spec=spec, owner=rng.choice((ALICE, BOB)), request=f"r{number}")


def one_after_the_other(sim: Simulation, rng: random.Random, jobs: int) -> None:
    """A client that asks for the next job when it knows the id of the one before.

    What becomes of such a job depends on nothing but what it is.
    """
    asked = [submission(rng, number, []) for number in range(jobs)]
    plain = {"hold": False, "deadline": None, "kill_on_invalid_dep": True}

    def ask(sim: Simulation) -> list[cmd.Command]:
        number = len(sim.printed)
        if number < jobs:
            sim.at(sim.clock.time - START + 20, ask)
        if number == jobs or sim.asked:
            return []
        fields = {**plain, "name": f"r{number}", "after": tuple(_after(rng_of[number], sim))}
        return [replace(asked[number], spec=asked[number].spec.model_copy(update=fields))]

    rng_of = [random.Random(rng.random()) for _ in range(jobs)]
    sim.at(0, ask)


def _after(rng: random.Random, sim: Simulation) -> Iterator[Dependency]:
    return (wish for wish in _dependencies(rng, sim.printed) if rng.random() < 0.5 and wish.job)


def _dependencies(rng: random.Random, known: list[JobId]) -> Iterator[Dependency]:
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice(KINDS)
        if kind is DependencyKind.SINGLETON:
            yield Dependency(kind=kind)
        elif known:
            delay = rng.choice((0, 60)) if kind is DependencyKind.AFTER else 0
            yield Dependency(kind=kind, job=rng.choice(known[-8:]), delay=delay)


def submissions(sim: Simulation, rng: random.Random, jobs: int, *, seconds: int) -> None:
    for number in range(jobs):

        def ask(sim: Simulation, number: int = number) -> list[cmd.Command]:
            return [submission(rng, number, sim.printed)]

        sim.at(rng.randint(0, seconds), ask)


def meddling(sim: Simulation, rng: random.Random, times: int, *, seconds: int) -> None:
    """Users and operators who cancel, hold, requeue, signal and update what is there."""
    for _ in range(times):

        def ask(sim: Simulation, act: str = rng.choice(tuple(ACTS))) -> list[cmd.Command]:
            there = sorted(sim.world.jobs)
            if not there:
                return []
            job = sim.world.jobs[rng.choice(there)]
            by = rng.choice((job.owner, job.owner, ROOT, BOB))
            tasks = None
            if job.array is not None and rng.random() < 0.5:
                tasks = (rng.randint(0, 4), rng.randint(0, 4))
                tasks = tuple(sorted(set(tasks)))
            base = job.array.base if job.array is not None and tasks else job.id
            return [ACTS[act](cmd.Target(base, tasks), by)]

        sim.at(rng.randint(0, seconds), ask)


Act = Callable[[cmd.Target, Owner], cmd.Command]
ACTS: Mapping[str, Act] = {
    "cancel": lambda target, by: cmd.Cancel(target=target, by=by),
    "cancel more": lambda target, by: cmd.Cancel(target=target, by=by),
    "hold": lambda target, by: cmd.SetHold(target=target, by=by, hold=Hold.USER),
    "release": lambda target, by: cmd.SetHold(target=target, by=by, hold=None),
    "requeue": lambda target, by: cmd.Requeue(target=target, by=by),
    "requeue held": lambda target, by: cmd.Requeue(target=target, by=by, hold=True),
    "signal": lambda target, by: cmd.Signal(target=target, by=by, number=9, scope="full"),
    "longer": lambda target, by: cmd.Update(target=target, by=by, time_limit=7200),
    "shorter": lambda target, by: cmd.Update(target=target, by=by, time_limit=60),
    "notify": lambda target, by: cmd.Notify(target=target, by=by, text="hello"),
    "top": lambda target, by: cmd.ToTop(jobs=(target.job,), by=by),
    "suspend": lambda target, by: cmd.Suspend(target=target, by=ROOT),
    "resume": lambda target, by: cmd.Suspend(target=target, by=ROOT, resume=True),
    "limit of a step": lambda target, by: cmd.UpdateStep(
        job=target.job, step=StepId("0"), by=by, time_limit=60
    ),
    "elsewhere": lambda target, by: cmd.Update(target=target, by=by, partitions=("both",)),
    "add step": lambda target, by: cmd.AddStep(
        job=target.job, by=by, step=StepSpec(name="more"), request=f"step {target} {by.uid}"
    ),
    "add small step": lambda target, by: cmd.AddStep(
        job=target.job, by=by, step=StepSpec(name="s", exact=True), request=f"small {target}"
    ),
    "add overlapping step": lambda target, by: cmd.AddStep(
        job=target.job, by=by, step=StepSpec(name="o", overlap=True), request=f"over {target}"
    ),
    "add wide step": lambda target, by: cmd.AddStep(
        job=target.job,
        by=by,
        step=StepSpec(name="w", nodes=2, tasks=2, output=Output(stdout="all")),
        request=f"wide {target} {by.uid}",
    ),
    "cancel step": lambda target, by: cmd.CancelStep(job=target.job, by=by, step=StepId("0")),
    "signal step": lambda target, by: cmd.Signal(target=target, by=by, number=9, step=StepId("1")),
    "finish": lambda target, by: cmd.FinishAllocation(job=target.job, by=by, exit=ExitCode(3)),
}


def misfortune(sim: Simulation, rng: random.Random, times: int, *, seconds: int) -> None:
    """Spot interruptions, machines that vanish, refusals, boots that never end, lost replies."""
    for _ in range(times):
        what = rng.choice((_interrupt, _interrupt, _refuse, _never_boot, _boot_again, _lose_reply))

        def ask(
            sim: Simulation, what: Callable[[Simulation, random.Random], None] = what
        ) -> list[cmd.Command]:
            what(sim, rng)
            return []

        sim.at(rng.randint(0, seconds), ask)
    sim.at(seconds, _all_boot)


def _all_boot(sim: Simulation) -> list[cmd.Command]:
    sim.cloud.delays = USUAL
    return []


def _interrupt(sim: Simulation, rng: random.Random) -> None:
    there = sim.paid_machines()
    if there:
        machine = rng.choice(there)
        sim.cloud.interrupt(machine.node, machine.launch, at=sim.clock.time + rng.randint(0, 20))


def _refuse(sim: Simulation, rng: random.Random) -> None:
    sim.cloud.refuse(Rule(times=rng.randint(1, 60)))


def _never_boot(sim: Simulation, _rng: random.Random) -> None:
    sim.cloud.delays = Delays(boot=10**7, stop=5)


def _boot_again(sim: Simulation, _rng: random.Random) -> None:
    sim.cloud.delays = USUAL


def _lose_reply(sim: Simulation, _rng: random.Random) -> None:
    sim.cloud.lost_replies = 1


MAY_WAIT = ("Job", "job requeued in held state", "Dependency", "PartitionConfig")
"""Beginnings of the reasons for which a job may still wait when all is long over."""


MAY_LAST = (Life.RUNNING, Life.OVER)


def tidy(sim: Simulation, *, at: int) -> None:
    """By then only those wait that nothing can start; they are cancelled: an end has to come."""

    def ask(sim: Simulation) -> list[cmd.Command]:
        for job in sim.world.jobs.values():
            stuck = life(job) not in MAY_LAST and not job.reason.startswith(MAY_WAIT)
            assert not stuck, f"{job.id} is {job.shown_state}: {job.reason} {job.detail}"
        waiting = [job_id for job_id in sorted(sim.world.jobs) if not sim.world.jobs[job_id].over]
        return [cmd.Cancel(target=cmd.Target(job_id), by=ROOT) for job_id in waiting]

    sim.at(at, ask)
