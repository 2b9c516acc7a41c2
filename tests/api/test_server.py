"""The commands, the wire, uvicorn and the desk joined: real processes against a real server."""

import asyncio
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn

from broker.model.job import ExitCode, JobState, Owner
from gateway.api.app import build_app
from gateway.api.crowd import crowd
from gateway.api.desk import Desk
from gateway.api.knock import knocking
from gateway.api.programs.table import programs
from gateway.api.wire import Answer, Call
from gateway.config.settings import Config
from sbatch_shim.install import install
from tests.unit.gateway.api.office import SITE, Office
from tests.unit.gateway.api.programs.test_sbatch import Past
from tests.unit.gateway.api.test_text import Log

ME = Owner(os.getuid(), os.getgid(), "me", "mine")


async def longest(desk: Desk, call: Call) -> Answer:
    return Answer(out="0123456789" * 1_000_000)


class Served:
    """A server in a thread of its own, and the commands for it."""

    def __init__(self, folder: Path) -> None:
        self.office = Office(replace(SITE, first_job_id=1))
        self.office.desk.names = lambda uid: ME
        self.office.desk.history = Past()  # type: ignore[assignment]
        self.log = Log()
        self.path = folder / "s"
        self.bin = folder / "bin"
        install(folder, self.path, "slurm 25.11.7")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        known = {**programs(Config()), "sacct": longest}
        config = uvicorn.Config(
            build_app(self.office.desk, known, log=self.log),
            http=knocking(crowd()),  # type: ignore[arg-type]
            lifespan="off",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(
            target=lambda: asyncio.run(self.server.serve(sockets=[self.listener]))
        )

    def run(
        self, program: str, *argv: str | bytes, cwd: Path | None = None, stdin: bytes = b""
    ) -> tuple[bytes, bytes, int]:
        """Standard output, standard error, exit status."""
        done = subprocess.run(
            [self.bin / program, *argv],
            env={"HOME": "/"},
            input=stdin,
            cwd=cwd,
            capture_output=True,
            check=False,
        )
        return done.stdout, done.stderr, done.returncode

    def raw(self, data: bytes) -> bytes:
        """The reply to bytes as they are."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.path))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.fixture
def served(short_tmp: Path) -> Iterator[Served]:
    one = Served(short_tmp)
    one.thread.start()
    yield one
    one.server.should_exit = True
    one.thread.join()
    one.listener.close()
    assert one.log.events == []


def test_a_script_of_four_megabytes_arrives_byte_for_byte(served: Served, tmp_path: Path) -> None:
    script = b"#!/bin/sh\n# " + bytes(set(range(256)) - {0, 10, 13}) * 16_000
    (tmp_path / "job.sh").write_bytes(script)
    assert served.run("sbatch", "-H", "job.sh", b"\xff\n", cwd=tmp_path) == (
        b"Submitted batch job 1\n",
        b"",
        0,
    )
    (asked,) = served.office.asked
    assert script in asked.blobs.values()  # type: ignore[union-attr]
    (job,) = served.office.engine.snapshot.jobs.values()
    assert job.owner.uid == os.getuid()
    assert (job.spec.cwd, job.spec.name) == (str(tmp_path), "job.sh")


def test_scripts_without_a_first_line_and_from_standard_input(
    served: Served, tmp_path: Path
) -> None:
    (tmp_path / "plain").write_bytes(b"echo\n")
    out, err, code = served.run("sbatch", "plain", cwd=tmp_path)
    assert (out, code) == (b"", 1)
    assert err.startswith(b"sbatch: error: This does not look like a batch script.")
    assert served.run("sbatch", "missing", cwd=tmp_path) == (
        b"",
        b"sbatch: error: Unable to open file missing\n",
        1,
    )
    out, err, code = served.run("sbatch", "-H", stdin=b"#!/bin/sh\n", cwd=tmp_path)
    assert (out, err, code) == (b"Submitted batch job 1\n", b"", 0)


def test_jobs_are_listed_held_and_cancelled(served: Served) -> None:
    served.run("sbatch", "-H", "--wrap", "true")
    assert served.run("squeue", "-h", "-o", "%i %T") == (b"1 PENDING\n", b"", 0)
    assert served.run("scontrol", "release", "2")[2] == 1
    assert served.run("scancel", "-i", "1", stdin=b"y\n") == (
        b"Cancel job_id=1 name=wrap partition=ec2 [y/n]? ",
        b"",
        0,
    )
    assert list(served.office.states().values()) == ["CANCELLED"]


def test_waiting_for_a_job_ends_with_its_status(served: Served) -> None:
    async def ended(seconds: float) -> None:
        served.office.change(1, state=JobState.FAILED, exit=ExitCode(3))  # type: ignore[arg-type]

    served.office.desk.pause = ended
    assert served.run("sbatch", "-W", "-H", "--wrap", "exit 3") == (
        b"Submitted batch job 1\n",
        b"",
        3,
    )


def test_ten_megabytes_of_output_are_copied(served: Served) -> None:
    out, err, code = served.run("sacct")
    assert (len(out), err, code) == (10_000_000, b"", 0)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST /x/squeue HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc", b"400"),
        (b"POST /x/squeue HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\nabc", b"413"),
        (b"POST /x/../squeue HTTP/1.0\r\nContent-Length: 0\r\n\r\n", b"400"),
        (b"GET /nowhere HTTP/1.0\r\n\r\n", b"404"),
        (b"\0\0\0", b"400"),
        (b"POST /x/squeue HTTP/1.0\r\nContent-Length: -1\r\n\r\n", b"400"),
    ],
)
def test_hostile_requests_are_refused(served: Served, data: bytes, status: bytes) -> None:
    assert served.raw(data)[9:12] == status


def test_a_head_that_does_not_end_is_not_heard_out(served: Served) -> None:
    with pytest.raises(OSError, match=r"reset|Broken pipe"):
        served.raw(b"GET / HTTP/1.0\r\nX: " + b"a" * (32 << 20))


def test_a_request_that_breaks_off_harms_nobody(served: Served) -> None:
    served.raw(b"POST /x/squeue HTTP/1.0\r\nContent-Length: 300\r\n\r\nabc")
    assert served.run("squeue", "-h") == (b"", b"", 0)
