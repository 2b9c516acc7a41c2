"""A private PostgreSQL for the tests, from Debian's programs; socket only, gone afterwards."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

PLACES = "postgresql/*/bin/postgres"
QUICK = "-c fsync=off -c full_page_writes=off -c listen_addresses="


@dataclass(frozen=True)
class Server:
    """A running server: where its programs and its socket are, and as whom they run."""

    programs: Path
    folder: Path
    user: str | None
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def run(self, program: str, *args: str) -> None:
        """Raises CalledProcessError, with what the program said, if it fails."""
        done = subprocess.run(
            [str(self.programs / program), *args],
            user=self.user,
            extra_groups=[] if self.user else None,
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr.decode(errors='replace')}")

    def new_database(self) -> str:
        """SQLAlchemy's URL of an empty database."""
        name = f"test{next(self.numbers)}"
        self.run("createdb", "-h", str(self.folder), "-U", "postgres", name)
        return f"postgresql+psycopg://postgres@/{name}?host={quote(str(self.folder))}"


def installed() -> Path | None:
    found = sorted(Path("/usr/lib").glob(PLACES), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _unprivileged() -> str | None:
    """Whom the server runs as: it refuses root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """Skips with a clear line when PostgreSQL is not installed."""
    programs = installed()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with server_of(programs) as server:
        yield server


@contextmanager
def server_of(programs: Path) -> Iterator[Server]:
    """A server of its own, gone at the end."""
    server = Server(programs, Path(tempfile.mkdtemp(prefix="spz-pg-")), _unprivileged())
    data = str(server.folder / "data")
    if server.user:
        shutil.chown(server.folder, server.user)
    try:
        server.run("initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        server.run(
            "pg_ctl",
            "-D",
            data,
            "-w",
            "-s",
            "-l",
            f"{data}/log",
            "-o",
            f"{QUICK} -k {server.folder}",
            "start",
        )
        yield server
        server.run("pg_ctl", "-D", data, "-w", "-s", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Server) -> str:
    """An empty database of its own for each test."""
    return postgres_server.new_database()
