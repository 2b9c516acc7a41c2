"""scancel: ends jobs or signals them, by id or by what they are."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from accounting.ids import JobId
from broker.model.commands import (
    Cancel,
    CancelAll,
    CancelStep,
    Command,
    Many,
    Signal,
    Target,
    Update,
)
from broker.model.errors import Denied, SpzError
from broker.model.ids import StepId
from broker.model.job import Job, Owner
from broker.model.site import Site
from broker.world import Snapshot
from gateway.api.desk import Desk, once
from gateway.api.errors import number_of
from gateway.api.programs.early import early
from gateway.api.programs.targets import Named, read_jobs
from gateway.api.wire import LINE, Answer, Call, Given
from sbatch_shim.grammar.arrays import show_indexes
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.parse import EARLY, ENVIRONMENT, Query, parse_query
from sbatch_shim.grammar.states import read_job_state
from sbatch_shim.grammar.values import read_signal_number

KILL = 9
IGNORED_WHEN_KILLING = (2017, 2021)
"""Unknown and finished jobs: passed over when they were to be ended (25.11)."""
TOGETHER = 5000
"""Jobs that are ended by one commit."""
INVALID_USER = 2010
NOT_FEDERATED = "Not a valid federated job"
NOT_FEDERATED_STATUS = 191
SWITCH = re.compile(r"t|true|y|yes|f|false|n|no", re.I)
# fmt: off
USAGE = """\
Usage: scancel [-A account] [--batch] [--ctld] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]
"""
# fmt: on
NO_JOB = "scancel: error: No job identification provided\n"
LOST = "scancel: error: Kill job error on job {}id {}: Invalid job id specified\n"
NO_MATCH = "scancel: error: No active jobs match ALL job filters, including: {}\n"
FILTERS = {
    "account": "account", "name": "job_name", "nodelist": "nodelist", "partition": "partition",
    "qos": "qos", "reservation": "reservation", "state": "state", "user": "user_name",
    "me": "user_name", "wckey": "wckey",
}  # fmt: skip
"""Options that choose jobs, and what they are called where none is left."""
SAID: Mapping[str, Callable[[str], str | None]] = {
    "account": str.lower, "qos": str.lower, "state": read_job_state,
}  # fmt: skip
"""How the value of some is told there (22.05)."""

Test = Callable[[Job], bool]


class Wrong(Exception):
    """Ends the command: what is printed."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be done to each job: `number` as signal, KILL without a scope ends it."""

    by: Owner
    call: Call
    number: int = KILL
    scope: str = ""
    comment: str | None = None
    """What an administrator leaves as AdminComment."""

    @property
    def ends(self) -> bool:
        return self.number == KILL and self.scope != "batch"

    def command(self, named: Named) -> Command:
        target = named.own
        if self.ends:
            return Cancel(target=target, by=self.by, alone=bool(named.part))
        return Signal(target=target, by=self.by, number=self.number, scope=self.scope or "steps")

    def verbose(self, named: Named) -> str:
        what = "step" if named.step else f"{self.scope} job".lstrip()
        if self.ends:
            return f"scancel: Terminating {what} {named.text}\n"
        return f"scancel: Signal {self.number} to {what} {named.text}\n"


async def run(desk: Desk, call: Call) -> Answer:
    """Exit status 0, 1 for what cannot be read, else the low byte of Slurm's worst error number."""
    try:
        asked = parse_query("scancel", call.argv, call.environ)
    except GrammarError as error:
        return Answer(err=error.stderr, code=error.code)
    first = next((one.opt.long for one in asked.said if one.opt.long in EARLY), None)
    if first:
        version = desk.site.version
        return early("scancel", first, version=version, usage=USAGE)
    complaints = "".join(_bad_switches(asked))
    try:
        named = _named(asked, desk.site)
        tests = await _tests(desk, asked, call)
        owner = await desk.owner(call.peer.uid)
        wish = Wish(owner, call, *_signal(asked), comment=_text(asked, "admin-comment"))
        _must_be_possible(asked, desk.site)
    except Wrong as wrong:
        return Answer(err=complaints + str(wrong), code=1)
    if not named and not tests:
        return Answer(err=complaints + NO_JOB, code=1)
    if "admin-comment" in asked.given and not desk.site.operates(call.peer.uid):
        return Answer(
            err=f"{complaints}scancel: error: Invalid user id\n", code=INVALID_USER & 0xFF
        )
    questions = ""
    snap, looked_up = await desk.seen(call.peer.uid), _looks_up(asked, wish, named)
    chosen, lost = _chosen(snap, named, tests, looked_up=looked_up)
    complaints += _gone(asked, lost)
    if "interactive" in asked.given:
        chosen, questions, more = confirmed(desk, chosen, call.files.get(LINE, Given()))
        if more:
            return Answer(out=questions, err=complaints, ask=LINE)
    answer = await _all(desk, wish, chosen, asked=asked, before=complaints)
    return replace(answer, out=questions, code=max(answer.code, bool(lost)))


def _gone(asked: Query, lost: list[Named]) -> str:
    """That there are no such jobs, unless nothing was to be told."""
    told = lost if _loudness(asked) >= 0 else []
    return "".join(LOST.format("step " if one.step else "", one.text) for one in told)


def _looks_up(asked: Query, wish: Wish, named: list[Named]) -> bool:
    """Whether jobs are looked up before anything is asked of them, as for all but a plain end."""
    more = _filters(asked) or "interactive" in asked.given
    return more or not wish.ends or any(one.step for one in named)


def _filters(asked: Query) -> bool:
    return any(long in asked.given for long in FILTERS)


def _none_left(asked: Query, uid: int) -> str:
    """That the filters leave no job; each of them with a blank behind it (22.05)."""
    words = ""
    for long, name in FILTERS.items():
        if long in asked.given:
            text = str(uid) if long == "me" else _text(asked, long) or ""
            words += f"{name}={SAID.get(long, str)(text)} "
    return "" if "interactive" in asked.given else NO_MATCH.format(words)


def confirmed(desk: Desk, chosen: list[Named], given: Given) -> tuple[list[Named], str, bool]:
    """The jobs that were answered with yes, the questions so far, whether another answer is due."""
    answers = iter(given.content.decode("utf-8", "replace").splitlines())
    yes: list[Named] = []
    asked: list[str] = []
    for one in chosen:
        job = desk.snapshot().jobs.get(one.target.job)
        if job is None or job.over:
            continue
        question = (
            f"Cancel job_id={one.text} name={job.spec.name} partition={job.partition} [y/n]? "
        )
        answer = ""
        while answer not in ("y", "n"):
            asked.append(question)
            line = next(answers, None)
            if line is None:
                return yes, "".join(asked), not given.error
            answer = line[:1].lower()
        if answer == "y":
            yes.append(one)
    return yes, "".join(asked), False


async def _all(desk: Desk, wish: Wish, chosen: list[Named], *, asked: Query, before: str) -> Answer:
    barred: SpzError | None = await desk.barred(wish.by.uid)
    if "sibling" in asked.given:
        barred = barred or Denied(NOT_FEDERATED, slurm_errno=NOT_FEDERATED_STATUS)
    if barred is not None:
        errors: list[SpzError | None] = [barred] * len(chosen)
    else:
        errors = await _done(desk, wish, chosen)
    verbose = _loudness(asked) > 0
    none_left = verbose and not chosen and _filters(asked)
    lines, worst = [before, _none_left(asked, wish.by.uid) if none_left else ""], 0
    for named, error in zip(chosen, errors, strict=True):
        if verbose:
            lines.append(wish.verbose(named))
        if error is None:
            continue
        number = number_of(error) or 1
        passed = wish.ends and number in IGNORED_WHEN_KILLING
        if verbose or not passed:
            lines.append(_told(named, error))
        if not passed:
            worst = max(worst, _status_number(number, wish))
    return Answer(err="".join(lines), code=worst & 0xFF)


def _loudness(asked: Query) -> int:
    """Above 0 more is told, below 0 not even which ids are lost; -Q undoes each -v before it."""
    given = asked.given.get("verbose")
    by_variable = given is not None and given.source == ENVIRONMENT
    loud = int(given is not None and by_variable and (given.text or "")[:1].lower() in ("t", "y"))
    for one in asked.said:
        if one.opt.long == "quiet":
            loud = -1
        elif one.opt.long == "verbose":
            loud += 1
    return loud


def _told(named: Named, error: SpzError) -> str:
    hint = f" ({error.hint})" if error.hint else ""
    return f"scancel: error: Kill job error on job id {named.text}: {error.message}{hint}\n"


def _status_number(number: int, wish: Wish) -> int:
    """A signal to a job that is gone ends with 1, as on 25.11."""
    return 1 if number in IGNORED_WHEN_KILLING and not wish.ends else number


async def _done(desk: Desk, wish: Wish, chosen: list[Named]) -> list[SpzError | None]:
    """What stood in the way of each, None if nothing did."""
    ends = [wish.ends and named.plain for named in chosen]
    asks = [
        None if end else _order(desk, wish, named) for named, end in zip(chosen, ends, strict=True)
    ]
    errors = await _ask(desk, wish.call, asks)
    for some in _parts([place for place, end in enumerate(ends) if end]):
        jobs = tuple(chosen[place].target.job for place in some)
        await _tell(desk, CancelAll(jobs=jobs, by=wish.by), errors=errors, places=some)
    if wish.comment is None:
        return errors
    notes = [
        Update(target=named.own, by=wish.by, admin_comment=wish.comment)
        if error is None and (end or ask is not None)
        else None
        for named, end, ask, error in zip(chosen, ends, asks, errors, strict=True)
    ]
    told = await _ask(desk, wish.call, notes)
    return [error or later for error, later in zip(errors, told, strict=True)]


def _order(desk: Desk, wish: Wish, named: Named) -> Command | None:
    return wish.command(named) if named.step is None else _of_step(desk, wish, named)


def _parts(places: Sequence[int]) -> Iterator[Sequence[int]]:
    """So many at a time share a commit, and others get their turn between."""
    return (places[first : first + TOGETHER] for first in range(0, len(places), TOGETHER))


async def _ask(desk: Desk, call: Call, asks: Sequence[Command | None]) -> list[SpzError | None]:
    """What refused each."""
    errors: list[SpzError | None] = [None] * len(asks)
    for some in _parts([place for place, ask in enumerate(asks) if ask is not None]):
        commands = tuple(once(call, ask) for place in some if (ask := asks[place]) is not None)
        await _tell(desk, Many(commands), errors=errors, places=some)
    return errors


async def _tell(
    desk: Desk, command: CancelAll | Many, *, errors: list[SpzError | None], places: Sequence[int]
) -> None:
    """Notes at these places what is refused."""
    try:
        replies = await desk.ask(command)
    except SpzError as error:
        replies = [error] * len(places)
    for place, reply in zip(places, replies, strict=True):
        errors[place] = reply if isinstance(reply, SpzError) else None


def _of_step(desk: Desk, wish: Wish, named: Named) -> Command | None:
    """For one step; one that does not exist is passed over."""
    jobs = desk.snapshot().jobs
    target = named.own
    job = jobs.get(target.job)
    if target.tasks is not None:
        job = next((one for one in jobs.values() if _names(target, one)), None)
    step = None if job is None else job.step(StepId(named.step or ""))
    if job is None or step is None:
        return None
    if wish.ends:
        return CancelStep(job=job.id, step=step.id, by=wish.by)
    return Signal(target=Target(job.id), by=wish.by, number=wish.number, step=step.id)


def _bad_switches(asked: Query) -> Iterable[str]:
    """Variables such as SCANCEL_VERBOSE=1, which Slurm complains of and leaves aside."""
    for long, given in asked.given.items():
        text = given.text or ""
        if given.source == ENVIRONMENT and long == "verbose" and not SWITCH.fullmatch(text):
            yield f"scancel: error: Unrecognized SCANCEL_{long.upper()} value: {text}\n"


def _named(asked: Query, site: Site) -> list[Named]:
    named, wrong = read_jobs(tuple(asked.operands), site.max_array_size)
    if wrong is not None:
        raise Wrong(f"scancel: error: Invalid job id {wrong}\n")
    return named


def _text(asked: Query, long: str) -> str | None:
    given = asked.given.get(long)
    return None if given is None else given.text or ""


def _signal(asked: Query) -> tuple[int, str]:
    scope = "batch" if "batch" in asked.given else "full" if "full" in asked.given else ""
    text = _text(asked, "signal")
    if text is None:
        return KILL, scope
    number = read_signal_number(text)
    if not number:
        raise Wrong(f"Unknown job signal: {text}\n")
    return number, scope


def _must_be_possible(asked: Query, site: Site) -> None:
    cluster = _text(asked, "clusters")
    if cluster not in (None, "", "all", site.cluster):
        raise Wrong(
            f"scancel: error: '{cluster}' can't be reached now, or it is an invalid entry for "
            "--cluster.  Use 'sacctmgr list clusters' to see available clusters.\n"
        )


async def _tests(desk: Desk, asked: Query, call: Call) -> list[Test]:
    """What a job must be to be chosen; empty without filters."""
    tests = [TESTS[long](text) for long in TESTS if (text := _text(asked, long)) is not None]
    if "me" in asked.given:
        tests.append(lambda job: job.owner.uid == call.peer.uid)
    user = _text(asked, "user")
    if user is not None:
        uid = await desk.uid(user)
        if uid is None:
            raise Wrong(f"scancel: error: Invalid user name: {user}\n")
        tests.append(lambda job: job.owner.uid == uid)
    return tests


def _in_state(text: str) -> Test:
    state = read_job_state(text)
    if state is None:
        raise Wrong(
            f"Invalid job state specified: {text}\n"
            "Valid job states are PENDING, RUNNING, and SUSPENDED\n"
        )
    return lambda job: state in (job.state.label, job.shown_state)


def _on_nodes(text: str) -> Test:
    try:
        names = frozenset(expand(text))
    except HostlistError:  # what names no node leaves no job (22.05)
        names = frozenset()
    return lambda job: any(share.node in names for share in job.shares)


TESTS: Mapping[str, Callable[[str], Test]] = {
    "account": lambda text: lambda job: job.account == text.lower(),
    "name": lambda text: lambda job: job.spec.name == text,
    "nodelist": _on_nodes,
    "partition": lambda text: lambda job: text in job.partitions,
    "qos": lambda text: lambda job: job.qos == text.lower(),
    "reservation": lambda text: lambda job: job.spec.reservation == text,
    "state": _in_state,
    "wckey": lambda text: lambda job: job.spec.wckey == text,
}


def _chosen(
    snap: Snapshot, named: list[Named], tests: list[Test], *, looked_up: bool
) -> tuple[list[Named], list[Named]]:
    """The jobs to act on, by id, those named as they were typed; and named ones that are gone."""
    if not looked_up:
        return named, []
    live = [job for job in snap.jobs.values() if not job.over and not job.completing]
    fitting: Iterable[Job] = live
    for test in tests:
        fitting = filter(test, fitting)
    if not named:
        return [_as_named(job) for job in sorted(fitting, key=attrgetter("id"))], []
    there, wanted = _by_id(live), _by_id(fitting)
    lost = [one for one in named if not _is_among(one, there)]
    return [one for one in named if _is_among(one, wanted)], lost


def _by_id(jobs: Iterable[Job]) -> Mapping[JobId, list[Job]]:
    """Under their own ids, and under those of their arrays."""
    found: dict[JobId, list[Job]] = {}
    for job in jobs:
        for number in {job.id, job.array.base if job.array else job.id}:
            found.setdefault(number, []).append(job)
    return found


def _is_among(named: Named, jobs: Mapping[JobId, list[Job]]) -> bool:
    target = named.own
    return any(_names(target, job) for job in jobs.get(target.job, ()))


def _as_named(job: Job) -> Named:
    place = job.array
    if place is None:
        return Named(str(job.id), Target(job.id))
    if place.task is not None:
        alone = Target(job.id) if job.id != place.base else Target(place.base, (place.task,))
        return Named(f"{place.base}_{place.task}", alone)
    return Named(f"{place.base}_[{show_indexes(place.waiting)}]", Target(place.base, place.waiting))


def _names(target: Target, job: Job) -> bool:
    if job.array is None or target.job == job.id != job.array.base:
        return target.job == job.id
    if target.job != job.array.base:
        return False
    held = job.array.waiting if job.array.task is None else (job.array.task,)
    return target.tasks is None or any(task in held for task in target.tasks)
