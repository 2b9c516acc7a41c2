"""Through the whole engine: who is pushed out by a QOS, on what terms, and no more than needed."""

import os
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounting.assoc import Qos, book
from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.facts import JobFact
from broker.model.job import Job
from broker.model.site import Partition, Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from broker.providers.fake_agent import Fate
from tests.sim.harness import Simulation
from tests.sim.site import ALICE, BOB, NAMES, NODES

EXAMPLES = int(os.environ.get("SKYPURZA_TEST_EXAMPLES", "3"))
SECONDS, JOBS = 1000, 28
CPUS = 4
SIGTERM = 15
SHAPES = ((1, 1), (1, 2), (1, 4), (2, 2), (3, 4), (4, 1))
"""Nodes, and cpus on each."""
GRADES = ("low", "low", "mid", "high", "beside")
LATE = 20
"""Seconds until somebody looks whose grace time is over."""

modes = st.sampled_from(("cluster", "requeue", "cancel"))


@st.composite
def grades(draw: st.DrawFn) -> dict[str, Qos]:
    """Two that push out whoever is lower, and one beside them that nobody pushes out."""

    def terms(name: str, priority: int, *lower: str) -> Qos:
        return Qos(
            name=name,
            priority=priority,
            preempt=lower,
            preempt_mode=draw(modes),
            grace_time=draw(st.sampled_from((0, 0, 40))),
            exempt_time=draw(st.sampled_from((None, None, 120))),
        )

    made = (
        terms("low", 1),
        terms("mid", 5, "low"),
        terms("high", 10, "low", "mid"),
        terms("beside", 3),
    )
    return {one.name: one for one in made}


@dataclass
class Watch:
    """Looks at everybody who is pushed out, when it happens."""

    grades: Mapping[str, Qos]
    told: dict[tuple[JobId, int], int] = field(default_factory=dict)
    """When attempts were told to go, or went."""
    out: int = 0
    _events: int = 0

    def __call__(self, sim: Simulation) -> None:
        fresh = set()
        for _, event in sim.store.events[self._events :]:
            if isinstance(event, JobFact) and (_warned(event) or _pushed(event)):
                job = sim.world.jobs[event.job]
                if (job.id, job.attempt) not in self.told:
                    fresh.add(job.id)
                if _pushed(event):
                    self._went(sim, job, event)
        self._events = len(sim.store.events)
        if fresh:
            self._needed(sim, fresh)
        for one in fresh:
            self.told[one, sim.world.jobs[one].attempt] = sim.clock.time

    def _went(self, sim: Simulation, job: Job, event: Any) -> None:
        """After its grace time, and as its QOS and the job itself say."""
        grade, now = self.grades[job.qos], sim.clock.time
        waited = now - self.told.get((job.id, job.attempt), now)
        assert grade.grace_time <= waited <= grade.grace_time + LATE
        back = grade.preempt_mode != "cancel" and job.spec.requeue is not False
        assert isinstance(event, ev.Requeued if back else ev.Ended), f"{job.id}: {grade}"
        self.out += 1

    def _needed(self, sim: Simulation, fresh: Collection[JobId]) -> None:
        """All are below somebody who waits, has room when they are gone, and not when one stays."""
        jobs = sim.world.jobs
        for one in (jobs[one] for one in fresh):
            least = self.grades[one.qos].exempt_time or 0
            assert one.started is None or sim.clock.time - one.started >= least
        fewer = [set(fresh) - {one} for one in fresh]
        for urgent in (jobs[one] for one in sim.world.pending):
            below = {jobs[one].qos for one in fresh} <= set(self.grades[urgent.qos].preempt)
            enough = below and self._fits(sim, urgent, fresh, gone=fresh)
            if enough and not any(self._fits(sim, urgent, fresh, gone=some) for some in fewer):
                return
        raise AssertionError(f"nobody needed that {sorted(fresh)} go")

    def _fits(
        self, sim: Simulation, urgent: Job, fresh: Collection[JobId], *, gone: Collection[JobId]
    ) -> bool:
        free = dict.fromkeys(NAMES, CPUS)
        for job in sim.world.jobs.values():
            going = job.completing or (job.id, job.attempt) in self.told
            if job.id not in gone and (job.id in fresh or not going):
                for share in job.shares:
                    free[share.node] -= share.tres.cpu
        each = urgent.spec.resources.cpus_per_task or 1
        return sum(cpus >= each for cpus in free.values()) >= urgent.want.node


def _warned(event: object) -> bool:
    return isinstance(event, ev.SignalAsked) and event.signal.number == SIGTERM


def _pushed(event: object) -> bool:
    requeued = isinstance(event, ev.Requeued) and event.why == "preempted"
    return requeued or (isinstance(event, ev.Ended) and event.state.label == "PREEMPTED")


def submission(luck: random.Random, number: int) -> cmd.Submit:
    nodes, cpus = luck.choice(SHAPES)
    spec = TaskSpec(
        name="job",
        batch=StepSpec(name="batch"),
        resources=Resources(
            min_nodes=nodes, max_nodes=nodes, tasks=nodes, tasks_per_node=1, cpus_per_task=cpus
        ),
        qos=luck.choice(GRADES),
        requeue=luck.choice((None, None, False)),
        time_limit=luck.choice((60, 300, 600, 1200)),
    )
    return cmd.Submit(spec=spec, owner=luck.choice((ALICE, BOB)), request=f"r{number}")


def life(made: Mapping[str, Qos], seed: int) -> Watch:
    """Drawn jobs from the first to the end of the last."""
    luck, watch = random.Random(seed), Watch(made)
    site = Site(
        partitions=(Partition("own", default=True, nodes=NAMES, def_mem_per_cpu_mib=1024),),
        nodes=NODES,
        requeue_delay=30,
        preempts="qos",
        book=book(qos=made.values()),
    )

    def fate(key: str, order: Mapping[str, Any]) -> Fate:
        return Fate(random.Random(f"{seed} {key}").randint(1, order["time_limit"]))

    sim = Simulation(site, fate, seed=seed, check=watch)
    for number in range(JOBS):
        sim.submit_at(luck.randint(0, SECONDS), submission(luck, number))
    sim.run(40 * SECONDS)
    assert all(job.over for job in sim.store.jobs.values())
    return watch


@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(made=grades(), seed=st.integers(0, 10**6))
def test_only_lower_ones_go_no_more_than_needed_and_on_the_terms_of_their_qos(
    made: Mapping[str, Qos], seed: int
) -> None:
    life(made, seed)


def test_such_lives_are_full() -> None:
    terms = [Qos(name="low"), Qos(name="mid", preempt=("low",), grace_time=40)]
    terms += [Qos(name="high", preempt=("low", "mid")), Qos(name="beside")]
    assert life({one.name: one for one in terms}, 1).out > 3
