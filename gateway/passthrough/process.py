"""A process that is asked about the site's own Slurm, and its answer."""

import subprocess
from collections.abc import Mapping, Sequence

from broker.model.errors import Busy

PATIENCE = 10.0
"""Seconds for each answer."""


def answer(name: str, argv: Sequence[str], environ: Mapping[str, str]) -> str:
    """What it prints. Raises Busy, with its name and last words, where it fails or takes long."""
    try:
        done = subprocess.run(argv, env=environ, capture_output=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Busy(f"{name}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        raise Busy(f"{name}: {said[-1] if said else f'ended with {done.returncode}'}")
    return done.stdout.decode(errors="replace")
