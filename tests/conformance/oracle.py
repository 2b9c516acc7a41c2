"""Draws option lines and compares what a real Slurm and this service make of them.

oracle.py [--shared DIR] [--lines N] [--commands N] [--seed N] [--most N] [--components N]
          [--only OPTION,...] [--conf FILE] [--keep]

As root only. Starts Debian's Slurm by the script beside the recorded answers (packages are
installed when missing), or takes the one of `--conf`, serves the recorded site, submits each line
to both as a job of later, and compares acceptance, `scontrol show job` and `squeue`'s columns.
Then commands about waiting jobs: what they answer, and what the jobs show of what was changed.
Where the packages cannot be had, or there is no script, one line says so. The exit status is 0 when
all agree, 1 when some differ.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import limits
import shares
import side as sides
from answered import COLUMNS, Answer, columns, differences, named, records
from asking import SCENE, Order, changing, listing
from drawing import AFTER, Line, lines
from hypothesis import HealthCheck, given, seed, settings
from run import HERE, USERS, make_user
from side import Side

PACKAGES = ("slurmctld", "slurmd", "slurmdbd", "slurm-client", "munge", "mariadb-server")
USER = "alice"
PORTS = 40
"""Away from a Slurm that may run on this machine already."""
FIRST_JOB = "700001"
"""As the served site begins: a short one would be found in names of nodes."""
LATER = "--begin=now+1hour"
HEARD = 8
"""Seconds until sacct has heard of jobs."""
FOLDER = "oracle"
SCRIPT = "line.sh"


@dataclass(slots=True)
class Client:
    """The drawn user of one Slurm, and the ids of jobs that lines refer to."""

    side: Side
    ids: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """In a folder of theirs."""
        return self.side.run(*words, user=USER, cwd=f"/home/{USER}/{FOLDER}")

    def prepare(self, scene: Mapping[str, Sequence[str]]) -> None:
        """Submits the jobs that names stand for; those of before are cancelled."""
        self.clear()
        for name, words in scene.items():
            told = (self.told(word) for word in words)
            done = self.run("sbatch", "--parsable", *told, "--wrap", "true")
            self.ids[name] = done.stdout.strip()

    def clear(self) -> None:
        """Cancels them."""
        if self.ids:
            self.run("scancel", *self.ids.values())
        self.ids = {}

    def obey(self, order: Order) -> Answer:
        """What is said to a command; of one that changes something also what jobs then show."""
        done = self.run(order.program, *map(self.told, order.words))
        names = {number: name for name, number in self.ids.items()}
        said = named(done.stdout + done.stderr, names)
        if not order.changes:
            return Answer(True, (), (), said, done.returncode)
        shown = self.run("scontrol", "show", "job", "-o").stdout
        live = "".join(f"{line}\n" for line in shown.splitlines() if " JobState=PENDING " in line)
        listed = self.run("squeue", "-h", "-r", "-S", "i", "-O", COLUMNS).stdout
        self.prepare(SCENE)
        return Answer(True, records(live, names), columns(listed, names), said, done.returncode)

    def told(self, text: str) -> str:
        """With the ids of this side in the place of names."""
        for name, number in self.ids.items():
            text = text.replace(name, number)
        return text

    def answer(self, line: Line) -> Answer:
        """What becomes of a job with these options that begins later; it is cancelled again.

        Not of a held one: Slurm does not look whether nodes could run that.
        """
        script = Path(f"/home/{USER}/{FOLDER}/{SCRIPT}")
        script.write_text(self.told(line.script()))
        words = [self.told(word) for word in line.arguments()]
        done = self.run("sbatch", "--parsable", LATER, *words, SCRIPT)
        said = done.stderr
        if "Unable to contact slurm controller" in said:
            raise SystemExit(f"the {self.side.name} one does not answer any more")
        if done.returncode:
            return Answer(False, (), (), said, done.returncode)
        job = done.stdout.strip().partition(";")[0]
        names = {number: name for name, number in self.ids.items()} | {job: "@job"}
        shown = self.run("scontrol", "show", "job", "-o", job).stdout
        listed = self.run("squeue", "-h", "-S", "i", "-j", job, "-O", COLUMNS).stdout
        self.run("scancel", job)
        return Answer(True, records(shown, names), columns(listed, names), said, 0)


@dataclass(slots=True)
class Tally:
    """What was compared and what differed."""

    lines: int = 0
    taken: int = 0
    found: list[str] = field(default_factory=list)

    def compare(self, line: Line | Order, real: Answer, ours: Answer) -> None:
        self.lines += 1
        self.taken += real.taken and ours.taken
        found = [f"    {text}" for text in differences(real, ours)]
        if found:
            self.found.append("\n".join([str(line), *found]))


def ordered(real: Client, ours: Client, asked: argparse.Namespace) -> Tally:
    """So many commands put to both: half of them change jobs."""
    tally = Tally()
    for side in (real, ours):
        side.prepare(SCENE)
    time.sleep(HEARD)

    def put(order: Order) -> None:
        tally.compare(order, real.obey(order), ours.obey(order))

    for kind in (listing(), changing()):
        seed(asked.seed)(drawing(asked.commands // 2)(given(kind)(put)))()
    return tally


def drawing(examples: int) -> settings:
    """So many of them, however long it takes, kept nowhere."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def compared(real: Client, ours: Client, asked: argparse.Namespace) -> Tally:
    """So many lines put to both."""
    tally = Tally()
    for side in (real, ours):
        side.prepare(AFTER)
    focus = frozenset(filter(None, asked.only.split(",")))

    @seed(asked.seed)
    @drawing(asked.lines)
    @given(lines(focus, asked.most, asked.components))
    def put(line: Line) -> None:
        tally.compare(line, real.answer(line), ours.answer(line))

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
    parser.add_argument("--commands", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=3, help="options on a line")
    parser.add_argument(
        "--components", type=int, default=1, help="of a job (22.05 may die of refusing several)"
    )
    parser.add_argument("--only", default="", help="draw these options alone")
    parser.add_argument("--conf", default="", help="slurm.conf of a Slurm that runs already")
    parser.add_argument("--keep", action="store_true", help="leave both state directories behind")
    asked = parser.parse_args(argv)
    script = asked.shared / "oracle" / "start-slurm.sh"
    why = unavailable(script)
    if why:
        print(f"test-oracle: skipped, no real Slurm here: {why}")
        return 0
    for name, uid in USERS.items():
        make_user(name, uid)
    folder = Path(f"/home/{USER}/{FOLDER}")
    folder.mkdir(exist_ok=True)
    os.chown(folder, USERS[USER], USERS[USER])
    if asked.conf:
        return side_by_side(asked, asked.conf)
    folder = Path(tempfile.mkdtemp(prefix="spz-oracle."))
    environ = os.environ | {
        "ORACLE_DIR": str(folder),
        "ORACLE_PORT_OFFSET": str(PORTS),
        "ORACLE_FIRST_JOB_ID": FIRST_JOB,
    }
    try:
        started = subprocess.run(["bash", str(script)], env=environ, check=False)
        if started.returncode:
            print(f"test-oracle: skipped, {script.name} ended with status {started.returncode}")
            return 0
        conf = f"{folder}/etc/slurm.conf"
        return max(
            side_by_side(asked, conf),
            limits.main(["--conf", conf, "--seed", str(asked.seed)]),
            shares.main(["--conf", conf, "--seed", str(asked.seed)]),
        )
    finally:
        subprocess.run(["bash", str(script), "stop"], env=environ, check=False)
        if not asked.keep:
            shutil.rmtree(folder, ignore_errors=True)


def side_by_side(asked: argparse.Namespace, conf: str) -> int:
    """Compares and tells; the exit status."""
    real = Client(sides.real(conf))
    with sides.ours(keep=asked.keep) as served:
        ours = Client(served)
        tallies = {"lines": compared(real, ours, asked), "commands": ordered(real, ours, asked)}
        for client in (real, ours):
            client.clear()
    for kind, tally in tallies.items():
        for difference in tally.found:
            print(difference)
        print(
            f"test-oracle: {tally.lines} {kind}, {tally.taken} taken by both, "
            f"{len(tally.found)} differences"
        )
    return int(any(tally.found for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
