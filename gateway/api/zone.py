"""The client's time zone from its TZ, in every form that libc takes; ours is never set."""

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sbatch_shim.grammar.instants import Zone

SYSTEM_ZONES = "/usr/share/zoneinfo/"
LOCALTIME = Path("/etc/localtime")
USUAL_RULE = ",M3.2.0,M11.1.0"
"""What glibc takes for a daylight zone without a rule."""


LATEST = 253_402_128_000
"""An instant near the end of year 9999, the last that has a date."""


@lru_cache(maxsize=256)
def zone_of(name: str | None) -> Zone:
    """How far ahead of UTC the zone that TZ names is at an instant; None is the host's own."""
    zone = read_zone(name)

    def ahead(at: int) -> int:
        moment = datetime.fromtimestamp(max(0, min(at, LATEST)), zone)
        offset = moment.utcoffset()
        return 0 if offset is None else int(offset.total_seconds())

    return ahead


def read_zone(name: str | None) -> tzinfo:
    """The zone that TZ names; the host's for None, UTC for what cannot be read, as in glibc.

    Files are taken from the system's database only: a client's TZ must not open anything else.
    """
    if name is None:
        return host_zone()
    key = name.removeprefix(":").removeprefix(SYSTEM_ZONES)
    if not key or key.startswith("/"):
        return UTC
    return _named(key) or _posix(key) or _posix(key + USUAL_RULE) or UTC


def is_zone(name: str) -> bool:
    """Whether a zone can be read from what TZ says; what cannot is UTC in libc."""
    key = name.removeprefix(":").removeprefix(SYSTEM_ZONES)
    return bool(key) and not key.startswith("/") and bool(_named(key) or _posix(key))


def host_zone(localtime: Path = LOCALTIME) -> tzinfo:
    """The zone of this machine; UTC if none is set."""
    try:
        with localtime.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def _named(key: str) -> tzinfo | None:
    try:
        return ZoneInfo(key)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _posix(rule: str) -> tzinfo | None:
    """A rule such as `CET-1CEST,M3.5.0,M10.5.0/3`, read as a zone file with nothing but that."""
    if not rule.isascii() or "\n" in rule or not _has_offset(rule):
        return None
    header = b"TZif2" + bytes(15) + _counts(types=1, chars=4)
    utc = bytes(6) + b"UTC\0"
    try:
        return ZoneInfo.from_file(BytesIO(header + utc + header + utc + b"\n%b\n" % rule.encode()))
    except ValueError:
        return None


def _has_offset(rule: str) -> bool:
    return any(character.isdigit() for character in rule.rsplit(">", maxsplit=1)[-1])


def _counts(*, types: int, chars: int) -> bytes:
    """The six counts of a zone file's header: none of what there is no table for."""
    return b"".join(number.to_bytes(4, "big") for number in (0, 0, 0, 0, types, chars))
