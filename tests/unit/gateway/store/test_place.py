"""Where a store can be, and where it is refused."""

import stat
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.store.place import connect, file_system, place

MOUNTS = r"""/dev/vda / ext4 rw 0 0
proc /proc proc rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /home/local tmpfs rw 0 0
server:/x /mnt/a\040b\134c nfs rw 0 0
/dev/vdb /over ext4 rw 0 0
server:/y /over nfs rw 0 0
server:/ü /mnt/ü cifs rw 0 0
"""

URLS = {
    "/var/lib/skypurza/state.db": ("sqlite", Path("/var/lib/skypurza/state.db")),
    "state?x=1 #é.db": ("sqlite", Path("state?x=1 #é.db")),
    ":memory:": ("sqlite", None),
    "sqlite://": ("sqlite", None),
    "sqlite:////var/state.db": ("sqlite", Path("/var/state.db")),
    "postgresql://me@host/name": ("postgresql", None),
    "postgres://me@host/name": ("postgresql", None),
    "postgresql+psycopg://me@host/name": ("postgresql", None),
}

FILE_SYSTEMS = {
    "/": "ext4",
    "/var/lib": "ext4",
    "/home/alice": "nfs4",
    "/homes": "ext4",
    "/home/local/x": "tmpfs",
    "/mnt/a b\\c/d": "nfs",
    "/over/x": "nfs",
    "/mnt/ü": "cifs",
}


@pytest.mark.parametrize("text", URLS)
def test_a_path_or_a_url_names_the_database(text: str) -> None:
    where = place(text)
    assert (where.dialect, where.file) == URLS[text]


@pytest.mark.parametrize(
    "text", ["mysql://host/name", "postgresql+asyncpg://host/x", "://", "a://"]
)
def test_other_databases_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="SKYPURZA_STATE_DB"):
        place(text)


def test_a_name_for_messages_has_no_password() -> None:
    assert "secret" not in place("postgresql://me:secret@host/name").name


@pytest.mark.parametrize("path", FILE_SYSTEMS)
def test_the_nearest_last_mount_tells_the_file_system(path: str) -> None:
    assert file_system(Path(path), MOUNTS) == FILE_SYSTEMS[path]


def test_a_new_file_is_only_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for engine in connect(place(str(path))):
        engine.dispose()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file or directory") as refused:
        connect(place(str(tmp_path / "none" / "state.db")))
    assert "folder" in refused.value.hint


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("server:/ / nfs4 rw 0 0\n")
    with pytest.raises(Refused, match="on nfs4, where SQLite's locks do not hold") as refused:
        connect(place(str(tmp_path / "state.db")), mounts=mounts)
    assert "PostgreSQL" in refused.value.hint
    assert not (tmp_path / "state.db").exists()
