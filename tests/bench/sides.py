"""Two Slurms side by side, the real one and ours, each asked as the same ordinary user."""

import os
import pwd
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "conformance")]

from oracle import unavailable  # noqa: E402 - the path comes first
from run import USERS, make_user, service, site, spz, state_directory  # noqa: E402

USER = "alice"
PORTS = 80
"""Away from a Slurm that may run on this machine already."""
WARM = 2
SETTLE = 0.2
"""Seconds in which new processes reach their start line."""
PATIENCE = 180.0
"""Seconds for which a state is waited for."""
SHARED = Path(os.environ.get("SKYPURZA_SHARED", ROOT.parent / "shared"))
OWN = ("SKYPURZA_", "SLURM", "SBATCH", "SQUEUE", "SACCT")


@dataclass(frozen=True, slots=True)
class Side:
    """One Slurm: its commands, the variables that find it, and its service."""

    name: str
    bin: Path
    environ: Mapping[str, str]
    pid: int
    socket: Path | None = None

    def text(self, program: str, *words: str) -> str:
        """What a command prints. Raises CalledProcessError."""
        done = subprocess.run(
            self.argv(program, *words), env=self.environ, capture_output=True, check=True
        )
        return done.stdout.decode()

    def argv(self, program: str, *words: str) -> list[str]:
        return [str(self.bin / program), *words]

    def seconds(self, argv: list[str], *, check: bool = True) -> float:
        """Start to exit of a whole process, its output thrown away."""
        none = subprocess.DEVNULL
        began = time.perf_counter()
        subprocess.run(argv, env=self.environ, stdin=none, stdout=none, stderr=none, check=check)
        return time.perf_counter() - began

    def submit(self, count: int, clients: int) -> float:
        """Jobs a second, each by a process of its own, so many at a time."""
        line = " ".join(self.argv("sbatch", "-Q", *PENDING))
        feed = f"seq {count} | xargs -P {clients} -I{{}} {line} >/dev/null"
        return count / self.seconds(["/bin/bash", "-c", feed])

    def jobs(self) -> int:
        """How many are in the queue."""
        return self.text("squeue", "-h", "-o", "%i").count("\n")

    def rss_mib(self) -> float:
        """Resident memory of the service now."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        kib = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
        return int(kib) / 1024


PENDING = ("-p", "down", "-t", "5", "--wrap", "true")
"""Jobs that wait without a scheduler's work, and count as eligible: the partition is down."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Both; measurements of one are always between those of the other."""

    real: Side
    ours: Side

    @property
    def both(self) -> tuple[Side, Side]:
        return self.real, self.ours

    def medians(
        self, take: Callable[[Side], float], rounds: int, warm: int = WARM
    ) -> tuple[float, float]:
        """Of the real one and of ours, so many rounds after those that warm up."""
        taken = [(take(self.real), take(self.ours)) for _ in range(warm + rounds)][warm:]
        return median(real for real, _ in taken), median(ours for _, ours in taken)

    def times(self, *line: str, rounds: int, warm: int = WARM) -> tuple[float, float]:
        """Median seconds of a command."""
        return self.medians(lambda side: side.seconds(side.argv(*line)), rounds, warm)


def wait(fine: Callable[[], bool], what: str) -> None:
    """Raises SystemExit where it does not come about."""
    until = time.monotonic() + PATIENCE
    while not fine():
        if time.monotonic() > until:
            raise SystemExit(f"in {PATIENCE:.0f} s there was no {what}")
        time.sleep(0.3)


def at_once(work: Callable[[int], None], count: int, workers: int) -> float:
    """Seconds that `count` pieces of work take, shared by processes that do not wait."""
    gate, go = os.pipe()

    def one() -> int:
        os.close(go)
        os.read(gate, 1)  # returns when everybody has closed the other end
        work(count // workers)
        return 0

    children = [forked(one) for _ in range(workers)]
    time.sleep(SETTLE)
    began = time.perf_counter()
    os.close(go)
    failed = [code for code in map(ended, children) if code]
    took = time.perf_counter() - began
    os.close(gate)
    if failed:
        raise SystemExit(f"{len(failed)} of {workers} clients failed")
    return took


def forked(work: Callable[[], int]) -> int:
    """A process of its own that does the work and exits with what it says; its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = work()
    except SystemExit as end:
        sys.stderr.write(f"bench-oracle: {end}\n")
    except Exception:  # border: the process ends here
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def ended(child: int) -> int:
    """Its exit status, when it is over."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def why_not() -> str:
    """Why both cannot be brought up here; empty if they can."""
    return unavailable(script())


def script() -> Path:
    """What starts the real one."""
    return SHARED / "oracle" / "start-slurm.sh"


def environment(commands: Path) -> dict[str, str]:
    """As a user's shell has it."""
    home = pwd.getpwnam(USER).pw_dir
    own = {"HOME": home, "USER": USER, "LOGNAME": USER, "PATH": f"{commands}:/usr/bin:/bin"}
    kept = {key: text for key, text in os.environ.items() if not key.startswith(OWN)}
    return kept | own


@contextmanager
def pair() -> Iterator[Pair]:
    """Both running with the same nodes and partitions. Raises SystemExit."""
    for name, uid in USERS.items():
        make_user(name, uid)
    with (
        tempfile.TemporaryDirectory(prefix="spz-oracle.") as folder,
        real_slurm(Path(folder)) as real,
        our_slurm() as ours,
    ):
        yield Pair(real, ours)


@contextmanager
def real_slurm(folder: Path) -> Iterator[Side]:
    folder.chmod(0o755)
    told = {"ORACLE_DIR": str(folder), "ORACLE_PORT_OFFSET": str(PORTS), "ORACLE_NO_CHECK": "1"}
    environ = os.environ | told | {"ORACLE_FIRST_JOB_ID": "700001"}
    try:
        if subprocess.run(["bash", str(script())], env=environ, check=False).returncode:
            raise SystemExit(f"bench-oracle: {script().name} could not start the real Slurm")
        conf = {"SLURM_CONF": f"{folder}/etc/slurm.conf"}
        pid = int((folder / "run" / "slurmctld.pid").read_text(encoding="ascii"))
        yield Side("real", Path("/usr/bin"), environment(Path("/usr/bin")) | conf, pid)
    finally:
        subprocess.run(["bash", str(script()), "stop"], env=environ, check=False)


@contextmanager
def our_slurm(config: str = "") -> Iterator[Side]:
    """Serves the recorded site, or what a configuration says."""
    with state_directory(keep=False) as home, _served(home, config) as environ:
        spz("shims", "install", "--prefix", str(home / "commands"), environ=environ)
        pid = int((home / "gateway.pid").read_text(encoding="ascii"))
        bin_ = home / "commands" / "bin"
        yield Side("ours", bin_, environment(bin_), pid, home / "gateway.sock")


@contextmanager
def _served(home: Path, config: str) -> Iterator[dict[str, str]]:
    (home / "site.yaml").write_text(config or site(memory=False), encoding="utf-8")
    with service(home) as environ:
        yield environ


def as_user(work: Callable[[], int]) -> int:
    """The exit status of a process of the user's own, in a new folder of theirs, that works.

    It loads no module any more: the user may not be allowed to read ours. The folder is nobody
    else's: what the recorded cases work in is emptied by their replay, results and all.
    """
    entry = pwd.getpwnam(USER)

    def become() -> int:
        os.initgroups(USER, entry.pw_gid)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
        return work()

    with tempfile.TemporaryDirectory(prefix="bench-", dir=entry.pw_dir) as folder:
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        with chdir(folder):
            return ended(forked(become))
