"""Numbers of Slurm's command lines: durations, sizes, counts, signals, node counts; text both ways.

Readers return None for text that is none of theirs; what is said then is `check`'s to know.
"""

from __future__ import annotations

from collections import namedtuple

UNLIMITED = "UNLIMITED"
"""No limit, where a number of seconds could stand."""
ALL = "ALL"
"""All that a node has, where a number of MiB could stand."""

MINUTE, HOUR, DAY = 60, 3600, 86400
WRAP = 2**32
"""Slurm keeps minutes in 32 bits: `-5` is five days less than this many minutes (25.11)."""

MOST_DIGITS = 40
"""More are no number: all that Slurm counts fits 64 bits, and Python refuses the longest."""

NO_LIMIT_WORDS = ("-1", "INFINITE", "UNLIMITED")


def leading_digits(text: str) -> str:
    """The ASCII digits at its start."""
    return text[: len(text) - len(text.lstrip("0123456789"))]


def read_digits(text: str) -> int | None:
    """A number of ASCII digits alone, of as many as a number may have."""
    known = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if known else None


# ---------------------------------------------------------------- durations


def read_seconds(text: str) -> int | str | None:
    """Seconds of `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`, or UNLIMITED for its words."""
    if text.upper() in NO_LIMIT_WORDS:
        return UNLIMITED
    if text.startswith("-"):
        days_back = read_digits(text[1:])
        return None if days_back is None else (WRAP + 1) * MINUTE - days_back * DAY
    days, dash, rest = text.partition("-")
    return _with_days(days, rest) if dash else _without_days(text)


def _with_days(days: str, rest: str) -> int | None:
    fields = _fields([days, *(rest.split(":") if rest else ["0"])])
    if fields is None or len(fields) > 4:
        return None
    units = (DAY, HOUR, MINUTE, 1)
    return sum(field * unit for field, unit in zip(fields, units))


def _without_days(text: str) -> int | None:
    fields = _fields(text.split(":"))
    if fields is None or len(fields) > 3:
        return None
    units = {1: (MINUTE,), 2: (MINUTE, 1), 3: (HOUR, MINUTE, 1)}[len(fields)]
    return sum(field * unit for field, unit in zip(fields, units))


def _fields(texts: list[str]) -> list[int] | None:
    numbers = [number for number in map(read_digits, texts) if number is not None]
    return numbers if len(numbers) == len(texts) else None


def read_time_limit(text: str) -> int | str | None:
    """Seconds of whole minutes, rounded up as Slurm does; UNLIMITED also for 0 and for more than
    the 32 bits of its minutes hold."""
    seconds = read_seconds(text)
    if not isinstance(seconds, int):
        return seconds
    minutes = -(-seconds // MINUTE)
    if minutes < 0:
        return None
    return minutes * MINUTE if 0 < minutes < WRAP else UNLIMITED


def _split(seconds: int) -> tuple[int, int, int, int]:
    days, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, HOUR)
    return days, hours, *divmod(rest, MINUTE)


def show_long(seconds: int | str) -> str:
    """sacct's and scontrol's form, `[D-]HH:MM:SS`, or UNLIMITED."""
    if not isinstance(seconds, int):
        return UNLIMITED
    days, hours, minutes, secs = _split(seconds)
    clock = f"{hours:02d}:{minutes:02d}:{secs:02d}"
    return f"{days}-{clock}" if days else clock


def show_short(seconds: int | str, unlimited: str = UNLIMITED) -> str:
    """squeue's and sinfo's form, `[D-][H:]MM:SS`, the first field without a leading zero."""
    if not isinstance(seconds, int):
        return unlimited
    days, hours, minutes, secs = _split(seconds)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{secs:02d}"
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"


def show_cpu_time(micros: int) -> str:
    """sacct's form of used cpu time: `MM:SS.mmm` below an hour, then as `show_long`."""
    seconds, rest = divmod(micros, 1_000_000)
    if seconds >= HOUR:
        return show_long(seconds)
    return f"{seconds // MINUTE:02d}:{seconds % MINUTE:02d}.{rest // 1000:03d}"


# ---------------------------------------------------------------- sizes

UNITS = "KMGTPE"


def read_mebibytes(text: str) -> int | None:
    """MiB of `100`, `100M`, `2gb`; K is rounded up. No fraction, no sign, nothing beyond T."""
    number, unit = _digits_and_rest(text)
    unit = unit.upper()
    if len(unit) == 2 and unit.endswith("B"):
        unit = unit[:-1]
    if number is None or unit not in ("", "K", "M", "G", "T"):
        return None
    return -(-number // 1024) if unit == "K" else number * 1024 ** max("MGT".find(unit), 0)


def _digits_and_rest(text: str) -> tuple[int | None, str]:
    digits = leading_digits(text)
    return read_digits(digits), text[len(digits) :]


def show_mebibytes(mib: int | str) -> str:
    """The shortest whole number with its unit, as options are listed: 2048 is `2G`, 1500 `1500`."""
    if not isinstance(mib, int):
        return "0"
    unit = 0
    while mib and mib % 1024 == 0 and unit < 3:
        mib, unit = mib // 1024, unit + 1
    return f"{mib}{('', 'G', 'T', 'P')[unit]}"


def show_scaled(number: int, unit: str = "M") -> str:
    """Output of sizes: divided by 1024 while it is at least 1024 and a multiple of 512.

    `show_scaled(1536)` is `1.50G`, `show_scaled(1500)` is `1500M`.
    """
    scale, value = UNITS.index(unit), float(number)
    while value >= 1024 and value % 512 == 0 and scale < len(UNITS) - 1:
        value, scale = value / 1024, scale + 1
    return f"{value:.0f}{UNITS[scale]}" if value == int(value) else f"{value:.2f}{UNITS[scale]}"


def read_scaled_count(text: str) -> int | None:
    """A count whose suffix k, m, g, t or p multiplies by powers of 1024, as in gres."""
    number, suffix = _digits_and_rest(text)
    if number is None or len(suffix) > 1:
        return None
    power = "KMGTP".find(suffix.upper()) + 1 if suffix else 0
    return None if suffix and not power else number * 1024**power


def read_count(text: str) -> int | None:
    """A whole number with an optional sign and leading blanks, as `strtol` reads it."""
    body = text.lstrip()
    sign, digits = (-1, body[1:]) if body.startswith("-") else (1, body[body.startswith("+") :])
    number = read_digits(digits)
    return None if number is None else sign * number


# ---------------------------------------------------------------- node counts

NodeCount = namedtuple("NodeCount", "low high sizes")
"""How many nodes: at least, at most (None: whatever), and the only sizes allowed, if a list.

`2-` has -1 as its most, which is less than any least: Slurm refuses it in those words.
"""


def read_nodes(text: str) -> NodeCount | None:
    """`N`, `N-M`, with k and m for 1024 and 1048576, or a list with steps `1,3,5-9:2` (25.11)."""
    if "," in text or ":" in text:
        sizes = _node_list(text)
        return NodeCount(sizes[0], sizes[-1], tuple(sizes)) if sizes else None
    low, dash, high = text.partition("-")
    if not low and dash:
        return NodeCount(1, 1, ()) if read_digits(high) is not None else None
    least, most = _node_number(low), _node_number(high) if dash else _node_number(low)
    if least is None or (high and most is None):
        return None
    return NodeCount(least, -1 if most is None else most, ())


def _node_number(text: str) -> int | None:
    number, suffix = _digits_and_rest(text)
    factor = {"": 1, "k": 1024, "m": 1048576}.get(suffix.lower())
    return None if number is None or factor is None else number * factor


MOST_SIZES = 65536
"""A longer list of numbers of nodes is a slip of the keyboard."""


def _node_list(text: str) -> list[int]:
    sizes: list[int] = []
    for token in text.split(","):
        span, _, step = token.partition(":")
        low, _, high = span.partition("-")
        numbers = [read_digits(part) for part in (low, high or low, step or "1")]
        least, most, gap = numbers
        if least is None or most is None or not gap:
            return []
        if (most - least) // gap + len(sizes) >= MOST_SIZES:
            return []
        sizes += range(least, most + 1, gap)
    return sorted(set(sizes))


# ---------------------------------------------------------------- signals

# fmt: off
SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "SEGV": 11, "USR2": 12,
    "PIPE": 13, "ALRM": 14, "TERM": 15, "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20,
    "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24,
}
# fmt: on
SIGNAL_NAMES = {number: name for name, number in SIGNALS.items()}

Signal = namedtuple("Signal", "number before batch reservation")
"""`--signal`: seconds before the limit (None: not said), whether to the batch shell only."""


def read_signal_number(text: str) -> int | None:
    """The number of a signal by number or by name, with or without SIG, in any case."""
    number = read_digits(text)
    if number is not None:
        return number if number < 2**16 else None
    name = text.upper()
    return SIGNALS.get(name[3:] if name.startswith("SIG") else name)


def read_signal(text: str) -> Signal | None:
    """`[{R|B}:]sig[@seconds]`, seconds up to 65535."""
    flags, colon, rest = text.rpartition(":")
    name, at, before = rest.partition("@")
    number, seconds = read_signal_number(name), read_digits(before) if before else 0
    wrong = (colon and not flags) or set(flags.upper()) - {"R", "B"} or number is None
    if wrong or (at and (seconds is None or seconds > 0xFFFF)):
        return None
    return Signal(number, seconds if at else None, "B" in flags.upper(), "R" in flags.upper())


def show_signal(signal: Signal) -> str:
    """As options are listed: `B:USR1@120`; 60 seconds, the default, are left out."""
    flags = ("R" if signal.reservation else "") + ("B" if signal.batch else "")
    name = SIGNAL_NAMES.get(signal.number, str(signal.number))
    before = f"@{signal.before}" if signal.before not in (None, 60) else ""
    return f"{flags}{':' if flags else ''}{name}{before}"


PROFILES = ("Energy", "Lustre", "Network", "Task")


def read_profile(text: str) -> tuple[str, ...]:
    """What is to be recorded, as squeue shows it: `None`, or each that the text names."""
    word = text.lower()
    if word == "none":
        return ("None",)
    return tuple(name for name in PROFILES if word == "all" or name.lower() in word)


SAMPLED = ("task", "energy", "network", "filesystem")


def read_sampling(text: str) -> dict[str, int]:
    """`30`, or `task=30,energy=10s`: seconds by what is sampled; nothing where it is not that.

    Behind a number anything may stand.
    """
    found = {}
    for word in text.split(","):
        name, equals, count = word.rpartition("=")
        number, _ = _digits_and_rest(count)
        if number is None or (equals and name.lower() not in SAMPLED):
            return {}
        found[name.lower() or "task"] = number
    return found
