"""What the commands are made of: their names, and the files that they are run from."""

# fmt: off
PROGRAMS = (
    "sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol", "srun", "salloc", "sattach",
    "sbcast", "sacctmgr", "sdiag", "seff", "sprio", "sreport", "sshare", "sstat",
)
# fmt: on
"""Every name that the shim is installed under."""
MODULES = {
    "shim.py": "shim.py",
    "interact.py": "interact.py",
    "line.py": "line.py",
    "child.py": "child.py",
    "seldom.py": "seldom.py",
    "offline.py": "offline.py",
    "prompt.py": "prompt.py",
    "grammar/hostlist.py": "sbatch_shim/grammar/hostlist.py",
    "grammar/values.py": "sbatch_shim/grammar/values.py",
}
"""In this package, and below the library of an installation. All are byte-compiled; the second to
fourth are loaded by srun, salloc and sattach alone, those behind them for a prompt, where there is
no service, or beside a Slurm of the site's own."""
