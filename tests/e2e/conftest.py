"""One process that services are forked from, one service that many tests share; agents."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.agents import RunningAgent
from tests.e2e.service import Preloaded, Service, service


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    made = Preloaded()
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(preloaded: Preloaded) -> Iterator[Service]:
    with service(preloaded) as made:
        yield made


@pytest.fixture
def agents() -> Iterator[Callable[..., RunningAgent]]:
    """Makes agents that are ended with the test."""
    with ExitStack() as stack:

        def make(folder: Path, *options: str) -> RunningAgent:
            running = RunningAgent(folder, *options)
            stack.callback(running.halt)
            return running

        yield make


@pytest.fixture
def agent(agents: Callable[..., RunningAgent], tmp_path: Path) -> RunningAgent:
    return agents(tmp_path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
