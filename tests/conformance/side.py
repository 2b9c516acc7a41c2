"""One Slurm, a real one or ours: its commands, run as root or as somebody else."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from run import HERE, service, spz, state_directory

SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Side:
    """Where its commands are, and the variables that they need."""

    name: str
    bin: str
    environ: Mapping[str, str]

    def run(
        self, *words: str, user: str | None = None, cwd: str = "/"
    ) -> "subprocess.CompletedProcess[str]":
        home = {"HOME": f"/home/{user}", "USER": user} if user else {}
        return subprocess.run(
            words,
            executable=shutil.which(words[0], path=f"{self.bin}{os.pathsep}{SYSTEM}"),
            env={"PATH": SYSTEM, **home, **self.environ},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
            user=user,
            group=user,
            extra_groups=[] if user else None,
        )


def real(conf: str | Path) -> Side:
    """The Slurm that is configured there."""
    return Side("real", "/usr/bin", {"SLURM_CONF": str(conf)})


@contextmanager
def ours(*, keep: bool = False) -> Iterator[Side]:
    """The recorded site, served for as long as this lasts."""
    with state_directory(keep=keep) as home:
        (home / "site.yaml").write_text((HERE / "site.yaml").read_text())
        with service(home) as environ:
            commands = home / "commands"
            spz("shims", "install", "--prefix", str(commands), environ=environ)
            yield Side("ours", f"{commands}/bin", {})
