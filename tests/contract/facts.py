"""A site's Slurm in two shapes that say the same: commands, and a module of pyslurm's shape."""

from pathlib import Path

from gateway.passthrough.facts import Facts

FACTS = Facts(
    cluster="hpc",
    version="24.05.3",
    partitions=("cpu", "gpu"),
    default="cpu",
    first_job=1,
    max_job=899_999,
    next_job=4712,
)
"""What both shapes say."""
CONFIG = """\
Configuration data as of 2026-11-30T08:00:00
ClusterName             = hpc
FirstJobId              = 1
MaxJobId                = 899999
NEXT_JOB_ID             = 4712
PriorityParameters      = a=b
SLURM_VERSION           = 24.05.3
"""
PARTITIONS = """\
PartitionName=cpu AllowGroups=ALL AllowAccounts=ALL Default=YES State=UP
PartitionName=gpu AllowGroups=ml AllowAccounts=ALL Default=NO Hidden=YES State=UP
"""
SCONTROL = """\
#!/bin/sh
case "$SLURM_CLUSTERS$*" in
"show config") cat "${0%/*}/config" ;;
"-a -o show partition") cat "${0%/*}/partitions" ;;
*) echo "unasked: $*" >&2; exit 9 ;;
esac
"""
PYSLURM = """\
import sys
from types import SimpleNamespace as Made


class _Config:
    @staticmethod
    def load():
        return Made(
            cluster_name="hpc", version="24.05.3", first_job_id=1, max_job_id=899999,
            next_job_id=4712,
        )


class Partitions(dict):
    @staticmethod
    def load():
        names = {"cpu": True, "gpu": False}
        return Partitions({name: Made(name=name, is_default=it) for name, it in names.items()})


slurmctld = Made(Config=_Config)
"""


class Said:
    """A log that keeps what it was told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, object]]] = []

    def info(self, event: str, **fields: object) -> None:
        self.lines.append((event, fields))

    warning = info

    @property
    def events(self) -> list[str]:
        return [event for event, _ in self.lines]


def commands(folder: Path, *, broken: bool = False) -> Path:
    """A folder of a site's commands that answers what is asked of it."""
    folder.mkdir()
    (folder / "config").write_text(CONFIG)
    (folder / "partitions").write_text(PARTITIONS)
    for name in ("sbatch", "squeue", "sinfo", "scontrol"):
        (folder / name).write_text("#!/bin/sh\necho down >&2\nexit 1\n" if broken else SCONTROL)
        (folder / name).chmod(0o755)
    return folder


def library(folder: Path, *, broken: bool = False) -> Path:
    """A folder for PYTHONPATH with a pyslurm."""
    folder.mkdir()
    ends = "import os\nprint('fatal: no slurm.conf', file=sys.stderr)\nos._exit(1)\n"
    (folder / "pyslurm.py").write_text(PYSLURM + (ends if broken else ""))
    return folder
