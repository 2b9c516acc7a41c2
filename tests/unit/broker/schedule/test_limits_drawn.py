"""Drawn limits and jobs: nothing ever exceeds a limit, and the reason names the one that is met."""

# ruff: noqa: E501 - rows and drawn things stay on one line

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.assoc import ROOT, Account, Association, Book, Qos, book
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import Limits
from accounting.tres import Tres
from broker.model.job import Job, Owner
from broker.model.site import Partition, Site
from broker.model.spec import Resources, TaskSpec
from broker.model.tally import Charge, Party, Used, counts_of, running
from broker.schedule.limits import Keeper, asking, at_submit, first_broken, known_of, stands_in

NOW = 1_700_000_000
USERS, ACCOUNTS, GRADES = ("alice", "bob"), ("lab", "sub"), ("normal", "fast")
BOX = Owner(uid=1, gid=1, user="alice", group="g", home="/", shell="/bin/sh", groups=())

counts = st.dictionaries(
    st.sampled_from(("cpu", "mem", "gres/gpu", "billing")), st.integers(1, 9), max_size=2
)
few = st.one_of(st.none(), st.integers(0, 4))


def limits(*names: str) -> st.SearchStrategy[Limits]:
    return st.builds(Limits, **{name: counts if "tres" in name else few for name in names})


OF_ASSOC = limits(
    "grp_jobs",
    "grp_submit_jobs",
    "max_jobs",
    "grp_tres",
    "grp_tres_run_mins",
    "grp_tres_mins",
    "max_tres_per_job",
)
OF_QOS = limits("grp_jobs", "max_jobs", "max_jobs_per_account", "grp_tres", "max_tres_per_user", "max_tres_per_account", "max_submit_jobs", "grp_tres_mins")  # fmt: skip


@dataclass
class Wish:
    user: str
    account: str
    qos: str
    partition: str
    cpus: int
    gpus: int
    minutes: int


wishes = st.builds(
    Wish,
    user=st.sampled_from(USERS),
    account=st.sampled_from(ACCOUNTS),
    qos=st.sampled_from(GRADES),
    partition=st.sampled_from(("plain", "own")),
    cpus=st.integers(1, 4),
    gpus=st.integers(0, 2),
    minutes=st.integers(1, 5),
)


@st.composite
def sites(draw: st.DrawFn) -> Site:
    accounts = [
        Account(name=AccountName("lab"), limits=draw(OF_ASSOC)),
        Account(name=AccountName("sub"), parent=AccountName("lab"), limits=draw(OF_ASSOC)),
    ]
    own = [
        Association(
            user=UserName(user), account=AccountName(account), qos=GRADES, limits=draw(OF_ASSOC)
        )
        for user in USERS
        for account in ACCOUNTS
    ]
    grades = [
        Qos(
            name=name,
            limits=draw(OF_QOS),
            flags=draw(st.frozensets(st.sampled_from(("NoDecay", "OverPartQOS")))),
        )
        for name in (*GRADES, "part")
    ]
    made = book(accounts, own, qos=grades, enforce=["safe", "qos"])
    partitions = (Partition("plain", default=True), Partition("own", qos="part"))
    return Site(book=made, partitions=partitions)


@dataclass
class Cluster:
    """What runs, waits and ran, counted the slow way."""

    site: Site
    now: int = NOW
    live: dict[int, Job] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=dict)
    tally: dict[Party, Used] = field(default_factory=dict)
    charges: dict[Party, Charge] = field(default_factory=dict)
    history: list[tuple[Job, int]] = field(default_factory=list)

    def job(self, number: int, wish: Wish) -> Job:
        tres = Tres(wish.cpus, wish.cpus, 1, (("gpu", wish.gpus),) if wish.gpus else ())
        return Job(
            id=JobId(number),
            spec=TaskSpec(name="j", resources=Resources()),
            owner=replace(BOX, user=wish.user),
            account=wish.account,
            qos=wish.qos,
            partitions=(wish.partition,),
            submitted=self.now,
            time_limit=wish.minutes * 60,
            want=tres,
        )

    def start(self, job: Job) -> None:
        self.running[job.id] = self.now
        self._add(job, -1, Used(queued=1))
        self._add(job, 1, running(job, job.want, billing=job.want.cpu, started=self.now))

    def queue(self, job: Job) -> None:
        self.live[job.id] = job
        self._add(job, 1, Used(queued=1))

    def end(self, number: int) -> None:
        job, since = self.live.pop(number), self.running.pop(number)
        self._add(job, -1, running(job, job.want, billing=job.want.cpu, started=since))
        used = {name: float(count * (self.now - since)) for name, count in self.want(job).items()}
        self.charges.setdefault(self.party(job), Charge(at=self.now)).add(
            used, self.now, keep=self.site.ranking.keep
        )
        self.history.append((job, self.now - since))

    def party(self, job: Job) -> Party:
        return Party(job.owner.user, job.account, job.qos, job.partitions[0])

    def want(self, job: Job) -> dict[str, int]:
        return counts_of(job.want, job.want.cpu)

    def _add(self, job: Job, sign: int, used: Used) -> None:
        self.tally.setdefault(self.party(job), Used()).add(used, sign)

    # --- the invariants

    def check(self) -> None:
        made: Book = self.site.book
        for account in made.accounts.values():
            inside = [
                job
                for job in self.live.values()
                if any(a.name == account.name for a in made.lineage(AccountName(job.account)))
            ]
            self._group(account.limits, inside)
        for owned in made.associations.values():
            for own in owned:
                mine = [
                    job
                    for job in self.live.values()
                    if (job.owner.user, job.account) == (own.user, own.account)
                ]
                self._group(own.limits, mine)
        for grade in made.qos.values():
            under = [
                job
                for job in self.live.values()
                if grade.name in {job.qos, "part" if job.partitions[0] == "own" else ""}
            ]
            self._group(grade.limits, under)
            for user in USERS:
                mine = [job for job in under if job.owner.user == user]
                self._most(grade.limits.max_tres_per_user, mine)
            for name in ACCOUNTS:
                self._most(
                    grade.limits.max_tres_per_account, [job for job in under if job.account == name]
                )

    def _group(self, own: Limits, jobs: list[Job]) -> None:
        up = [job for job in jobs if job.id in self.running]
        assert own.grp_jobs is None or len(up) <= own.grp_jobs
        assert own.grp_submit_jobs is None or len(jobs) <= own.grp_submit_jobs
        self._most(own.grp_tres, jobs)
        for name, most in own.grp_tres_run_mins.items():
            left = sum(
                self.want(j).get(name, 0) * (self.running[j.id] + int(j.time_limit) - self.now)
                for j in up
            )
            assert left <= most * 60

    def _most(self, most: object, jobs: list[Job]) -> None:
        assert isinstance(most, dict)
        for name, count in most.items():
            assert (
                sum(self.want(job).get(name, 0) for job in jobs if job.id in self.running) <= count
            )


@settings(max_examples=60, deadline=None)
@given(
    site=sites(),
    drawn=st.lists(st.tuples(wishes, st.integers(0, 3), st.integers(0, 120)), max_size=14),
)
def test_nothing_that_starts_ever_exceeds_a_limit(
    site: Site, drawn: list[tuple[Wish, int, int]]
) -> None:
    cluster = Cluster(site)
    for number, (wish, ends, passes) in enumerate(drawn, start=1):
        job = cluster.job(number, wish)
        stands = stands_in(
            site, wish.user, partition=wish.partition, account=wish.account, qos=wish.qos
        )
        known = known_of(site, cluster.tally, cluster.charges, now=cluster.now)
        ask = asking(site, job, wish.partition)
        if first_broken(at_submit(stands), known, ask=ask) is None:
            cluster.queue(job)
        keeper = Keeper(site, cluster.tally, cluster.charges, now=cluster.now)
        for waiting in [one for one in cluster.live.values() if one.id not in cluster.running]:
            if keeper.reason(waiting, waiting.partitions[0]) is None:
                keeper.started(waiting, waiting.want)
                cluster.start(waiting)
                cluster.check()
        for done in list(cluster.running)[:ends]:
            cluster.end(done)
        cluster.now += passes
        for late in [
            n
            for n, since in cluster.running.items()
            if since + int(cluster.live[n].time_limit) <= cluster.now
        ]:
            cluster.end(late)
        cluster.check()


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
)  # fmt: skip


@pytest.mark.parametrize(("given", "reason"), NAMES)
def test_the_reason_is_the_limit_that_slurm_would_name(
    given: dict[str, object], reason: str | None
) -> None:
    site = stage(**given)  # type: ignore[arg-type]
    cluster = Cluster(site)
    job = cluster.job(1, Wish("alice", "lab", "fast", "own", 2, 1, 5))
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
    job = Cluster(site).job(1, Wish("alice", "root", "fast", "own", 4, 0, 5))
    assert Keeper(site, {}).reason(job, "own") is None
    assert Keeper(site, {}).reason(replace(job, qos="normal"), "own") == "AssocMaxCpuPerJobLimit"
