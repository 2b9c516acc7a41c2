"""What nvidia-smi says, read."""

import pytest

from broker.run.agent.gpus import read


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (b"", []),
        (b"87, 10240\n", [(87, 10240)]),
        (b"0, 3\n100, 81559\n", [(0, 3), (100, 81559)]),
        (b"[N/A], 512\n", [(0, 512)]),
        (b"NVIDIA-SMI has failed because it couldn't communicate with the driver.\n", []),
        (b"No devices were found\n\xff\n", []),
    ],
)
def test_figures_of_each_device(said: bytes, found: list[tuple[int, int]]) -> None:
    assert read(said) == found
