"""How long records are kept, as slurmdbd.conf writes it: `12months`, `30days`, `48hours`."""

import re
from collections.abc import Mapping

HOUR, DAY = 3600, 86400
UNITS: Mapping[str, int] = {"h": HOUR, "d": DAY, "m": 30 * DAY, "": 30 * DAY}
"""By the first letter; without one it is months, which have thirty days here."""
AGE = re.compile(r"([0-9]{1,6})\s*([hdm]?)[a-z]*", re.ASCII)


def read_age(text: str) -> int | None:
    """Seconds; None for what is no age, and for none at all."""
    found = AGE.fullmatch(text.strip().lower())
    return int(found[1]) * UNITS[found[2]] or None if found else None
