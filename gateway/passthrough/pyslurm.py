"""The site's own Slurm read through pyslurm, in a process of its own.

libslurm ends its process where it finds no configuration, and pyslurm changes how libraries are
loaded: neither may happen to the service. Written against pyslurm 25.11.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from broker.model.errors import Busy
from gateway.passthrough.facts import Facts
from gateway.passthrough.process import answer

LIBRARY = "pyslurm"


def importable() -> bool:
    """Whether it is installed here; it is not loaded for that."""
    return find_spec(LIBRARY) is not None


@dataclass(frozen=True, slots=True)
class PyslurmFacts:
    """`SiteFacts` by libslurm's calls."""

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    name: str = LIBRARY

    def read(self) -> Facts:
        # -P: the folder that we are in would be found before what is installed
        command = [sys.executable, "-P", "-m", __name__]
        lines = answer(self.name, command, self.environ).splitlines()
        try:
            told = json.loads(lines[-1])  # libraries may have said something before
            return Facts(**{**told, "partitions": tuple(told["partitions"])})
        except (ValueError, LookupError, TypeError) as error:
            raise Busy(f"pyslurm: {error} is not as version 25.11 has it") from error


def facts(pyslurm: Any) -> Facts:
    """What the library says. Raises its errors."""
    config = pyslurm.slurmctld.Config.load()
    partitions = list(pyslurm.Partitions.load().values())
    return Facts(
        cluster=config.cluster_name,
        version=config.version,
        partitions=tuple(part.name for part in partitions),
        default=next((part.name for part in partitions if part.is_default), None),
        first_job=config.first_job_id,
        max_job=config.max_job_id,
        next_job=config.next_job_id,
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(facts(import_module(LIBRARY)))))
