"""A service whose EC2 is the box: refusals, gangs, reservations, losses, money."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service
from tests.lab.boxed import ONE_TYPE, PATIENCE, SPZ, billed, boxed, nodes_gone, posted
from tests.lab.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SPEED = 30


@pytest.fixture(scope="module")
def options() -> tuple[str, ...]:
    return ("--speed", str(SPEED))


@contextmanager
def served(
    preloaded: Preloaded,
    lab: Running,
    buy: str = ONE_TYPE,
    *,
    reserved: Sequence[Mapping[str, Any]] = (),
    quotas: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Service]:
    """A service of this box with what its partition may buy; afterwards all its machines go."""
    lab.set("clear")
    for one in reserved:
        lab.set("reservation", **one)
    for one in quotas:
        lab.set("quota", **one)
    try:
        with boxed(preloaded, lab, buy) as made:
            yield made
    finally:
        for machine in lab.living():
            lab.set("kill", id=machine["id"])


def launches(lab: Running, since: float) -> list[dict[str, Any]]:
    return called(lab, since, "RunInstances", "CreateFleet")


def called(lab: Running, since: float, *actions: str) -> list[dict[str, Any]]:
    return [c for c in lab.get("calls") if c["at"] >= since and c["action"] in actions]


def settle(found: Callable[[], Any], what: str) -> Any:
    return until(found, what, PATIENCE)


def test_a_job_starts_in_the_next_region_when_capacity_is_refused_in_several(
    preloaded: Preloaded, lab: Running
) -> None:
    buy = "instance_types: [m7i.large], regions: [us-east-1, us-east-2, us-west-2, eu-west-1]"
    with served(preloaded, lab, buy) as gateway:
        warm = gateway.wrap("true")
        gateway.wait(warm, "COMPLETED")
        settle(lambda: not lab.living(), "idle machines to be let go")
        refused = ["us-east-1", "us-east-2", "us-west-2"]
        for region in refused:
            lab.set("rule", region=region)
        began = time.time()
        job = gateway.wrap("true", "--exclusive")
        gateway.wait(job, "COMPLETED")
        calls = launches(lab, began)
        assert [c["region"] for c in calls] == [*refused, "eu-west-1"]
        said = gateway.run("scontrol", "show", "job", str(job)).out
        assert "JobState=COMPLETED" in said


def test_what_would_be_over_a_quota_is_passed_over_without_a_call(
    preloaded: Preloaded, lab: Running
) -> None:
    """Its jobs go to the next region; one that may go nowhere else says the quota, and waits."""
    buy = "instance_types: [m7i.large], regions: [us-east-1, us-west-2]"
    small = {"code": "L-1216C47A", "region": "us-east-1", "vcpus": 1}
    began = time.time()
    with served(preloaded, lab, buy, quotas=[small]) as gateway:
        environ = gateway.variables()

        def offers() -> str:
            return gateway.run(SPZ, "offers", "2+", env=environ).out

        settle(lambda: len(called(lab, began, "ListServiceQuotas")) > 1, "quotas to be asked for")
        settle(lambda: "behind the others: quota L-1216C47A" in offers(), "quotas to be read")
        stuck = gateway.wrap("true", "-C", "us-east-1")
        job = gateway.wrap("true")
        gateway.wait(job, "COMPLETED")
        assert [c["region"] for c in launches(lab, began)] == ["us-west-2"]
        told = "in us-east-1 allows 1 vCPUs, 0 in use, 2 more wanted"
        reason = gateway.run("squeue", "-h", "-j", str(stuck), "-o", "%r").out
        assert reason == "AssocGrpCpuLimit\n"
        for words in (
            ("scontrol", "show", "job", str(stuck)),
            ("sinfo", "-R"),
            (SPZ, "why", str(stuck)),
        ):
            said = gateway.run(*words, env=environ).out
            assert "quota L-1216C47A" in said and told in said, (words, said)


def test_a_gang_of_eight_is_all_or_nothing(preloaded: Preloaded, lab: Running) -> None:
    buy = "instance_types: [m7i.large, m7i.xlarge], regions: [us-east-1]"
    with served(preloaded, lab, buy) as gateway:
        lab.set("capacity", instance_type="m7i.large", machines=7)
        began = time.time()
        job = gateway.wrap("echo $SLURM_JOB_NUM_NODES", "-N", "8", "--exclusive")
        gateway.wait(job, "COMPLETED")
        bought = [machine for machine in lab.machines() if machine["launched_at"] >= began]
        assert [machine["instance_type"] for machine in bought] == ["m7i.xlarge"] * 8
        assert len({machine["zone"] for machine in bought}) == 1
        assert launches(lab, began)[0]["outcome"] == "InsufficientInstanceCapacity"
        assert gateway.file(f"slurm-{job}.out") == "8\n"
        both = ("-C", "m7i.xlarge", ":", "-N", "8", "--exclusive", "-C", "m7i.large")
        het = gateway.wrap("true", *both)
        said = settle(lambda: _refused(gateway, het), "what a component cannot have")
        assert said.count("InsufficientInstanceCapacity") == 2, "both say why"
        settle(lambda: nodes_gone(gateway), "none to be held for the other")


def _refused(gateway: Service, job: int) -> str:
    """What is told of a job that waits, once it says that there was no capacity."""
    said = gateway.run("scontrol", "show", "job", str(job)).out
    return said if "JobState=PENDING" in said and "InsufficientInstance" in said else ""


def test_a_job_of_several_sorts_of_machines_has_all_of_them_in_one_zone_or_none(
    preloaded: Preloaded, lab: Running
) -> None:
    """Where the second sort is refused, the first is given back, and both are had elsewhere."""
    since = len(lab.get("bill")["lines"])
    with served(preloaded, lab, "families: [c7i, m7i], regions: [us-east-1, us-west-2]") as gateway:
        began = time.time()
        lab.set("rule", region="us-east-1", instance_type="m7i.large", times=20)
        lab.set("rule", region="us-east-1", instance_type="m7i.xlarge", times=20)
        job = gateway.wrap("srun -l hostname | wc -l", "-C", "[m7i.large*1&c7i.large*2]")
        gateway.wait(job, "COMPLETED")
        assert gateway.file(f"slurm-{job}.out") == "3\n"
        bought = [one for one in lab.machines() if one["launched_at"] >= began]
        had = [one for one in bought if one["region"] == "us-west-2"]
        assert sorted(one["instance_type"] for one in had) == ["c7i.large"] * 2 + ["m7i.large"]
        assert len({one["zone"] for one in had}) == 1
        told = gateway.run(SPZ, "why", str(job), env=gateway.variables()).out
        assert told.count("  chosen: ") == 2 and "  together: $" in told, told
        settle(lambda: nodes_gone(gateway), "all of its machines to be let go")
        assert posted(gateway) == billed(lab, since)


def test_a_machine_of_a_gang_that_is_lost_while_it_boots_is_replaced_alone(
    preloaded: Preloaded, lab: Running
) -> None:
    """Into the placement group of the others, which a fabric joins."""
    since = len(lab.get("bill")["lines"])
    with served(preloaded, lab, "instance_types: [c5n.9xlarge], regions: [us-east-1]") as gateway:
        began = time.time()
        job = gateway.wrap("echo $SLURM_JOB_NUM_NODES", "-N", "4", "--exclusive")
        lost = settle(lambda: len(lab.living()) == 4 and lab.living()[1], "four machines")
        lab.set("kill", id=lost["id"])
        gateway.wait(job, "COMPLETED")
        assert gateway.file(f"slurm-{job}.out") == "4\n"
        bought = [machine for machine in lab.machines() if machine["launched_at"] >= began]
        assert (len(bought), len({machine["zone"] for machine in bought})) == (5, 1)
        assert len(launches(lab, began)) == 2
        ids = [machine["id"] for machine in bought]
        told = lab.client().describe_instances(InstanceIds=ids)["Reservations"]
        groups = {one["Placement"]["GroupName"] for some in told for one in some["Instances"]}
        assert len(groups) == 1 and "" not in groups
        settle(lambda: nodes_gone(gateway), "all of its machines to be let go")
        assert posted(gateway) == billed(lab, since)


def test_what_ec2_takes_and_cannot_start_is_a_refusal_and_bought_elsewhere(
    preloaded: Preloaded, lab: Running
) -> None:
    with served(preloaded, lab) as gateway:
        job = gateway.wrap("true")
        lost = settle(lambda: lab.living() and lab.living()[0], "a machine")
        lab.set("kill", id=lost["id"], reason="Client.VolumeLimitExceeded")
        gateway.wait(job, "COMPLETED")
        assert "Client.VolumeLimitExceeded" in gateway.run("sinfo", "-R").out
        assert "never came up" not in gateway.run("sinfo", "-R").out
        other = max(lab.machines(), key=lambda machine: machine["launched_at"])
        assert other["zone"].rpartition("-")[0] != lost["zone"].rpartition("-")[0]
        settle(lambda: nodes_gone(gateway), "its machine to be let go")


def test_what_never_comes_up_is_not_bought_until_an_operator_says_so(
    preloaded: Preloaded, lab: Running
) -> None:
    buy = "instance_types: [m7i.large], regions: [us-east-1], boot_timeout: 8"
    with served(preloaded, lab, buy) as gateway:

        def reasons() -> str:
            return gateway.run("sinfo", "-R").out

        lab.set("delays", ssh=10_000)
        job = gateway.wrap("true", "-N", "3", "--exclusive")
        settle(lambda: "protected mode x3" in reasons(), "three that never come up")
        gateway.kill()
        lab.set("delays", ssh=3)
        gateway.restart()
        assert "ec2:us-east-1,m7i.large until" in reasons()
        told = "protected mode: 3 of ec2:us-east-1,m7i.large in a row never came up"
        settle(lambda: told in gateway.run("scontrol", "show", "job", str(job)).out, "the reason")
        ended = gateway.run(SPZ, "unprotect", "--all", env=gateway.variables())
        assert ended.out == "ec2:us-east-1,m7i.large is bought again\n", ended
        gateway.wait(job, "COMPLETED")
        assert "protected mode" not in reasons()


def test_a_job_goes_into_a_reservation_that_its_partition_names(
    preloaded: Preloaded, lab: Running
) -> None:
    one = {"id": "cr-0a1", "instance_type": "m7i.large", "zone": "use1-az1", "count": 1}
    buy = "instance_types: [m7i.large], regions: [us-east-1], reservations: [cr-0a1]"
    began = time.time()
    with served(preloaded, lab, buy, reserved=[{**one, "match": "targeted"}]) as gateway:
        words = ("sbatch", "--test-only", "-C", "cr-0a1", "--wrap", "true")
        asked = "DescribeCapacityReservations"
        settle(lambda: called(lab, began, asked), "reservations to be asked for")
        settle(lambda: gateway.run(*words).code == 0, "the reservation to be read")
        job = gateway.wrap("true", "-C", "cr-0a1")
        gateway.wait(job, "COMPLETED")
        assert lab.get("bill")["lines"][-1]["micro_usd_per_hour"] == 0
        said = gateway.run(SPZ, "why", str(job), env=gateway.variables()).out
        assert "paid for already: cr-0a1" in said


def test_a_job_on_a_machine_that_is_taken_back_runs_again_elsewhere(
    preloaded: Preloaded, lab: Running
) -> None:
    buy = "instance_types: [m7i.large], regions: [us-east-1, us-east-2], spot: true"
    with served(preloaded, lab, buy) as gateway:
        script = "echo $SLURM_RESTART_COUNT >> tries; [ $SLURM_RESTART_COUNT ] || sleep 100"
        job = gateway.wrap(script, "--requeue")
        gateway.wait_file("tries")
        (machine,) = lab.living()
        assert machine["market"] == "spot"
        assert lab.set("interrupt", id=machine["id"], notice=20 * SPEED) == [machine["id"]]
        gateway.wait(job, "COMPLETED")
        assert gateway.file("tries").splitlines() == ["", "1"]


def test_the_ledger_is_the_bill_of_the_box(preloaded: Preloaded, lab: Running) -> None:
    with served(preloaded, lab) as gateway:
        since = len(lab.get("bill")["lines"])
        jobs = [gateway.wrap(f"sleep {n}") for n in range(3)]
        for job in jobs:
            gateway.wait(job, "COMPLETED")
        settle(lambda: not lab.living(), "idle machines to be let go")
        settle(lambda: nodes_gone(gateway), "the nodes' end to be written down")
        assert posted(gateway) == billed(lab, since)


def test_a_spot_price_that_changes_while_a_machine_runs_is_in_the_ledger_as_in_the_bill(
    preloaded: Preloaded, lab: Running
) -> None:
    """Here a price holds for two seconds, on EC2 for an hour."""
    kind = {"instance_type": "m7i.large", "market": "spot"}
    buy = "instance_types: [m7i.large], regions: [us-east-1], spot: true, spot_price_seconds: 2"
    lab.set("delays", price=2)
    with served(preloaded, lab, buy) as gateway:
        since = len(lab.get("bill")["lines"])
        job = gateway.wrap("sleep 300")
        gateway.wait(job, "RUNNING")
        settle(lambda: [m for m in lab.living() if m["state"] == "running"], "the machine to run")
        (machine,) = lab.living()
        for price in (7_000_000, 1_000):
            lab.set("price", **kind, place=machine["zone"], micro_usd_per_hour=price)
            time.sleep(2.2)
        lab.set("price", **kind, place=machine["zone"], micro_usd_per_hour=3_000_000)
        gateway.run("scancel", str(job))
        settle(lambda: not lab.living(), "the idle machine to be let go")
        settle(lambda: nodes_gone(gateway), "the node's end to be written down")
        whole = billed(lab, since)
        assert whole > 7_000_000 * 2 // 3600
        assert posted(gateway) == whole
