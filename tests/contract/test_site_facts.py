"""What is read of a site's own Slurm is the same by its commands and by pyslurm."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.model.errors import Busy
from gateway.passthrough.cli import CommandFacts, site_commands
from gateway.passthrough.facts import SiteFacts
from gateway.passthrough.pyslurm import PyslurmFacts, importable
from tests.contract.facts import FACTS, commands, library

Make = Callable[[Path, bool], SiteFacts]


def by_commands(where: Path, broken: bool) -> SiteFacts:
    folder = commands(where / "bin dir", broken=broken)
    return CommandFacts(site_commands(str(folder)), {**os.environ, "SLURM_CLUSTERS": "other"})


def by_library(where: Path, broken: bool) -> SiteFacts:
    path = str(library(where / "lib dir", broken=broken))
    return PyslurmFacts({**os.environ, "PYTHONPATH": path})


@pytest.fixture(params=[by_commands, by_library])
def make(request: pytest.FixtureRequest) -> Make:
    made: Make = request.param
    return made


def test_the_site_is_read(make: Make, tmp_path: Path) -> None:
    assert make(tmp_path, False).read() == FACTS


def test_a_site_that_does_not_answer_is_said_to_be_so(make: Make, tmp_path: Path) -> None:
    with pytest.raises(Busy, match=r"(scontrol: down|pyslurm: fatal: no slurm\.conf)"):
        make(tmp_path, True).read()


def test_what_scontrol_does_not_say_is_named(tmp_path: Path) -> None:
    folder = commands(tmp_path / "bin")
    (folder / "config").write_text("ClusterName = hpc\n")
    with pytest.raises(Busy, match="SLURM_VERSION"):
        CommandFacts(site_commands(str(folder))).read()


def test_what_the_library_prints_and_leaves_out_harms_nothing(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib")
    environ = {**os.environ, "PYTHONPATH": str(folder)}
    file = folder / "pyslurm.py"
    file.write_text("print('hello')\n" + file.read_text())
    assert PyslurmFacts(environ).read().cluster == "hpc"
    file.write_text(file.read_text().replace("next_job_id=4712,", ""))
    with pytest.raises(Busy, match="next_job_id"):
        PyslurmFacts(environ).read()


def test_the_library_is_not_loaded_into_the_service() -> None:
    importable()
    assert "pyslurm" not in sys.modules
