"""Priority of jobs: the order of submission, or the weighed sum of factors (multifactor)."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from accounting.ids import AccountName, JobId, UserName
from accounting.order import Factors, Ranking, priority, steady
from accounting.tres import Tres
from broker.model.job import Job
from broker.model.site import Partition, Site, kept_for_site
from broker.model.spec import UNLIMITED

TOP = 4_294_901_759
"""Where Slurm's priority/basic starts to count down from (25.11)."""
Shares = Mapping[tuple[str, str], float]
"""Fair-share factors by account and user."""


def initial(job: JobId, *, held: bool, asked: int | None = None) -> int:
    """Priority at submission; 0 while held, never below 1 otherwise."""
    if held:
        return 0
    return TOP - job if asked is None else max(1, asked)


def order(job: Job) -> tuple[int, int]:
    """Sort key: highest priority first, then the lowest id."""
    return -job.priority, job.array.base if job.array else job.id


@dataclass(frozen=True, slots=True)
class Scale:
    """What factors are measured against: sums and highest values of a site."""

    nodes: int
    cpus: int
    partition: int
    qos: int
    assoc: int
    whole: Mapping[str, Tres]
    """What each partition has."""


@kept_for_site
def scale_of(site: Site) -> Scale:
    own = [own.priority or 0 for owned in site.book.associations.values() for own in owned]
    return Scale(
        nodes=max(len(site.nodes), 1),
        cpus=max(sum(node.whole.cpu for node in site.nodes), 1),
        partition=max((part.priority_job_factor for part in site.partitions), default=0),
        qos=max((grade.priority for grade in site.book.qos.values()), default=0),
        assoc=max([*own, *(one.priority or 0 for one in site.book.accounts.values())]),
        whole={part.name: _whole(part, site) for part in site.partitions},
    )


def _whole(partition: Partition, site: Site) -> Tres:
    whole = Tres()
    for node in site.nodes:
        if node.name in partition.members:
            whole = whole + node.whole
    return whole


@dataclass(frozen=True, slots=True)
class Ranks:
    """What jobs are ranked by at one moment."""

    site: Site
    now: int
    shares: Shares
    scale: Scale
    _tiers: dict[tuple[str, ...], int] = field(default_factory=dict)
    _steady: dict[Hashable, tuple[float, ...]] = field(default_factory=dict)

    def order(self, job: Job) -> tuple[int, int, int]:
        """Sort key: PriorityTier of its partitions, then priority, then the order of submission."""
        return -self._tier(job), -self.priority(job), job.array.base if job.array else job.id

    def priority(self, job: Job) -> int:
        """As it is now: what was set by hand stands, 0 is held."""
        ranking = self.site.ranking
        if not ranking.counts or not job.priority or is_set(job):
            return job.priority
        return max((self.in_partition(job, name) for name in job.partitions), default=job.priority)

    def in_partition(self, job: Job, partition: str) -> int:
        ranking = self.site.ranking
        age = ranking.age * _age(job, ranking, self.now)
        return priority(age, self._weighed(job, partition), nice=job.spec.nice)

    def _weighed(self, job: Job, partition: str) -> tuple[float, ...]:
        """All but the age, looked up once for all jobs that ask alike."""
        owner = job.account, job.owner.user, job.qos
        key = job.want, job.time_limit, owner, partition
        known = self._steady.get(key)
        if known is None:
            known = steady(self.site.ranking, self.factors(job, partition))
            self._steady[key] = known
        return known

    def factors(self, job: Job, partition: str) -> Factors:
        """Every factor of the job in one of its partitions (25.11)."""
        raw = self.site.ranking.flags
        part, grade = self.site.partition(partition), self.site.book.qos.get(job.qos)
        return Factors(
            age=_age(job, self.site.ranking, self.now),
            fairshare=self.shares.get((job.account, job.owner.user), 0.0),
            size=self._size(job),
            partition=_part(
                part.priority_job_factor if part else 0,
                self.scale.partition,
                raw="NO_NORMAL_PART" in raw,
            ),
            qos=_part(grade.priority if grade else 0, self.scale.qos, raw="NO_NORMAL_QOS" in raw),
            assoc=self._assoc(job),
            tres=self._tres(job, partition),
        )

    def _tier(self, job: Job) -> int:
        """Looked up once for all jobs of the same partitions."""
        known = self._tiers.get(job.partitions)
        if known is None:
            parts = (self.site.partition(name) for name in job.partitions)
            known = max((part.priority_tier for part in parts if part), default=1)
            self._tiers[job.partitions] = known
        return known

    def _size(self, job: Job) -> float:
        """Half its part of the nodes, half that of the cpus; small ones first if so configured."""
        ranking, scale = self.site.ranking, self.scale
        cpus = min(job.want.cpu / scale.cpus, 1.0)
        if "SMALL_RELATIVE_TO_TIME" in ranking.flags:
            limit = 1 if job.time_limit == UNLIMITED else max(1, int(job.time_limit) // 60)
            part = min(job.want.cpu / limit / scale.cpus, 1.0)
        else:
            part = (min(job.want.node / scale.nodes, 1.0) + cpus) / 2
        return 1 - part if ranking.favor_small else part

    def _assoc(self, job: Job) -> float:
        """Of the user's association, else of the nearest account above that has a priority."""
        book = self.site.book
        if not self.scale.assoc:
            return 0.0
        mine = (
            own
            for own in book.associations.get(UserName(job.owner.user), ())
            if own.account == job.account
        )
        above = book.lineage(AccountName(job.account))
        levels = (*(one.priority for one in mine), *(one.priority for one in above))
        own = next((level for level in levels if level is not None), 0)
        return _part(own, self.scale.assoc, raw="NO_NORMAL_ASSOC" in self.site.ranking.flags)

    def _tres(self, job: Job, partition: str) -> dict[str, float]:
        raw = "NO_NORMAL_TRES" in self.site.ranking.flags
        whole = self.scale.whole.get(partition, Tres())
        asked = {name: count_of(job.want, name) for name in self.site.ranking.tres}
        if raw:
            return {name: float(count) for name, count in asked.items()}
        there = {name: count_of(whole, name) for name in asked}
        return {n: min(c / there[n], 1.0) if there[n] else 0.0 for n, c in asked.items()}


def is_set(job: Job) -> bool:
    """Whether somebody has set the priority, so that it is not computed."""
    base = job.array.base if job.array else job.id
    return job.priority not in {0, TOP - job.id, TOP - base}


def _age(job: Job, ranking: Ranking, now: int) -> float:
    always = "ACCRUE_ALWAYS" in ranking.flags
    since = job.submitted if always else job.ages_since or job.eligible
    if since is None or not ranking.max_age or (job.idles and not always):
        return 0.0
    return min(max(now - since, 0) / ranking.max_age, 1.0)


def _part(own: int, most: int, *, raw: bool) -> float:
    if raw:
        return float(own)
    return own / most if most else 0.0


def count_of(tres: Tres, name: str) -> int:
    """How much of a TRES as weights name it: `cpu`, `mem` (MiB), `node`, `gres/gpu`."""
    plain = {"cpu": tres.cpu, "mem": tres.mem_mib, "node": tres.node}
    return plain[name] if name in plain else dict(tres.gres).get(name.removeprefix("gres/"), 0)
