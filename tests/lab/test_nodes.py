"""Jobs on several machines of the box: they enter each other, and nobody else enters them."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.e2e.test_steps_of_nodes import LOOPBACK, RING
from tests.lab.boxed import boxed
from tests.lab.broken import cut_off
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded, lab: Running) -> Iterator[Service]:
    with boxed(preloaded, lab, idle=60) as made:
        yield made


ALL = """\
for node in ec2-1 ec2-2 ec2-3 ec2-4; do
  ssh $node 'echo "$SLURM_JOB_ID $SLURMD_NODENAME $USER"'
done
cat "$SKYPURZA_HOSTFILE"
"""


def test_nodes_of_a_job_enter_each_other_by_name_as_its_user(
    gateway: Service, lab: Running
) -> None:
    job = gateway.wrap(ALL, "-N4", "--ntasks-per-node=2", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    user, nodes = gateway.user.name, [f"ec2-{n}" for n in (1, 2, 3, 4)]
    assert gateway.file(f"slurm-{job}.out").splitlines() == [
        *(f"{job} {node} {user}" for node in nodes),
        *(f"{node} slots=2" for node in nodes),
    ]
    kits = lab.state / "m"
    until(lambda: not list(kits.glob("*/home/node/kits/*")), "its keys to be gone everywhere")


def names(gateway: Service, job: int) -> list[str]:
    nodes = gateway.run("sacct", "-nPX", "-j", str(job), "-o", "nodelist").out.strip()
    return gateway.run("scontrol", "show", "hostnames", nodes).out.split()


COMMANDS = """\
squeue -h -j $SLURM_JOB_ID -o '%i %u'
srun -N4 -n8 -l sh -c 'echo $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME' | sort -n
sbatch --parsable --hold --wrap true > held
scancel $(cat held)
scontrol show hostnames
env -u SKYPURZA_TOKEN squeue -h; echo $?
"""


def test_commands_work_in_jobs_on_machines_that_cannot_reach_the_service(gateway: Service) -> None:
    job = gateway.wrap(COMMANDS, "-N4", "-n8", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    nodes = names(gateway, job)
    assert gateway.file(f"slurm-{job}.out").splitlines() == [
        f"{job} {gateway.user.name}",
        *(f"{rank}: {rank % 2} {rank // 2} {nodes[rank // 2]}" for rank in range(8)),
        *nodes,
        "squeue: error: this command runs in no job: it has no SKYPURZA_TOKEN",
        "1",
    ]
    held = int(gateway.file("held"))
    assert gateway.state(held) == "CANCELLED"
    assert gateway.job(held).owner.user == gateway.user.name


RENDEZVOUS = """\
import os, socket
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
head, port = os.environ["SKYPILOT_NODE_IPS"].split()[0], 20000 + int(os.environ["SLURM_JOB_ID"])
if rank == 0:
    door = socket.create_server((head, port))
    told = {0}
    while len(told) < size:
        guest = door.accept()[0]
        told.add(int(guest.makefile().readline()))
        guest.close()
    print(sorted(told))
else:
    while True:
        try:
            guest = socket.create_connection((head, port))
            break
        except ConnectionRefusedError:
            pass
    guest.sendall(b"%d\\n" % rank)
"""
"""As torchrun's: all find the first node and tell it their ranks."""


def test_programs_of_all_machines_meet_at_the_first(gateway: Service) -> None:
    (gateway.work / "meet.py").write_text(RENDEZVOUS)
    job = gateway.wrap("srun /usr/bin/python3 meet.py", "-N4", "-n4", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    assert gateway.file(f"slurm-{job}.out") == "[0, 1, 2, 3]\n"


MPI = f"""\
mpirun {LOOPBACK} ./ring
mpirun {LOOPBACK} --mca plm rsh --mca ras ^slurm --hostfile $SKYPURZA_HOSTFILE -np 4 ./ring
"""


@pytest.mark.skipif(shutil.which("mpicc") is None, reason="needs Debian's libopenmpi-dev")
def test_open_mpi_starts_its_ranks_by_srun_and_by_ssh(gateway: Service) -> None:
    (gateway.work / "ring.c").write_text(RING)
    subprocess.run(["mpicc", "-o", "ring", "ring.c"], cwd=gateway.work, check=True)
    job = gateway.wrap(MPI, "-N4", "-n4", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    found = [line.split(" on ")[0] for line in gateway.file(f"slurm-{job}.out").splitlines()]
    assert sorted(line for line in found if " of " in line) == [
        f"{rank} of 4: 6" for rank in range(4) for _ in range(2)
    ]


def machine_of(gateway: Service, node: str) -> str:
    rows = gateway.rows("select doc from nodes where name = ? and gone = 0", node)
    return str(json.loads(rows[0][0])["machine"]["id"])


SURVIVES = """\
echo x >> {name}
[ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ] || srun sh -c 'echo up >> {name}.up; sleep 600' || true
"""


def test_a_machine_that_breaks_ends_its_job_or_has_it_run_again_or_go_on_without(
    gateway: Service, lab: Running
) -> None:
    jobs = {
        name: gateway.wrap(SURVIVES.format(name=name), "-N2", "-n2", "--exclusive", f"--{name}")
        for name in ("requeue", "no-requeue", "no-kill")
    }
    for name, job in jobs.items():
        gateway.wait_file(f"{name}.up", "up\nup\n")
        node = gateway.job(job).shares[1].node
        lab.set("kill", id=machine_of(gateway, node))
    gateway.wait(jobs["requeue"], "COMPLETED")
    gateway.wait(jobs["no-requeue"], "NODE_FAIL")
    gateway.wait(jobs["no-kill"], "COMPLETED")
    assert [gateway.file(name) for name in jobs] == ["x\nx\n", "x\n", "x\n"]
    assert [gateway.job(job).restarts for job in jobs.values()] == [1, 0, 0]


CUT = float(os.environ.get("SKYPURZA_TEST_CUT") or 4)
"""Seconds; `make chaos` takes 30."""


def test_a_job_goes_on_while_its_machine_cannot_be_reached_and_ends_once(
    gateway: Service, lab: Running
) -> None:
    job = gateway.wrap(f"echo begun; sleep {CUT / 2}; date +%s.%N > ended; exit 3")
    gateway.wait_file(f"slurm-{job}.out", "begun")
    with cut_off(lab.state, CUT):
        until_end = time.time() + CUT
    gateway.wait(job, "FAILED")
    assert gateway.exit(job) == (3, 0)
    assert float(gateway.file("ended")) < until_end, "it went on meanwhile"
    assert gateway.job(job).restarts == 0
    ends = "select count(*) from events where job = ? and kind = 'Ended'"
    assert gateway.rows(ends, job) == [(1,)]
