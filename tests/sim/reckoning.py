"""Looks after every step whether a limit was exceeded, and whether the right one was named."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from accounting.ids import JobId
from broker.decide.fading import shares
from broker.decide.reading import reading_of
from broker.model import commands as cmd
from broker.model import events as ev
from broker.model.errors import OverLimit
from broker.model.job import ArrayPlace, Job
from broker.model.spec import ALL, TaskSpec
from broker.schedule.gates import gate
from broker.schedule.limit_rows import ROWS, When
from tests.sim.harness import Simulation
from tests.sim.reckoned import (
    ACCRUING,
    AT_SUBMIT,
    MEASURES,
    STAGES,
    SUBMITTED,
    Measure,
    Rule,
    Scene,
    amounts,
    broken,
    in_order,
    left,
    ruling,
)
from tests.sim.used import History

SLACK = 0.01
"""Use that fades is reckoned as if all who run had begun together."""
FOR_ROOM = frozenset({"Resources", "Priority"})
Named = Mapping[str, frozenset[tuple[str, str, str]]]
"""Limits by a reason: `QOS` or `Assoc`, the field, the TRES."""


def _named(*when: When) -> Named:
    found: dict[str, set[tuple[str, str, str]]] = {}
    for row in ROWS:
        for where, reason in (("QOS", row.qos), ("Assoc", row.assoc)):
            if reason and row.when in when:
                found.setdefault(reason, set()).add((where, row.limit, row.tres or ""))
    return {reason: frozenset(limits) for reason, limits in found.items()}


SAID: Mapping[str, str] = {
    "cpu": "cpu",
    "mem": "mem",
    "node": "node",
    "billing": "billing",
    "gres/gpu": "gres",
}


def says(reason: str, tres: str) -> bool:
    """Whether its words are about the TRES; what is no limit of one says nothing of any."""
    words = reason.removesuffix("PerNode").lower()
    return {name for name, word in SAID.items() if word in words} == ({tres} if tres else set())


WAITING = _named(When.START, When.NODES, When.HELD)
REFUSING = _named(When.SUBMIT)


@dataclass
class Reckoning:
    """What has just started, or come in, or waits, or was refused."""

    seen: dict[JobId, tuple[int, bool]] = field(default_factory=dict)
    """Attempt and whether it held nodes, by job."""
    submitted: dict[JobId, tuple[str, str]] = field(default_factory=dict)
    live: list[Job] = field(default_factory=list)
    past: History = field(default_factory=History)
    begun: int = 0
    answered: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """For what jobs were seen to wait."""
    refusals: Counter[str] = field(default_factory=Counter)

    def __call__(self, sim: Simulation) -> None:
        self.past.fold(sim)
        scene = Scene(sim, self.past)
        live = [job for job in sim.world.jobs.values() if not job.over]
        up = [job for job in live if job.shares]
        fresh = [job for job in up if self.seen.get(job.id) != (job.attempt, True)]
        self.begun += len(fresh)
        for job in fresh:
            self._started(scene, job, up, fresh)
            _entitled(scene, job)
        for job in live:
            if self.submitted.get(job.id) != (job.account, job.qos) and not _is_element(job):
                _within(scene, job, live, SUBMITTED)
            if not job.shares and not job.idles and gate(job, scene.now) is None:
                _within(scene, job, [o for o in live if not o.shares], ACCRUING)
        self._waiting(scene, up, fresh)
        self._refused(scene, live)
        self.submitted = {job.id: (job.account, job.qos) for job in live}
        self.seen = {job.id: (job.attempt, bool(job.shares)) for job in live}
        self.live = live

    def _started(self, scene: Scene, job: Job, up: list[Job], fresh: list[Job]) -> None:
        """Who starts at the same time under other limits may be the later of the two."""
        for one in ruling(scene.site, job, MEASURES):
            others = [
                other
                for other in fresh
                if one.key not in {r.key for r in ruling(scene.site, other, MEASURES)}
            ]
            mine = [other for other in up if one.counts(other) and other not in others]
            if one.name in OF_TIME and len([o for o in mine if o in fresh]) > 1 and _weighed(scene):
                continue  # the last of them counted otherwise than those before it
            used = MEASURES[one.name](scene, job, mine, one)
            assert not broken(one, used, slack=_slack(scene, one)), (
                f"{job.id} made {one.name} {one.tres} {used}, {one.most} is the limit: "
                f"{[_told(scene, other) for other in mine]}"
            )

    # ------------------------------------------------------------ reasons

    def _waiting(self, scene: Scene, up: list[Job], fresh: list[Job]) -> None:
        """Each reason that was given in this step is that of the first limit in the way."""
        for event in self.past.fresh:
            job = scene.sim.world.jobs.get(event.job)
            if not isinstance(event, ev.Waits) or job is None or job.shares or job.over:
                continue
            self.reasons[event.reason] += 1
            known = event.reason in WAITING or event.reason in FOR_ROOM
            if known and event.reason == job.reason and not _whole(job.spec):
                self._first(scene, job, up, fresh)

    def _first(self, scene: Scene, job: Job, up: list[Job], fresh: list[Job]) -> None:
        if len(job.partitions) > 1 or job.het is not None:  # it may be another's reason
            return
        before = [one for one in up if one not in fresh]
        trial = replace(job, alloc=job.want, shares=(), started=None)
        rules = in_order(scene.site, trial, STAGES)
        surely = [one for one in rules if _breaks(scene, trial, one, before, sign=1)]
        hoped = [*up, *_gathering(scene.sim, but=job)]
        perhaps = [one for one in rules if _breaks(scene, trial, one, hoped, sign=-1)]
        told = f"{_told(scene, trial)} waits for {job.reason}"
        if job.reason in FOR_ROOM:
            assert not surely, f"{told}, not for {_shown(surely)}"
            return
        named = [
            one
            for one in perhaps
            if _name(one) in WAITING[job.reason] and says(job.reason, one.tres)
        ]
        assert named, f"{told}, which nobody has used up: {_shown(rules)}"
        assert not surely or rules.index(named[0]) <= rules.index(surely[0]), (
            f"{told}; before it comes {_shown(surely)}"
        )

    # ------------------------------------------------------------ refusals

    def _refused(self, scene: Scene, live: list[Job]) -> None:
        new = scene.sim.replies[self.answered :]
        self.answered += len(new)
        for message, reply in new:
            if isinstance(message, cmd.Submit) and isinstance(reply, OverLimit):
                self.refusals[reply.limit] += 1
                if not message.more:
                    self._refused_for(scene, message, reply.limit, live)

    def _refused_for(self, scene: Scene, asked: cmd.Submit, why: str, live: list[Job]) -> None:
        spec, scene = asked.spec, replace(scene, submitting=True)
        record = reading_of(scene.sim.world, spec, asked.owner).record
        trial = replace(record, alloc=record.want, array=_array(spec))
        rules = [
            one for one in in_order(scene.site, trial, AT_SUBMIT) if _refuses(scene, trial, one)
        ]
        names = {job.id for job in live}
        surely = _over(scene, trial, rules, [o for o in self.live if o.id in names])
        perhaps = _over(scene, trial, rules, {o.id: o for o in (*self.live, *live)}.values())
        named = [one for one in perhaps if _name(one) in REFUSING.get(why, ())]
        told = f"{spec.name} {spec.account} {spec.qos} {spec.partitions} was refused for {why}"
        assert named, f"{told}, which nobody has used up: {_shown(rules)}"
        assert not surely or rules.index(named[0]) <= rules.index(surely[0]), (
            f"{told}; before it comes {_shown(surely)}"
        )


OF_TIME = frozenset({"grp_wall", *(name for name in MEASURES if "mins" in name)})


def _weighed(scene: Scene) -> bool:
    return any(grade.usage_factor != 1.0 for grade in scene.site.book.qos.values())


def _array(spec: TaskSpec) -> ArrayPlace | None:
    if spec.array is None:
        return None
    tasks = spec.array.tasks
    first, last = tasks[0], tasks[-1]
    return ArrayPlace(JobId(0), None, tasks, count=len(tasks), first=first, last=last)


def _refuses(scene: Scene, trial: Job, rule: Rule) -> bool:
    """Of one job by itself only where its QOS, or its partition's, says so."""
    if "submit" in rule.name:
        return True
    part = scene.site.partition(trial.partitions[0])
    grades = [scene.site.book.qos[n] for n in (trial.qos, part.qos if part else None) if n]
    return any("DenyOnLimit" in grade.flags for grade in grades)


def _over(scene: Scene, trial: Job, rules: list[Rule], counted: Iterable[Job]) -> list[Rule]:
    queued = list(counted)
    found = []
    for one in rules:
        mine = [trial, *(o for o in queued if one.counts(o))] if "submit" in one.name else [trial]
        measure = SUBMITTED.get(one.name) or ALONE[one.name]
        if broken(one, measure(scene, trial, mine, one)):
            found.append(one)
    return found


ALONE: Mapping[str, Measure] = MEASURES | {
    "grp_tres_mins": MEASURES["max_tres_mins_per_job"],
    "grp_tres_run_mins": MEASURES["max_tres_mins_per_job"],
    "grp_wall": MEASURES["max_wall"],
}
"""At submission one job is held against them by itself."""


# ---------------------------------------------------------------- all of them


def _entitled(scene: Scene, job: Job) -> None:
    """A QOS may ask for a fair share."""
    grade = scene.site.book.qos[job.qos]
    if grade.usage_threshold is None or "EnforceUsageThreshold" not in grade.flags:
        return
    share = shares(scene.sim.world, scene.now)[job.account, job.owner.user]
    assert share >= grade.usage_threshold, f"{job.id} started with a share of {share}"


def _within(
    scene: Scene, job: Job, counted: Sequence[Job], measures: Mapping[str, Measure]
) -> None:
    for one in ruling(scene.site, job, measures):
        used = measures[one.name](scene, job, [o for o in counted if one.counts(o)], one)
        assert not broken(one, used), f"{job.id} made {one.name} {used} > {one.most}"


def _breaks(scene: Scene, trial: Job, rule: Rule, up: Sequence[Job], *, sign: int) -> bool:
    """Whether it would with what is up: surely (a sign of 1), or perhaps (-1)."""
    mine = [trial, *(one for one in up if rule.counts(one))]
    measure = MEASURES["max_tres_per_job" if rule.alone else rule.name]
    used = measure(scene, trial, mine, rule)
    if sign < 0 and rule.tres == "node" and not rule.alone and not rule.least:
        used += trial.alloc.node  # it may have got others than those that are in use
    return broken(rule, used, slack=sign * _slack(scene, rule))


def _slack(scene: Scene, rule: Rule) -> float:
    fades = scene.site.ranking.keep < 1 and rule.name in {"grp_tres_mins", "grp_wall"}
    return SLACK if fades else 0.0


def _name(rule: Rule) -> tuple[str, str, str]:
    return rule.level.where, rule.name, rule.tres


def _gathering(sim: Simulation, *, but: Job) -> list[Job]:
    """Who may have had a place in the pass until machines are bought for many together."""
    waiting = [sim.world.jobs[job] for job in sim.world.pending]
    hoping = [but, *(one for one in waiting if one.reason not in WAITING)]
    return [
        replace(one, alloc=one.want, started=None)
        for one in hoping
        for _ in range(len(one.array.waiting) - (one is but) if one.array else one is not but)
        if one.partitions[-1] != "own"
    ]


def _shown(rules: Iterable[Rule]) -> list[str]:
    return [f"{one.level.where} {one.level.name} {one.name} {one.tres} {one.most}" for one in rules]


def _is_element(job: Job) -> bool:
    return job.array is not None and job.array.task is not None


def _whole(spec: TaskSpec) -> bool:
    """What it would hold depends on the nodes."""
    return bool(spec.resources.exclusive) or spec.resources.mem_per_node_mib == ALL


def _told(scene: Scene, job: Job) -> str:
    what = f"{job.id} {job.owner.user} {job.account} {job.qos} {job.partitions} {job.shown_state}"
    return f"{what} {job.time_limit} {left(job, scene.now)} {amounts(scene.site, job)}"
