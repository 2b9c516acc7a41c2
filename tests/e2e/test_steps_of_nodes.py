"""Steps over several nodes on a real service: ranks, files, input, ends, kills."""

# ruff: noqa: E501 - a row stays on one line

import json
import shutil
import subprocess
import sys
import time

import pytest

from broker.providers.local import MACHINE
from broker.run.bootstrap import ARCHIVE
from broker.run.local import end_node
from tests.e2e.agents import until, with_argument
from tests.e2e.service import CONFIG, Preloaded, Service, service
from tests.e2e.test_srun import on_path, started

THREE = CONFIG.replace("own-[1-2]", "own-[1-3]").replace("cpus: 4", "cpus: 2")
WHERE = "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME $SLURM_GTIDS"


@pytest.fixture(scope="module")
def config() -> str:
    return THREE


@pytest.fixture(autouse=True)
def alone(served: Service) -> None:
    """The nodes are free: each test begins on the first of them."""
    until(lambda: not served.run("squeue", "-h").out, "jobs of before to be over")


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


def test_every_task_knows_its_place(served: Service) -> None:
    ran = served.run("srun", "-N3", "-n5", "-l", "bash", "-c", WHERE)
    assert (ran.code, ran.err) == (0, "")
    assert lines(ran.out) == [
        "0: 0 0 0 own-1 0,1",
        "1: 1 1 0 own-1 0,1",
        "2: 2 0 1 own-2 2,3",
        "3: 3 1 1 own-2 2,3",
        "4: 4 0 2 own-3 4",
    ]


# fmt: off
INSIDE = {
    "cyclic":     ("srun -n4 -m cyclic", ["0 0 0 own-1 0,3", "1 0 1 own-2 1", "2 0 2 own-3 2", "3 1 0 own-1 0,3"]),
    "some nodes": ("srun -N2 -n2", ["0 0 0 own-1 0", "1 0 1 own-2 1"]),
    "behind":     ("srun -r1 -N2 -n2", ["0 0 0 own-2 0", "1 0 1 own-3 1"]),
    "named":      ("srun -N1 -n1 -w own-3", ["0 0 0 own-3 0"]),
    "but for":    ("srun -N1 -n1 -x own-1", ["0 0 0 own-2 0"]),
    "arbitrary":  ("srun -m arbitrary -w own-2,own-1,own-2 -n3", ["0 0 1 own-2 0,2", "1 0 0 own-1 1", "2 1 1 own-2 0,2"]),
    "each node":  ("srun --ntasks-per-node=2", ["0 0 0 own-1 0,1", "1 1 0 own-1 0,1", "2 0 1 own-2 2,3", "3 1 1 own-2 2,3", "4 0 2 own-3 4,5", "5 1 2 own-3 4,5"]),
}
# fmt: on


@pytest.mark.parametrize("what", INSIDE)
def test_steps_are_placed_within_their_job(served: Service, what: str) -> None:
    command, expected = INSIDE[what]
    script = f"{command} bash -c '{WHERE}'"
    ran = served.run(
        "salloc", "-Q", "-N3", "--exclusive", "bash", "-c", script, env=on_path(served)
    )
    assert lines(ran.out) == expected


def test_each_task_runs_on_the_host_that_a_file_names(served: Service) -> None:
    (served.work / "hosts").write_text("own-2\nown-1\nown-2\n")
    environ = on_path(served) | {"SLURM_HOSTFILE": "hosts"}
    ran = served.run("srun", "-l", "printenv", "SLURMD_NODENAME", env=environ)
    assert lines(ran.out) == ["0: own-2", "1: own-1", "2: own-2"]


def test_files_of_all_nodes_are_whole(served: Service) -> None:
    text = "for i in $(seq 200); do echo $SLURM_PROCID $i; done"
    (served.work / "whole").write_text("of before\n")
    ran = served.run("srun", "-N3", "-n6", "-o", "whole", "bash", "-c", text)
    assert ran.code == 0
    found = lines((served.work / "whole").read_text())
    assert found == sorted(f"{rank} {n}" for rank in range(6) for n in range(1, 201))
    served.run("srun", "-N2", "-n3", "-o", "each-%n-%t", "bash", "-c", "echo $SLURMD_NODENAME")
    each = {path.name: path.read_text() for path in served.work.glob("each-*")}
    assert each == {"each-0-0": "own-1\n", "each-0-1": "own-1\n", "each-1-2": "own-2\n"}


def test_input_reaches_the_tasks_of_all_nodes(served: Service) -> None:
    with started(served, "srun", "-N2", "-n3", "-l", "cat") as process:
        out, _ = process.communicate(b"hello\n" * 1000, timeout=20)
    assert lines(out.decode()) == sorted(f"{rank}: hello" for rank in range(3) for _ in range(1000))


def test_input_of_one_task_ends_though_other_nodes_are_done(served: Service) -> None:
    with started(served, "srun", "-N2", "-n3", "-i1", "-l", "cat") as process:
        out, _ = process.communicate(b"hello\n" * 1000, timeout=20)
    assert (lines(out.decode()), process.returncode) == (["1: hello"] * 1000, 0)


def test_ends_are_told_by_node_and_the_worst_counts(served: Service) -> None:
    ran = served.run("srun", "-N2", "-n2", "bash", "-c", "exit $((SLURM_PROCID + 2))")
    assert ran.code == 3
    assert lines(ran.err) == [
        "srun: error: own-1: task 0: Exited with exit code 2",
        "srun: error: own-2: task 1: Exited with exit code 3",
    ]


@pytest.mark.parametrize(
    ("option", "command", "code", "said"),
    [
        ("-K", "[ $SLURM_PROCID = 1 ] && exit 3; sleep 60", 143, "own-1: task 0: Terminated"),
        ("-W1", "[ $SLURM_PROCID = 1 ] && exit 0; sleep 60", 137, "own-1: task 0: Killed"),
    ],
)
def test_tasks_of_other_nodes_are_ended_where_that_is_wished(
    served: Service, option: str, command: str, code: int, said: str
) -> None:
    ran = served.run("srun", "-N2", "-n2", option, "bash", "-c", command)
    assert ran.code == code
    assert f"srun: error: {said}\n" in ran.err
    assert ran.err.count("*** STEP") == 1, "only the first node tells it"


def test_a_cancelled_step_leaves_nothing_on_any_node(served: Service) -> None:
    with started(served, "srun", "-N3", "-n3", "sleep", "987") as process:
        until(lambda: served.run("squeue", "-h", "-s").out.count(".0") == 1, "the step to run")
        found = served.run("squeue", "-h", "-s", "-o", "%i %N")
        step, nodes = found.out.split()
        assert nodes == "own-[1-3]"
        served.run("scancel", step)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 137
    assert lines(err.decode())[-3:] == [
        f"srun: error: own-{n}: task {n - 1}: Killed" for n in (1, 2, 3)
    ]
    until(lambda: not served.run("squeue", "-h").out, "the job to be over")


def test_the_accounts_of_a_step_have_all_of_its_nodes(served: Service) -> None:
    served.run("srun", "-N2", "-n3", "true")
    fields = "jobname,alloctres,nodelist,ntasks,layout"
    last = served.run("sacct", "-nPX", "-o", "jobid").out.split()[-1]
    rows = served.run("sacct", "-nP", "-j", last, "-o", fields).out.splitlines()
    assert rows[-1] == "true|cpu=3,mem=300M,node=2|own-[1-2]|3|Block"


RING = """\
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank, size, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of %d: %d on %s\\n", rank, size, sum, getenv("SLURMD_NODENAME"));
    MPI_Finalize();
}
"""
LOOPBACK = (
    "--allow-run-as-root --mca btl self,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo"
)
"""The nodes are one host here, which Open MPI must not take for shared memory."""


@pytest.mark.skipif(shutil.which("mpicc") is None, reason="needs Debian's libopenmpi-dev")
def test_open_mpis_mpirun_starts_its_ranks_on_all_nodes_by_srun(served: Service) -> None:
    (served.work / "ring.c").write_text(RING)
    subprocess.run(["mpicc", "-o", "ring", "ring.c"], cwd=served.work, check=True)
    script = f"mpirun {LOOPBACK} ./ring"
    job = served.wrap(script, "-N3", "-n6", env=on_path(served))
    served.wait(job, "COMPLETED")
    found = lines(served.file(f"slurm-{job}.out"))
    assert found == [f"{rank} of 6: 15 on own-{rank // 2 + 1}" for rank in range(6)]


def test_hosts_of_a_rendezvous_are_those_of_the_job(served: Service) -> None:
    """As scripts for torchrun find the first of them."""
    script = "scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1; scontrol show hostnames"
    ran = served.run("salloc", "-Q", "-N3", "bash", "-c", script, env=on_path(served))
    assert ran.out.splitlines() == ["own-1", "own-1", "own-2", "own-3"]


def test_sbcast_copies_a_file_to_every_node_of_the_job(served: Service) -> None:
    """The nodes are one host here: the later one finds the file of the earlier."""
    source, dest = served.work / "tool", served.work / "copy"
    source.write_bytes(bytes(range(256)) * 4_000)
    source.chmod(0o750)
    words = f'sbcast {{}} tool "{dest}"; echo $?'
    argv = ("salloc", "-Q", "-N1", "bash", "-c")
    assert served.run(*argv, words.format("-p"), env=on_path(served)).out == "0\n"
    assert dest.read_bytes() == source.read_bytes()
    assert dest.stat().st_mode == source.stat().st_mode
    assert int(dest.stat().st_mtime) == int(source.stat().st_mtime)
    again = served.run(*argv, words.format(""), env=on_path(served))
    assert again.out == "17\n"
    assert again.err == "sbcast: error: REQUEST_FILE_BCAST(own-1): File exists\n"
    assert served.run(*argv, "sbcast tool /proc/x; echo $?", env=on_path(served)).out == "2\n"
    forced = served.run(*argv[:2], "-N2", *argv[3:], words.format("-f"), env=on_path(served))
    assert (forced.out, forced.err) == ("0\n", "")
    missing = served.run(*argv, "sbcast nosuch /tmp/x; echo $?", env=on_path(served))
    assert missing.err == "sbcast: error: Can't open `nosuch`: No such file or directory\n"
    assert missing.out == "255\n"


def test_sbcast_streams_what_a_node_does_not_see(served: Service) -> None:
    """What is sent has gone from its place when the nodes would look for it."""
    content = bytes(range(256)) * 40_000
    (served.work / "gone").write_bytes(content)
    words = "exec 3< gone; rm gone; sbcast /dev/fd/3 there; cmp there kept && echo same"
    (served.work / "kept").write_bytes(content)
    ran = served.run("salloc", "-Q", "-N1", "bash", "-c", words, env=on_path(served))
    assert (ran.out, ran.err) == ("same\n", "")


def test_a_node_that_dies_takes_its_job_and_what_runs_elsewhere_with_it(
    preloaded: Preloaded,
) -> None:
    """The machine ends while the service is down, which finds it gone when it comes again."""
    with service(preloaded) as served:
        words = ("-p", "ec2", "-N2", "-n2", "--no-requeue")
        job = served.wrap("srun sleep 876", *words, env=on_path(served))
        until(lambda: ".0" in served.run("squeue", "-h", "-s").out, "the step to run")
        nodes = served.run("squeue", "-h", "-j", str(job), "-o", "%N").out
        assert nodes == "ec2-[1-2]\n"
        served.kill()
        folder = next(served.home.glob("machines/ec2-2.*"))
        end_node(folder, archive=ARCHIVE, python=sys.executable)
        state = folder / MACHINE
        held = json.loads(state.read_text())
        held |= {"state": "terminated", "terminated_at": int(time.time())}
        state.write_text(json.dumps(held))
        served.start()
        served.wait(job, "NODE_FAIL")
        rows = served.run("sacct", "-nP", "-j", str(job), "-o", "jobid,state,exitcode").out
        assert f"{job}|NODE_FAIL|1:0" in rows.splitlines()
        assert f"{job}.0|NODE_FAIL|1:0" in rows.splitlines()
        until(lambda: not with_argument("876"), "nothing to be left on the other node")
