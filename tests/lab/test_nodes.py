"""Jobs on several machines of the box: they enter each other, and nobody else enters them."""

from collections.abc import Iterator

import pytest

from tests.e2e.service import Preloaded, Service, service
from tests.lab.host import NO_SSHD, SSHD
from tests.lab.running import CREDENTIALS, Running, running
from tests.lab.test_service import CONFIG

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def lab() -> Iterator[Running]:
    if not SSHD:
        pytest.skip(NO_SSHD)
    with running("--speed", "30", "--ssh-port", "2227") as made:
        yield made


@pytest.fixture(scope="module")
def gateway(lab: Running) -> Iterator[Service]:
    config = CONFIG.format(
        endpoint=lab.endpoint,
        ssh_port=lab.ssh_port,
        ssh_user=lab.ssh_user,
        buy="instance_types: [m7i.large]",
    ).replace("idle_seconds: 2", "idle_seconds: 60")
    preloaded = Preloaded()
    try:
        with service(preloaded, config, environ=CREDENTIALS) as made:
            yield made
    finally:
        preloaded.close()


ALL = """\
for node in ec2-1 ec2-2 ec2-3 ec2-4; do
  ssh $node 'echo "$SLURM_JOB_ID $SLURMD_NODENAME $USER"'
done
cat "$SKYPURZA_HOSTFILE"
"""


def test_nodes_of_a_job_enter_each_other_by_name_as_its_user(gateway: Service) -> None:
    job = gateway.wrap(ALL, "-N4", "--ntasks-per-node=2", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    user, nodes = gateway.user.name, [f"ec2-{n}" for n in (1, 2, 3, 4)]
    assert gateway.file(f"slurm-{job}.out").splitlines() == [
        *(f"{job} {node} {user}" for node in nodes),
        *(f"{node} slots=2" for node in nodes),
    ]


def test_commands_work_in_jobs_on_machines_that_cannot_reach_the_service(gateway: Service) -> None:
    script = """\
squeue -h -j $SLURM_JOB_ID -o '%i %T %u'
srun -n4 -l sh -c 'echo $SLURM_PROCID $SLURMD_NODENAME' | sort
sbatch --parsable --hold --wrap true > held
scancel $(cat held)
scontrol show hostnames
env -u SKYPURZA_TOKEN squeue -h; echo $?
"""
    job = gateway.wrap(script, "-N2", "-n4", "--exclusive")
    gateway.wait(job, "COMPLETED", "FAILED")
    nodes = gateway.run("sacct", "-nPX", "-j", str(job), "-o", "nodelist").out.strip()
    names = gateway.run("scontrol", "show", "hostnames", nodes).out.split()
    assert gateway.file(f"slurm-{job}.out").splitlines() == [
        f"{job} RUNNING {gateway.user.name}",
        *(f"{rank}: {rank} {names[rank // 2]}" for rank in range(4)),
        *names,
        "squeue: error: this command runs in no job: it has no SKYPURZA_TOKEN",
        "1",
    ]
    held = int(gateway.file("held"))
    assert gateway.state(held) == "CANCELLED"
    assert gateway.job(held).owner.user == gateway.user.name
