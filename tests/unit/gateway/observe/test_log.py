"""Lines of the log as somebody reads them."""

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import structlog

from gateway.observe import log

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(tmp_path: Path) -> Iterator[Lines]:
    path = tmp_path / "log" / "gateway.log"
    log.configure(path=path, level="info", max_bytes=1_000_000, keep=2)
    yield lambda: path.read_text().splitlines()
    log.close()


def test_an_event_is_one_line_with_its_fields(lines: Lines) -> None:
    structlog.get_logger().info("job.placed", job=4711, offer="g5.xlarge", cost=1.5, spot=False)
    (line,) = lines()
    assert re.match(r"at=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z level=info event=job.placed ", line)
    assert line.endswith("job=4711 offer=g5.xlarge cost=1.5 spot=false")


def test_a_value_cannot_begin_a_line_of_its_own(lines: Lines) -> None:
    structlog.get_logger().warning("job.named", name='a "b"\nat=0 level=error event=forged\x1b[2J')
    (line,) = lines()
    assert line.endswith(r'name="a \"b\"\\nat=0 level=error event=forged\\x1b[2J"')


def test_the_cause_of_an_error_is_in_its_line(lines: Lines) -> None:
    try:
        raise ValueError("no room")
    except ValueError:
        structlog.get_logger().exception("disk.full")
    (line,) = lines()
    assert "level=error event=disk.full" in line
    assert "ValueError: no room" in line


def test_of_a_long_traceback_the_error_is_kept(lines: Lines) -> None:
    structlog.get_logger().error("broken", exception="Traceback " + "x" * 9999 + " ValueError: why")
    (line,) = lines()
    assert "Traceback" in line
    assert "ValueError: why" in line
    assert len(line) < 2200


SECRETS = [
    {"token": "sesame"},
    {"db_password": "sesame"},
    {"environment": b"AWS_KEY=sesame"},
    {"script": "echo sesame"},
    {"url": "postgresql+psycopg://spz:sesame@db/state"},
    {"error": "cannot reach postgresql://spz:sesame@db/state?x=1"},
]


@pytest.mark.parametrize("fields", SECRETS)
def test_nothing_secret_is_written(lines: Lines, fields: dict[str, object]) -> None:
    structlog.get_logger().error("something", **fields)
    assert "sesame" not in lines()[0]
    assert "***" in lines()[0]


def test_libraries_speak_in_the_same_form(lines: Lines) -> None:
    logging.getLogger("sqlalchemy.pool").warning("lost %s", "postgresql://u:sesame@h/d")
    logging.getLogger("uvicorn.access").info("GET /")
    (line,) = lines()
    assert line.endswith('level=warning event="lost postgresql://u:***@h/d"')


def test_events_below_the_level_are_not_written(lines: Lines) -> None:
    structlog.get_logger().debug("job.looked_at")
    assert lines() == []


def test_a_full_file_is_put_aside_and_the_oldest_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "gateway.log"
    log.configure(path=path, level="info", max_bytes=300, keep=2)
    for number in range(20):
        structlog.get_logger().info("tick", number=number, padding="x" * 50)
    log.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "gateway.log",
        "gateway.log.1",
        "gateway.log.2",
    ]
    assert "number=19 " in path.read_text()
    assert all(p.stat().st_size <= 300 for p in tmp_path.iterdir())


def test_only_the_owner_reads_the_log(tmp_path: Path) -> None:
    log.configure(path=tmp_path / "x" / "gateway.log", level="info", max_bytes=300, keep=1)
    structlog.get_logger().info("tick")
    log.close()
    assert (tmp_path / "x" / "gateway.log").stat().st_mode & 0o777 == 0o600


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    log.configure(path=Path("/dev/full"), level="info", max_bytes=300, keep=1)
    for _ in range(1000):
        structlog.get_logger().info("tick")
    log.close()


def test_without_a_file_events_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure(path=None, level="info", max_bytes=1, keep=0)
    structlog.get_logger().info("service.started", pid=7)
    log.close()
    assert capsys.readouterr().err.endswith("level=info event=service.started pid=7\n")
