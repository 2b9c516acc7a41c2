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
srun --het-group=0 true : --het-group=0 true
srun --het-group=0,1 --multi-prog rows
srun --het-group=1 sh -c 'echo two $SLURM_NTASKS' | sort
srun -l sh -c 'echo a $SLURM_PROCID/$SLURM_NTASKS' : -n1 sh -c 'echo b $SLURM_PROCID' | sort
srun -l echo alone
"""


def test_srun_runs_in_the_components_that_it_names(served: Service) -> None:
    (served.work / "gang.sh").write_text(COMMANDS)
    (served.work / "rows").write_text("* true\n")
    path = {"PATH": f"{served.bin}:/usr/bin:/bin"}
    words = ["-n1", "--mem=50", "-o", "gang.out", ":", "-n2", "--mem=60", "gang.sh"]
    leader = served.submit(*words, env=path)
    served.wait(leader, "COMPLETED")
    lines = served.file("gang.out").splitlines()
    nodes = [served.job(job).last_node_names[0] for job in (leader, leader + 1)]
    told = [f"srun: error: {node}: task 0: Exited with exit code 4" for node in nodes]
    assert [*lines[:3], *sorted(lines[3:5]), *lines[5:]] == [
        f"one {leader}",
        f"0: both {leader}",
        f"1: both {leader}",
        *sorted(told),
        "status 4",
        "srun: error: Requested het-group offset exceeds highest hetjob index (5 > 1)",
        "status 1",
        "srun: fatal: Invalid --het-group specification: x",
        "srun: fatal: Duplicate het groups in single srun not supported",
        "srun: fatal: --multi-prog option not supported with multiple het groups",
        *["two 2"] * 2,
        "0: a 0/2",
        "1: b 1",
        "0: alone",
    ]


OUTSIDE = r"""\
n='echo $SLURM_PROCID'
srun -l -n1 sh -c "$n/\$SLURM_NTASKS" : -n2 sh -c "$n/\$SLURM_NNODES" | sort
srun -n1 sh -c 'exit 4' : -n1 true; echo status $?
srun -n1 true : -p nosuch true
srun -n1 true : --version
srun -n1 : -n2 echo same
in='srun -l echo in; srun -n1 echo a : echo b | sort'
salloc -Q -n1 : -n2 sh -c "echo \$SLURM_HET_SIZE \$SLURM_NTASKS; $in"
"""


def test_several_components_get_an_allocation_of_their_own(served: Service) -> None:
    path = {"PATH": f"{served.bin}:/usr/bin:/bin"}
    done = served.run("/bin/sh", "-c", OUTSIDE, env=path)
    node = done.err.split()[2]
    assert done.out.splitlines() == [
        *("0: 0/3", "1: 1/2", "2: 2/2"),
        *("status 4", "slurm 25.11.7", *["same"] * 3),
        *("2 3", "0: in", "a", "b", "b"),
    ]
    assert done.err.splitlines() == [
        f"srun: error: {node} task 0: Exited with exit code 4",
        "srun: error: invalid partition specified: nosuch",
        "srun: error: Unable to allocate resources: Invalid partition name specified",
    ]
