"""Times as texts: how long records are kept (as slurmdbd.conf has it: `12months`), UTC."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

HOUR, DAY = 3600, 86400
UNITS: Mapping[str, int] = {"h": HOUR, "d": DAY, "m": 30 * DAY, "": 30 * DAY}
"""By the first letter; without one it is months, which have thirty days here."""
AGE = re.compile(r"([0-9]{1,6})\s*([hdm]?)[a-z]*", re.ASCII)


def read_age(text: str) -> int | None:
    """Seconds; None for what is no age, and for none at all."""
    found = AGE.fullmatch(text.strip().lower())
    return int(found[1]) * UNITS[found[2]] or None if found else None


def in_utc(instant: int) -> str:
    """As bills, tags and AWS write a moment: `2026-11-30T04:00:00Z`."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
