"""The text of a submit option to its value, by kind; errors in the words of Slurm 25.11."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

from sbatch_shim.grammar import table as t
from sbatch_shim.grammar import values
from sbatch_shim.grammar.binding import BindingError, CpuBind, read_cpu_bind
from sbatch_shim.grammar.errors import (
    FAILURE,
    OPTION_ERROR,
    GrammarError,
    error_line,
    failed,
    invalid,
)
from sbatch_shim.grammar.instants import InstantError, read_instant
from sbatch_shim.grammar.table import Opt

Rules = namedtuple("Rules", "program now offset root plugins", defaults=(False,))
"""Who asks, when (seconds UTC), the zone (see `instants.Zone`), whether it is root, and whether the
site has the options of plugins."""

Value = object
Reader = Callable[[Opt, str, Rules], Value]

NICE_RANGE = 2**31 - 3
MOST_INT = 2**31 - 1
EXCLUSIVE_WORDS = ("exclusive", "user", "mcs", "topo")
# fmt: off
MAIL_NAMES = (
    "ARRAY_TASKS", "INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT",
    "TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT",
)
MAIL_ALL = ("INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT")
RLIMIT_NAMES = (
    "ALL", "NONE", "AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS",
    "STACK",
)
HINTS = ("compute_bound", "memory_bound", "multithread", "nomultithread", "help")
DISTRIBUTIONS = ("block", "cyclic", "arbitrary", "fcyclic", "*")
GRES_FLAGS = frozenset((
    "allow-task-sharing", "disable-binding", "enforce-binding", "multiple-tasks-per-sharing",
    "one-task-per-sharing",
))
GPU_BINDINGS = ("closest", "none", "single", "per_task", "map_gpu", "mask_gpu")
MEMORY_BINDINGS = (
    "none", "no", "n", "quiet", "q", "verbose", "v", "local", "rank", "map_mem", "mask_mem",
    "map", "mask", "sort", "nosort", "prefer", "p", "help",
)
FREQUENCIES = ("low", "medium", "highm1", "high")
GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")
# fmt: on


def _specification(opt: Opt, rules: Rules) -> GrammarError:
    return invalid(rules.program, f"Invalid --{opt.long} specification")


def _numeric(what: str, text: str, rules: Rules) -> GrammarError:
    return failed(rules.program, f'Invalid numeric value "{text}" for {what}.')


def _integer(what: str, text: str, rules: Rules, *, least: int) -> int:
    number = values.read_count(text)
    if number is None or not least <= number <= MOST_INT:
        raise _numeric(what, text, rules)
    return number


def _text(_opt: Opt, text: str, _rules: Rules) -> str:
    return text


def _flag(_opt: Opt, _text: str, _rules: Rules) -> bool:
    return True


def _repeat(_opt: Opt, text: str, _rules: Rules) -> int:
    return values.read_count(text) or (0 if text else 1)


def _count(opt: Opt, text: str, rules: Rules) -> int:
    return _integer(f"--{opt.long}", text, rules, least=1)


def _any_count(opt: Opt, text: str, rules: Rules) -> int:
    bare = not text and opt.arg == t.OPT
    return 1 if bare else _integer(f"--{opt.long}", text, rules, least=0)


def _specialize(opt: Opt, text: str, rules: Rules) -> int:
    """Threads are one at least; cores may be left out (22.05)."""
    threads = opt.long == "thread-spec"
    text = text if threads else text or "0"
    return _integer(f"--{opt.long}", text, rules, least=int(threads))


def _pieces(opt: Opt, text: str, rules: Rules) -> int | None:
    """A number of sockets, cores or threads, of a range its lower end; `*` is any."""
    return _piece(f"--{opt.long}", text, rules)


def _piece(what: str, text: str, rules: Rules) -> int | None:
    low, _, high = text.partition("-")
    if text in ("*", ""):
        return None
    for number in (low, high or low):
        if number != "*":
            _integer(what, number, rules, least=1)
    return values.read_count(low)


def _geometry(_opt: Opt, text: str, rules: Rules) -> tuple[int | None, ...]:
    """`sockets[:cores[:threads]]`."""
    parts = text.split(":")[:3]
    names = ("first", "second", "third")
    return tuple(_piece(f"{name} arg of -B", part, rules) for name, part in zip(names, parts))


def _time(opt: Opt, text: str, rules: Rules) -> int | str:
    limit = values.read_time_limit(text)
    if limit is None:
        raise _specification(opt, rules)
    return limit


def _minutes(opt: Opt, text: str, rules: Rules) -> int | str:
    seconds = values.read_seconds(text)
    if seconds is None:
        raise _specification(opt, rules)
    return seconds


def _instant(opt: Opt, text: str, rules: Rules) -> int:
    try:
        return read_instant(text, rules.now, offset=rules.offset)
    except InstantError as wrong:
        said = error_line(rules.program, f"Invalid --{opt.long} specification")
        raise GrammarError(wrong.complaint() + said, OPTION_ERROR) from None


def _mem(opt: Opt, text: str, rules: Rules) -> int | str:
    mib = values.read_mebibytes(text)
    if mib is None:
        raise _specification(opt, rules)
    return mib or values.ALL


def _nodes(_opt: Opt, text: str, rules: Rules) -> values.NodeCount:
    count = values.read_nodes(text)
    if count is None:
        raise invalid(rules.program, f'"{text}" is not a valid node count')
    if count.high is not None and count.high < count.low:
        raise invalid(
            rules.program,
            f"Maximum node count {count.high} is less than minimum node count {count.low}",
        )
    return count


def _signal(opt: Opt, text: str, rules: Rules) -> values.Signal:
    signal = values.read_signal(text)
    if signal is None:
        raise _specification(opt, rules)
    return signal


def _mail(opt: Opt, text: str, rules: Rules) -> tuple[str, ...]:
    """Known names, in Slurm's order; unknown ones are dropped while one is known."""
    found = mail_types(text)
    if found is None:
        raise _specification(opt, rules)
    return found


def mail_types(text: str) -> tuple[str, ...] | None:
    """The same for any command; None where none is known."""
    names = [name.upper() for name in text.split(",")]
    known = {name for name in names if name in MAIL_NAMES}
    if "ALL" in names:
        known.update(MAIL_ALL)
    if not known and "NONE" not in names:
        return None
    return tuple(name for name in MAIL_NAMES if name in known)


def _distribution(opt: Opt, text: str, rules: Rules) -> str:
    levels, comma, packing = text.lower().partition(",")
    wrong = [level for level in levels.split(":") if not _is_level(level)]
    if "plane" in wrong:
        said = error_line(rules.program, "Invalid plane size or size not specified")
        raise GrammarError(said + _specification(opt, rules).stderr, OPTION_ERROR)
    if wrong or levels.count(":") > 2 or (comma and packing not in ("pack", "nopack")):
        raise _specification(opt, rules)
    return text.lower()


def _is_level(level: str) -> bool:
    name, equals, size = level.partition("=")
    if equals:
        return name == "plane" and bool(values.read_digits(size))
    return bool(level) and any(word.startswith(level) for word in DISTRIBUTIONS)


def _open_mode(opt: Opt, text: str, rules: Rules) -> str:
    modes = {"a": "append", "t": "truncate"}
    mode = modes.get(text[:1].lower())
    if mode is None:
        raise _specification(opt, rules)
    return mode


def _exclusive(opt: Opt, text: str, rules: Rules) -> str:
    word = text.lower() or "exclusive"
    if word not in EXCLUSIVE_WORDS:
        raise _specification(opt, rules)
    return word


def _switches(_opt: Opt, text: str, rules: Rules) -> tuple[int, int | str | None]:
    count, at, wait = text.partition("@")
    number = _integer("--switches", count, rules, least=1)
    return number, values.read_seconds(wait) if at else None


def _rlimits(_opt: Opt, text: str, rules: Rules) -> tuple[str, ...]:
    names = (text or "ALL").split(",")
    for name in names:
        if name.replace("RLIMIT_", "", 1) not in RLIMIT_NAMES:
            first = error_line(rules.program, f"Bad rlimit name: {name}")
            second = error_line(rules.program, f"--propagate={text} is not valid.")
            raise GrammarError(first + second, 1)
    return tuple(names)


def _yes_no(opt: Opt, text: str, rules: Rules) -> bool:
    if text.lower() not in ("yes", "no"):
        raise _specification(opt, rules)
    return text.lower() == "yes"


def _leading_number(text: str) -> int:
    """What `strtoll` makes of it: the digits at the start, 0 for none."""
    sign = text[:1] if text[:1] in ("-", "+") else ""
    body = text[len(sign) :]
    digits = values.leading_digits(body)
    return int(sign + (digits[: values.MOST_DIGITS] or "0"))


def _nice(_opt: Opt, text: str, rules: Rules) -> int:
    number = _leading_number(text) if text else 100
    if abs(number) > NICE_RANGE:
        raise invalid(rules.program, f"Invalid --nice value, out of range (+/- {NICE_RANGE})")
    return number


def _priority(_opt: Opt, text: str, rules: Rules) -> int | str:
    if text.upper() == "TOP":
        return "TOP"
    number = _leading_number(text)
    if number < 0:
        raise invalid(rules.program, "Priority must be >= 0")
    return number


def _root_only(opt: Opt, text: str, rules: Rules) -> str:
    if not rules.root:
        raise invalid(rules.program, f"--{opt.long} only permitted by root user")
    return text


def _zero_one(opt: Opt, text: str, rules: Rules) -> int:
    number = _integer(f"--{opt.long}", text or "1", rules, least=0)
    if number > 1:
        raise _specification(opt, rules)
    return number


def _cpu_freq(_opt: Opt, text: str, rules: Rules) -> str:
    speeds, _, governor = text.lower().partition(":")
    low, dash, high = speeds.partition("-")
    wrong = next((word for word in (low, high) if word and not _is_speed(word)), None)
    said = []
    if wrong is not None or (governor and governor not in GOVERNORS):
        said = [f'unrecognized --cpu-freq argument "{wrong or governor}"']
    elif dash and not governor:
        said = [NO_GOVERNOR]
    if said:
        lines = [*said, "Invalid --cpu-freq argument"]
        text = "".join(error_line(rules.program, line) for line in lines)
        raise GrammarError(text, OPTION_ERROR)
    return text


NO_GOVERNOR = (
    "You must explicitly choose a governor when defining a range. Please specify only one value"
    " for the desired frequency (p1) or choose a specific governor (p3)."
)


def _is_speed(word: str) -> bool:
    return word.isdigit() or word in FREQUENCIES or word in GOVERNORS


def _requeue(opt: Opt, text: str, _rules: Rules) -> str:
    """`requeue`, `no-requeue`, or `expedite`; any other word is taken as no word (25.11)."""
    return "expedite" if text.lower() == "expedite" else opt.long


def _hint(_opt: Opt, text: str, rules: Rules) -> tuple[str, ...]:
    names = text.lower().split(",")
    wrong = next((name for name in names if name not in HINTS), None)
    if wrong is not None:
        raise failed(rules.program, f'unrecognized --hint argument "{wrong}", see --hint=help')
    return tuple(names)


def _sampling(_opt: Opt, text: str, rules: Rules) -> dict[str, int]:
    found = values.read_sampling(text)
    if not found:
        raise invalid(rules.program, f"Invalid --acctg-freq specification: {text}")
    return found


def _gpu_bind(_opt: Opt, text: str, rules: Rules) -> str:
    words = [word for word in text.lower().split(",") if word not in ("verbose", "v")]
    if words and words[0].partition(":")[0] not in GPU_BINDINGS:
        raise invalid(rules.program, f"Invalid --gpu-bind argument: {text}")
    return text


def _gpu_freq(_opt: Opt, text: str, rules: Rules) -> str:
    words = (word.removeprefix("memory=") for word in text.lower().split(","))
    if not all(word.isdigit() or word in (*FREQUENCIES, "verbose") for word in words):
        raise invalid(rules.program, f"Invalid --gpu-freq argument: gpu:{text}")
    return text


NOT_PARSED = "Failed to parse --cpu-bind= values."


def _cpu_bind(_opt: Opt, text: str, rules: Rules) -> CpuBind:
    try:
        return read_cpu_bind(text)
    except BindingError as error:
        said = error_line(rules.program, str(error))
        raise GrammarError(f"{said}{rules.program}: fatal: {NOT_PARSED}\n", FAILURE) from None


def _mem_bind(_opt: Opt, text: str, rules: Rules) -> str:
    """A list of nodes behind a colon may have commas of its own."""
    listed = False
    for word in text.lower().split(","):
        name, colon, _ = word.partition(":")
        if name not in MEMORY_BINDINGS and not listed:
            raise invalid(rules.program, f'unrecognized --mem-bind argument "{word}"')
        listed = listed or bool(colon)
    return text


def _gres_flags(opt: Opt, text: str, rules: Rules) -> str:
    if not set(text.lower().split(",")) <= GRES_FLAGS:
        raise _specification(opt, rules)
    return text


def _profile(_opt: Opt, text: str, rules: Rules) -> tuple[str, ...]:
    found = values.read_profile(text)
    if not found:
        raise invalid(rules.program, f"invalid --profile={text} option")
    return found


READERS: dict[str, Reader] = {
    t.FLAG: _flag,
    t.TEXT: _text,
    t.COUNT: _count,
    t.ANY_COUNT: _any_count,
    t.SPECIALIZE: _specialize,
    t.PIECES: _pieces,
    t.GEOMETRY: _geometry,
    t.TIME: _time,
    t.MINUTES: _minutes,
    t.INSTANT: _instant,
    t.MEM: _mem,
    t.NODES: _nodes,
    t.SIGNAL: _signal,
    t.MAIL: _mail,
    t.DIST: _distribution,
    t.OPEN_MODE: _open_mode,
    t.EXCLUSIVE: _exclusive,
    t.SWITCHES: _switches,
    t.RLIMITS: _rlimits,
    t.YES_NO: _yes_no,
    t.NICE: _nice,
    t.PRIORITY: _priority,
    t.ROOT_ONLY: _root_only,
    t.ZERO_ONE: _zero_one,
    t.CPU_FREQ: _cpu_freq,
    t.REPEAT: _repeat,
    t.REQUEUE: _requeue,
    t.HINT: _hint,
    t.SAMPLING: _sampling,
    t.GPU_BIND: _gpu_bind,
    t.GPU_FREQ: _gpu_freq,
    t.CPU_BIND: _cpu_bind,
    t.MEM_BIND: _mem_bind,
    t.PROFILE: _profile,
    t.GRES_FLAGS: _gres_flags,
}


def read(opt: Opt, text: str | None, rules: Rules) -> Value:
    """The value of an option as said. Raises GrammarError."""
    return READERS[opt.kind](opt, text or "", rules)
