"""A real service in a folder of its own, for benches; and the lines that they print."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from sbatch_shim.install import install  # noqa: E402 - the path comes first

BARE = ["/usr/bin/python3", "-IS", "-c", "pass"]
VERSION = "slurm 25.11.7"
START_SECONDS = 30.0
CONFIG = "cluster: bench\n"


@dataclass(frozen=True, slots=True)
class Running:
    """A service that answers: its process, its socket, the commands for it."""

    pid: int
    socket: Path
    bin: Path

    def rss_mib(self) -> float:
        """Resident memory now."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        kib = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        return int(kib) / 1024


def as_it_is(home: Path) -> Mapping[str, str]:
    """Nothing is prepared."""
    return {}


@contextmanager
def service(
    prepare: Callable[[Path], Mapping[str, str]] = as_it_is, config: str = CONFIG
) -> Iterator[Running]:
    """Starts `spz serve`, waits for its first answer, ends it.

    `prepare` may fill its home before; it returns further variables of the service.
    """
    with tempfile.TemporaryDirectory(prefix="spz-bench-") as folder:
        home = Path(folder)
        socket = home / "gateway.sock"
        install(home / "shims", socket, VERSION)
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("SKYPURZA_", "SLURM"))}
        environ |= prepare(home)
        process = subprocess.Popen(
            [Path(sys.executable).parent / "spz", "serve"],
            env={**environ, "SKYPURZA_HOME": str(home), "SKYPURZA_CONFIG": _config(home, config)},
            cwd=home,
            stdin=subprocess.DEVNULL,
        )
        try:
            running = Running(process.pid, socket, home / "shims" / "bin")
            _wait(running, process)
            yield running
        finally:
            process.terminate()
            process.wait(START_SECONDS)


def _config(home: Path, text: str) -> str:
    path = home / "config.yaml"
    path.write_text(text, encoding="ascii")
    return str(path)


def _wait(running: Running, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        done = subprocess.run(
            [running.bin / "squeue", "-h"], env={}, capture_output=True, check=False
        )
        if done.returncode == 0:
            return
        time.sleep(0.2)
    raise SystemExit(f"the service did not answer (exit status {process.poll()})")


def report(name: str, value: float, *, unit: str, budget: float, least: bool = False) -> bool:
    """Prints one figure against its budget, which is the most unless `least`."""
    fine = value >= budget if least else value <= budget
    sys.stdout.write(f"{name} {value:.3f} {unit} {budget:g} {'ok' if fine else 'OVER'}\n")
    sys.stdout.flush()
    return fine


def whole_process_ms(argv: list[str]) -> float:
    """Start to exit of a command, its output thrown away."""
    began = time.perf_counter()
    subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return (time.perf_counter() - began) * 1000
