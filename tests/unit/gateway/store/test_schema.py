"""Tables of another version: brought up after a copy, or refused by name."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from broker.model.errors import Refused
from gateway.store import schema
from gateway.store.place import connect, place
from gateway.store.sql import open_store
from tests.contract.records import job
from tests.unit.gateway.store.conftest import Open, Standing, save

HEAD = ScriptDirectory(str(schema.MIGRATIONS)).get_current_head()
SECOND = """
import sqlalchemy as sa
from alembic import op
revision = "9999"
down_revision = "{head}"
def upgrade():
    op.add_column("jobs", sa.Column("colour", sa.Text))
    {more}
"""


def make_ready(file: Path, migrations: Path = schema.MIGRATIONS) -> None:
    where = place(str(file))
    engines = connect(where)
    try:
        schema.make_ready(engines[0], where, migrations=migrations)
    finally:
        for engine in engines:
            engine.dispose()


def later(tmp_path: Path, more: str = "") -> Path:
    """The migrations of a later version."""
    folder = tmp_path / "100%(later)"
    shutil.copytree(schema.MIGRATIONS, folder)
    (folder / "versions" / "9999_later.py").write_text(SECOND.format(more=more, head=HEAD))
    return folder


def columns(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {row[1] for row in connection.execute("PRAGMA table_info(jobs)")}


def test_older_tables_are_brought_up_after_a_copy_was_made(
    open_with: Open, file: Path, tmp_path: Path
) -> None:
    store = open_with()
    save(store, job(1))
    store.close()
    make_ready(file, later(tmp_path))
    assert "colour" in columns(file)
    copy = tmp_path / "state.db.before-9999"
    assert "colour" not in columns(copy)
    before = open_store(str(copy), clock=Standing())
    assert before.live_jobs(ended_after=0) == [job(1)]
    before.close()


def test_a_migration_that_fails_changes_nothing(
    open_with: Open, file: Path, tmp_path: Path
) -> None:
    open_with().close()
    with pytest.raises(ZeroDivisionError):
        make_ready(file, later(tmp_path, more="1 / 0"))
    assert "colour" not in columns(file)
    save(open_with(), job(1))


def test_newer_tables_are_refused(open_with: Open, file: Path, tmp_path: Path) -> None:
    open_with().close()
    make_ready(file, later(tmp_path))
    before = file.read_bytes()
    with pytest.raises(
        Refused, match=rf"newer version: its tables are at '9999', .* '{HEAD}'"
    ) as it:
        open_store(str(file), clock=Standing())
    assert str(file) in it.value.message
    assert "install the newer version" in it.value.hint
    assert file.read_bytes() == before


def test_another_programs_database_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE recipes (name)")
    with pytest.raises(Refused, match=r"another program .*'recipes'"):
        open_store(str(file), clock=Standing())


def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    file.write_bytes(b"#!/bin/sh\n" * 100)
    with pytest.raises(Refused, match="not a database"):
        open_store(str(file), clock=Standing())
