"""Services that many tests share, a user of one for clusters who types `spz`; agents."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.agents import RunningAgent
from tests.e2e.service import CONFIG, Preloaded, Service, service
from tests.e2e.terminal import CLUSTERS, Terminal


@pytest.fixture(scope="module")
def config() -> str:
    """Of the module's service."""
    return CONFIG


@pytest.fixture(scope="module")
def served(preloaded: Preloaded, config: str) -> Iterator[Service]:
    with service(preloaded, config) as made:
        yield made


@pytest.fixture(scope="module")
def clusters(preloaded: Preloaded) -> Iterator[Service]:
    with service(preloaded, CLUSTERS) as made:
        yield made


@pytest.fixture
def spz(clusters: Service, short_tmp: Path) -> Terminal:
    return Terminal(clusters, short_tmp)


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
