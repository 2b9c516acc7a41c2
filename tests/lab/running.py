"""A box as a process of its own, for tests, and a box in this process whose clock a test turns."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

ROOT = Path(__file__).parents[2]
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "box", "AWS_SECRET_ACCESS_KEY": "box"}
"""Any will do."""
SYSTEM_PYTHON = "/usr/bin/python3"
ONCE = Config(
    retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=30, max_pool_connections=20
)


@dataclass(frozen=True, slots=True)
class Ways:
    """To a box: AWS's own by boto3, and its pages."""

    endpoint: str

    def client(self, service: str = "ec2", region: str = "us-east-1") -> Any:
        """Of boto3, without retries."""
        return boto3.client(
            service,
            region,
            endpoint_url=self.endpoint,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=ONCE,
        )

    def get(self, page: str) -> Any:
        with urllib.request.urlopen(f"{self.endpoint}/lab/{page}", timeout=30) as answer:
            return json.loads(answer.read())

    def set(self, page: str, **given: Any) -> Any:
        """Raises HTTPError where the box does not take it."""
        asked = urllib.request.Request(
            f"{self.endpoint}/lab/{page}", data=json.dumps(given).encode(), method="POST"
        )
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.loads(answer.read())


@dataclass(frozen=True, slots=True)
class Running(Ways):
    """A box in a process of its own."""

    process: subprocess.Popen[str]
    state: Path
    ssh_port: int
    ssh_user: str

    def machines(self) -> list[dict[str, Any]]:
        return list(self.get("state")["machines"])

    def living(self) -> list[dict[str, Any]]:
        return [m for m in self.machines() if m["state"] in {"pending", "running"}]

    def aws(self) -> str:
        """Lines of a service's configuration: its EC2 is the box."""
        return f"""\
aws:
  endpoint_url: {self.endpoint}
  ssh_port: {self.ssh_port}
  ssh_user: {self.ssh_user}
  sudo: false
  node_folder: ~/node
  write_etc: false
"""


def for_all(environ: dict[str, str]) -> str:
    """A Python that any user can start, with our packages; skips the test where there is none."""
    wanted = f"Python {sys.version_info.major}.{sys.version_info.minor}."
    found = subprocess.run([SYSTEM_PYTHON, "-V"], capture_output=True, text=True, check=False)
    if not found.stdout.startswith(wanted):
        pytest.skip(f"{SYSTEM_PYTHON} is not {wanted}x, and ours lies in a folder of its own")
    environ["PYTHONPATH"] = str(Path(boto3.__file__).parents[1])
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    return SYSTEM_PYTHON


@contextmanager
def running(*options: str, user: str | None = None) -> Iterator[Running]:
    """Ends with the test, however that ends: the box's stdin is ours."""
    state = Path(tempfile.mkdtemp(prefix="spz-lab-", dir="/tmp"))
    python, environ = sys.executable, dict(os.environ)
    if user is not None:
        shutil.chown(state, user)
        python = for_all(environ)
    argv = [python, "-m", "tests.lab", "--tied", "--state", str(state), *options]
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        user=user,
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield Running(told["endpoint"], process, state, int(told["ssh_port"]), told["ssh_user"])
        finally:
            process.terminate()
            process.wait(timeout=30)
            shutil.rmtree(state, ignore_errors=True)


@contextmanager
def here(clock: Callable[[], float], **delays: float) -> Iterator[Ways]:
    """In this process, by that clock; nothing runs on its machines."""
    from tests.lab.app import Lab, Server, new_box
    from tests.lab.machines import Delays, NoHosts
    from tests.lab.wares import Wares
    from tests.lab.weather import Weather

    box = new_box(NoHosts(), clock, Delays(**delays), weather=Weather(), wares=Wares.bundled())
    server = Server(Lab(box))
    server.start()
    try:
        yield Ways(server.endpoint)
    finally:
        server.close()
