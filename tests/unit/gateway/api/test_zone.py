"""TZ in every form that libc takes."""

import datetime
from pathlib import Path

import pytest

from gateway.api.zone import host_zone, zone_of

SUMMER = int(datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC).timestamp())
WINTER = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC).timestamp())
HOUR = 3600


@pytest.mark.parametrize(
    ("name", "winter", "summer"),
    [
        ("UTC", 0, 0),
        ("", 0, 0),
        ("Europe/Berlin", 1, 2),
        (":America/New_York", -5, -4),
        (":/usr/share/zoneinfo/America/New_York", -5, -4),
        ("UTC-3", 3, 3),
        ("<+0530>-5:30", 5.5, 5.5),
        ("EST5", -5, -5),
        ("EST5EDT", -5, -4),
        ("AAA5BBB", -5, -4),
        ("CET-1CEST,M3.5.0,M10.5.0/3", 1, 2),
        ("Nowhere/City", 0, 0),
        ("rubbish", 0, 0),
        ("/etc/passwd", 0, 0),
        (":/dev/tty", 0, 0),
        ("../../../etc/passwd", 0, 0),
        ("UTC-3\nUTC-4", 0, 0),
        ("UTC-3\udcff", 0, 0),
        ("x" * 5000, 0, 0),
        ("Europe\0/Berlin", 0, 0),
    ],
)
def test_a_zone_is_so_far_ahead_of_utc(name: str, winter: float, summer: float) -> None:
    ahead = zone_of(name)
    assert (ahead(WINTER) / HOUR, ahead(SUMMER) / HOUR) == (winter, summer)


def test_the_hosts_zone_is_taken_without_tz(tmp_path: Path) -> None:
    assert host_zone(tmp_path / "missing") is datetime.UTC
    (tmp_path / "localtime").write_bytes(b"no zone")
    assert host_zone(tmp_path / "localtime") is datetime.UTC
    assert isinstance(zone_of(None)(WINTER), int)


def test_any_instant_has_an_offset() -> None:
    ahead = zone_of("Europe/Berlin")
    assert all(isinstance(ahead(at), int) for at in (-(2**63), 0, 2**31, 2**63))
