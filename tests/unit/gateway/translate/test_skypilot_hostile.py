"""Hostile task files: whatever they hold, they are read or refused with a reason, and quickly."""

import json

import pytest

from broker.model.errors import BadSpec
from gateway.translate.skypilot import read_file
from gateway.translate.skypilot_sbatch import to_sbatch
from gateway.translate.skypilot_summary import summary
from gateway.translate.skypilot_yaml import written
from tests.unit.gateway.translate.tasks import SUPPLY

LONG = "9" * 5000
REFUSED = (
    *("num_nodes: !!int abc", "name: !!bool x", "name: !!float x", 'name: !!int ""', "name: 0x_"),
    *(f"num_nodes: {LONG}", f"name: {LONG}", "num_nodes: 99999999999999999999", "name: =", "<<: 3"),
    *("num_nodes: 9000000", "pool: {workers: 10000000}", f"run: 0x{'f' * 10000}"),
    *("name: !!binary YQ==", "name: !!timestamp [a]", "envs: !!set [a]", "volume_mounts: !!set x"),
    *("pool: {upscale_delay_seconds: .inf}", "pool: {upscale_delay_seconds: '1e999'}"),
    *("pool: {downscale_delay_seconds: nan}", "resources: {priority: 1e400}"),
    *("resources: {cpus: .nan}", "resources: {cpus: '1e999999999'}", "resources: {cpus: 1e-99999}"),
    *("resources: {memory: '1e999999999x'}", f"resources: {{memory: '{LONG}'}}"),
    *("resources: {accelerators: {A100: 1e999999}}", "resources: {accelerators: {A100: .inf}}"),
    *("resources: {accelerators: 'A100:1e999999999'}", f"resources: {{disk_size: {LONG}TB}}"),
    *(f"resources: {{max_hourly_cost: '{'9' * 400}'}}", "resources: {max_hourly_cost: .inf}"),
    *("resources: {ports: '²'}", f"resources: {{ports: '{LONG}'}}"),
    *(f"resources: {{autostop: {LONG}w}}", "resources: &a {any_of: [*a]}", "envs: &a {A: *a}"),
    *("{" * 5000, "[" * 900 + "]" * 900, "? [a]\n: b", "{{x}}: 1", "!!python/object:os.system {}"),
)


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:50])
def test_what_cannot_be_meant_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(BadSpec) as refused:
        read_file(text)
    assert refused.value.message


TAKEN = (
    *("name: 2020-99-99", "envs: {A: 2020-01-01}", "name: !!timestamp x", "envs: {A: .inf}"),
    *("volume_mounts: {2020-01-01: x}", "volume_mounts: {a: 2020-01-01T10:00:00Z}"),
    *("volume_mounts: !!set {a, b}", "event_callback: 2020-01-01", "name: 1e999999999"),
    *("resources: {accelerators: !!set {A100, H100}}", "envs: {A: [1e999, {b: .nan}]}"),
    "pool: {workers: 1, upscale_delay_seconds: 3}",
)


@pytest.mark.parametrize("text", TAKEN, ids=lambda text: text[:50])
def test_what_is_taken_can_be_summed_up_sent_written_and_made_a_script(text: str) -> None:
    file = read_file(text)
    assert summary(file, SUPPLY)
    assert read_file(written(file.trees)).trees == file.trees
    json.dumps(file.trees, allow_nan=False)
    assert [to_sbatch(tree) for tree in file.trees]


def test_a_date_stays_the_text_that_was_written() -> None:
    assert read_file("envs: {DAY: 2026-01-31}").tasks[0].envs == {"DAY": "2026-01-31"}
