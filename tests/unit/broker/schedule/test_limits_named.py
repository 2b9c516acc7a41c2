"""The reason of a job that a limit keeps waiting names the limit that is met."""

# ruff: noqa: E501 - rows and drawn things stay on one line

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from accounting.assoc import ROOT, Account, Association, Qos, book
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import Limits
from accounting.tres import Tres, gres_counts
from broker.model.job import Job, Owner
from broker.model.site import Partition, Site
from broker.model.spec import Resources, TaskSpec
from broker.model.tally import Charge, Party
from broker.schedule.limit_rows import ROWS, Row, When
from broker.schedule.limits import (
    Keeper,
    asking,
    at_submit,
    bounds,
    first_broken,
    stands_in,
)
from broker.schedule.sums import known_of
from tests.sim.reckoning import says

NOW = 1_700_000_000
GRADES = ("normal", "fast")
ALICE = Owner(uid=1, gid=1, user="alice", group="g", home="/", shell="/bin/sh", groups=())


def job_of(account: str, *, cpus: int, gpus: int, minutes: int) -> Job:
    return Job(
        id=JobId(1),
        spec=TaskSpec(name="j", resources=Resources()),
        owner=ALICE,
        account=account,
        qos="fast",
        partitions=("own",),
        submitted=NOW,
        time_limit=minutes * 60,
        want=Tres(cpus, cpus, 1, gres_counts({"gpu:a10g": gpus})),
    )


def stage(*, qos: Limits | None = None, user: Limits | None = None, account: Limits | None = None, part: Limits | None = None, flags: tuple[str, ...] = (), enforce: str = "limits") -> Site:  # fmt: skip
    made = book(
        [Account(name=AccountName("lab"), limits=account or Limits())],
        [
            Association(
                user=UserName("alice"),
                account=AccountName("lab"),
                qos=GRADES,
                limits=user or Limits(),
            )
        ],
        qos=[
            Qos(name="fast", limits=qos or Limits(), flags=frozenset(flags)),
            Qos(name="part", limits=part or Limits()),
        ],
        enforce=[enforce, "qos"],
    )
    return Site(book=made, partitions=(Partition("own", default=True, qos="part"),))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.limit} {row.tres} {row.when.name}")
def test_reasons_of_a_limit_of_a_tres_say_which(row: Row) -> None:
    for reason in filter(None, (row.qos, row.assoc)):
        assert says(reason, row.tres or ""), reason


USED = Charge(at=NOW, faded={"cpu": 600.0, "wall": 600.0}, whole={"cpu": 6000.0, "wall": 6000.0})
NAMES = (
    # what is limited, by whom, the reason of a job of 2 cpus, 4 MiB and a GPU for 5 minutes
    ({"qos": Limits(max_tres_per_job={"cpu": 1})}, "QOSMaxCpuPerJobLimit"),
    ({"user": Limits(max_tres_per_job={"mem": 1})}, "AssocMaxMemPerJob"),
    ({"user": Limits(max_tres_per_node={"gres/gpu": 0})}, "AssocMaxGRESPerNode"),
    ({"account": Limits(max_tres_mins_per_job={"cpu": 9})}, "AssocMaxCpuMinutesPerJobLimit"),
    ({"account": Limits(max_tres_mins_per_job={"cpu": 10})}, None),
    ({"qos": Limits(max_tres_mins_per_job={"billing": 9})}, "QOSMaxBillingMinutesPerJob"),
    ({"qos": Limits(min_tres_per_job={"mem": 5})}, "QOSMinMemory"),
    ({"account": Limits(grp_tres_mins={"cpu": 10})}, "AssocGrpCPUMinutesLimit"),
    ({"account": Limits(grp_tres_mins={"cpu": 11})}, None),
    ({"account": Limits(grp_tres_mins={"cpu": 19}), "enforce": "safe"}, "AssocGrpCPUMinutesLimit"),
    ({"account": Limits(grp_tres_mins={"cpu": 20}), "enforce": "safe"}, None),
    ({"qos": Limits(grp_tres_mins={"cpu": 11})}, None),
    ({"qos": Limits(grp_tres_mins={"cpu": 11}), "flags": ("NoDecay",)}, "QOSGrpCPUMinutesLimit"),
    ({"qos": Limits(grp_tres_run_mins={"gres/gpu": 4})}, "QOSGrpGRESRunMinutes"),
    ({"account": Limits(grp_wall=600)}, "AssocGrpWallLimit"),
    ({"account": Limits(grp_tres={"billing": 1})}, "AssocGrpBilling"),
    ({"qos": Limits(max_tres_per_user={"mem": 3})}, "QOSMaxMemoryPerUser"),
    ({"qos": Limits(max_tres_per_account={"node": 0})}, "MaxNodePerAccount"),
    ({"part": Limits(grp_tres={"cpu": 1})}, "QOSGrpCpuLimit"),
    ({"part": Limits(max_wall=60)}, "QOSMaxWallDurationPerJobLimit"),
    ({"part": Limits(max_wall=60), "qos": Limits(max_wall=600), "flags": ("OverPartQOS",)}, None),
    ({"part": Limits(max_wall=600), "qos": Limits(max_wall=60)}, None),
    ({"qos": Limits(max_wall=600), "user": Limits(max_wall=60)}, None),
    ({"qos": Limits(grp_tres={"cpu": 1}), "account": Limits(max_wall=60)}, "AssocMaxWallDurationPerJobLimit"),
    ({"user": Limits(grp_tres={"cpu": 1}), "account": Limits(grp_jobs=0)}, "AssocGrpJobsLimit"),
    ({"account": Limits(grp_tres={"gres/gpu:a10g": 0})}, "AssocGrpGRES"),
    ({"account": Limits(grp_tres={"gres/gpu:t4": 0})}, None),
    ({"user": Limits(max_tres_mins_per_job={"gres/gpu:a10g": 4})}, "AssocMaxGRESMinutesPerJob"),
    ({"qos": Limits(max_tres_per_user={"gres/gpu:a10g": 0}), "account": Limits(grp_tres={"gres/gpu": 0})}, "QOSMaxGRESPerUser"),
)  # fmt: skip


@pytest.mark.parametrize(("given", "reason"), NAMES)
def test_the_reason_is_the_limit_that_slurm_would_name(
    given: dict[str, object], reason: str | None
) -> None:
    site = stage(**given)  # type: ignore[arg-type]
    job = job_of("lab", cpus=2, gpus=1, minutes=5)
    job = replace(job, want=replace(job.want, mem_mib=4))
    keeper = Keeper(site, {}, {Party("alice", "lab", "fast", "own"): USED}, now=NOW)
    assert keeper.reason(job, "own") == reason


def test_a_limit_factor_multiplies_the_associations_limits() -> None:
    made = book(
        [],
        [
            Association(
                user=UserName("alice"),
                account=ROOT,
                qos=GRADES,
                limits=Limits(max_tres_per_job={"cpu": 2}),
            )
        ],
        qos=[Qos(name="fast", limit_factor=2.0)],
        enforce=["limits", "qos"],
    )
    site = Site(book=made, partitions=(Partition("own", default=True),))
    job = job_of("root", cpus=4, gpus=0, minutes=5)
    assert Keeper(site, {}).reason(job, "own") is None
    assert Keeper(site, {}).reason(replace(job, qos="normal"), "own") == "AssocMaxCpuPerJobLimit"


LEVELS = {"QOS": "qos", "user": "user", "account": "account"}
LOW: dict[str, object] = {
    "grp_jobs": 0, "grp_wall": 0, "max_jobs": 0, "max_jobs_per_account": 0, "max_wall": 60,
    "grp_submit_jobs": 0, "max_submit_jobs": 0, "max_submit_jobs_per_account": 0,
}  # fmt: skip
"""Values that every job breaks; those by TRES are 0, but for the least 99."""
ORDERS = (
    # what each level sets, as it is named one after the other when the first is taken away: 22.05's
    ("START", "QOS", "grp_jobs grp_wall max_jobs_per_account max_jobs max_wall grp_tres_mins=cpu grp_tres=cpu grp_tres_run_mins=cpu max_tres_mins_per_job=cpu max_tres_per_job=cpu max_tres_per_node=cpu min_tres_per_job=cpu max_tres_per_account=cpu max_tres_per_user=cpu"),
    ("START", "user", "grp_jobs grp_wall max_jobs max_wall grp_tres_mins=cpu grp_tres=cpu grp_tres_run_mins=cpu max_tres_mins_per_job=cpu max_tres_per_job=cpu max_tres_per_node=cpu"),
    ("START", "user account", "user:max_jobs user:max_wall account:grp_jobs account:grp_wall user:grp_tres=node user:max_tres_per_job=mem account:grp_tres_mins=mem account:grp_tres=cpu"),
    ("START", "QOS", "max_tres_per_job=node max_tres_per_job=cpu max_tres_per_job=mem max_tres_per_job=billing max_tres_per_job=gres/gpu"),
    ("START", "QOS user account", "QOS:max_tres_per_account=node QOS:max_tres_per_job=node QOS:max_tres_per_user=node QOS:grp_tres=node user:max_tres_per_job=node account:grp_tres=node QOS:grp_tres_mins=cpu QOS:grp_tres_mins=node QOS:grp_tres=mem QOS:grp_tres=billing QOS:grp_tres=gres/gpu"),
    ("SUBMIT", "QOS", "max_tres_per_account=cpu max_tres_per_user=cpu grp_tres=cpu grp_submit_jobs max_tres_mins_per_job=cpu grp_tres_mins=cpu grp_tres_run_mins=cpu max_wall grp_wall max_tres_per_job=cpu max_tres_per_job=node max_tres_per_node=cpu max_submit_jobs_per_account max_submit_jobs min_tres_per_job=cpu"),
    ("SUBMIT", "QOS user account", "QOS:max_tres_per_job=mem user:grp_tres=cpu user:grp_submit_jobs user:grp_tres_mins=cpu user:grp_tres_run_mins=cpu user:max_tres_per_job=cpu user:max_tres_per_node=cpu user:max_submit_jobs user:max_tres_mins_per_job=cpu user:max_wall account:grp_tres=mem account:grp_wall"),
)  # fmt: skip


def _limits(words: list[str], level: str) -> Limits:
    found: dict[str, object] = {}
    for word in words:
        whose, _, name = word.rpartition(":")
        if whose in {"", level}:
            limit, _, tres = name.partition("=")
            count = 99 if limit.startswith("min_") else 0
            before = found.get(limit, {})
            assert isinstance(before, dict)
            found[limit] = before | {tres: count} if tres else LOW[limit]
    return Limits(**found)  # type: ignore[arg-type]


@pytest.mark.parametrize(("when", "levels", "order"), ORDERS)
def test_limits_are_looked_at_in_slurms_order(when: str, levels: str, order: str) -> None:
    words = order.split()
    job = job_of("lab", cpus=2, gpus=1, minutes=5)
    while words:
        given = {LEVELS[level]: _limits(words, level) for level in levels.split()}
        site = stage(**given, flags=("DenyOnLimit",) if when == "SUBMIT" else ())
        stands = stands_in(site, "alice", partition="own", account="lab", qos="fast")
        looked_at = at_submit(stands) if when == "SUBMIT" else bounds(stands)
        known, ask = known_of(site, {}, {}, now=NOW), asking(site, job, "own")
        kept = [one for one in looked_at if (one.row.when is When.SUBMIT) == (when == "SUBMIT")]
        told = next(one for one in kept if first_broken([one], known, ask=ask))
        tres = told.row.tres or ""
        broken = f"{told.row.limit}{'=' if tres else ''}{tres}"
        assert broken == words[0].rpartition(":")[2]
        del words[0]


def test_reasons_are_those_that_are_recorded_for_each_limit(shared: Path) -> None:
    with (shared / "slurm" / "qos_assoc_limits.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if _served(row["limit"])]
    assert len(rows) > 25
    for row in rows:
        name, tres = _served(row["limit"]).split(" ")
        for where, reason in (("qos", row["qos_reason"]), ("assoc", row["assoc_reason"])):
            ours = {getattr(r, where) for r in ROWS if (r.limit, r.tres or "") == (name, tres)}
            assert not reason or reason in ours, row


SPELLED = {
    "MaxWall": "max_wall", "MaxTRESMins": "max_tres_mins_per_job", "MaxTRES": "max_tres_per_job",
    "MinTRES": "min_tres_per_job", "GrpTRESMins": "grp_tres_mins", "GrpTRES": "grp_tres",
    "GrpTRESRunMins": "grp_tres_run_mins", "MaxTRESPerNode": "max_tres_per_node",
    "MaxTRESPerUser": "max_tres_per_user", "MaxTRESPerAccount": "max_tres_per_account",
    "MaxJobs": "max_jobs", "MaxSubmitJobs": "max_submit_jobs", "GrpJobs": "grp_jobs",
    "GrpSubmitJobs": "grp_submit_jobs", "GrpWall": "grp_wall",
    "MaxJobsPerAccount": "max_jobs_per_account",
    "MaxSubmitJobsPerAccount": "max_submit_jobs_per_account",
}  # fmt: skip


def _served(limit: str) -> str:
    """The row's field and TRES, as `GrpTRES=cpu` or `MaxJobs (MaxJobsPerUser)` names them."""
    word, _, tres = limit.partition(" ")[0].partition("=")
    return f"{SPELLED[word]} {tres}" if word in SPELLED and "license" not in tres else ""
