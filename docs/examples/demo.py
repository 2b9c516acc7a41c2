"""What `make demo` runs: a service on the local provider, jobs of every kind, what they cost.

Everything lies in a fresh folder that is removed at the end. Exits 1 if anything did not do what
it prints.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

SPZ = Path(sys.executable).with_name("spz")
TASK = Path(__file__).with_name("task.yaml")
CONFIG = """\
# As without a file, but idle machines are let go at once, so that the demo can show it.
partitions:
  - name: ec2
    default: true
    def_mem_per_cpu: 1024
    elastic: {provider: local, idle_seconds: 3}
"""
CPU = """\
#!/bin/bash
#SBATCH --job-name=cpu
#SBATCH --cpus-per-task=2 --mem=2G --time=5
echo "cpu job $SLURM_JOB_ID has $SLURM_CPUS_PER_TASK cpus"
sleep 5
echo 42 > answer
"""
GPU = """\
#!/bin/bash
#SBATCH --job-name=gpu
#SBATCH --gres=gpu:A10G:1
echo "gpu job $SLURM_JOB_ID sees GPU $CUDA_VISIBLE_DEVICES"
sleep 5
"""
ARRAY = """\
#!/bin/bash
#SBATCH --job-name=array --array=0-3
echo "element $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
sleep 3
[ "$SLURM_ARRAY_TASK_ID" != 2 ] || exit 7
"""
DEPENDENT = """\
#!/bin/bash
#SBATCH --job-name=after
echo "the answer was $(cat answer)"
sleep 1
"""
PATIENCE = 90
COLUMNS = {
    "JobID": 6,
    "JobName": 12,
    "State": 15,
    "ExitCode": 8,
    "Elapsed": 9,
    "AllocTRES": 62,
    "Cost": 9,
}
"""Of sacct, with their widths; the cost is in dollars."""
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY"}


class Wrong(Exception):
    """Something did not do what the demo says."""


class Demo:
    """Commands as a user types them, in a folder of their own."""

    def __init__(self, place: Path, config: str, environ: Mapping[str, str]) -> None:
        self.begun = time.monotonic()
        self.work = place / "work"
        home = place / "home"
        for folder in (self.work, home, place / "state"):
            folder.mkdir()
        (place / "state" / "config.yaml").write_text(config)
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SKYPURZA_", "SLURM_"))},
            "SKYPURZA_HOME": str(place / "state"),
            "HOME": str(home),
            "PATH": f"{SPZ.parent}:{os.environ['PATH']}",
            "PWD": str(self.work),
            **environ,
        }

    def title(self, text: str) -> None:
        print(f"\n== {text}  [{time.monotonic() - self.begun:.0f} s]", flush=True)

    def ask(self, *argv: str, status: int | None = 0) -> str:
        """Runs it quietly; what it printed. Raises Wrong if it ends otherwise than it should."""
        done = subprocess.run(
            argv, cwd=self.work, env=self.environ, capture_output=True, text=True, check=False
        )
        if status is not None and done.returncode != status:
            raise Wrong(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def show(self, *argv: str) -> str:
        """Runs it as the user sees it."""
        print(f"$ {' '.join(argv)}", flush=True)
        out = self.ask(*argv)
        print(out, end="" if out.endswith("\n") or not out else "\n", flush=True)
        return out

    def watch(self, *argv: str) -> str:
        """Runs what takes longer; its text is shown as it comes."""
        print(f"$ {' '.join(argv)}", flush=True)
        lines = []
        with subprocess.Popen(
            argv,
            cwd=self.work,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            for line in running.stdout or ():
                print(line, end="", flush=True)
                lines.append(line)
        if running.returncode:
            raise Wrong(f"{' '.join(argv)}: exit {running.returncode}")
        return "".join(lines)

    def submit(self, name: str, script: str, *options: str) -> str:
        (self.work / name).write_text(script)
        out = self.show("sbatch", *options, name)
        return out.split()[-1]

    def text(self, name: str) -> str:
        try:
            return (self.work / name).read_text()
        except FileNotFoundError:
            raise Wrong(f"{name} is not there") from None


def main(config: str = CONFIG, environ: Mapping[str, str] = MappingProxyType({})) -> int:
    """The demo on a service with this configuration; 1 if anything did not do what it prints."""
    # Not below TMPDIR: a socket's path has to be short.
    place = Path(tempfile.mkdtemp(prefix="spz-demo-", dir="/tmp"))
    place.chmod(0o755)
    try:
        with service(Demo(place, config, environ)) as demo:
            jobs = submitted(demo)
            run = cluster(demo)
            wait(demo, jobs)
            let_go(demo)
            records = accounted(demo)
            explained(demo, jobs)
            checked(demo, jobs, records)
            ran(demo, run)
    except Wrong as wrong:
        print(f"\nWRONG: {wrong}", file=sys.stderr)
        return 1
    finally:
        clear(place)
    print("\nAll jobs did what they print.")
    return 0


@contextmanager
def service(demo: Demo) -> Iterator[Demo]:
    """A service in the background, its commands first on PATH."""
    demo.title("A service of its own, in the background")
    demo.show("spz", "api", "start")
    line = demo.show("spz", "shims", "env")
    demo.environ["PATH"] = demo.ask("bash", "-c", f'{line.strip()}; printf %s "$PATH"')
    try:
        yield demo
    finally:
        demo.title("The end")
        out = demo.ask("spz", "api", "stop", status=None)
        print(out or "The service did not stop in order.", end="", flush=True)


def submitted(demo: Demo) -> Mapping[str, str]:
    demo.title("Slurm scripts: a CPU job, one with a GPU, an array of four, one that comes after")
    cpu = demo.submit("cpu.sh", CPU)
    gpu = demo.submit("gpu.sh", GPU)
    array = demo.submit("array.sh", ARRAY)
    after = demo.submit("after.sh", DEPENDENT, f"--dependency=afterok:{cpu}")
    end = time.monotonic() + PATIENCE
    while not demo.ask("squeue", "-h", "-t", "R") and time.monotonic() < end:
        time.sleep(0.3)
    demo.show("squeue")
    demo.show("sinfo")
    return {"cpu": cpu, "gpu": gpu, "array": array, "after": after}


def cluster(demo: Demo) -> str:
    """The task's run, as Slurm names it: `8.0`."""
    demo.title("A SkyPilot task, on a cluster")
    out = demo.watch("spz", "launch", "-y", "-c", "demo", str(TASK))
    if "pi is about 3.14" not in out:
        raise Wrong("the task did not print its estimate")
    demo.show("spz", "status")
    (run,) = json.loads(demo.ask("spz", "queue", "demo", "--json"))["demo"]
    demo.show("spz", "down", "-y", "demo")
    return str(run["step"])


def wait(demo: Demo, jobs: Mapping[str, str]) -> None:
    """Until all are over, saying so while it lasts."""
    demo.title("Waiting for the rest")
    told, end = "", time.monotonic() + PATIENCE
    ids = ",".join(jobs.values())
    while True:
        out = demo.ask("squeue", "-h", "-r", "-t", "all", "-o", "%i %T", "-j", ids)
        states = [line.split()[1] for line in out.splitlines()]
        left = [state for state in states if state not in FINAL]
        now = ", ".join(f"{left.count(state)} {state}" for state in sorted(set(left)))
        if now != told:
            print(f"   {now or 'all over'}", flush=True)
            told = now
        if not left:
            return
        if time.monotonic() > end:
            raise Wrong(f"not over after {PATIENCE} s: {now}")
        time.sleep(0.5)


def accounted(demo: Demo) -> Mapping[str, Mapping[str, str]]:
    """What sacct says of each job and element."""
    demo.title("What it took and cost")
    wide = ",".join(f"{name}%{width}" for name, width in COLUMNS.items())
    demo.show("sacct", "-X", "-o", wide)
    out = demo.ask("sacct", "-X", "-n", "-P", "-o", ",".join(COLUMNS))
    rows = [dict(zip(COLUMNS, line.split("|"), strict=True)) for line in out.splitlines()]
    return {row["JobID"]: row for row in rows}


def explained(demo: Demo, jobs: Mapping[str, str]) -> None:
    demo.title("Why there")
    out = demo.show("spz", "why", jobs["gpu"])
    if "g5." not in out or "chosen:" not in out:
        raise Wrong("`spz why` does not say which machine was chosen")


def let_go(demo: Demo) -> None:
    demo.title("Idle machines are let go")
    end = time.monotonic() + PATIENCE
    told: Sequence[str] = ("?",)
    while told:
        nodes = json.loads(demo.ask("spz", "api", "status", "--json"))["nodes"]
        names = [f"{node['name']} {node['state']}" for node in nodes]
        if names != told:
            print(f"   {', '.join(names) or 'none left'}", flush=True)
            told = names
        if told and time.monotonic() > end:
            raise Wrong(f"machines were not let go: {', '.join(told)}")
        time.sleep(0.5 if told else 0)


def checked(demo: Demo, jobs: Mapping[str, str], records: Mapping[str, Mapping[str, str]]) -> None:
    """Raises Wrong for the first job whose record or text is not what it should be."""
    demo.title("Checked")
    array = jobs["array"]
    wanted = {
        jobs["cpu"]: ("COMPLETED", "0:0", "cpu job", f"slurm-{jobs['cpu']}.out"),
        jobs["gpu"]: ("COMPLETED", "0:0", "sees GPU 0", f"slurm-{jobs['gpu']}.out"),
        jobs["after"]: ("COMPLETED", "0:0", "answer was 42", f"slurm-{jobs['after']}.out"),
    }
    for task in range(4):
        state = ("FAILED", "7:0") if task == 2 else ("COMPLETED", "0:0")
        name = f"{array}_{task}"
        wanted[name] = (*state, f"element {task} of 4", f"slurm-{name}.out")
    for job, (end, code, said, file) in wanted.items():
        row = records.get(job)
        if row is None:
            raise Wrong(f"sacct does not know job {job}")
        if (row["State"], row["ExitCode"]) != (end, code):
            raise Wrong(f"job {job} is {row['State']} {row['ExitCode']}, not {end} {code}")
        if not float(row["Cost"] or 0) > 0:
            raise Wrong(f"job {job} cost {row['Cost'] or 'nothing'}")
        if said not in demo.text(file):
            raise Wrong(f"{file} does not say {said!r}: {demo.text(file)!r}")
        print(f"   {job}: {end} {code}, ${row['Cost']}, {file}")
    if "gres/gpu" not in records[jobs["gpu"]]["AllocTRES"]:
        raise Wrong(f"the GPU job held no GPU: {records[jobs['gpu']]['AllocTRES']}")


def ran(demo: Demo, run: str) -> None:
    """Raises Wrong if the cluster's run is not accounted for."""
    job = run.partition(".")[0]
    out = demo.ask("sacct", "-n", "-P", "-j", job, "-o", "JobID,State,ExitCode,Cost")
    rows = {line.split("|")[0]: line.split("|")[1:] for line in out.splitlines()}
    if rows.get(run, [])[:2] != ["COMPLETED", "0:0"]:
        raise Wrong(f"run {run} is {rows.get(run, 'not known to sacct')}")
    if not float(rows[job][2] or 0) > 0:
        raise Wrong(f"cluster {job} cost {rows[job][2] or 'nothing'}")
    print(f"   {run}: COMPLETED 0:0, its cluster ${rows[job][2]}")


def clear(place: Path) -> None:
    """Ends what still runs from the folder, and removes it."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = bytes(place) in (process / "cmdline").read_bytes()
            if ours and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            continue
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
