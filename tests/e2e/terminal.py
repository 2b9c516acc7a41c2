"""A user who types `spz`, and the configuration of a service for clusters."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.service import ROOT, Ran, Service

CLUSTERS = """\
cluster: tests
kill_wait: 1
partitions:
  - {name: ec2, default: true, elastic: {max_nodes: 6, idle_seconds: 1}, def_mem_per_cpu: 1024}
providers:
  local: {boot_seconds: 0.2}
scheduling: {requeue_delay: 0}
"""


class Terminal:
    """A user who types `spz`."""

    def __init__(self, served: Service, home: Path) -> None:
        self.served, self.home = served, home
        served.users.append(home)
        self.environ = {
            **served.variables(),
            "HOME": str(home),
            "PATH": f"{home}/bin:/usr/bin:/bin",
            "SPZ_TEST_MARK": served.mark,
        }

    def __call__(self, *argv: str, text: str = "") -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli", *argv],
            env={**self.environ, "PYTHONPATH": str(ROOT)},
            cwd=self.home,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def json(self, *argv: str) -> Any:
        done = self(*argv, "-o", "json")
        assert done.code == 0, done
        return json.loads(done.out)

    def file(self, name: str, text: str) -> str:
        (self.home / name).write_text(text)
        return name
