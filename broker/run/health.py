"""What an agent says of its node, judged: a disk that is full, a clock that is wrong. Pure."""

from collections.abc import Mapping

LEAST_FREE = 32 << 20
"""Bytes below which a node's own files may not be written any more."""
MOST = 1 << 63
"""No figure is as large."""
MOST_SKEW = 60
"""Seconds that a node's clock may be off; what the service decides goes by its own."""
FULL = "disk of the agent is full"
CLOCK = "clock is wrong"


def trouble(said: Mapping[str, object], now: float) -> str:
    """In words for an operator; empty where nothing is wrong, or an old agent does not say."""
    free, time = _figure(said.get("free")), _figure(said.get("time"))
    if free is not None and free < LEAST_FREE:
        return f"{FULL}: {max(0, int(free)) >> 20} MiB are free"
    if time is not None and abs(time - now) > MOST_SKEW:
        way = "ahead" if time > now else "behind"
        return f"{CLOCK}: {abs(round(time - now))} s {way}"
    return ""


def _figure(value: object) -> float | None:
    """None for what no agent says: it comes from a machine that its users' jobs share."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if number and -MOST < value < MOST else None  # type: ignore[operator, return-value]


def is_ours(reason: str) -> bool:
    """Whether a node was drained for one of these."""
    return reason.startswith((FULL, CLOCK))


def same(before: str, after: str) -> bool:
    """Whether two say the same, figures aside."""
    return before.partition(":")[0] == after.partition(":")[0]
