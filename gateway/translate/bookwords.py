"""What sacctmgr sets: the table of names, how values are read, put into records and shown."""

# ruff: noqa: E501 - a row stays on one line

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from accounting.assoc import USE_PARENT, Account, Association, Qos
from accounting.limits import Limits
from accounting.tres import memory_text
from gateway.config.accounts import QOS_FLAGS
from sbatch_shim.grammar.values import read_mebibytes, read_seconds, read_time_limit, show_long

Record = TypeVar("Record", Account, Association, Qos)
CLEAR = "-1"
"""Takes a limit away."""
MOST = (1 << 32) - 3
"""Counts: those above have a meaning of their own in Slurm (slurm.h, 25.11: INFINITE, NO_VAL)."""
MOST_TRES = (1 << 63) - 1
MOST_FACTOR = 1e9
LIMITS = frozenset(one.name for one in fields(Limits))
RELATIVE = "relative"
BAD_VALUE = "sacctmgr: error: Invalid value for {} ({})\n"
NOTHING_SET = " You didn't give me anything to set\n"
BAD_WALL = " Bad {} time format: {}\n"
"""With the whole word, which reading a value does not see: it raises an empty complaint."""
BAD_QOS = "sacctmgr: error: You gave a bad qos '{}'. Valid QOS's are {}\n"
BAD_TRES = "sacctmgr: error: slurmdb_format_tres_str: no TRES known by type {}\n"
BAD_UNIT = "sacctmgr: error: Invalid unit type '{}'. Possible options are 'KMGTP'\n"
BAD_DEFAULT = "You gave a bad default qos '{}'.  Use 'list qos' to get complete list.\n"
BAD_FLAG = " Unknown QOS flag used in:\n  '{}'\n Valid QOS flags are\n  '{}'\n"
BAD_MODE = " Bad Preempt Mode given: preemptmode={}\n"
UNITS = "KMGTP"


def plain(text: str) -> bool:
    """Whether a name or a description may be so: all of it can be printed, none of it quotes."""
    return text.isprintable() and not set(text) & set("'\"|")


class BadSettingError(ValueError):
    """A value that cannot be taken; the text is what sacctmgr prints."""

    def __init__(self, text: str, *, whole: bool = False, out: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.out = out
        """It is told as an answer, not as an error."""
        self.whole = whole
        """Nothing follows: the word itself is all right."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names that values may name."""

    qos: tuple[str, ...]
    tres: Mapping[str, int]
    """Number by name."""


@dataclass(frozen=True, slots=True)
class Name:
    """Something that can be set: its name, the letters that are enough, its kind, its field."""

    name: str
    least: int
    kind: str
    field: str
    label: str
    part: str = ""
    """The TRES that an older name of a limit stands for."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A name with a sign (``, `+`, `-`) and a value that was read."""

    what: Name
    sign: str
    value: Any


# fmt: off
GROUP_TRES = (
    Name("GrpTRESMins",           8, "tres",    "grp_tres_mins", "GrpTRESMins"),
    Name("GrpTRESRunMins",        8, "tres",    "grp_tres_run_mins", "GrpTRESRunMins"),
    Name("GrpTRES",               7, "tres",    "grp_tres", "GrpTRES"),
    Name("GrpCPUMins",            8, "part",    "grp_tres_mins", "GrpTRESMins", "cpu"),
    Name("GrpCPURunMins",         7, "part",    "grp_tres_run_mins", "GrpTRESRunMins", "cpu"),
    Name("GrpCPUs",               7, "part",    "grp_tres", "GrpTRES", "cpu"),
    Name("GrpMemory",             4, "part",    "grp_tres", "GrpTRES", "mem"),
    Name("GrpNodes",              4, "part",    "grp_tres", "GrpTRES", "node"),
)
GROUP_COUNTS = (
    Name("GrpJobsAccrue",         8, "count",   "grp_jobs_accrue", "GrpJobsAccrue"),
    Name("GrpJobs",               4, "count",   "grp_jobs", "GrpJobs"),
    Name("GrpSubmitJobs",         4, "count",   "grp_submit_jobs", "GrpSubmitJobs"),
)
ASSOC = (
    Name("Fairshare",             1, "shares",  "fairshare", "Fairshare"),
    Name("Shares",                3, "shares",  "fairshare", "Fairshare"),
    *GROUP_TRES,
    *GROUP_COUNTS,
    Name("GrpWall",               4, "wall",    "grp_wall", "GrpWall"),
    Name("MaxTRESMinsPerJob",     8, "tres",    "max_tres_mins_per_job", "MaxTRESMins"),
    Name("MaxTRESPerNode",       11, "tres",    "max_tres_per_node", "MaxTRESPerNode"),
    Name("MaxTRESPerJob",         7, "tres",    "max_tres_per_job", "MaxTRESPerJob"),
    Name("MaxCPUMinsPerJob",      7, "part",    "max_tres_mins_per_job", "MaxTRESMins", "cpu"),
    Name("MaxCPUsPerJob",         7, "part",    "max_tres_per_job", "MaxTRESPerJob", "cpu"),
    Name("MaxNodesPerJob",        4, "part",    "max_tres_per_job", "MaxTRESPerJob", "node"),
    Name("MaxJobsAccrue",         8, "count",   "max_jobs_accrue", "MaxJobsAccrue"),
    Name("MaxJobs",               4, "count",   "max_jobs", "MaxJobs"),
    Name("MaxSubmitJobs",         4, "count",   "max_submit_jobs", "MaxSubmitJobs"),
    Name("MaxWallDurationPerJob", 4, "wall",    "max_wall", "MaxWall"),
    Name("MinPrioThreshold",      4, "count",   "min_prio_threshold", "MinPrioThreshold"),
    Name("Parent",                4, "text",    "parent", "Parent"),
    Name("Priority",              3, "count",   "priority", "Priority"),
    Name("QosLevel",              1, "qos",     "qos", "QOS"),
    Name("DefaultQOS",            8, "one qos", "default_qos", "DefQOS"),
    Name("Comment",               3, "text",    "comment", "Comment"),
)
QOS = (
    Name("Description",           2, "text",    "description", "Description"),
    Name("Flags",                 2, "flags",   "flags", "Flags"),
    Name("GraceTime",             3, "seconds", "grace_time", "GraceTime"),
    *GROUP_COUNTS,
    *GROUP_TRES,
    Name("GrpWall",               4, "wall",    "grp_wall", "GrpWall"),
    Name("LimitFactor",           3, "factor",  "limit_factor", "LimitFactor"),
    Name("MaxJobsPerAccount",    11, "count",   "max_jobs_per_account", "MaxJobsPerAccount"),
    Name("MaxJobsPA",             9, "count",   "max_jobs_per_account", "MaxJobsPerAccount"),
    Name("MaxJobsPerUser",        4, "count",   "max_jobs", "MaxJobsPerUser"),
    Name("MaxJobsPU",             9, "count",   "max_jobs", "MaxJobsPerUser"),
    Name("MaxSubmitJobsPerAccount", 17, "count", "max_submit_jobs_per_account", "MaxSubmitJobsPerAccount"),
    Name("MaxSubmitJobsPA",      15, "count",   "max_submit_jobs_per_account", "MaxSubmitJobsPerAccount"),
    Name("MaxSubmitPA",          11, "count",   "max_submit_jobs_per_account", "MaxSubmitJobsPerAccount"),
    Name("MaxSubmitJobsPerUser",  4, "count",   "max_submit_jobs", "MaxSubmitJobsPerUser"),
    Name("MaxSubmitJobsPU",      15, "count",   "max_submit_jobs", "MaxSubmitJobsPerUser"),
    Name("MaxSubmitPU",          11, "count",   "max_submit_jobs", "MaxSubmitJobsPerUser"),
    Name("MaxTRESMinsPerJob",     8, "tres",    "max_tres_mins_per_job", "MaxTRESMins"),
    Name("MaxTRESRunMinsPerAccount", 18, "tres", "max_tres_run_mins_per_account", "MaxTRESRunMinsPA"),
    Name("MaxTRESRunMinsPA",     16, "tres",    "max_tres_run_mins_per_account", "MaxTRESRunMinsPA"),
    Name("MaxTRESRunMinsPerUser", 8, "tres",    "max_tres_run_mins_per_user", "MaxTRESRunMinsPU"),
    Name("MaxTRESRunMinsPU",     16, "tres",    "max_tres_run_mins_per_user", "MaxTRESRunMinsPU"),
    Name("MaxTRESPerAccount",    11, "tres",    "max_tres_per_account", "MaxTRESPerAccount"),
    Name("MaxTRESPA",             9, "tres",    "max_tres_per_account", "MaxTRESPerAccount"),
    Name("MaxTRESPerNode",       11, "tres",    "max_tres_per_node", "MaxTRESPerNode"),
    Name("MaxTRESPerUser",       11, "tres",    "max_tres_per_user", "MaxTRESPerUser"),
    Name("MaxTRESPU",             9, "tres",    "max_tres_per_user", "MaxTRESPerUser"),
    Name("MaxTRESPerJob",         7, "tres",    "max_tres_per_job", "MaxTRESPerJob"),
    Name("MaxCPUMinsPerJob",      7, "part",    "max_tres_mins_per_job", "MaxTRESMins", "cpu"),
    Name("MaxCPUsPerUser",       11, "part",    "max_tres_per_user", "MaxTRESPerUser", "cpu"),
    Name("MaxCPUsPerJob",         7, "part",    "max_tres_per_job", "MaxTRESPerJob", "cpu"),
    Name("MaxNodesPerUser",      12, "part",    "max_tres_per_user", "MaxTRESPerUser", "node"),
    Name("MaxNodesPerJob",        4, "part",    "max_tres_per_job", "MaxTRESPerJob", "node"),
    Name("MinPrioThreshold",      4, "count",   "min_prio_threshold", "MinPrioThreshold"),
    Name("MinTRESPerJob",         7, "tres",    "min_tres_per_job", "MinTRESPerJob"),
    Name("MinCPUs",               4, "part",    "min_tres_per_job", "MinTRESPerJob", "cpu"),
    Name("MinNodes",              4, "part",    "min_tres_per_job", "MinTRESPerJob", "node"),
    Name("MaxWallDurationPerJob", 4, "wall",    "max_wall", "MaxWall"),
    Name("PreemptMode",           8, "mode",    "preempt_mode", "PreemptMode"),
    Name("PreemptExemptTime",     8, "wall",    "exempt_time", "PreemptExemptTime"),
    Name("Preempt",               3, "qos",     "preempt", "Preempt"),
    Name("Priority",              3, "whole",   "priority", "Priority"),
    Name("UsageFactor",           6, "factor",  "usage_factor", "UsageFactor"),
    Name("UsageThreshold",        6, "factor",  "usage_threshold", "UsageThreshold"),
)
RAW_USAGE = Name("RawUsage", 7, "reset", "", "RawUsage")
"""No field of a record: setting it to 0 has use count anew."""
# fmt: on
SUSPEND = "suspend"
MODES = ("cluster", "cancel", "requeue", SUSPEND)
NO_RELATIVE = "sacctmgr: error: QOS flag Relative is not supported by SkyPurza\n"
NO_SUSPEND = "sacctmgr: error: PreemptMode SUSPEND is not supported by SkyPurza\n"


def find(word: str, known: tuple[Name, ...]) -> Name | None:
    """What a name stands for: the one spelled so, else the first of which enough is there."""
    low = word.lower()
    exact = next((one for one in known if one.name.lower() == low), None)
    enough = (one for one in known if len(low) >= one.least and one.name.lower().startswith(low))
    return exact or next(enough, None)


def read(what: Name, sign: str, text: str, *, words: Vocabulary) -> Setting:
    """The setting. Raises BadSettingError with what sacctmgr says of the value."""
    return Setting(what, sign, READERS[what.kind](what, text.strip("\"'"), words))


# ---------------------------------------------------------------- reading


def _count(what: Name, text: str, _: Vocabulary) -> int | None:
    if text == CLEAR:
        return None
    number = _digits(text)
    if number is None or number > MOST:
        raise BadSettingError(BAD_VALUE.format(what.label, text))
    return number


def _digits(text: str) -> int | None:
    """The number that these digits are; None where they are none, or more than any count has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else None


def _usage(what: Name, text: str, words: Vocabulary) -> int:
    """Slurm says of a bad number that nothing is to be set (22.05)."""
    try:
        return _whole(what, text, words)
    except BadSettingError as error:
        raise BadSettingError(error.text + NOTHING_SET, whole=True) from None


def _whole(what: Name, text: str, words: Vocabulary) -> int:
    return _count(what, text, words) or 0


def _shares(what: Name, text: str, words: Vocabulary) -> int:
    if text.lower() == "parent":
        return USE_PARENT
    found = _count(replace(what, label="FairShare"), text, words)
    return 1 if found is None else found


def _wall(_: Name, text: str, __: Vocabulary) -> int | None:
    if text == CLEAR:
        return None
    found, seconds = read_time_limit(text), read_seconds(text)
    if found is None or (isinstance(seconds, int) and seconds // 60 > MOST):
        raise BadSettingError("")
    if seconds == 0:
        return 0  # of a job's own limit it would be none
    return found if isinstance(found, int) else None


def _factor(what: Name, text: str, _: Vocabulary) -> float | None:
    if text == CLEAR:
        return None
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MOST_FACTOR:  # which NaN is not either
        raise BadSettingError(BAD_VALUE.format(what.label, text))
    return number


def _tres(what: Name, text: str, words: Vocabulary) -> dict[str, int | None]:
    """Counts by name; None takes one away, and CLEAR alone is all that there is."""
    if text == CLEAR:
        return dict.fromkeys(words.tres)
    found: dict[str, int | None] = {}
    for part in filter(None, text.split(",")):
        name, equals, count = part.partition("=")
        name = name.strip().lower()
        if name not in words.tres:
            raise BadSettingError(BAD_TRES.format(name), whole=True)
        found[name] = _amount(what, name, count if equals else "")
    return found


def _amount(what: Name, name: str, text: str) -> int | None:
    if text == CLEAR:
        return None
    number = read_mebibytes(text) if name == "mem" else _scaled(text)
    if number is None or number > MOST_TRES:
        raise BadSettingError(BAD_VALUE.format(what.label, text))
    return number


def _scaled(text: str) -> int | None:
    """Counts may have a unit as sizes have: `2K` is 2048 (22.05)."""
    digits, unit = text[:-1], text[-1:].upper()
    if unit.isdecimal() or not text:
        return _digits(text)
    if unit not in UNITS:
        raise BadSettingError(BAD_UNIT.format(text[-1:]), whole=True)
    number = _digits(digits)
    return None if number is None else number * 1024 ** (1 + UNITS.index(unit))


def _part(what: Name, text: str, _: Vocabulary) -> dict[str, int | None]:
    return {what.part: _amount(what, what.part, text)}


def _qos(_: Name, text: str, words: Vocabulary) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.lower() for name in text.split(",") if name))
    for name in names:
        if name not in words.qos:
            raise BadSettingError(BAD_QOS.format(name, ",".join(words.qos)))
    return tuple(sorted(names))


def _one_qos(what: Name, text: str, words: Vocabulary) -> str | None:
    if text in {CLEAR, ""}:
        return None
    if text.lower() not in words.qos:
        raise BadSettingError(BAD_DEFAULT.format(text), whole=True)
    return next(iter(_qos(what, text, words)), None)


def _flags(_: Name, text: str, __: Vocabulary) -> frozenset[str]:
    if text == CLEAR:
        return frozenset()
    known = {name.lower(): name for name in QOS_FLAGS}
    words = [word.lower() for word in text.split(",") if word]
    if RELATIVE in words:
        raise BadSettingError(NO_RELATIVE, whole=True)
    names = [known.get(word) for word in words]
    if None in names:
        raise BadSettingError(BAD_FLAG.format(text, ",".join(QOS_FLAGS)), whole=True, out=True)
    return frozenset(name for name in names if name)


def _mode(_: Name, text: str, __: Vocabulary) -> str:
    if text.lower() not in MODES:
        raise BadSettingError(BAD_MODE.format(text), whole=True)
    if text.lower() == SUSPEND:
        raise BadSettingError(NO_SUSPEND, whole=True)
    return text.lower()


def _text(what: Name, text: str, _: Vocabulary) -> str:
    if not plain(text):
        raise BadSettingError(BAD_VALUE.format(what.label, text))
    return text


READERS: Mapping[str, Callable[[Name, str, Vocabulary], Any]] = {
    "count": _count,
    "whole": _whole,
    "seconds": _whole,
    "reset": _usage,
    "shares": _shares,
    "wall": _wall,
    "factor": _factor,
    "tres": _tres,
    "part": _part,
    "qos": _qos,
    "one qos": _one_qos,
    "flags": _flags,
    "mode": _mode,
    "text": _text,
}

# ---------------------------------------------------------------- putting


def put(record: Record, settings: list[Setting]) -> Record:
    """The record with every setting in its place."""
    for setting in settings:
        field = setting.what.field
        if field in LIMITS:
            before = getattr(record.limits, field)
            limits = replace(record.limits, **{field: _joined(before, setting)})
            record = replace(record, limits=limits)
        else:
            record = replace(record, **{field: _joined(getattr(record, field), setting)})
    return record


def _joined(before: Any, setting: Setting) -> Any:
    value = setting.value
    if setting.what.kind in {"tres", "part"}:
        counts = {**before, **value}
        return {name: count for name, count in counts.items() if count is not None}
    if setting.what.kind == "flags":
        signs = {"+": before | value, "-": before - value}
        return signs.get(setting.sign, value)
    if setting.what.kind == "qos":
        old = before or ()
        more, fewer = {*old, *value}, set(old) - set(value)
        return tuple(sorted({"+": more, "-": fewer}.get(setting.sign, set(value))))
    if value is None and setting.what.field == "usage_factor":
        return 1.0
    return value


# ---------------------------------------------------------------- showing


def shown(setting: Setting) -> str:
    """The value as sacctmgr repeats it before it asks."""
    value = setting.value
    if value is None:
        return "NONE"
    return SHOWN.get(setting.what.kind, str)(value)


def tres_text(counts: Mapping[str, int | None]) -> str:
    """`cpu=100,mem=2G`."""
    return ",".join(f"{name}={_size(name, count)}" for name, count in counts.items())


def _size(name: str, count: int | None) -> str:
    if count is None:
        return "NONE"
    return memory_text(count) if name == "mem" else str(count)


SHOWN: Mapping[str, Callable[[Any], str]] = {
    "tres": tres_text,
    "part": tres_text,
    "qos": ",".join,
    "flags": lambda flags: ",".join(sorted(flags)),
    "wall": show_long,
    "factor": lambda value: f"{value:.4f}",
    "mode": str.upper,
    "shares": lambda shares: "parent" if shares == USE_PARENT else str(shares),
}
