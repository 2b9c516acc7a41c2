"""What holds for every test: loopback only, no waiting on real time, no settings from outside."""

import ipaddress
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest
from hypothesis import settings

from tests.contract.postgres import postgres_server, postgres_url
from tests.e2e.service import Preloaded
from tests.order import place

__all__ = ["postgres_server", "postgres_url"]

ROOT = Path(__file__).parent.parent
HOSTILE = 'it\'s "so"\n $HOME'
MAY_SLEEP = {"e2e", "kill", "lab", "live", "root"}
OURS = (
    "SKYPURZA_",
    "SLURM_",
    "SBATCH_",
    "SALLOC_",
    "SRUN_",
    "SQUEUE_",
    "SACCT_",
    "SINFO_",
    "SCANCEL_",
)
KEPT = ("SKYPURZA_SHARED", "SKYPURZA_TEST_")
"""How tests are to be run is said by these."""

settings.register_profile("steady", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("steady")

for name in [key for key in os.environ if key.startswith(OURS) and not key.startswith(KEPT)]:
    del os.environ[name]


def _is_loopback(host: object) -> bool:
    if host in {None, "", "localhost"} or isinstance(host, bytes):
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _refuse_network(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event in {"socket.connect", "socket.sendto"} and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    if not _is_loopback(host):
        raise PermissionError(f"tests reach loopback only, not {host!r}")


sys.addaudithook(_refuse_network)


def _no_sleep(seconds: float) -> None:
    """Refused but to `subprocess`, which looks that way for the end of a process it waits for."""
    if sys._getframe(1).f_globals.get("__name__") == "subprocess":
        sleep(seconds)
        return
    raise AssertionError(f"time.sleep({seconds}) in a test: pass a clock in, or mark the test e2e")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: place(item.path.relative_to(ROOT / "tests")))
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in {"e2e", "live"}:
            item.add_marker(folder)
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root"))


@pytest.fixture(autouse=True)
def _world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(request.node.get_closest_marker(name) for name in MAY_SLEEP):
        monkeypatch.setattr(time, "sleep", _no_sleep)


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder whose name breaks whatever does not quote."""
    hostile = tmp_path / HOSTILE
    hostile.mkdir()
    return hostile


@pytest.fixture
def short_tmp() -> Iterator[Path]:
    """Hostile too, but short enough for a socket's path, and open to other users."""
    folder = Path(tempfile.mkdtemp(prefix="sp '\n"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def preloaded() -> Iterator[Preloaded]:
    """The process that services are forked from."""
    made = Preloaded()
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The recorded facts about Slurm and EC2 that lie beside the repository."""
    place = Path(os.environ.get("SKYPURZA_SHARED") or ROOT.parent / "shared")
    if not place.is_dir():
        pytest.skip(f"no recorded facts at {place}; SKYPURZA_SHARED names their place")
    return place
