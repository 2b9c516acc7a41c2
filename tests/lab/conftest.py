"""Boxes, and folders of users, that the tests of a module share."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import Running, running

for name in [key for key in os.environ if key.startswith("AWS_")]:
    del os.environ[name]


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    """Of the module's box, behind the usual ones."""
    return ()


@pytest.fixture(scope="module")
def lab(options: tuple[str, ...]) -> Iterator[Running]:
    """With machines that can be reached, at thirty times EC2's speed."""
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "30", *options) as made:
        yield made


@pytest.fixture(scope="module")
def share() -> Iterator[Path]:
    """Where users work; with `--private` every machine has an empty folder of its own over it."""
    with TemporaryDirectory(prefix="spz-users-", dir="/tmp") as made:
        path = Path(made)
        path.chmod(0o755)
        yield path
