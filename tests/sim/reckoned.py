"""Limits reckoned the slow way: who is held against which, and what each of them uses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from accounting.assoc import Association, Book
from accounting.ids import AccountName, UserName
from accounting.limits import Limits, scaled
from broker.model.job import Job
from broker.model.site import Site, units
from broker.model.spec import UNLIMITED
from broker.schedule.gates import gate
from tests.sim.harness import Simulation
from tests.sim.used import History

TRES = ("cpu", "mem", "node", "billing", "gres/gpu")
"""In the order in which Slurm looks at them."""
MINUTE = 60


@dataclass(frozen=True)
class Level:
    """One place with limits, and whose jobs are counted there."""

    where: str
    """`QOS` or `Assoc`: how reasons of its limits begin."""
    name: str
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
    """In Slurm's order; limits of TRES of associations times the QOS's LimitFactor."""
    known = site.book
    found = [
        Level("QOS", name, known.qos[name].limits, lambda o, name=name: name in qos_of(site, o))
        for name in qos_of(site, job)
    ]
    mine, factor = association_of(known, job), known.qos[job.qos].limit_factor
    same = Level(
        "Assoc", "", scaled(mine.limits, factor), lambda o: association_of(known, o) == mine
    )
    above = [
        Level(
            "Assoc",
            name,
            scaled(known.accounts[AccountName(name)].limits, factor),
            lambda o, name=name: name in account_line(known, o.account),
        )
        for name in account_line(known, job.account)
    ]
    return [*found, same, *above]


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
    if job.completing:
        return 0
    if job.configuring or job.started is None:
        return int(job.time_limit)
    stopped = job.suspended_at if job.suspended_at is not None else now
    return max(0, int(job.time_limit) - (stopped - job.started - job.suspended_for))


# ---------------------------------------------------------------- rules


@dataclass(frozen=True)
class Rule:
    """A limit that a job is under."""

    name: str
    tres: str
    most: int
    level: Level
    counts: Callable[[Job], bool]
    """Whose use is held against it."""
    place: int
    """At which of the job's levels Slurm comes to it."""
    alone: bool = False
    """The job by itself is held against it, whoever else runs."""

    @property
    def least(self) -> bool:
        """It is a minimum."""
        return self.name.startswith("min_")

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        return self.name, self.tres, self.level.where, self.level.name, id(self.level.limits)


def ruling(site: Site, job: Job, names: Iterable[str]) -> Iterator[Rule]:
    """Each limit that counts for the job: of groups at every level, else at the first.

    What an account sets for each of its users is met where theirs is.
    """
    found = levels(site, job)
    user = len(found) - 1 - len(account_line(site.book, job.account))
    taken: set[tuple[str, str]] = set()
    for place, level in enumerate(found):
        for name, tres, most in _set(level.limits, names):
            of_group = name.startswith("grp_")
            if (name, tres) not in taken or of_group:
                taken.add((name, tres))
                whose = _whose(job, name, level, found[user])
                met = place if of_group or place < user else user
                yield Rule(name, tres, most, level, whose, met)


def _set(limits: Limits, names: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    for name in names:
        limit = getattr(limits, name)
        for tres, most in (limit if isinstance(limit, Mapping) else {"": limit}).items():
            if most is not None:
                yield name, tres, most


def _whose(job: Job, name: str, level: Level, user: Level) -> Callable[[Job], bool]:
    """Of a QOS's jobs those of the user, or of the account, where the limit is for each."""
    if name.startswith("grp_"):
        return level.inside
    if level.where == "Assoc":  # an account's is what its users have each
        return user.inside
    if name.endswith("per_account"):
        return lambda one: level.inside(one) and one.account == job.account
    return lambda one: level.inside(one) and one.owner.user == job.owner.user


STAGES = (
    ("grp_jobs", "grp_wall", "max_jobs_per_account", "max_jobs", "max_wall"),
    ("max_tres_per_account", "max_tres_per_job", "max_tres_per_user", "grp_tres"),
    (
        "grp_tres_mins",
        "grp_tres",
        "grp_tres_run_mins",
        "max_tres_mins_per_job",
        "max_tres_per_job",
        "max_tres_per_node",
        "min_tres_per_job",
        "max_tres_per_account",
        "max_tres_per_user",
        "max_tres_run_mins_per_account",
        "max_tres_run_mins_per_user",
    ),
)
"""What keeps a job waiting, in the order in which a real Slurm (22.05) named it.

In the second of them only nodes are looked at, of the job alone; in each it goes level by level.
"""
OF_NODES = 1
AT_SUBMIT = (
    (
        "max_tres_per_account",
        "max_tres_per_user",
        "grp_tres",
        "grp_submit_jobs",
        "grp_tres_mins",
        "grp_tres_run_mins",
        "grp_wall",
        "max_tres_per_job",
        "max_tres_per_node",
        "max_submit_jobs_per_account",
        "max_submit_jobs",
        "max_tres_mins_per_job",
        "max_wall",
        "min_tres_per_job",
    ),
)
"""What refuses a job: those of one alone only where a QOS says DenyOnLimit."""


def in_order(site: Site, job: Job, stages: Sequence[Sequence[str]]) -> list[Rule]:
    """The limits that the job is under, as Slurm comes to them."""
    found = []
    for number, names in enumerate(stages):
        rules = list(ruling(site, job, names))
        if number == OF_NODES:
            rules = [replace(one, alone=True) for one in rules if one.tres == "node"]
        rules = [one for one in rules if (one.name, one.tres) != ("max_tres_per_node", "node")]
        found += sorted(rules, key=lambda one, names=names: _order(one, names))  # type: ignore[misc]
    return found


def _order(rule: Rule, names: Sequence[str]) -> tuple[int, int, int]:
    return rule.place, names.index(rule.name), TRES.index(rule.tres) if rule.tres else 0


# ---------------------------------------------------------------- measures


@dataclass(frozen=True)
class Scene:
    """The simulation at an instant, with what was used so far."""

    sim: Simulation
    past: History
    submitting: bool = False
    """Whether it is asked whether a job may come in at all."""

    @property
    def site(self) -> Site:
        return self.sim.world.site

    @property
    def now(self) -> int:
        return self.sim.clock.time


Measure = Callable[[Scene, Job, list[Job], Rule], float]
"""What is in use with the job, which is one of the list, in the limit's unit."""


def _jobs(_: Scene, __: Job, mine: list[Job], ___: Rule) -> float:
    return len(mine)


def _sum(scene: Scene, job: Job, mine: list[Job], rule: Rule) -> float:
    """A node that several share counts once; one that waits may get any of them."""
    if rule.tres != "node":
        return total(scene.site, mine, rule.tres)
    names = {share.node for one in mine for share in one.shares}
    return len(names) if job.shares else max(len(names), job.alloc.node)


def _ahead(scene: Scene, job: Job, mine: list[Job], rule: Rule) -> float:
    counted = (amounts(scene.site, o).get(rule.tres, 0) * may_use(scene, o, job) for o in mine)
    return sum(counted) / MINUTE


def may_use(scene: Scene, one: Job, job: Job) -> int:
    """Seconds that it may still use, as they count where the job is to start."""
    factor = scene.site.book.qos[one.qos].usage_factor
    return int(left(one, scene.now) * (weight(scene, job) if one is job else factor))


def weight(scene: Scene, job: Job) -> float:
    """What a job's own limit is multiplied by; what may be used by those who run always is."""
    grade = scene.site.book.qos[job.qos]
    safe = "UsageFactorSafe" in grade.flags and not scene.submitting
    return grade.usage_factor if safe else 1.0


def _of_one(scene: Scene, job: Job, _: list[Job], rule: Rule) -> float:
    return amounts(scene.site, job).get(rule.tres, 0)


def _on_a_node(scene: Scene, job: Job, _: list[Job], rule: Rule) -> float:
    apart = [replace(job, alloc=share.tres) for share in job.shares]
    if not apart:
        return -(-amounts(scene.site, job).get(rule.tres, 0) // max(1, job.alloc.node))
    return max(amounts(scene.site, one).get(rule.tres, 0) for one in apart)


def _minutes_of_one(scene: Scene, job: Job, _: list[Job], rule: Rule) -> float:
    return amounts(scene.site, job).get(rule.tres, 0) * _limit(scene, job) / MINUTE


def _wall_of_one(scene: Scene, job: Job, __: list[Job], ___: Rule) -> float:
    return _limit(scene, job)


def _limit(scene: Scene, job: Job) -> int:
    assert job.time_limit != UNLIMITED
    return int(job.time_limit * weight(scene, job))


def _minutes_used(scene: Scene, job: Job, mine: list[Job], rule: Rule) -> float:
    """Where it has to be safe with all that may be used still; else something has to be left."""
    wall = rule.name == "grp_wall"
    unit = 1 if wall else MINUTE

    def share(one: Job) -> int:
        return 1 if wall else amounts(scene.site, one).get(rule.tres, 0)

    used = _used(scene, rule)
    if "safe" in scene.site.book.enforce:
        return (used + sum(share(one) * may_use(scene, one, job) for one in mine)) / unit
    return (used + 1) / unit if share(job) else 0


def _used(scene: Scene, rule: Rule) -> float:
    """All of it counts under a QOS that says NoDecay."""
    of_qos, site = rule.level.where == "QOS", scene.site
    whole = of_qos and "NoDecay" in site.book.qos[rule.level.name].flags
    keep = 1.0 if whole else site.ranking.keep
    return scene.past.seconds(site, rule.tres or "wall", rule.counts, keep=keep)


def _submitted(_: Scene, __: Job, mine: list[Job], ___: Rule) -> float:
    waiting = [o.array.waiting for o in mine if o.array is not None and o.array.task is None]
    return len(mine) - len(waiting) + sum(map(len, waiting))


def _growing(scene: Scene, _: Job, mine: list[Job], __: Rule) -> float:
    return sum(not o.idles and gate(o, scene.now) is None for o in mine)


MEASURES: Mapping[str, Measure] = {
    "grp_jobs": _jobs,
    "grp_wall": _minutes_used,
    "grp_tres": _sum,
    "grp_tres_mins": _minutes_used,
    "grp_tres_run_mins": _ahead,
    "max_jobs": _jobs,
    "max_jobs_per_account": _jobs,
    "max_wall": _wall_of_one,
    "max_tres_per_job": _of_one,
    "max_tres_per_node": _on_a_node,
    "max_tres_per_user": _sum,
    "max_tres_per_account": _sum,
    "max_tres_mins_per_job": _minutes_of_one,
    "max_tres_run_mins_per_user": _ahead,
    "max_tres_run_mins_per_account": _ahead,
    "min_tres_per_job": _of_one,
}
SUBMITTED: Mapping[str, Measure] = {
    "grp_submit_jobs": _submitted,
    "max_submit_jobs": _submitted,
    "max_submit_jobs_per_account": _submitted,
}
ACCRUING: Mapping[str, Measure] = {"grp_jobs_accrue": _growing, "max_jobs_accrue": _growing}


def broken(rule: Rule, used: float, *, slack: float = 0.0) -> bool:
    """Whether so much is beyond it, by more than the slack."""
    if rule.least:
        return used < rule.most
    return used > rule.most * (1 + slack)
