"""`scontrol update`: KEY=VALUE words to changes of jobs and nodes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from broker.model.commands import Command, SetHold, Update, UpdateStep
from broker.model.errors import SpzError
from broker.model.ids import StepId
from broker.model.job import Hold, Job
from broker.model.spec import UNLIMITED, Dependency, DependencyKind, Limit
from gateway.api.programs.scontrol import (
    NAME_KEYS,
    NOT_YET,
    Asked,
    by_name,
    find_jobs,
    for_job,
    of_tasks,
    told,
)
from gateway.api.programs.scontrol_nodes import NO_CHANGE, UNSUPPORTED
from gateway.api.programs.scontrol_nodes import change as _nodes
from gateway.api.programs.scontrol_partitions import change as _partition_itself
from gateway.api.programs.scontrol_reservations import change as _reservation
from gateway.api.programs.scontrol_spec import Context, Reader, WrongValue, reader_of
from gateway.api.programs.scontrol_words import BadValue, Refusal, Word, read_word
from gateway.api.programs.targets import Named
from gateway.api.wire import Answer
from gateway.translate.gres import Spelling
from gateway.translate.refusals import BAD_ACCOUNT, BAD_DEPENDENCY, NOT_ALLOWED
from sbatch_shim.grammar.dependencies import DependencyError, read_dependencies
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.values import read_digits, read_time_limit

NO_ENTITY = (
    "No valid entity in update command\n"
    'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", '
    'or "SlurmctldDebug"\n'
)
TOO_FEW = "too few arguments for update keyword\n"
BARE = "Invalid input: {}\nRequest aborted\n"
BARE_NICE = 100
MINUTE = 60
HELD = "Job is in held state, pending scheduler release"


async def update(asked: Asked) -> Answer:
    """Exit status 1 and Slurm's words for what cannot be changed; all or nothing per job."""
    if not asked.words:
        return Answer(err=TOO_FEW, code=1)
    words = [read_word(text) for text in _joined(asked.words)]
    try:
        for keys, change in ENTITIES:
            if any(_names(word, keys) for word in words):
                return await change(asked, words)
        if any(word.key in NAME_KEYS for word in words):
            return await _jobs(asked, words)
    except BadValue as bad:
        return Answer(err=str(bad), code=1)
    return Answer(err=NO_ENTITY, code=1)


def _joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """`job 7 name=x` is `job=7 name=x` (22.05)."""
    first = words[0].lower()
    if len(words) > 1 and len(first) >= LEAST and "jobid".startswith(first):
        return f"{first}={words[1]}", *words[2:]
    return words


LEAST = 3
"""Letters that are enough for an entity."""


def _names(word: Word, entity: str) -> bool:
    """Slurm takes any beginning of three letters or more."""
    return word.names(entity, LEAST) and word.value is not None


async def _jobs(asked: Asked, words: list[Word]) -> Answer:
    ids = [word for word in words if _names(word, "jobid")]
    if ids:
        named, wrong = find_jobs(asked, tuple(word.value or "" for word in ids))
    else:
        name = next(word for word in words if word.key in NAME_KEYS)
        ids, named, wrong = [name], by_name(asked, name.value or ""), ""
        wrong = "" if named else f"Invalid job id specified for job {name.value}\n"
    if wrong:
        return Answer(err=wrong, code=1)
    changes = [word for word in words if word not in ids]
    lines = [text for one in named if (text := await _job(asked, one, changes))]
    return Answer(err="".join(lines), code=int(bool(lines)))


async def _job(asked: Asked, one: Named, words: list[Word]) -> str:
    """Changes one job; what stood in the way, empty if nothing did. Raises BadValue."""
    try:
        return "".join([await _ask(asked, one, each) for each in _commands(asked, one, words)])
    except Refusal as wrong:
        return for_job(asked, one, str(wrong))


async def _ask(asked: Asked, one: Named, command: Command) -> str:
    """What became of tasks of an array that could not all be changed. Raises Refusal."""
    try:
        return of_tasks(one, await asked.desk.ask_once(asked.call, command))
    except SpzError as error:
        job = asked.job(one.target)
        held = job is not None and job.hold is not None and job.owner.uid == asked.by.uid
        asks_priority = isinstance(command, Update) and command.priority is not None
        text = HELD if held and asks_priority else told(asked, error, one.target)
        raise Refusal(text) from error


def _commands(asked: Asked, one: Named, words: list[Word]) -> list[Command]:
    """What is changed, then the hold that the priority 0 is. Raises BadValue, Refusal."""
    empty = Update(target=one.alone, by=asked.by)
    change = _read(asked, one, words, change=empty)
    if change == empty:
        raise BadValue(NO_CHANGE)
    if change.priority != 0:
        return [change]
    hold = SetHold(target=one.alone, by=asked.by, hold=_hold_of(asked, one))
    rest = replace(change, priority=None)
    return [hold] if rest == empty else [rest, hold]


def _read(asked: Asked, one: Named, words: list[Word], *, change: Update) -> Update:
    """Every word, before anything is refused that could be read. Raises BadValue, Refusal."""
    refused: Refusal | None = None
    for word in words:
        _must_suit_array(asked, one, word)
        try:
            change = _setter(word, asked)(asked, word, change)
        except Refusal as wrong:
            refused = refused or wrong
    if refused is not None:
        raise refused
    return change


def _must_suit_array(asked: Asked, one: Named, word: Word) -> None:
    """Some things scontrol does not change of arrays with several records (22.05).

    Raises BadValue.
    """
    what = _of_one_record(word)
    if what is not None and one.target.tasks is None and _is_split(asked, one):
        raise BadValue(NOT_OF_ARRAYS.format(what))


def _of_one_record(word: Word) -> str | None:
    """What Slurm calls a change that a single record alone can have; None for others."""
    if word.names("timelimit", 5) and (word.sign or (word.value or "")[:1] in {"+", "-"}):
        return "TimeLimit increment/decrement"
    return "Job resizing" if any(word.names(*key) for key in RESIZING) else None


def _is_split(asked: Asked, one: Named) -> bool:
    """Whether some of its tasks have records of their own by now."""
    job = asked.job(one.target)
    if job is None or job.array is None:
        return False
    base = job.array.base
    every = asked.desk.snapshot().jobs.values()
    return any(each.array and each.array.base == base and each.id != job.id for each in every)


NOT_OF_ARRAYS = "scontrol: error: {} not supported for job arrays\n"
RESIZING = (("numnodes", 8), ("reqnodes", 8), ("nodelist", 8), ("reqnodelist", 8))
"""Keys of an array's size, and the letters that are enough."""


def _hold_of(asked: Asked, one: Named) -> Hold:
    job = asked.job(one.target)
    mine = job is not None and job.owner.uid == asked.by.uid
    return Hold.ADMIN if asked.operator and not mine else Hold.USER


Setter = Callable[[Asked, Word, Update], Update]


def _setter(word: Word, asked: Asked) -> Setter:
    for key, least, setter in SETTERS:
        if word.names(key, least):
            return setter
    reader = reader_of(word.key)
    if reader is not None:
        return _field(reader)
    raise BadValue((UNSUPPORTED if word.value is not None else BARE).format(word.text))


def _instant(asked: Asked, text: str) -> int:
    return read_instant(text, asked.desk.now(), offset=asked.desk.zone(asked.call))


def _field(reader: Reader) -> Setter:
    """Sets a field of the spec, read against the job as it is."""

    def set_field(asked: Asked, word: Word, change: Update) -> Update:
        job = asked.job(change.target)
        if job is None:
            raise BadValue(f"Invalid job id specified for job {change.target.job}\n")
        site, desk = asked.desk.site, asked.desk
        ctx = Context(
            job, site, Spelling(site, desk.gpu_types), asked.operator, partial(_instant, asked)
        )
        try:
            read = reader(_text(word), ctx)
        except WrongValue as wrong:
            raise BadValue(str(wrong)) from None
        return replace(change, spec=(*change.spec, *read))

    return set_field


def _text(word: Word) -> str:
    if word.value is None:
        raise BadValue(BARE.format(word.text))
    return word.value


def _time(asked: Asked, word: Word, change: Update) -> Update:
    """`5`, `1:00:00`, and `+10`, `-10` from what the job has."""
    text = _text(word)
    sign = word.sign or (text[:1] if text[:1] in ("+", "-") and text != "-1" else "")
    limit = read_time_limit(text.removeprefix(sign)) if sign else read_time_limit(text)
    if limit is None:
        raise BadValue("scontrol: error: Invalid TimeLimit value\n")
    if not sign:
        return replace(change, time_limit=_limit(limit))
    return replace(change, time_limit=_moved(asked.job(change.target), sign, limit))


def _limit(limit: int | str) -> Limit:
    return limit if isinstance(limit, int) else UNLIMITED


def _moved(job: Job | None, sign: str, by: int | str) -> Limit:
    if job is None:
        raise BadValue("Invalid job id specified\n")
    if not isinstance(job.time_limit, int) or not isinstance(by, int):
        raise BadValue(f"TimeLimit={job.time_limit}: nothing to add to or take from\n")
    changed = job.time_limit + (by if sign == "+" else -by)
    if changed < 0:
        raise BadValue("Time limit can't be below zero\n")
    return max(changed, MINUTE)


def _nice(asked: Asked, word: Word, change: Update) -> Update:
    if word.value is None:
        return replace(change, nice=BARE_NICE)
    digits = read_digits(word.value.removeprefix("-"))
    if digits is None:
        raise BadValue(f"Invalid nice value, must be an integer: {word.value}\n")
    nice = -digits if word.value.startswith("-") else digits
    if nice < 0 and not asked.operator:
        raise Refusal(NOT_ALLOWED)
    if abs(nice) > MOST_NICE:
        raise BadValue(f"scontrol: error: {TOO_NICE}\n")
    return replace(change, nice=nice)


MOST_NICE = 2**31 - 3
TOO_NICE = f"Nice value out of range (+/- {MOST_NICE}). Value ignored"


def _priority(asked: Asked, word: Word, change: Update) -> Update:
    number = read_digits(_text(word))
    if number is None:
        raise BadValue(f"scontrol: error: Invalid Priority value: {word.value}\n")
    return replace(change, priority=number)


def _requeue(asked: Asked, word: Word, change: Update) -> Update:
    number = read_digits(_text(word))
    if number is None:
        raise BadValue(f"scontrol: error: Invalid Requeue value: {word.value}\n")
    return replace(change, requeue=bool(number))


def _throttle(asked: Asked, word: Word, change: Update) -> Update:
    number = read_digits(_text(word))
    if number is None:
        raise BadValue(f"scontrol: error: Invalid ArrayTaskThrottle value: {word.value}\n")
    return replace(change, array_limit=number)


def _begin(asked: Asked, word: Word, change: Update) -> Update:
    return replace(change, begin=_moment(asked, word))


def _moment(asked: Asked, word: Word) -> int:
    try:
        return _instant(asked, _text(word))
    except InstantError as error:
        raise BadValue(error.complaint() + NO_CHANGE) from None


def _end(asked: Asked, word: Word, change: Update) -> Update:
    """Of a running job: its limit becomes what it has had until then."""
    at, job = _moment(asked, word), asked.job(change.target)
    if job is None or not job.state.holds_nodes or job.started is None:
        raise Refusal("Job is not running")
    return replace(change, time_limit=max(0, at - job.started - job.suspended_for))


def _dependency(asked: Asked, word: Word, change: Update) -> Update:
    try:
        wishes = read_dependencies(_text(word))
    except DependencyError:
        raise Refusal(BAD_DEPENDENCY) from None
    return replace(change, after=tuple(map(_condition, wishes.all)))


def _condition(wish: "object") -> Dependency:
    task = getattr(wish, "task", None)
    return Dependency(
        kind=DependencyKind(getattr(wish, "kind", "")),
        job=getattr(wish, "job", None),
        task=task if isinstance(task, int) else None,
        whole_array=task == "*",
        delay=getattr(wish, "delay", 0),
    )


def _partition(asked: Asked, word: Word, change: Update) -> Update:
    return replace(change, partitions=tuple(_text(word).split(",")))


def _account(asked: Asked, word: Word, change: Update) -> Update:
    if not _text(word):
        raise Refusal(BAD_ACCOUNT)
    return replace(change, account=word.value)


def _string(field: str) -> Setter:
    return lambda asked, word, change: replace(change, **{field: _text(word)})  # type: ignore[arg-type]


def _unchanged(asked: Asked, word: Word, change: Update) -> Update:
    """Read by Slurm only to tell jobs apart."""
    return change


SETTERS: tuple[tuple[str, int, Setter], ...] = (
    ("account", 1, _account),
    ("admincomment", 5, _string("admin_comment")),
    ("arraytaskthrottle", 10, _throttle),
    ("comment", 3, _string("comment")),
    ("dependency", 3, _dependency),
    ("eligibletime", 3, _begin),
    ("endtime", 3, _end),
    ("jobname", 4, _string("name")),
    ("name", 2, _string("name")),
    ("nice", 2, _nice),
    ("partition", 2, _partition),
    ("priority", 2, _priority),
    ("qos", 1, _string("qos")),
    ("requeue", 4, _requeue),
    ("starttime", 2, _begin),
    ("timelimit", 5, _time),
    ("userid", 3, _unchanged),
)
"""Keys of a job, the letters that are enough, and what they set."""


async def _unknown(asked: Asked, words: list[Word]) -> Answer:
    raise BadValue(NOT_YET.format(f"update {words[0].text}", ""))


async def _steps(asked: Asked, words: list[Word]) -> Answer:
    """A step's time limit, in minutes or as a time; Slurm changes nothing else of a step."""
    ids = [word for word in words if _names(word, "stepid")]
    others = [word for word in words if word not in ids]
    limits = [word for word in others if word.names("timelimit", 2)]
    if len(limits) != len(others):
        wrong = next(word for word in others if word not in limits)
        raise BadValue(UNSUPPORTED.format(wrong.text))
    if not limits:
        raise BadValue(NO_CHANGE)
    limit = read_time_limit(_text(limits[-1]))
    if limit is None:
        raise BadValue("scontrol: error: Invalid TimeLimit value\n")
    return await _limited(asked, ids[-1].value or "", limit)


async def _limited(asked: Asked, text: str, limit: int | str) -> Answer:
    found, wrong = find_jobs(asked, (text,))
    job = asked.job(found[0].target) if found else None
    step = found[0].step if found else None
    if wrong or job is None or step is None:
        return Answer(err=f"Invalid job id specified for step {text}\n", code=1)
    given = _limit(limit)
    seconds = None if given == UNLIMITED else int(given)
    try:
        await asked.desk.ask_once(
            asked.call, UpdateStep(job=job.id, step=StepId(step), by=asked.by, time_limit=seconds)
        )
    except SpzError as error:
        raise BadValue(f"{told(asked, error, found[0].target)} for step {text}\n") from None
    return Answer()


ENTITIES = (
    ("stepid", _steps),
    ("jobid", _jobs),
    ("nodename", _nodes),
    ("partitionname", _partition_itself),
    ("reservationname", _reservation),
    ("slurmctlddebug", _unknown),
)
"""What a line may change, by the key that names it."""
