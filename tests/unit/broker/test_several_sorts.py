"""Machines of several sorts for one job: `-C "[a*2&b*1]"` where the nodes are bought."""

from dataclasses import replace
from typing import Any

import pytest

from accounting.ids import JobId
from broker.model import commands as cmd
from broker.model import reports as rep
from broker.model.effects import Launch, StartStep
from broker.model.errors import BadOption
from broker.model.job import Job
from broker.model.node import NodeState
from broker.model.site import Site
from broker.model.spec import Resources, StepSpec, TaskSpec
from tests.unit.broker.test_engine import ALICE, ELASTIC, Bench, machine, refused

OTHER = "others that its job needs beside it cannot be had"


class Sorts(Bench):
    """A job of several sorts of machines was submitted."""

    def __init__(self, constraint: str, *, site: Site = ELASTIC, **resources: Any) -> None:
        super().__init__(site)
        self.id = self.submit(resources=Resources(constraint=constraint, **resources))

    @property
    def job(self) -> Job:
        return self.world.jobs[JobId(self.id)]

    @property
    def launches(self) -> list[Launch]:
        return [effect for effect in self.effects if isinstance(effect, Launch)]

    def buy(self, place: int = 0) -> Launch:
        (launch,) = self.launches
        rungs = launch.rungs[place:]
        made = machine(replace(launch, rungs=rungs), self.now)
        self.step(rep.Launched(group=launch.group, machines=made), full=False)
        return launch

    def refuse(self) -> Launch:
        (launch,) = self.launches
        self.step(refused(launch), full=False)
        return launch

    def sorts(self) -> dict[str, int]:
        """Families that its nodes are of."""
        found: dict[str, int] = {}
        for share in self.job.shares:
            family = self.world.nodes[share.node].rungs[0].offer.family
            found[family] = found.get(family, 0) + 1
        return found


@pytest.mark.parametrize(
    ("constraint", "more", "sorts"),
    [
        ("[c7i*2&m7i*1]", {}, {"c7i": 2, "m7i": 1}),
        ("[m7i*1&c7i*2]", {}, {"c7i": 2, "m7i": 1}),
        ("[(c7i|m7i)*1&g5*1]", {}, {"c7i": 1, "g5": 1}),
        ("[g5*1&x86_64*3]", {}, {"g5": 1, "c7a": 3}),
        ("g5*1", {"min_nodes": 3, "max_nodes": 3}, {"g5": 1, "c7a": 2}),
        ("c7i*3", {"min_nodes": 3, "max_nodes": 3}, {"c7i": 3}),
    ],
)
def test_as_many_of_each_sort_are_bought_as_are_counted_and_the_rest_of_any(
    constraint: str, more: dict[str, Any], sorts: dict[str, int]
) -> None:
    bench = Sorts(constraint, **more)
    while bench.launches:
        bench.buy()
    found = bench.sorts()
    rest = sum(sorts.values()) - sum(found.get(family, 0) for family in sorts if family != "c7a")
    assert len(bench.job.shares) == sum(sorts.values())
    assert rest == sorts.get("c7a", 0), found


def test_they_are_in_one_zone_where_one_sells_them_all() -> None:
    bench = Sorts("[g5*1&m7i*2]")
    zones = set()
    while bench.launches:
        zones |= {zone for rung in bench.buy().rungs for zone in rung.offer.zones}
    assert len(zones) == 1


def test_places_that_are_counted_are_the_places_that_they_are_in() -> None:
    bench = Sorts("[us-east-1*1&eu-west-1*2]")
    regions = []
    while bench.launches:
        launch = bench.buy()
        regions += [launch.rungs[0].offer.region] * len(launch.nodes)
    assert sorted(regions) == ["eu-west-1", "eu-west-1", "us-east-1"]


def test_one_sort_is_asked_for_once_the_one_before_it_is_had_and_the_job_begins_with_all() -> None:
    bench = Sorts("[c7i*2&m7i*1]")
    first = bench.buy()
    second = bench.buy()
    assert first.group != second.group
    nodes = {name for name, _ in (*first.nodes, *second.nodes)}
    assert nodes == {share.node for share in bench.job.shares}
    for name in sorted(nodes):
        assert not [one for one in bench.effects if isinstance(one, StartStep)]
        node = bench.world.nodes[name]
        bench.step(rep.Booted(node=node.name, launch=node.launch), full=False)
    assert [type(one) for one in bench.effects] == [StartStep]


def test_where_the_first_cannot_be_had_nothing_is_bought() -> None:
    bench = Sorts("[c7i*2&m7i*1]")
    bench.refuse()
    assert not bench.world.nodes
    assert bench.job.shown_state == "PENDING"
    assert "no capacity" in bench.job.detail


def test_where_a_later_one_cannot_be_had_what_was_bought_is_given_back() -> None:
    bench = Sorts("[c7i*2&m7i*1]")
    first = bench.buy()
    bench.refuse()
    left = {name: node.state for name, node in bench.world.nodes.items()}
    assert left == {name: NodeState.TERMINATING for name, _ in first.nodes}
    assert {node.reason for node in bench.world.nodes.values()} == {OTHER}
    assert not bench.world.boots, "they say nothing of their kind"
    assert bench.job.shown_state == "PENDING"


def test_a_sort_may_be_as_long_as_an_expression_may_be() -> None:
    bench = Sorts(f"[({'|'.join(['c7i'] * 96)})*1&m7i*1]")
    assert bench.buy().group != bench.buy().group


def test_a_machine_that_others_hold_by_now_stays_with_them() -> None:
    bench = Sorts("[c7i*2&m7i*1]")
    first = bench.buy()
    other = bench.submit(resources=Resources(constraint="c7i"))
    (share,) = bench.world.jobs[other].shares
    assert share.node in {name for name, _ in first.nodes}
    bench.refuse()
    states = {name: node.state for name, node in bench.world.nodes.items()}
    assert states.pop(share.node) is NodeState.BOOTING
    assert set(states.values()) == {NodeState.TERMINATING}
    assert bench.state(other) == "CONFIGURING"


def test_nothing_more_is_asked_for_once_the_job_is_gone() -> None:
    bench = Sorts("[c7i*2&m7i*1]")
    bench.step(cmd.Cancel(target=cmd.Target(bench.id), by=ALICE))
    bench.buy()
    assert not bench.launches
    bench.step(seconds=1)
    states = sorted(node.state.label for node in bench.world.nodes.values())
    assert states == ["BOOTING", "BOOTING", "TERMINATING"]


def test_shares_fit_the_machines_that_were_had_whichever_sort_came_as_what() -> None:
    """A job of whole nodes holds all of each."""
    bench = Sorts("[c7i*1&m7i*1]", exclusive=True)
    bench.buy()
    bench.buy(place=3)
    held = {share.node: share.tres.cpu for share in bench.job.shares}
    assert held == {name: bench.world.nodes[name].whole.cpu for name in held}


def test_a_sort_that_nobody_sells_is_refused_by_its_name() -> None:
    with pytest.raises(BadOption) as said:
        Sorts("[c7i*1&h999*1]")
    assert "h999" in str(said.value.hint)


def test_what_they_would_cost_together_is_told_before() -> None:
    def cost(constraint: str) -> int:
        resources = Resources(constraint=constraint)
        batch = StepSpec(name="batch")
        spec = TaskSpec(name="job", batch=batch, resources=resources, time_limit=3600)
        (reply,) = Bench(ELASTIC).step(cmd.TestSubmit(spec=spec, owner=ALICE))
        assert isinstance(reply, cmd.StartEstimate)
        return reply.micro_usd

    assert cost("[c7i*2&m7i*1]") == 2 * cost("c7i&us-east-1") + cost("m7i&us-east-1")
