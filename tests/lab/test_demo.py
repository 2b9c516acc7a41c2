"""The demo on the cloud in a box."""

import subprocess
import sys

import pytest

from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import ROOT


@pytest.mark.e2e
def test_the_demo_on_the_box_does_what_it_prints_and_leaves_no_machine() -> None:
    if not SSHD:
        pytest.skip(NO_SSHD)
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All jobs did what they print.\n" in done.stdout
