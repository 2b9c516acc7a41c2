"""Files to a machine over SSH on loopback, beside rsync in the same run.

Run alone with `.venv/bin/python tests/bench/bench_files.py`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.run.knock import Knocker
from broker.run.launch import agent_zipapp
from broker.run.openssh import OpenSsh
from broker.run.ssh import Connections, Target
from broker.stage.marks import Marks
from broker.stage.sides import Far, Near, Side, Where
from broker.stage.sync import Folder, Limits, Sync
from tests.bench.running import report
from tests.contract.sshd import KEYS, SSHD, free_port, login, sshd, user, wait_for

FILES, SIZE, CHANGED = 1000, 10_000, 10
MIB = 1 << 20
LARGE = 1024 * MIB
MOST_SECONDS = 0.5
LEAST_OF_RSYNC = 0.5
ROUNDS = 5
PYTHON = "/usr/bin/python3"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The machine's copy lies below another root of this host."""

    side: Side
    root: Path

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        return self.side.carry(verb, self._there(where), asked)

    def words(self, verb: str, where: Where) -> list[str] | None:
        return self.side.words(verb, self._there(where))

    def failure(self, where: Where, said: bytes) -> Exception:
        return self.side.failure(where, said)

    def _there(self, where: Where) -> Where:
        return replace(where, path=f"{self.root}{where.path}")


@dataclass(frozen=True, slots=True)
class Ends:
    """A folder here, its copy there, and the two ways between them."""

    home: Path
    here: Path
    sync: Sync
    far: Side
    port: int

    def push(self) -> int:
        """Files that travelled."""
        where = Where(str(self.here), os.getuid(), os.getgid())
        return self.sync.push(Folder(where, "node.1", "1"), self.far).moved

    def rsync(self) -> None:
        """The same to a third place."""
        key = self.home / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_text(KEYS.login().private)
        trust = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        way = f"ssh -p {self.port} -i {key} {trust}"
        there = f"{user()}@127.0.0.1:{self.home}/rsync/"
        subprocess.run(["rsync", "-a", "-e", way, f"{self.here}/", there], check=True)


@contextmanager
def ends() -> Iterator[Ends]:
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="spz-bench-") as folder, sshd(port):
        home = Path(folder)
        archive = home / "agent.pyz"
        archive.write_bytes(agent_zipapp())
        knocker = Knocker()
        wait_for(port, knocker)
        connections = Connections(knocker=knocker)
        try:
            target, openssh = Target(login=login(port)), OpenSsh()
            channel = connections.channel(target)

            def stream(argv: Sequence[str]) -> list[str] | None:
                return openssh.command(target, connections.home(target), argv)

            far = Elsewhere(Far(channel, PYTHON, str(archive), stream), home / "node")
            sync = Sync(Near(PYTHON, str(archive)), Marks(home / "marks"), Limits())
            (home / "work").mkdir()
            yield Ends(home, home / "work", sync, far, port)
        finally:
            connections.close()


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def small_ones(both: Ends) -> bool:
    """Seconds of a second synchronisation that moves ten of a thousand files."""
    for number in range(FILES):
        (both.here / f"{number:04}.dat").write_bytes(os.urandom(SIZE))
    both.push()
    took = []
    for turn in range(ROUNDS):
        for number in range(CHANGED):
            (both.here / f"{turn * CHANGED + number:04}.dat").write_bytes(os.urandom(SIZE))
        moved: list[int] = []
        took.append(seconds(partial(_push, both, moved)))
        if moved != [CHANGED]:
            raise SystemExit(f"{moved} files moved, {CHANGED} had changed")
    return report("files-second-sync", median(took), unit="s", budget=MOST_SECONDS)


def _push(both: Ends, moved: list[int]) -> None:
    moved.append(both.push())


def large_one(both: Ends) -> bool:
    """Bytes a second of one large file, as a part of what rsync does."""
    shutil.rmtree(both.here)
    both.here.mkdir()
    with (both.here / "large").open("wb") as file:
        for _ in range(LARGE // MIB):
            file.write(os.urandom(MIB))
    ours = seconds(both.push)
    theirs = seconds(both.rsync)
    sys.stdout.write(f"# 1 GiB: {ours:.1f} s, rsync {theirs:.1f} s\n")
    return report("files-to-rsync", theirs / ours, unit="ratio", budget=LEAST_OF_RSYNC, least=True)


def main() -> int:
    if SSHD is None or shutil.which("rsync") is None:
        sys.stdout.write("# skipped: apt-get install openssh-server rsync\n")
        return 0
    with ends() as both:
        fine = [small_ones(both), large_one(both)]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
