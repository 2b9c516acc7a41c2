"""The database of a service, looked at from outside; the service may be running."""

from datetime import UTC, datetime
from pathlib import Path

from broker.model.errors import Refused
from gateway.config.load import read
from gateway.config.paths import Paths
from gateway.store.backup import backup_store, check
from gateway.store.place import place


def backup(paths: Paths, target: Path | None) -> Path:
    """Copies it as of one moment to a new file, which is returned. Raises Refused, Busy."""
    if target is None:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        target = paths.home / "backups" / f"state-{stamp}.db"
    if target.exists():
        raise Refused(f"{target} is there already", hint="name a new file")
    if not target.parent.exists() and target.parent.parent == paths.home:
        target.parent.mkdir(mode=0o700)
    backup_store(paths.database(read(paths).database.url), target.absolute())
    return target.absolute()


def problems(paths: Paths) -> tuple[str, list[str]]:
    """Its name, and all that is wrong with it after reading it whole. Raises Refused."""
    found = place(paths.database(read(paths).database.url))
    if found.file is None:
        raise Refused(f"database {found.name} is not a file", hint="use PostgreSQL's own tools")
    return found.name, check(found.file)
