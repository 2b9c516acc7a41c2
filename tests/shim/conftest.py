"""Installed commands, and ways to run them."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sbatch_shim.install import install

BARE = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands below a prefix, which talk to `socket`."""

    prefix: Path
    socket: Path

    def run(
        self,
        *argv: str | bytes,
        env: Mapping[str, str] | Mapping[bytes, bytes] | None = None,
        stdin: bytes = b"",
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        """Runs one to its end; the environment is empty unless given."""
        program, *rest = argv
        words: Sequence[str | bytes] = [str(self.prefix / "bin" / str(program)), *rest]
        return subprocess.run(
            words, env=env or {}, input=stdin, cwd=cwd, capture_output=True, check=False
        )

    def impatient(self, program: str) -> Path:
        """A launcher that gives up at once."""
        text = (self.prefix / "bin" / program).read_text()
        path = self.prefix / "impatient" / program
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.rstrip().removesuffix(")") + ", 0.0)\n")
        path.chmod(0o755)
        return path


@pytest.fixture(scope="module")
def commands() -> Iterator[Commands]:
    if not os.access(BARE, os.X_OK):
        pytest.skip(f"no {BARE} here")
    with tempfile.TemporaryDirectory(prefix="sp '\"\n") as folder:
        prefix = Path(folder)
        socket = prefix / "s"
        install(prefix, socket, "slurm 25.11.7")
        yield Commands(prefix, socket)
