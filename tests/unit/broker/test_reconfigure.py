"""Another configuration while the engine runs: nodes, partitions, accounts as it says from then."""

from dataclasses import replace

import pytest

from broker.model import commands as cmd
from broker.model.errors import Denied
from broker.model.site import Partition, Site
from tests.unit.broker.test_engine import ALICE, DECLARED, NODES, ROOT, Bench

FEWER = replace(
    DECLARED,
    nodes=NODES[1:],
    partitions=(
        replace(DECLARED.partitions[0], nodes=tuple(node.name for node in NODES[1:])),
        Partition("new", nodes=(NODES[3].name,), default_time=60),
    ),
)


def reconfigure(bench: Bench, site: Site) -> object:
    (reply,) = bench.step(cmd.Reconfigure(site=site, by=ROOT))
    return reply


def test_nodes_and_partitions_are_as_configured_from_then_on() -> None:
    bench = Bench(DECLARED)
    assert reconfigure(bench, FEWER) is None
    assert sorted(bench.world.nodes) == ["n2", "n3", "n4"]
    job = bench.submit(partitions=("new",))
    bench.step()
    assert [share.node for share in bench.world.jobs[job].shares] == ["n4"]


def test_a_node_that_is_left_out_takes_no_more_jobs_and_goes_when_it_is_free() -> None:
    bench = Bench(DECLARED)
    job = bench.submit()
    bench.step()
    assert [share.node for share in bench.world.jobs[job].shares] == ["n1"]
    reconfigure(bench, FEWER)
    assert bench.world.nodes["n1"].partitions == ()  # type: ignore[index]
    other = bench.submit()
    bench.step()
    assert [share.node for share in bench.world.jobs[other].shares] == ["n2"]
    bench.run(job)
    reconfigure(bench, FEWER)
    assert "n1" not in bench.world.nodes


def test_a_new_node_takes_jobs_once_it_is_up() -> None:
    bench = Bench(FEWER)
    reconfigure(bench, DECLARED)
    assert bench.world.nodes["n1"].partitions == ("ec2", "down")  # type: ignore[index]


def test_only_administrators_reconfigure() -> None:
    bench = Bench(DECLARED)
    (reply,) = bench.step(cmd.Reconfigure(site=FEWER, by=ALICE))
    assert isinstance(reply, Denied)
    assert bench.world.site is DECLARED


def test_a_full_disk_leaves_the_configuration_as_it_was() -> None:
    bench = Bench(DECLARED)
    bench.store.full = True
    (reply,) = bench.step(cmd.Reconfigure(site=FEWER, by=ROOT))
    assert isinstance(reply, Exception)
    bench.store.full = False
    assert (bench.world.site, len(bench.world.nodes)) == (DECLARED, 4)


@pytest.mark.parametrize("site", [DECLARED, FEWER])
def test_a_start_leaves_out_nodes_that_are_configured_no_more(site: Site) -> None:
    bench = Bench(DECLARED)
    again = Bench(site, bench.store)
    assert sorted(again.world.nodes) == sorted(node.name for node in site.nodes)
