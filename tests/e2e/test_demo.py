"""The demo: a service, the local provider and the commands as real processes."""

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "docs" / "examples" / "demo.py"


def test_the_demo_does_what_it_prints_and_leaves_nothing() -> None:
    done = subprocess.run(
        [sys.executable, DEMO], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("All jobs did what they print.\n")
    socket = next(line for line in done.stdout.splitlines() if "Service started" in line)
    assert not Path(socket.rpartition(" on ")[2]).parent.parent.exists()
