"""Heterogeneous jobs on a real service: one command in several components."""

import pytest

from tests.e2e.service import Service

pytestmark = pytest.mark.e2e
COMMANDS = """#!/bin/sh
srun -n1 --het-group=1 sh -c 'echo one $SLURM_JOB_ID'
srun -n1 --het-group=0,1 -l sh -c 'echo both $SLURM_JOB_ID' | sort
srun -n1 --het-group=0-1 sh -c 'exit 4'
echo status $?
srun --het-group=0,5 true
echo status $?
srun --het-group=x true
srun --het-group=1 sh -c 'echo two $SLURM_NTASKS' | sort
srun sh -c 'echo a $SLURM_JOB_ID' : -n1 echo b | sort
"""


def test_srun_runs_in_the_components_that_it_names(served: Service) -> None:
    (served.work / "gang.sh").write_text(COMMANDS)
    path = {"PATH": f"{served.bin}:/usr/bin:/bin"}
    words = ["-n1", "--mem=50", "-o", "gang.out", ":", "-n2", "--mem=60", "gang.sh"]
    leader = served.submit(*words, env=path)
    served.wait(leader, "COMPLETED")
    lines = served.file("gang.out").splitlines()
    nodes = [served.job(job).last_node_names[0] for job in (leader, leader + 1)]
    told = [f"srun: error: {node}: task 0: Exited with exit code 4" for node in nodes]
    assert [*lines[:3], *sorted(lines[3:5]), *lines[5:]] == [
        f"one {leader + 1}",
        f"0: both {leader}",
        f"0: both {leader + 1}",
        *sorted(told),
        "status 4",
        "srun: error: Requested het-group offset exceeds highest hetjob index (5 > 1)",
        "status 1",
        "srun: fatal: Invalid --het-group specification: x",
        *["two 2"] * 2,
        f"a {leader}",
        "b",
    ]
