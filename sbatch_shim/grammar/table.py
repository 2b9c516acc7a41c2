"""The shape of a row of the option tables, and the words its columns are written in."""

from __future__ import annotations

from collections import namedtuple

Opt = namedtuple("Opt", "long short arg kind cls cmds env_in env_out spec scontrol rest help same")
"""One option of some commands.

`arg`: NO, REQ, OPT (optional, then only attached) or OLD (older releases took one: a directive may
still have it, a warning says that it is ignored). `kind`: how its text is read, a key of
`check.READERS`. `cls`: CORE, ACCEPTED (kept in the spec), IGNORED (with a warning) or REFUSED.
`env_in`: the variables it is read from, those of each command between slashes, in the order of
`cmds`. `env_out`: what a job sees of it. `spec`: dotted path in the TaskSpec. `scontrol`, `rest`:
its key in `scontrol show job` and in slurmrestd's job description. `same`: the long name it is
another spelling of.
"""

NO, REQ, OPT, OLD = "none", "required", "optional", "old"
CORE, ACCEPTED, IGNORED, REFUSED = "core", "accepted", "ignored", "refused"

SBATCH = ("sbatch",)
SALLOC = ("salloc",)
SRUN = ("srun",)
ALL3 = ("sbatch", "salloc", "srun")
BATCH_ALLOC = ("sbatch", "salloc")
BATCH_RUN = ("sbatch", "srun")
ALLOC_RUN = ("salloc", "srun")

FLAG, TEXT, COUNT, ANY_COUNT, PIECES, TIME, MINUTES = (
    "flag", "text", "count", "any count", "pieces", "time", "minutes",
)  # fmt: skip
INSTANT, MEM, NODES, GEOMETRY, SIGNAL, MAIL = (
    "instant", "mem", "nodes", "geometry", "signal", "mail",
)  # fmt: skip
DIST, OPEN_MODE, EXCLUSIVE, SWITCHES, RLIMITS, YES_NO = (
    "distribution", "open mode", "exclusive", "switches", "rlimits", "yes or no",
)  # fmt: skip
NICE, PRIORITY, ROOT_ONLY, ZERO_ONE, CPU_FREQ, SPECIALIZE = (
    "nice", "priority", "root only", "zero or one", "cpu frequency", "specialize",
)  # fmt: skip
REPEAT, REQUEUE, HINT = "repeat", "requeue", "hint"
SAMPLING, GPU_BIND, GPU_FREQ, CPU_BIND, MEM_BIND, PROFILE, GRES_FLAGS = (
    "sampling", "gpu binding", "gpu frequency", "cpu binding", "memory binding", "profile",
    "gres flags",
)  # fmt: skip


def env_names(opt: Opt, command: str) -> list[str]:
    """The variables that give the option to `command`, the strongest last."""
    lists = opt.env_in.split("/")
    place = opt.cmds.index(command)
    return lists[place].split() if place < len(lists) else []
