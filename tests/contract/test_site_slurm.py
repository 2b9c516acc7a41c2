"""A real Slurm of the site beside ours: its partitions are its own, listings tell of both.

Put up from the script beside the recorded answers; `pytest -m lab`.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.passthrough.cli import CommandFacts, site_commands
from tests.bench import sides

pytestmark = [pytest.mark.lab, pytest.mark.timeout(400)]
CONFIG = """\
cluster: ours
first_job_id: 900000
nodes:
  - {names: ec2-1, cpus: 4, real_memory: 8000}
partitions:
  - {name: cloud, nodes: ec2-1}
passthrough: {bin: /usr/bin}
"""
HELD = ("-H", "--parsable", "--wrap", "true")


@dataclass(frozen=True)
class Site:
    """Our commands in the environment of a login node that has both, and the site's own."""

    ours: sides.Side
    real: sides.Side

    def run(self, program: str, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.ours.argv(program, *words),
            env={**self.ours.environ, "SLURM_CONF": self.real.environ["SLURM_CONF"]},
            cwd=f"/home/{sides.USER}/work",
            user=sides.USER,
            group=sides.USER,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )

    def out(self, program: str, *words: str) -> str:
        done = self.run(program, *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Skips with a clear line where Debian's Slurm cannot be had."""
    why = sides.why_not()
    if why:
        pytest.skip(f"no real Slurm here: {why}")
    for name, uid in sides.USERS.items():
        sides.make_user(name, uid)
    with (
        tempfile.TemporaryDirectory(prefix="spz-site.") as folder,
        sides.real_slurm(Path(folder)) as real,
        pytest.MonkeyPatch.context() as environ,
    ):
        environ.setenv("SLURM_CONF", real.environ["SLURM_CONF"])  # for the service to read it
        with sides.our_slurm(CONFIG) as ours:
            yield Site(ours, real)


@pytest.fixture
def jobs(site: Site) -> Iterator[tuple[str, str]]:
    """A held job of ours and one of the site's, both submitted by our sbatch."""
    ours = site.out("sbatch", "-p", "cloud", *HELD).strip()
    theirs = site.out("sbatch", "-p", "debug", *HELD).strip()
    assert int(theirs) < 900000 <= int(ours)
    yield ours, theirs
    site.run("scancel", ours, theirs)


def test_the_site_is_read_as_it_is_configured(site: Site) -> None:
    folder = site_commands("/usr/bin")
    facts = CommandFacts(folder, site.real.environ).read()
    shown = site.real.text("sinfo", "-a", "-h", "-o", "%R").split()
    assert (facts.cluster, set(facts.partitions)) == ("oracle", set(shown))
    assert (facts.first_job, facts.default) == (700001, "ec2")
    assert facts.version.startswith("22.05")
    assert facts.first_job <= facts.next_job <= facts.max_job


def test_jobs_for_partitions_that_nobody_has_are_refused_by_us(site: Site) -> None:
    """The service was started with the site's configuration: it knows what partitions there are."""
    done = site.run("sbatch", "-p", "nosuch", "--wrap", "true")
    assert "invalid partition specified: nosuch" in done.stderr
    log = (site.ours.socket or Path()).parent / "log" / "gateway.log"
    sides.wait(lambda: "event=site.read" in log.read_text(), "reading of the site")
    assert "event=site.clash" in log.read_text()


def test_squeue_lists_the_jobs_of_both(site: Site, jobs: tuple[str, str]) -> None:
    assert set(site.out("squeue", "-h", "-o", "%i").split()) == set(jobs)
    assert site.out("squeue").count("JOBID") == 1
    for place, part in enumerate(("cloud", "debug")):
        assert site.out("squeue", "-h", "-o", "%i %P", "-p", part) == f"{jobs[place]} {part}\n"
        assert site.out("squeue", "-h", "-o", "%i", "-j", jobs[place]) == f"{jobs[place]}\n"


def test_jobs_of_both_stand_in_one_order(site: Site, jobs: tuple[str, str]) -> None:
    ours, theirs = jobs
    for sort, order in (("i", (theirs, ours)), ("-i", (ours, theirs)), ("P", (ours, theirs))):
        assert site.out("squeue", "-h", "-S", sort, "-o", "%i").split() == list(order)
        assert site.out("squeue", "-h", "-S", sort, "-O", "jobid:9").split() == list(order)
    listed = site.out("squeue").splitlines()
    assert [line.split()[0] for line in listed] == ["JOBID", ours, theirs]
    asked = ("sacct", "-n", "-X", "-P", "-o", "jobid", "-j", f"{ours},{theirs}")
    sides.wait(lambda: site.out(*asked).split() == [theirs, ours], "both jobs, in order of ids")


def test_sinfo_lists_the_partitions_of_both(site: Site) -> None:
    names = site.out("sinfo", "-h", "-o", "%R").split()
    assert {"cloud", "ec2", "debug", "chemonly"} <= set(names)
    assert site.out("sinfo", "-h", "-o", "%R", "-p", "debug") == "debug\n"


def test_scontrol_and_scancel_reach_the_job_that_is_named(
    site: Site, jobs: tuple[str, str]
) -> None:
    for job, part in zip(jobs, ("cloud", "debug"), strict=True):
        assert f"Partition={part}" in site.out("scontrol", "show", "job", job)
    assert site.out("scancel", *jobs) == ""
    assert site.out("squeue", "-h", "-t", "PD", "-o", "%i") == ""


def test_one_scancel_by_user_ends_the_jobs_of_both(site: Site, jobs: tuple[str, str]) -> None:
    site.out("scancel", "-u", sides.USER)
    assert site.out("squeue", "-h", "-t", "PD", "-o", "%i") == ""


def test_the_site_refuses_in_its_own_words(site: Site) -> None:
    real = subprocess.run(
        ["/usr/bin/sbatch", "-p", "rootonly", "--wrap", "true"],
        env={**site.real.environ},
        user=sides.USER,
        group=sides.USER,
        extra_groups=[],
        cwd=f"/home/{sides.USER}",
        capture_output=True,
        text=True,
        check=False,
    )
    ours = site.run("sbatch", "-p", "rootonly", "--wrap", "true")
    assert (ours.returncode, ours.stderr) == (real.returncode, real.stderr)
    assert ours.returncode


def test_one_job_runs_on_the_site_with_its_steps_told_by_sacct(site: Site) -> None:
    job = site.out("sbatch", "-p", "debug", "-W", "--parsable", "-o", "/dev/null", "--wrap", "true")
    sides.wait(
        lambda: "COMPLETED" in site.out("sacct", "-j", job.strip(), "-n", "-P", "-o", "state"),
        "finished job in the site's accounting",
    )
    assert f"{job.strip()}.batch" in site.out("sacct", "-j", job.strip(), "-n", "-P", "-o", "jobid")


def test_every_listing_of_squeue_is_one_of_both(site: Site, jobs: tuple[str, str]) -> None:
    ours, theirs = jobs
    for words in (("-l",), ("-l", "-S", "P"), ("--start", "-S", "P"), ("-S", "P", "-o", "%i")):
        lines = site.out("squeue", *words).splitlines()
        assert sum("JOBID" in line for line in lines) == 1
        assert [line.split()[0] for line in lines if " PENDING " in line or "PD" in line or
                line in jobs] == [ours, theirs]  # fmt: skip
    dated, head, *rows = site.out("squeue", "-l", "-S", "i").splitlines()
    assert len(dated.split()) == 5
    assert head.split()[:3] == ["JOBID", "PARTITION", "NAME"]
    assert [row.split()[0] for row in rows] == [theirs, ours]
    (steps,) = site.out("squeue", "-s").splitlines()
    assert steps.split()[0] == "STEPID"
    every = site.out("squeue", "-o", "%all").splitlines()
    assert sum(line.startswith("ACCOUNT|") for line in every) == 1
    assert len(every) == 3


def test_turns_of_squeue_are_of_both(site: Site, jobs: tuple[str, str]) -> None:
    words = " ".join(site.ours.argv("squeue", "-h", "-i", "1", "-S", "i", "-o", "%i"))
    done = subprocess.run(
        ["/bin/sh", "-c", f"timeout 3 {words} | head -n 5"],
        env={**site.ours.environ, "SLURM_CONF": site.real.environ["SLURM_CONF"]},
        capture_output=True,
        text=True,
        check=True,
    )
    ours, theirs = jobs
    assert done.stdout.split("\n")[:5] == [theirs, ours, "", theirs, ours]


def test_a_document_of_another_shape_is_left_out_by_name(site: Site, jobs: tuple[str, str]) -> None:
    done = site.run("squeue", "--json")
    assert [str(job["job_id"]) for job in json.loads(done.stdout)["jobs"]] == [jobs[0]]
    assert done.stderr.startswith("squeue: warning: the site's own Slurm ")
    assert done.returncode == 0


def test_nodes_of_both_stand_in_one_order(site: Site) -> None:
    names = site.out("sinfo", "-h", "-N", "-o", "%N", "-p", "cloud,ec2").split()
    assert names == ["ec2-1", "ec2-1", "ec2-2", "ec2-3", "ec2-4"]
    back = site.out("sinfo", "-h", "-N", "-o", "%N", "-S", "-N", "-p", "cloud,ec2").split()
    assert back == names[::-1]


def test_clusters_of_both_follow_each_other_below_their_names(
    site: Site, jobs: tuple[str, str]
) -> None:
    for names in ("all", "ours,oracle"):
        ours, theirs = site.out("squeue", "-M", names, "-o", "%i").split("\n\n")
        assert ours.splitlines() == ["CLUSTER: ours", "JOBID", jobs[0]]
        assert theirs.splitlines() == ["CLUSTER: oracle", "JOBID", jobs[1]]
        assert site.out("squeue", "-h", "-M", names, "-o", "%i").split() == list(jobs)


def test_what_depends_on_a_job_of_the_other_side_is_refused(
    site: Site, jobs: tuple[str, str]
) -> None:
    for job, part in zip(jobs, ("debug", "cloud"), strict=True):
        assert site.run("sbatch", "-p", part, "-d", f"afterok:{job}", "--wrap", "true").returncode


def test_scontrol_shows_the_partitions_of_both_by_name(site: Site) -> None:
    for part in ("cloud", "debug"):
        assert f"PartitionName={part} " in site.out("scontrol", "-o", "show", "partition", part)
