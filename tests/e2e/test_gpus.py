"""The use of GPUs as a program of the node's tells it, in sstat and sacct."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service, script, service

pytestmark = pytest.mark.e2e
SAYS = """#!/bin/sh
echo "$@" >> "{folder}/asked"
[ -e "{folder}/busy" ] && echo '90, 2048' || echo '10, 1024'
echo '30, 1024'
"""


@pytest.fixture
def served(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("gpus")
    script(folder, "nvidia-smi", SAYS.format(folder=folder))
    environ = {"PATH": f"{folder}:/usr/bin:/bin"}
    with service(preloaded, environ=environ) as made:
        made.folder = folder  # type: ignore[attr-defined]
        yield made


USAGE = "TRESUsageInAve,TRESUsageInMax"


def test_use_and_memory_are_sampled_while_a_step_runs(served: Service) -> None:
    folder: Path = served.folder  # type: ignore[attr-defined]
    job = served.wrap("until [ -e stop ]; do sleep 0.05; done", "--gres=gpu:2")
    served.wait(job, "RUNNING")

    def said() -> str:
        return served.run("sstat", "-anPj", str(job), "-o", USAGE).out.strip()

    first = "gres/gpumem=2G,gres/gpuutil=40"
    assert until(lambda: first in said() and said(), "a first look").count(first) == 2
    (folder / "busy").touch()
    highest = "gres/gpumem=3G,gres/gpuutil=120"
    until(lambda: said().endswith(highest), "a look while they are busy")
    assert (folder / "asked").read_text().splitlines()[0].startswith("--id=0,1 --query-gpu=")
    (served.work / "stop").touch()
    served.wait(job, "COMPLETED")
    usage = served.job(job).steps[0].usage
    assert (usage.gpu_util_max, usage.gpu_mem_mib) == (120, 3072)
    assert 40 < (usage.gpu_util or 0) < 120


def test_a_step_without_devices_asks_nothing(served: Service) -> None:
    job = served.wrap("sleep 0.5")
    served.wait(job, "COMPLETED")
    assert not (served.folder / "asked").exists()  # type: ignore[attr-defined]
    assert served.job(job).steps[0].usage.gpu_util is None
