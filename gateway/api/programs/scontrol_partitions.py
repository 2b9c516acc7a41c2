"""`scontrol update partition`: KEY=VALUE words to fields of a partition, in effect at once.

They stand over the configuration until that is read anew. Texts are 22.05's.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from accounting.tres import parse_weights
from broker.model.errors import SpzError
from broker.model.partition import SetPartition, Value
from broker.model.spec import UNLIMITED
from gateway.api.programs.scontrol import Asked
from gateway.api.programs.scontrol_words import BadValue, Word
from gateway.api.wire import Answer
from sbatch_shim.grammar.errors import error_line
from sbatch_shim.grammar.values import read_digits, read_seconds

MINUTE = 60
HIGHEST = 65_533
"""The highest priority of a partition."""
UPDATE = "slurm_update error: {}\n"
NO_ERROR = UPDATE.format("No error")
"""What scontrol adds where it refused a word itself."""
NO_CHANGE = error_line("scontrol", "No changes specified")
IN_THE_FILE = "{} of a partition is the configuration's: change it there, then scontrol reconfigure"

Changes = dict[str, Value]
Read = Callable[[Asked, str, Word], Awaitable[Changes]]


async def change(asked: Asked, words: list[Word]) -> Answer:
    """`update partitionname=NAME KEY=VALUE...`: all of it or nothing. Raises BadValue."""
    named = [word for word in words if word.names("partitionname", 2)]
    changes: Changes = {}
    for word in words:
        if word not in named:
            changes |= await _read(asked, word)
    if not changes:
        raise BadValue(NO_CHANGE)
    wish = SetPartition(name=named[-1].value or "", by=asked.by, changes=changes)
    _must_be_known(asked, wish)
    try:
        await asked.desk.ask_once(asked.call, wish)
    except SpzError as error:
        raise BadValue(UPDATE.format(error.message)) from None
    return Answer()


async def _read(asked: Asked, word: Word) -> Changes:
    if word.value is None:
        raise BadValue(_wrong(f"Invalid input: {word.text}  Request aborted"))
    for key in KEYS:
        if word.names(key.name.lower(), key.least):
            return await key.read(asked, key.name, word)
    raise BadValue(
        _wrong(f"Update of this parameter is not supported: {word.text}\n", "Request aborted")
    )


def _wrong(*lines: str) -> str:
    return "".join(error_line("scontrol", line) for line in lines) + NO_ERROR


def _must_be_known(asked: Asked, wish: SetPartition) -> None:
    """What only the controller knows, in its words; who may not is told that instead."""
    if not asked.desk.site.is_run_by(asked.by.uid):
        return
    qos = wish.changes.get("qos")
    if qos and asked.desk.site.partition(wish.name) and str(qos) not in asked.desk.site.book.qos:
        raise BadValue(UPDATE.format("Invalid qos specification"))


# ---------------------------------------------------------------- how values are read


def _flag(field: str) -> Read:
    async def read(_: Asked, name: str, word: Word) -> Changes:
        value = _one_of(name, word, ("YES", "NO"), said="YES and NO")
        return {field: value == "YES"}

    return read


def _one_of(name: str, word: Word, known: tuple[str, ...], *, said: str = "") -> str:
    value = (word.value or "").upper()
    if value in known:
        return value
    hint = [f"Acceptable {name} values are {said}"] if said else []
    raise BadValue(_wrong(f"Invalid input: {word.text}", *hint))


async def _state(_: Asked, name: str, word: Word) -> Changes:
    known = ("UP", "DOWN", "DRAIN", "INACTIVE")
    return {"state": _one_of(name, word, known, said="UP, DOWN, DRAIN and INACTIVE")}


def _time(field: str) -> Read:
    async def read(_: Asked, name: str, word: Word) -> Changes:
        seconds = read_seconds(word.value or "")
        if seconds is None:
            raise BadValue(_wrong(f"Invalid input {word.text}"))
        whole = -(-seconds // MINUTE) * MINUTE if isinstance(seconds, int) else UNLIMITED
        return {field: whole}

    return read


def _number(field: str, *, most: int | None = None, times: int = 1) -> Read:
    async def read(_: Asked, name: str, word: Word) -> Changes:
        number = read_digits(word.value or "")
        if number is None or (most is not None and number > most):
            raise BadValue(_wrong(f"Invalid {name} value: {word.value}"))
        return {field: number * times}

    return read


def _count(field: str, none: Value) -> Read:
    """`none` stands for no limit."""

    async def read(_: Asked, name: str, word: Word) -> Changes:
        if (word.value or "").upper() in {"UNLIMITED", "INFINITE"}:
            return {field: none}
        number = read_digits(word.value or "")
        if number is None:
            text = f'Invalid numeric value "{word.value}" for {name}.'
            raise BadValue(error_line("scontrol", text))
        return {field: number}

    return read


async def _priority(asked: Asked, name: str, word: Word) -> Changes:
    """Both of its priorities, as the key of old."""
    both = [_number(field, most=HIGHEST) for field in ("priority_job_factor", "priority_tier")]
    return {key: n for read in both for key, n in (await read(asked, name, word)).items()}


def _list(field: str, everybody: Value, *, lower: bool = False) -> Read:
    """Names with commas; ALL, or none, is `everybody`."""

    async def read(_: Asked, name: str, word: Word) -> Changes:
        text = word.value or ""
        if not text or text.upper() == "ALL":
            return {field: everybody}
        return {field: tuple(filter(None, (text.lower() if lower else text).split(",")))}

    return read


async def _groups(asked: Asked, name: str, word: Word) -> Changes:
    """Groups that this host does not have let nobody in."""
    changes = await _list("allow_groups", None)(asked, name, word)
    names = changes["allow_groups"]
    desk = asked.desk
    found = [await desk.read(desk.gids, one) for one in (names if isinstance(names, tuple) else ())]
    return {**changes, "allowed_gids": frozenset(gid for gid in found if gid is not None)}


async def _qos(_: Asked, name: str, word: Word) -> Changes:
    return {"qos": (word.value or "").lower() or None}


async def _weights(_: Asked, name: str, word: Word) -> Changes:
    text = word.value or ""
    try:
        parse_weights(text)
    except ValueError:
        raise BadValue(UPDATE.format(f"Invalid {name} specification")) from None
    return {"billing_weights": text}


async def _preempt(asked: Asked, name: str, word: Word) -> Changes:
    if (word.value or "").upper() == "SUSPEND":
        return await _in_the_file(asked, name, word)
    return {"preempt_mode": _one_of(name, word, ("OFF", "CANCEL", "REQUEUE")).lower()}


async def _sharing(asked: Asked, name: str, word: Word) -> Changes:
    """A cpu is given to one job at a time: YES and FORCE are refused as in the configuration."""
    value = (word.value or "").upper()
    if value.partition(":")[0] in {"YES", "FORCE"}:
        return await _in_the_file(asked, f"{name}={value}", word)
    said = "NO, EXCLUSIVE, YES:#, and FORCE:#"
    return {"whole_nodes": _one_of(name, word, ("NO", "EXCLUSIVE"), said=said) == "EXCLUSIVE"}


async def _in_the_file(_: Asked, name: str, word: Word) -> Changes:
    raise BadValue(error_line("scontrol", IN_THE_FILE.format(name)))


@dataclass(frozen=True, slots=True)
class Key:
    """A key as Slurm writes it, the letters that are enough, and how its value is read."""

    name: str
    least: int
    read: Read


KEYS = (
    Key("MaxTime", 4, _time("max_time")),
    Key("DefaultTime", 8, _time("default_time")),
    Key("MaxCPUsPerNode", 4, _count("max_cpus_per_node", None)),
    Key("MaxNodes", 4, _count("max_nodes", None)),
    Key("MinNodes", 2, _count("min_nodes", 0)),
    Key("Default", 7, _flag("default")),
    Key("DisableRootJobs", 1, _flag("disable_root_jobs")),
    Key("ExclusiveUser", 1, _flag("exclusive_user")),
    Key("Hidden", 1, _flag("hidden")),
    Key("RootOnly", 1, _flag("root_only")),
    Key("ReqResv", 1, _flag("req_resv")),
    Key("Shared", 2, _sharing),
    Key("OverSubscribe", 5, _sharing),
    Key("OverTimeLimit", 5, _number("over_time", most=HIGHEST, times=MINUTE)),
    Key("PreemptMode", 3, _preempt),
    Key("Priority", 3, _priority),
    Key("PriorityJobFactor", 9, _number("priority_job_factor", most=HIGHEST)),
    Key("PriorityTier", 9, _number("priority_tier", most=HIGHEST)),
    Key("State", 2, _state),
    Key("AllowGroups", 6, _groups),
    Key("AllowAccounts", 6, _list("allow_accounts", None)),
    Key("AllowQos", 6, _list("allow_qos", None, lower=True)),
    Key("DenyAccounts", 5, _list("deny_accounts", ())),
    Key("DenyQos", 5, _list("deny_qos", (), lower=True)),
    Key("GraceTime", 5, _number("grace_time")),
    Key("DefMemPerCPU", 10, _number("def_mem_per_cpu_mib")),
    Key("MaxMemPerCPU", 10, _number("max_mem_per_cpu_mib")),
    Key("QOS", 3, _qos),
    Key("TRESBillingWeights", 1, _weights),
    *(
        Key(name, least, _in_the_file)
        for name, least in (
            ("AllocNodes", 6),
            ("Alternate", 3),
            ("CpuBind", 7),
            ("DefMemPerNode", 10),
            ("ExclusiveTopo", 10),
            ("JobDefaults", 10),
            ("LLN", 1),
            ("MaxMemPerNode", 10),
            ("Nodes", 1),
            ("PowerDownOnIdle", 10),
            ("ResumeTimeout", 10),
            ("SuspendTime", 10),
            ("SuspendTimeout", 12),
            ("Topology", 3),
        )
    ),
)
"""In Slurm's order: the first that a word may be short for is meant."""
