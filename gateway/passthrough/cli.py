"""The site's own Slurm by its commands, in one folder of the login node."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broker.model.errors import Busy, Refused
from gateway.passthrough.facts import Facts
from gateway.passthrough.process import answer

NEEDED = ("sbatch", "squeue", "sinfo")
OURS = b"of SkyPurza, written by"
"""What the launchers of our own commands say in their second line."""
HEAD = 400
ASIDE = ("SLURM_CLUSTERS", "SCONTROL_ALL", "SLURM_TIME_FORMAT")
"""Variables that would make scontrol tell of something else."""


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


@dataclass(frozen=True, slots=True)
class CommandFacts:
    """`SiteFacts` by the site's scontrol, of any release."""

    site: SiteCommands
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    name: str = "scontrol"

    def read(self) -> Facts:
        lines = self._asked("show", "config").splitlines()
        told = {key.strip(): text.strip() for key, _, text in (x.partition("=") for x in lines)}
        shown = [
            dict(word.partition("=")[::2] for word in line.split())
            for line in self._asked("-a", "-o", "show", "partition").splitlines()
        ]
        parts = [part for part in shown if "PartitionName" in part]
        default = (part["PartitionName"] for part in parts if part.get("Default") == "YES")
        try:
            return Facts(
                cluster=told["ClusterName"],
                version=told["SLURM_VERSION"],
                partitions=tuple(part["PartitionName"] for part in parts),
                default=next(default, None),
                first_job=int(told["FirstJobId"]),
                max_job=int(told["MaxJobId"]),
                next_job=int(told["NEXT_JOB_ID"]),
            )
        except (KeyError, ValueError) as error:
            raise Busy(f"scontrol show config: {error} is not as Slurm shows it") from error

    def _asked(self, *words: str) -> str:
        """What it prints. Raises Busy."""
        environ = {key: text for key, text in self.environ.items() if key not in ASIDE}
        path = self.site.command(self.name)
        if path is None:
            raise Busy(f"there is no scontrol in {self.site.folder}")
        return answer(self.name, [path, *words], environ)
