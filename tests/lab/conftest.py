"""Boxes that tests share."""

import os
from collections.abc import Iterator

import pytest

from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import Running, running

for name in [key for key in os.environ if key.startswith("AWS_")]:
    del os.environ[name]


@pytest.fixture(scope="module")
def lab() -> Iterator[Running]:
    """With machines that can be reached, at thirty times EC2's speed."""
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "30", "--ssh-port", "2222") as made:
        yield made
