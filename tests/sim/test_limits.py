"""Through the whole engine: whatever users and operators do, no start exceeds a limit."""

import os
import random
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from accounting.assoc import Account, Association, Qos, book
from accounting.change import Change
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from broker.model import commands as cmd
from broker.model.site import Site
from broker.model.spec import ALL, ArraySpec, Gres, Resources, StepSpec, TaskSpec
from tests.sim.harness import Chaos, Simulation
from tests.sim.limited import (
    PARTITION_QOS,
    USERS,
    accounts,
    associations,
    grades,
    site_of,
    sites,
    spending_sites,
)
from tests.sim.reckoning import Reckoning
from tests.sim.site import ALICE, BOB, ROOT
from tests.sim.workload import fates, meddling

EXAMPLES = int(os.environ.get("SKYPURZA_TEST_EXAMPLES", "3"))
"""How many lives are drawn: more by hand."""
SECONDS = 1500
OFTEN_KILLED = Chaos(crash=0.02)
SHAPES = (
    Resources(),
    Resources(cpus_per_task=2),
    Resources(tasks=3),
    Resources(min_nodes=2, max_nodes=2),
    Resources(gres=(Gres(name="gpu"),)),
    Resources(exclusive=True),
    Resources(mem_per_node_mib=ALL),
)


def submission(luck: random.Random, number: int) -> cmd.Submit:
    array = ArraySpec(tasks=tuple(range(luck.randint(2, 4)))) if luck.random() < 0.2 else None
    first = _wish(luck, array)
    more = (_wish(luck).model_copy(update=_same(first)),) if array is None else ()
    owner, request = luck.choice((ALICE, BOB)), f"r{number}"
    heterogeneous = more if luck.random() < 0.15 else ()
    return cmd.Submit(spec=first, more=heterogeneous, owner=owner, request=request)


def _same(first: TaskSpec) -> dict[str, object]:
    """What a heterogeneous job has in common."""
    return {"account": first.account, "qos": first.qos}


def _wish(luck: random.Random, array: ArraySpec | None = None) -> TaskSpec:
    return TaskSpec(
        name="job",
        batch=StepSpec(name="batch"),
        resources=luck.choice(SHAPES),
        account=luck.choice(("lab", "sub")),
        qos=luck.choice(("normal", "fast")),
        partitions=luck.choice((("own",), ("own",), ("ec2",), ("both",), ("own", "both"))),
        time_limit=luck.choice((60, 300, 600, 1200)),
        array=array,
        requeue=True,
    )


@st.composite
def changes(draw: st.DrawFn) -> Change:
    return Change(
        accounts=tuple(draw(accounts())) if draw(st.booleans()) else (),
        associations=tuple(draw(associations())) if draw(st.booleans()) else (),
        qos=tuple(draw(grades())) if draw(st.booleans()) else (),
    )


def moving(sim: Simulation, luck: random.Random, times: int) -> None:
    """Users who put waiting jobs under another account or QOS."""

    def ask(sim: Simulation) -> list[cmd.Command]:
        waiting = sorted(sim.world.pending)
        if not waiting:
            return []
        job = sim.world.jobs[luck.choice(waiting)]
        account, qos = luck.choice((("sub", None), ("lab", None), (None, "fast")))
        target = cmd.Target(job.id)
        return [cmd.Update(target=target, by=job.owner, account=account, qos=qos)]

    for _ in range(times):
        sim.at(luck.randint(0, SECONDS), ask)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],  # to make a life smaller takes longer than to read it
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    site=sites(),
    seed=st.integers(0, 10**6),
    later=st.lists(st.tuples(st.integers(100, SECONDS), changes()), max_size=2),
)
def test_nothing_that_starts_or_comes_in_exceeds_a_limit(
    site: Site, seed: int, later: list[tuple[int, Change]]
) -> None:
    life(site, seed, later)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(site=spending_sites(), seed=st.integers(0, 10**6))
def test_what_was_used_counts_as_long_and_as_much_as_is_said(site: Site, seed: int) -> None:
    life(site, seed, [])


def test_such_lives_are_full() -> None:
    """Many jobs start, and some wait for a limit."""
    lab = [Account(name=AccountName("lab")), Account(name=AccountName("sub"))]
    own = [
        Association(user=UserName(user), account=one.name, qos=("normal", "fast"))
        for user in USERS
        for one in lab
    ]
    few = Qos(name="fast", limits=Limits(max_jobs=1, grp_tres={"node": 2}))
    made = book(lab, own, qos=[few, Qos(name=PARTITION_QOS)], enforce=["limits", "qos"])
    found = life(site_of(made), 1, [])
    assert found.begun > 20
    assert {"QOSMaxJobsPerUserLimit", "QOSGrpNodeLimit"} & set(found.reasons)


def life(site: Site, seed: int, later: list[tuple[int, Change]]) -> Reckoning:
    luck, reckoning = random.Random(seed), Reckoning()
    sim = Simulation(site, fates(seed), seed=seed, chaos=OFTEN_KILLED, check=reckoning)
    for number in range(30):
        asked = submission(luck, number)
        sim.submit_at(luck.randint(0, SECONDS), asked)
    for at, change in later:
        sim.at(at, partial(_changing, change))
    meddling(sim, luck, 10, seconds=SECONDS)
    moving(sim, luck, 6)
    sim.run(SECONDS)
    return reckoning


def _changing(change: Change, sim: Simulation) -> list[cmd.ChangeBook]:
    basis = sim.world.site.book
    return [cmd.ChangeBook(change=change, basis=basis, by=ROOT, action="Modify")]
