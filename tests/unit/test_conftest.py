"""The guards of conftest.py guard."""

import os
import socket
import time
from pathlib import Path

import pytest

from tests.order import LONG, place


def test_a_test_cannot_wait_on_real_time() -> None:
    with pytest.raises(AssertionError, match="pass a clock in"):
        time.sleep(1)


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("example.org", 443)])
def test_a_test_cannot_reach_the_network(address: tuple[str, int]) -> None:
    with pytest.raises(PermissionError, match="loopback only"):
        socket.create_connection(address, timeout=1)


def test_loopback_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_settings_of_the_caller_are_not_seen() -> None:
    assert [key for key in os.environ if key.startswith(("SLURM_", "SBATCH_"))] == []


def test_temporary_folders_have_hostile_names(tmp_path: Path, short_tmp: Path) -> None:
    for folder in (tmp_path, short_tmp):
        assert {" ", "'", "\n"} <= set(str(folder))
    assert len(os.fsencode(short_tmp / "home" / "gateway.sock")) <= 107


def test_long_files_are_there_and_come_first() -> None:
    tests = Path(__file__).parents[1]
    assert [name for name in LONG if not (tests / name).is_file()] == []
    assert place(Path("unit/test_conftest.py")) > max(place(Path(name)) for name in LONG)


@pytest.mark.postgres
def test_a_private_postgres_answers(postgres_url: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(postgres_url)
    with engine.connect() as connection:
        assert (
            connection.scalar(
                sqlalchemy.text("select count(*) from pg_tables where schemaname = 'public'")
            )
            == 0
        )
    engine.dispose()
