"""Draws option lines and compares what a real Slurm and this service make of them.

oracle.py [--shared DIR] [--lines N] [--seed N] [--keep]

As root only. Starts Debian's Slurm by the script beside the recorded answers (packages are
installed when missing), serves the recorded site, submits each line to both as a job of later, and
compares acceptance and the fields of `scontrol show job`. Where the packages cannot be had, or
there is no script, one line says so. The exit status is 0 when all agree, 1 when some differ.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import shares
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from run import HERE, USERS, make_user, service, spz, state_directory

from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.table import (
    ACCEPTED,
    ANY_COUNT,
    CORE,
    COUNT,
    EXCLUSIVE,
    INSTANT,
    MAIL,
    MEM,
    MINUTES,
    NO,
    NODES,
    OLD,
    OPEN_MODE,
    PIECES,
    SIGNAL,
    TIME,
    Opt,
)

PACKAGES = ("slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "mariadb-server")
USER = "alice"
PORTS = 40
"""Away from a Slurm that may run on this machine already."""
LATER = "--begin=now+1hour"
SECONDS = 20

# fmt: off
NUMBERS = ("1", "2", "4", "0", "-1", "x", "2.5")
BY_KIND = {
    COUNT: NUMBERS, ANY_COUNT: NUMBERS, PIECES: ("1", "2", "x"),
    TIME: ("5", "1:30", "1:00:00", "1-0", "2-12:30", "0", "INFINITE", "x", "1:2:3:4"),
    MINUTES: ("1", "90", "x"),
    MEM: ("100", "1G", "2048K", "1T", "x", "-5", "1.5G"),
    NODES: ("1", "2", "1-2", "2-1", "9", "x", "1k"),
    INSTANT: ("now+1hour", "now+3days", "2035-01-02T03:04:05", "x", "25:61"),
    SIGNAL: ("USR1", "TERM@60", "B:10@120", "NOSUCH", "USR1@x"),  # 25.11 refuses R: here
    MAIL: ("NONE", "END", "BEGIN,FAIL", "ALL", "TIME_LIMIT_80", "nosuch"),
    OPEN_MODE: ("append", "truncate", "a", "x"),
    EXCLUSIVE: (None, "user"),
}
BY_NAME = {
    "account": ("physics", "chem", "nosuch"),
    "array": ("1-3", "0,5,7", "1-9:2%2", "3-1", "x", "1-1001"),
    "comment": ("free text", ""),
    "constraint": ("spot", "spot&g5", "nosuch"),
    "exclude": ("ec2-1", "ec2-[1-2]", "nosuch"),
    "gpus": ("1", "a10g:2", "x"),
    "gpus-per-node": ("1", "2", "3"),
    "gres": ("gpu:1", "gpu:a10g:2", "gpu:3", "nosuch:1"),
    "job-name": ("name", "a b", "%j"),
    "licenses": ("nosuch:1",),
    "nodelist": ("ec2-2", "ec2-[3-4]", "nosuch"),
    "partition": ("ec2", "debug", "ec2,debug", "nosuch", "chemonly", "rootonly"),
    "qos": ("normal", "high", "short", "nosuch"),
    "reservation": ("nosuch",),
    "wckey": ("key",),
}
FLAGS = ("contiguous", "hold", "no-requeue", "oversubscribe", "requeue", "spread-job")
FIELDS = (
    "Account", "ArrayTaskId", "CPUs/Task", "Comment", "Contiguous", "ExcNodeList", "Features",
    "JobName", "MailUser", "MinCPUsNode", "MinMemoryCPU", "MinMemoryNode", "MinTmpDiskNode",
    "Network", "Nice",
    "NumCPUs", "NumTasks", "OverSubscribe", "Partition", "QOS", "ReqNodeList", "Requeue",
    "Reservation", "Socks/Node", "TimeLimit", "TimeMin", "WCKey",
)
"""Those that both releases write alike."""
NEWER = {
    "cpus-per-gpu": "25.11 asks for GPUs beside it",
    "deadline": "25.11 refuses one that cannot be kept",
    "exclusive": "25.11 does not take it with --oversubscribe",
    "gres": "25.11 reads gres otherwise",
    "qos": "25.11 chooses among several",
}
"""Not drawn, since 22.05 takes them otherwise."""
# fmt: on


@dataclass(slots=True)
class Side:
    """One Slurm: its folder of commands and its variables."""

    name: str
    bin: str
    environ: Mapping[str, str]

    def run(self, program: str, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """As the drawn user, in a folder of theirs."""
        return subprocess.run(
            [f"{self.bin}/{program}", *words],
            env={"PATH": "/usr/bin:/bin", "HOME": f"/home/{USER}", "USER": USER, **self.environ},
            cwd=f"/home/{USER}/work",
            user=USER,
            group=USER,
            extra_groups=[],
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )

    def answer(self, words: Sequence[str]) -> "Answer":
        """What becomes of a job with these options that begins later; it is cancelled again.

        Not of a held one: Slurm does not look whether nodes could run that.
        """
        done = self.run("sbatch", "--parsable", LATER, *words, "--wrap", "true")
        if done.returncode:
            return Answer(False, {}, done.stderr.decode(errors="replace").strip())
        job = done.stdout.decode().strip().partition(";")[0]
        shown = self.run("scontrol", "show", "job", "-o", job).stdout.decode(errors="replace")
        self.run("scancel", job)
        return Answer(True, fields(shown))


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a line was taken, and what its job shows."""

    taken: bool
    shown: Mapping[str, str]
    said: str = ""


@dataclass(slots=True)
class Tally:
    """What was compared and what differed."""

    lines: int = 0
    taken: int = 0
    found: list[str] = field(default_factory=list)

    def compare(self, words: Sequence[str], real: Answer, ours: Answer) -> None:
        self.lines += 1
        self.taken += real.taken and ours.taken
        line = " ".join(map(repr, words))
        if real.taken != ours.taken:
            who, why = ("ours", ours.said) if real.taken else ("the real one", real.said)
            self.found.append(f"{line}\n    only {who} refuses: {why}")
            return
        for name in FIELDS if real.taken else ():
            pair = real.shown.get(name), ours.shown.get(name)
            if pair[0] != pair[1]:
                self.found.append(f"{line}\n    {name}: real {pair[0]}, ours {pair[1]}")


def fields(shown: str) -> dict[str, str]:
    """The pairs of the first record of `scontrol show job -o`."""
    line = shown.partition("\n")[0]
    pairs = re.findall(r"(\S+?)=(.*?)(?= +\S+?=|$)", line)
    return {name: value.strip() for name, value in pairs}


# ---------------------------------------------------------------- drawing


def drawn(opt: Opt) -> "st.SearchStrategy[list[str]]":
    """The option as words: long with `=` or, where it has one, its letter."""
    if opt.arg in (NO, OLD):
        return st.just([f"--{opt.long}"])
    values = st.sampled_from(BY_NAME.get(opt.long) or BY_KIND[opt.kind])
    forms = [lambda text: [f"--{opt.long}" if text is None else f"--{opt.long}={text}"]]
    if opt.short and opt.long != "exclusive":
        forms.append(lambda text: [f"-{opt.short}{text}"])
    return st.builds(lambda form, text: form(text), st.sampled_from(forms), values)


def options() -> list[Opt]:
    """Those of sbatch whose values are known how to draw."""
    rows = [opt for opt in TABLES["sbatch"].by_long.values() if not opt.same]
    rows = [opt for opt in rows if opt.cls in (CORE, ACCEPTED) and opt.long not in NEWER]
    return [
        opt
        for opt in rows
        if (opt.arg in (NO, OLD) and opt.long in FLAGS)
        or (opt.arg not in (NO, OLD) and (opt.long in BY_NAME or opt.kind in BY_KIND))
    ]


def lines() -> "st.SearchStrategy[list[str]]":
    """Up to three options, each once, in any order."""
    some = st.lists(st.sampled_from(options()), min_size=1, max_size=3, unique_by=lambda o: o.long)
    return some.flatmap(lambda rows: st.tuples(*map(drawn, rows))).map(
        lambda parts: [word for part in parts for word in part]
    )


def compared(real: Side, ours: Side, *, count: int, number: int) -> Tally:
    """So many lines put to both."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(lines())
    def put(words: list[str]) -> None:
        tally.compare(words, real.answer(words), ours.answer(words))

    put()
    return tally


# ---------------------------------------------------------------- the real one


def unavailable(script: Path) -> str:
    """Why there can be no real Slurm here; empty if there can."""
    if not script.exists():
        return f"no {script}"
    if os.geteuid() != 0:
        return "starting a Slurm needs root"
    try:
        words = ["apt-get", "install", "-s", "-qq", *PACKAGES]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"apt-get: {error.strerror}"
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""


def main(argv: Sequence[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description="Compare option lines with a real Slurm.")
    parser.add_argument("--shared", type=Path, default=HERE.parents[2] / "shared")
    parser.add_argument("--lines", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave both state directories behind")
    asked = parser.parse_args(argv)
    script = asked.shared / "oracle" / "start-slurm.sh"
    why = unavailable(script)
    if why:
        print(f"test-oracle: skipped, no real Slurm here: {why}")
        return 0
    for name, uid in USERS.items():
        make_user(name, uid)
    folder = Path(tempfile.mkdtemp(prefix="spz-oracle."))
    environ = os.environ | {"ORACLE_DIR": str(folder), "ORACLE_PORT_OFFSET": str(PORTS)}
    try:
        started = subprocess.run(["bash", str(script)], env=environ, check=False)
        if started.returncode:
            print(f"test-oracle: skipped, {script.name} ended with status {started.returncode}")
            return 0
        conf = f"{folder}/etc/slurm.conf"
        return max(
            side_by_side(asked, conf), shares.main(["--conf", conf, "--seed", str(asked.seed)])
        )
    finally:
        subprocess.run(["bash", str(script), "stop"], env=environ, check=False)
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)


def side_by_side(asked: argparse.Namespace, conf: str) -> int:
    """Compares and tells; the exit status."""
    real = Side("real", "/usr/bin", {"SLURM_CONF": conf})
    with state_directory(keep=asked.keep) as home:
        (home / "site.yaml").write_text((HERE / "site.yaml").read_text())
        with service(home) as environ:
            commands = home / "commands"
            spz("shims", "install", "--prefix", str(commands), environ=environ)
            ours = Side("ours", f"{commands}/bin", {})
            tally = compared(real, ours, count=asked.lines, number=asked.seed)
    for difference in tally.found:
        print(difference)
    print(
        f"test-oracle: {tally.lines} lines, {tally.taken} taken by both, "
        f"{len(tally.found)} differences"
    )
    return 1 if tally.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
