"""The version of the tables: a new store begins at the head, an older one is brought up to it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from broker.model.errors import Refused
from gateway.store.backup import backup
from gateway.store.place import Place
from gateway.store.tables import METADATA

MIGRATIONS = Path(__file__).parent / "migrations"


def make_ready(engine: Engine, where: Place, *, migrations: Path = MIGRATIONS) -> None:
    """Afterwards the tables are as this version knows them.

    Raises Refused for tables of a newer version or of another program, whose tables stay untouched.
    """
    script = ScriptDirectory(str(migrations))
    with engine.begin() as connection:
        found = _revision(connection, where)
        if found is None:
            METADATA.create_all(connection, checkfirst=False)
            MigrationContext.configure(connection).stamp(script, "heads")
            return
    if found != script.get_current_head():
        _refuse_newer(script, found, where)
        migrate(engine, where, migrations=migrations)


def _revision(connection: Connection, where: Place) -> str | None:
    """None for an empty database."""
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and (others := inspect(connection).get_table_names()):
        raise Refused(
            f"database {where.name} belongs to another program (it has a table {others[0]!r})",
            hint="name another one in SKYPURZA_STATE_DB",
        )
    return found


def _refuse_newer(script: ScriptDirectory, found: str, where: Place) -> None:
    known = [each.revision for each in script.walk_revisions()]
    if found not in known:
        raise Refused(
            f"database {where.name} was written by a newer version: its tables are at {found!r}, "
            f"this version knows {known[0]!r}",
            hint="install the newer version again, or open a backup made before it",
        )


def migrate(engine: Engine, where: Place, *, migrations: Path = MIGRATIONS) -> None:
    """Runs what is missing, from nothing too; all or nothing.

    A file that has something in it is copied first, to `NAME.before-HEAD` beside it.
    """
    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    head = ScriptDirectory(str(migrations)).get_current_head()
    if where.file is not None and where.file.stat().st_size:
        backup(where.file, where.file.with_name(f"{where.file.name}.before-{head}"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
