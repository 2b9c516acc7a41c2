"""The site's own Slurm by its commands, in one folder of the login node."""

import os
from dataclasses import dataclass
from pathlib import Path

from broker.model.errors import Refused

NEEDED = ("sbatch", "squeue", "sinfo")
OURS = b"of SkyPurza, written by"
"""What the launchers of our own commands say in their second line."""
HEAD = 400


@dataclass(frozen=True, slots=True)
class SiteCommands:
    """`SiteSlurm` by a folder such as /opt/slurm/bin."""

    folder: Path

    def command(self, program: str) -> str | None:
        path = self.folder / program
        return str(path) if os.access(path, os.X_OK) and not path.is_dir() else None


def site_commands(folder: str) -> SiteCommands:
    """Raises Refused for a folder that is not absolute, lacks commands, or holds our own."""
    found = SiteCommands(Path(folder))
    if not found.folder.is_absolute():
        raise Refused(f"passthrough.bin {folder!r} is no absolute path", hint="give the whole path")
    missing = [name for name in NEEDED if found.command(name) is None]
    if missing:
        raise Refused(
            f"passthrough.bin {folder} has no {', '.join(missing)}",
            hint="name the folder of the site's own commands",
        )
    with (found.folder / "sbatch").open("rb") as file:
        if OURS in file.read(HEAD):
            raise Refused(
                f"passthrough.bin {folder} holds the commands of this service: they would call "
                "themselves for ever",
                hint="name the folder of the site's own commands",
            )
    return found
