"""Ours beside a real Slurm in one run: `name value unit budget ok|OVER`, each a ratio to the real.

bench_oracle.py [--jobs N] [--only PART,...]

As root only; skipped with one line where Debian's Slurm cannot be had. Both serve the same four
nodes to the same user; whole processes, in turn, medians. Before each figure a line that begins
with `#` tells both values. Run by `make bench-oracle`; it takes some minutes.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench_submit import submit, terminated
from tests.bench.running import report
from tests.bench.sides import PENDING, Pair, Side, as_user, at_once, pair, wait, why_not

# fmt: off
BUDGETS = {
    "sbatch": 2.0, "squeue": 2.0, "scontrol-show-job": 2.0, "srun-in-job": 3.0,
    "sacct-X-30": 0.2, "sacct-steps-30": 0.3, "sacct-json-30": 0.2,
    "squeue-many": 0.5, "squeue-json-many": 0.2, "scancel-many": 0.1,
    "sacct-X-many": 0.3, "sacct-steps-many": 0.1, "sacct-json-many": 0.2,
}
"""The most that ours may take of the real one's time."""
# fmt: on
LEAST_ALONE, LEAST_SHIMS = 3.0, 0.5
"""The least that ours must reach of the real one's submissions a second."""
MOST_MEMORY_MIB = 250
FEW = 30
BUSY = 1000
"""Jobs in the queue when submissions are counted."""
CLIENTS = 8
BATCH = 400
SRUN = """\
#!/bin/bash
for i in 1 2 3 4 5 6 7 8; do a=$EPOCHREALTIME; srun true; b=$EPOCHREALTIME
echo $(( ${b/./} - ${a/./} )); done > srun.$1
"""
"""Writes the microseconds that each step took."""


class Bench:
    """The figures so far of one run."""

    def __init__(self, both: Pair, jobs: int) -> None:
        self.both = both
        self.jobs = jobs
        self.fine = True

    def run(self, parts: Sequence[str]) -> int:
        """The exit status."""
        for part in parts:
            PARTS[part](self)
        return 0 if self.fine else 1

    def ratio(self, name: str, times: tuple[float, float]) -> None:
        """Prints a time's figure; `times` in seconds."""
        real, ours = times
        tell(f"{name}: real {real * 1000:.1f} ms, ours {ours * 1000:.1f} ms")
        self.fine &= report(name, ours / real, unit="ratio", budget=BUDGETS[name])

    def one_job(self) -> None:
        """Single commands while next to nothing is there."""
        both = self.both
        ids = {side.name: side.text("sbatch", "--parsable", *PENDING) for side in both.both}
        self.ratio("sbatch", both.times("sbatch", "-H", "--wrap", "true", rounds=20))
        self.ratio("squeue", both.times("squeue", rounds=20))

        def show(side: Side) -> float:
            return side.seconds(side.argv("scontrol", "show", "job", ids[side.name].strip()))

        self.ratio("scontrol-show-job", both.medians(show, 20))
        self.clear()

    def few_jobs(self) -> None:
        """sacct of jobs that ran, with their batch steps."""
        for side in self.both.both:
            for _ in range(FEW):
                side.text("sbatch", "-o", "/dev/null", "--mem", "10", "-t", "5", "--wrap", "true")
        self.listed(FEW, "COMPLETED")
        self.history("30", FEW, rounds=7)

    def steps(self) -> None:
        """`srun true` within a job."""
        script = Path("srun.sh")
        script.write_text(SRUN, encoding="ascii")

        def take(side: Side) -> float:
            told = Path(f"srun.{side.name}")
            words = ("-W", "-o", "/dev/null", "-n1", "--mem", "100")
            side.text("sbatch", *words, str(script), side.name)
            wait(told.exists, "output of the job with steps")
            found = sorted(map(int, told.read_text(encoding="ascii").split()))
            told.unlink()
            return found[len(found) // 2] / 1e6

        self.ratio("srun-in-job", self.both.medians(take, 3, warm=1))

    def submissions(self) -> None:
        """Submissions a second with more than a thousand in the queue."""
        both = self.both
        for side in both.both:
            side.submit(BUSY + 50, CLIENTS)
        alone: list[float] = []

        def take(side: Side) -> float:
            rate = side.submit(BATCH, CLIENTS)
            if side is both.ours:
                alone.append(BATCH / raw(side, BATCH))
            return rate

        real, shims = both.medians(take, 3, warm=1)
        service = sorted(alone[1:])[1]
        tell(f"submissions a second: real {real:.0f}, ours {shims:.0f}, service {service:.0f}")
        for name, rate, least in (
            ("submit-service-alone", service, LEAST_ALONE),
            ("submit-eight-shims", shims, LEAST_SHIMS),
        ):
            self.fine &= report(name, rate / real, unit="ratio", budget=least, least=True)

    def many_jobs(self) -> None:
        """Listings of a long queue, and what it takes of memory."""
        both = self.both
        both.real.submit(self.jobs - both.real.jobs(), CLIENTS)
        missing = self.jobs - both.ours.jobs()
        raw(both.ours, missing - missing % CLIENTS)
        tell(f"pending: real {both.real.jobs()}, ours {both.ours.jobs()}")
        self.ratio("squeue-many", both.times("squeue", rounds=9))
        memory = both.ours.rss_mib()
        tell(f"memory: slurmctld {both.real.rss_mib():.1f} MiB, ours {memory:.1f} MiB")
        self.fine &= report("memory-many", memory, unit="MiB", budget=MOST_MEMORY_MIB)
        self.ratio("squeue-json-many", both.times("squeue", "--json", rounds=3, warm=1))

    def cancelled(self) -> None:
        """Ending all of them, and their history."""
        both = self.both
        both.real.seconds(["/bin/sleep", "6"])  # what was done before may be on its way still
        user = both.real.environ["USER"]
        self.ratio("scancel-many", both.times("scancel", "-u", user, rounds=1, warm=0))
        self.listed(self.jobs - CLIENTS, "CANCELLED")
        self.history("many", self.jobs - CLIENTS, rounds=5)

    # ------------------------------------------------------------ shared

    def history(self, tag: str, count: int, *, rounds: int) -> None:
        for side in self.both.both:
            found = side.text("sacct", "-X", "-n", "-P", "-o", "jobid").count("\n")
            tell(f"sacct of {side.name}: {found} jobs")
            if found < count:
                raise SystemExit(f"sacct of {side.name} lists {found} jobs")
        self.ratio(f"sacct-X-{tag}", self.both.times("sacct", "-X", rounds=rounds))
        self.ratio(f"sacct-steps-{tag}", self.both.times("sacct", rounds=rounds, warm=1))
        times = self.both.times("sacct", "--json", rounds=min(rounds, 3), warm=1)
        self.ratio(f"sacct-json-{tag}", times)

    def listed(self, count: int, state: str) -> None:
        """Waits until accounting of both has so many jobs in that state; the real one trails."""
        words = ("-X", "-n", "-P", "-o", "state")
        for side in self.both.both:
            wait(
                lambda side=side: side.text("sacct", *words).count(state) >= count,
                f"{count} {state} jobs in sacct of {side.name}",
            )

    def clear(self) -> None:
        """Empties both queues."""
        for side in self.both.both:
            side.text("scancel", "-u", side.environ["USER"])
            wait(lambda side=side: not side.jobs(), f"empty queue of {side.name}")


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "one": Bench.one_job,
    "few": Bench.few_jobs,
    "steps": Bench.steps,
    "submissions": Bench.submissions,
    "many": Bench.many_jobs,
    "cancelled": Bench.cancelled,
}
"""In the order of a run; `cancelled` ends what `many` left waiting."""


def raw(side: Side, count: int) -> float:
    """Seconds that so many submissions take the service, sent as the shim sends them."""
    words = [word.encode() for word in PENDING]
    variables = [f"{key}={text}".encode() for key, text in side.environ.items()]
    tail = terminated(b"sbatch", bytes(Path.cwd()), b"22", b"", b"", b"%d" % len(words), *words)
    tail += terminated(b"%d" % len(variables), *variables, b"0")

    def work(share: int) -> None:
        done = sum(b"Submitted batch job " in submit(str(side.socket), tail) for _ in range(share))
        if done != share:
            raise SystemExit(f"of {share} submissions {done} got an id")

    return at_once(work, count, CLIENTS)


def tell(text: str) -> None:
    sys.stdout.write(f"# {text}\n")
    sys.stdout.flush()


def main(argv: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description="Measure ours beside a real Slurm.")
    parser.add_argument("--jobs", type=int, default=10_000, help="how many are pending at most")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas (%(default)s)")
    asked = parser.parse_args(argv)
    parts = asked.only.split(",")
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    why = why_not()
    if why:
        print(f"bench-oracle: SKIP, no real Slurm here: {why}")
        return 0
    with pair() as both:
        return as_user(partial(Bench(both, asked.jobs).run, parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
