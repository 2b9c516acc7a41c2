"""The environment of a submission as accounting keeps it: sbatch's own variables among the rest."""

from broker.model.spec import TaskSpec
from gateway.translate.environment import pack, unpack

SHOWN_LIMITS = (
    "AS",
    "CORE",
    "CPU",
    "DATA",
    "FSIZE",
    "MEMLOCK",
    "NOFILE",
    "NPROC",
    "RSS",
    "STACK",
)
"""Limits that Slurm hands on."""
UNLIMITED = 1 << 64
"""Limits are written as unsigned numbers of 64 bits: what is -1 here is one less than this."""


def submitted(spec: TaskSpec, environment: bytes) -> bytes:
    """Entries separated by NUL: the submitter's, and what sbatch adds to them (25.11).

    Its variables for MPI launchers and SLURM_CONF are not here: nothing of Slurm's listens.
    """
    limits = {name: soft % UNLIMITED for name, soft, _hard in spec.rlimits}
    own = {
        "SLURM_PRIO_PROCESS": str(spec.nice_process),
        **{f"SLURM_RLIMIT_{name}": str(limits[name]) for name in SHOWN_LIMITS if name in limits},
        "SLURM_SUBMIT_DIR": spec.submit_dir,
        "SLURM_SUBMIT_HOST": spec.submit_host,
        "SLURM_UMASK": f"{spec.umask:04o}",
    }
    return pack({**unpack(environment), **{name: text for name, text in own.items() if text}})
