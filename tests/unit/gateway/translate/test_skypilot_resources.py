"""What a task asks of its machines and of Slurm, in the spec."""

from collections.abc import Mapping

import pytest

from broker.model.spec import ALL, Gres, Resources, Where
from tests.unit.gateway.translate.tasks import task


def resources(text: str) -> Resources:
    return task(text).spec.resources


ONE = {"min_nodes": 1, "max_nodes": 1, "exclusive": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"min_cpus_per_node": 8, "mem_per_node_mib": 31129}),
        (
            "resources: {cpus: 4}",
            {"min_cpus_per_node": 4, "cpus_exactly": 4, "mem_per_node_mib": 15564},
        ),
        ("resources: {cpus: 2+, memory: 64+}", {"min_cpus_per_node": 2, "mem_per_node_mib": 62259}),
        ("resources: {memory: 8x}", {"min_cpus_per_node": 8, "mem_per_node_mib": 62259}),
        ("resources: {memory: 16+}", {"mem_per_node_mib": 15564}),
        (
            "resources: {accelerators: A10G:2}",
            {"mem_per_node_mib": ALL, "gres": (Gres(name="gpu", type="A10G", count=2),)},
        ),
        (
            "resources: {accelerators: {A100:1, L4:2}}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=1),),
                "any_of": (
                    Where(gpu=Gres(name="gpu", type="A100")),
                    Where(gpu=Gres(name="gpu", type="L4", count=2)),
                ),
            },
        ),
        (
            "resources: {accelerators: [H100:8, A100:8]}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=8),),
                "any_of": (
                    Where(gpu=Gres(name="gpu", type="H100", count=8)),
                    Where(gpu=Gres(name="gpu", type="A100", count=8)),
                ),
                "ordered": True,
            },
        ),
        (
            "resources: {accelerators: 80GB+:4}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", count=4),),
                "any_of": (Where(gpu=Gres(name="gpu", type="80GB+", count=4)),),
            },
        ),
        (
            "resources: {instance_type: g5.xlarge, use_spot: true, infra: aws/us-east-1,"
            " max_hourly_cost: 2.5}",
            {
                "mem_per_node_mib": ALL,
                "any_of": (
                    Where(
                        instance_type="g5.xlarge",
                        market="spot",
                        region="us-east-1",
                        max_micro_usd_per_hour=2_500_000,
                    ),
                ),
            },
        ),
        (
            "resources: {accelerators: L4, any_of: [{use_spot: true}, {use_spot: false}]}",
            {
                "mem_per_node_mib": ALL,
                "gres": (Gres(name="gpu", type="L4"),),
                "any_of": (
                    Where(market="spot", gpu=Gres(name="gpu", type="L4")),
                    Where(market="on-demand", gpu=Gres(name="gpu", type="L4")),
                ),
            },
        ),
        (
            "resources: {cpus: 2+, local_disk: 'nvme:100+', infra: aws/us-east-1/use1-az4}",
            {
                "min_cpus_per_node": 2,
                "mem_per_node_mib": 7782,
                "tmp_mib": 102400,
                "any_of": (Where(region="us-east-1", zone="use1-az4"),),
            },
        ),
    ],
)
def test_resources_become_what_each_node_must_give(
    text: str, expected: Mapping[str, object]
) -> None:
    assert resources(text) == Resources.model_validate({**ONE, **expected})


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("[{cpus: 2}, {cpus: 4}]", 2), ("[{cpus: 4+}, {cpus: 2+}]", 2), ("[{cpus: 4}, {}]", 8)],
)
def test_alternatives_that_differ_in_size_ask_for_the_least(text: str, cpus: int) -> None:
    made = task(f"resources: {{any_of: {text}}}")
    assert made.spec.resources.min_cpus_per_node == cpus
    assert made.notes[0].startswith("resources.cpus: differs between alternatives")


def test_options_of_sbatch_and_its_quota_are_fields_of_the_spec() -> None:
    made = task(
        "config: {slurm: {quota: {account: lab, queue: long}, sbatch_options:"
        " {time: '1:00:00', constraint: gpu, exclusive: true, comment: null}}}"
    )
    spec = made.spec
    assert (spec.account, spec.qos, spec.time_limit, spec.comment) == ("lab", "long", 3600, None)
    assert spec.resources.constraint == "gpu"
    assert [note for note in made.notes if "exclusive" in note]


def test_the_older_place_of_settings_is_read() -> None:
    made = task("experimental: {config_overrides: {slurm: {sbatch_options: {qos: fast}}}}")
    assert made.spec.qos == "fast"


def test_autostop_is_the_time_that_a_cluster_may_idle() -> None:
    assert task("resources: {autostop: {idle_minutes: 10, down: true}}").spec.idle_seconds == 600
    assert task("resources: {autostop: true}").spec.idle_seconds == 300
    assert task("resources: {autostop: true}").spec.idle_stops
    assert not task("resources: {autostop: {idle_minutes: 10, down: true}}").spec.idle_stops
    assert task("resources: {autostop: false}").spec.idle_seconds is None
    limited = task("resources: {autostop: {idle_minutes: 60, wait_for: none}}").spec
    assert (limited.idle_seconds, limited.time_limit) == (None, 3600)


@pytest.mark.parametrize(
    ("asked", "past"),
    [
        ("{autostop: true}", False),
        ("{autostop: {wait_for: jobs_and_ssh}}", False),
        ("{autostop: {wait_for: jobs}}", True),
        ("{any_of: [{autostop: {wait_for: jobs}}, {autostop: 5}]}", False),
        ("{cpus: 2}", False),
    ],
)
def test_logins_hold_an_autostop_off_unless_it_waits_for_jobs_alone(asked: str, past: bool) -> None:
    assert task(f"resources: {asked}").spec.idle_past_logins is past


def test_several_nodes_are_asked_for_whole_with_one_task_on_each() -> None:
    spec = task("num_nodes: 3\nrun: x").spec
    (step,) = spec.steps
    assert (spec.resources.min_nodes, spec.resources.max_nodes) == (3, 3)
    assert (step.nodes, step.tasks, step.tasks_per_node) == (3, 3, 1)
