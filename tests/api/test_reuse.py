"""Which clusters take another task, and which lack something that it asks for."""

import pytest

from tests.api.house import House, refusal


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        ("{infra: aws/eu-west-3}", "region eu-west-3, has "),
        ("{instance_type: c5.9xlarge}", "instance type c5.9xlarge, has "),
        ("{use_spot: true}", "spot machines, has on-demand ones"),
        ("{any_of: [{infra: aws/eu-west-3}, {infra: aws/eu-west-2}]}", "region eu-west-3, has "),
    ],
)
def test_a_cluster_of_another_kind_is_not_reused(house: House, asked: str, lacks: str) -> None:
    house.launch("resources: {cpus: 2}")
    house.wait(60)
    status, message, _ = refusal(house.launch(f"resources: {asked}\nrun: x"))
    assert (status, message.startswith(f"cluster 'dev' is another: asked for {lacks}")) == (
        409,
        True,
    )


def test_a_run_does_not_get_a_volume_that_its_cluster_lacks(house: House) -> None:
    house.launch("resources: {cpus: 2}")
    house.wait(60)
    body = house.body("volumes: {/mnt/x: data}\nrun: x")
    status, message, _ = refusal(house.call("POST", "/v1/clusters/dev/exec", body))
    assert (status, message) == (409, "cluster 'dev' does not have volume data at /mnt/x")


def test_a_cluster_with_other_gpus_is_not_reused(house: House) -> None:
    house.launch("resources: {accelerators: A10G:1}\nrun: x")
    house.wait(60)
    assert house.launch("resources: {accelerators: a10g}\nrun: x")[1]["reused"] is True
    assert house.launch("resources: {accelerators: 16GB+}\nrun: x")[1]["reused"] is True
    status, message, _ = refusal(house.launch("resources: {accelerators: T4}\nrun: x"))
    assert (status, message) == (409, "cluster 'dev' is another: asked for T4, has a10g")


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [("num_nodes: 3", "3 nodes, has 1"), ("resources: {accelerators: T4:2}", "2 GPUs, has 0")],
)
def test_a_run_that_asks_for_more_than_there_is_says_what(
    house: House, asked: str, lacks: str
) -> None:
    house.launch("resources: {cpus: 2}")
    house.wait(60)
    body = house.body(f"{asked}\nrun: x")
    status, message, _ = refusal(house.call("POST", "/v1/clusters/dev/exec", body))
    assert (status, message) == (409, f"cluster 'dev' is too small: asked for {lacks}")
