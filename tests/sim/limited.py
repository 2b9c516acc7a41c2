"""Limits reckoned the slow way from what is there, and sites, wishes and changes drawn for it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from accounting.assoc import Account, Association, Book, Qos, book
from accounting.ids import AccountName, JobId, UserName
from accounting.limits import Limits
from accounting.order import Ranking
from broker.model.job import Job
from broker.model.site import Partition, Site, units
from broker.model.spec import UNLIMITED
from broker.schedule.gates import gate
from tests.sim.harness import Simulation
from tests.sim.site import NAMES, NODES, elastic

USERS, ACCOUNTS, GRADES = ("alice", "bob"), ("lab", "sub"), ("normal", "fast")
PARTITION_QOS = "part"
TRES = ("cpu", "node", "gres/gpu", "billing")
MINUTE = 60

few = st.one_of(st.none(), st.none(), st.integers(1, 4))
counts = st.dictionaries(st.sampled_from(TRES), st.integers(1, 6), max_size=1)
minutes = st.dictionaries(st.sampled_from(TRES), st.integers(5, 40), max_size=1)
seconds = st.one_of(st.none(), st.none(), st.integers(2, 12).map(lambda n: n * 100))


def _limits(*names: str) -> st.SearchStrategy[Limits]:
    def of(name: str) -> st.SearchStrategy[object]:
        if "tres" in name:
            return minutes if "mins" in name else counts
        return seconds if "wall" in name else few

    return st.builds(Limits, **{name: of(name) for name in names})


OF_BOTH = ("grp_jobs", "grp_submit_jobs", "grp_jobs_accrue", "grp_wall", "grp_tres", "grp_tres_mins", "grp_tres_run_mins", "max_jobs", "max_jobs_accrue", "max_submit_jobs", "max_wall", "max_tres_per_job", "max_tres_per_node", "max_tres_mins_per_job")  # fmt: skip # noqa: E501
OF_QOS = ("max_jobs_per_account", "max_submit_jobs_per_account", "max_tres_per_user", "max_tres_per_account", "max_tres_run_mins_per_user", "max_tres_run_mins_per_account", "min_tres_per_job")  # fmt: skip # noqa: E501
FLAGS = ("DenyOnLimit", "OverPartQOS", "NoDecay", "PartitionTimeLimit")


@st.composite
def some_limits(draw: st.DrawFn, names: tuple[str, ...]) -> Limits:
    """A few of them: with all at once nothing would ever start."""
    return draw(_limits(*draw(st.lists(st.sampled_from(names), max_size=3, unique=True))))


@st.composite
def associations(draw: st.DrawFn) -> list[Association]:
    """Everybody's with each account, and one of alice's in a partition alone."""
    places = [(user, account, None) for user in USERS for account in ACCOUNTS]
    return [
        Association(
            user=UserName(user),
            account=AccountName(account),
            partition=where,
            qos=GRADES,
            limits=draw(some_limits(OF_BOTH)),
        )
        for user, account, where in [*places, ("alice", "lab", "own")]
    ]


@st.composite
def grades(draw: st.DrawFn, names: tuple[str, ...] = (*GRADES, PARTITION_QOS)) -> list[Qos]:
    return [
        Qos(
            name=name,
            limits=draw(some_limits(OF_BOTH + OF_QOS)),
            flags=draw(st.frozensets(st.sampled_from(FLAGS), max_size=2)),
        )
        for name in names
    ]


@st.composite
def accounts(draw: st.DrawFn) -> list[Account]:
    return [
        Account(name=AccountName("lab"), limits=draw(some_limits(OF_BOTH))),
        Account(
            name=AccountName("sub"),
            parent=AccountName("lab"),
            limits=draw(some_limits(OF_BOTH)),
        ),
    ]


@st.composite
def sites(draw: st.DrawFn) -> Site:
    """Declared nodes under a QOS of their own, bought ones, and both together."""
    word = draw(st.sampled_from(("limits", "safe")))
    made = book(draw(accounts()), draw(associations()), qos=draw(grades()), enforce=[word, "qos"])
    return site_of(made)


def site_of(made: Book) -> Site:
    usual = {"def_mem_per_cpu_mib": 1024}
    return Site(
        partitions=(
            Partition("own", nodes=NAMES, default=True, qos=PARTITION_QOS, **usual),  # type: ignore[arg-type]
            Partition("ec2", elastic=elastic("ec2-", 4), max_time=900, **usual),  # type: ignore[arg-type]
            Partition("both", nodes=NAMES[2:], elastic=elastic("ec2-", 4), **usual),  # type: ignore[arg-type]
        ),
        nodes=NODES,
        requeue_delay=30,
        ranking=Ranking(half_life=0),
        book=made,
    )


# ---------------------------------------------------------------- the slow way


@dataclass(frozen=True)
class Level:
    """One place with limits, and whose jobs are counted there."""

    where: str
    """`QOS` or `Assoc`: how reasons of its limits begin."""
    limits: Limits
    inside: Callable[[Job], bool]


def account_line(known: Book, name: str) -> list[str]:
    line = [name]
    while line[-1] != "root":
        line.append(str(known.accounts[AccountName(line[-1])].parent))
    return line


def association_of(known: Book, job: Job) -> Association:
    own = [
        one
        for one in known.associations[UserName(job.owner.user)]
        if one.account == job.account and one.partition in (None, job.partitions[0])
    ]
    return max(own, key=lambda one: one.partition is not None)


def qos_of(site: Site, job: Job) -> list[str]:
    """The partition's first, or the job's where it says so."""
    part = site.partition(job.partitions[0])
    own, wide = job.qos, part.qos if part else None
    if not wide or wide == own:
        return [own]
    over = "OverPartQOS" in site.book.qos[own].flags
    return [own, wide] if over else [wide, own]


def levels(site: Site, job: Job) -> list[Level]:
    known = site.book
    found = [
        Level("QOS", known.qos[name].limits, lambda o, name=name: name in qos_of(site, o))
        for name in qos_of(site, job)
    ]
    mine = association_of(known, job)
    found.append(Level("Assoc", mine.limits, lambda o: association_of(known, o) == mine))
    above = [
        Level(
            "Assoc",
            known.accounts[AccountName(name)].limits,
            lambda o, name=name: name in account_line(known, o.account),
        )
        for name in account_line(known, job.account)
    ]
    return [*found, *above]


def amounts(site: Site, job: Job) -> Mapping[str, int]:
    """What it holds."""
    tres = job.alloc
    plain = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node}
    billed = {"billing": units(site, tres, job.partitions[0])}
    return plain | billed | {f"gres/{name}": count for name, count in tres.gres}


def total(site: Site, jobs: Iterable[Job], name: str) -> int:
    return sum(amounts(site, job).get(name, 0) for job in jobs)


def left(job: Job, now: int) -> int:
    """Seconds that it may still run."""
    assert job.time_limit != UNLIMITED
    if job.configuring or job.started is None:
        return int(job.time_limit)
    stopped = job.suspended_at if job.suspended_at is not None else now
    return max(0, int(job.time_limit) - (stopped - job.started - job.suspended_for))


@dataclass
class Reckoning:
    """Looks after every step whether what has just started, or come in, exceeds any limit."""

    seen: dict[JobId, tuple[int, bool]] = field(default_factory=dict)
    """Attempt and whether it held nodes, by job."""
    submitted: dict[JobId, tuple[str, str]] = field(default_factory=dict)
    begun: int = 0
    reasons: set[str] = field(default_factory=set)
    """What jobs were seen to wait for."""

    def __call__(self, sim: Simulation) -> None:
        live = [job for job in sim.world.jobs.values() if not job.over]
        fresh = [job for job in live if job.shares and self.seen.get(job.id) != (job.attempt, True)]
        self.begun += len(fresh)
        for job in fresh:
            self._started(sim, job, [one for one in live if one.shares], fresh)
        for job in live:
            if self.submitted.get(job.id) != (job.account, job.qos) and not _is_element(job):
                self._within(sim, job, live, SUBMITTED)
        self.submitted = {job.id: (job.account, job.qos) for job in live}
        for job in live:
            if not job.shares and not job.idles and gate(job, sim.clock.time) is None:
                self._within(sim, job, [o for o in live if not o.shares], ACCRUING)
        self.reasons |= {job.reason for job in live if not job.shares}
        self.seen = {job.id: (job.attempt, bool(job.shares)) for job in live}

    def _started(self, sim: Simulation, job: Job, up: list[Job], fresh: list[Job]) -> None:
        """Who starts at the same time under other limits may be the later of the two."""
        site = sim.world.site
        for one in ruling(site, job, MEASURES):
            others = [
                other
                for other in fresh
                if one.key not in {r.key for r in ruling(site, other, MEASURES)}
            ]
            mine = [other for other in up if one.counts(other) and other not in others]
            used = MEASURES[one.name](sim, job, mine)(one.tres)
            told = [_told(sim, other) for other in mine]
            assert used <= one.most, (
                f"{job.id} made {one.name} {one.tres} {used} > {one.most}: {told}"
            )

    def _within(
        self, sim: Simulation, job: Job, counted: list[Job], measures: Mapping[str, "Measure"]
    ) -> None:
        for one in ruling(sim.world.site, job, measures):
            used = measures[one.name](sim, job, [o for o in counted if one.counts(o)])(one.tres)
            assert used <= one.most, f"{job.id} made {one.name} {used} > {one.most}"


@dataclass(frozen=True)
class Rule:
    """A limit that a job is under."""

    name: str
    tres: str
    most: int
    level: Level
    counts: Callable[[Job], bool]
    """Whose use is held against it."""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.name, self.tres, id(self.level.limits)


def ruling(site: Site, job: Job, measures: Mapping[str, "Measure"]) -> Iterator[Rule]:
    """Each limit that counts for the job: of groups at every level, else at the first."""
    taken: set[tuple[str, str]] = set()
    for level in levels(site, job):
        for name in measures:
            limit = getattr(level.limits, name)
            for tres, most in (limit if isinstance(limit, Mapping) else {"": limit}).items():
                first = name.startswith("grp_") or (name, tres) not in taken
                if most is not None and first:
                    taken.add((name, tres))
                    yield Rule(name, tres, most, level, _whose(site, job, name, level))


def _is_element(job: Job) -> bool:
    return job.array is not None and job.array.task is not None


def _told(sim: Simulation, job: Job) -> str:
    what = f"{job.id} {job.owner.user} {job.account} {job.qos} {job.partitions} {job.shown_state}"
    return f"{what} {job.time_limit} {left(job, sim.clock.time)} {amounts(sim.world.site, job)}"


def _whose(site: Site, job: Job, name: str, level: Level) -> Callable[[Job], bool]:
    """Of a QOS's jobs those of the user, or of the account, where the limit is for each."""
    if name.startswith("grp_"):
        return level.inside
    if level.where == "Assoc":  # an account's is what its users have each
        return levels(site, job)[-1 - len(account_line(site.book, job.account))].inside
    if name.endswith("per_account"):
        return lambda one: level.inside(one) and one.account == job.account
    return lambda one: level.inside(one) and one.owner.user == job.owner.user


Measure = Callable[[Simulation, Job, list[Job]], Callable[[str], float]]


def _jobs(_: Simulation, __: Job, mine: list[Job]) -> Callable[[str], float]:
    return lambda _: len(mine)


def _sum(sim: Simulation, _: Job, mine: list[Job]) -> Callable[[str], float]:
    return lambda tres: total(sim.world.site, mine, tres)


def _ahead(sim: Simulation, _: Job, mine: list[Job]) -> Callable[[str], float]:
    now = sim.clock.time
    return lambda tres: (
        sum(amounts(sim.world.site, one).get(tres, 0) * left(one, now) for one in mine) / MINUTE
    )


def _of_one(sim: Simulation, job: Job, _: list[Job]) -> Callable[[str], float]:
    return lambda tres: amounts(sim.world.site, job).get(tres, 0)


def _on_a_node(sim: Simulation, job: Job, _: list[Job]) -> Callable[[str], float]:
    apart = [replace(job, alloc=share.tres) for share in job.shares]
    return lambda tres: max(amounts(sim.world.site, one).get(tres, 0) for one in apart)


def _minutes_of_one(sim: Simulation, job: Job, _: list[Job]) -> Callable[[str], float]:
    assert job.time_limit != UNLIMITED
    whole = int(job.time_limit) / MINUTE
    return lambda tres: amounts(sim.world.site, job).get(tres, 0) * whole


def _wall_of_one(_: Simulation, job: Job, __: list[Job]) -> Callable[[str], float]:
    assert job.time_limit != UNLIMITED
    return lambda _: int(job.time_limit)


def _submitted(_: Simulation, __: Job, mine: list[Job]) -> Callable[[str], float]:
    waiting = [o.array.waiting for o in mine if o.array is not None and o.array.task is None]
    return lambda _: len(mine) - len(waiting) + sum(map(len, waiting))


def _growing(sim: Simulation, _: Job, mine: list[Job]) -> Callable[[str], float]:
    return lambda _: sum(not o.idles and gate(o, sim.clock.time) is None for o in mine)


MEASURES: Mapping[str, Measure] = {
    "grp_jobs": _jobs,
    "max_jobs": _jobs,
    "max_jobs_per_account": _jobs,
    "grp_tres": _sum,
    "max_tres_per_user": _sum,
    "max_tres_per_account": _sum,
    "grp_tres_run_mins": _ahead,
    "max_tres_run_mins_per_user": _ahead,
    "max_tres_run_mins_per_account": _ahead,
    "max_tres_per_job": _of_one,
    "max_tres_per_node": _on_a_node,
    "max_tres_mins_per_job": _minutes_of_one,
    "max_wall": _wall_of_one,
}
SUBMITTED: Mapping[str, Measure] = {
    "grp_submit_jobs": _submitted,
    "max_submit_jobs": _submitted,
    "max_submit_jobs_per_account": _submitted,
}
ACCRUING: Mapping[str, Measure] = {"grp_jobs_accrue": _growing, "max_jobs_accrue": _growing}
