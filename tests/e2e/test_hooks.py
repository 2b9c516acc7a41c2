"""What nodes do around jobs: setup once, prolog, epilog, a folder of the job's own."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import CONFIG, Preloaded, Service, script, service

HOOK = """#!/bin/sh
echo $SLURM_SCRIPT_CONTEXT $SLURM_JOB_ID $SLURM_JOB_USER $SLURMD_NODENAME >> "{log}"
"""


@pytest.fixture
def served(preloaded: Preloaded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("hooks")
    text = HOOK.format(log=folder / "log")
    prolog, epilog = (script(folder, name, text) for name in ("prolog", "epilog"))
    lines = f"echo setup >> '{folder}/log'"
    config = CONFIG.replace("def_mem_per_cpu: 100}", f'def_mem_per_cpu: 100, setup: "{lines}"}}')
    config += f'prolog: "{prolog}"\nepilog: "{epilog}"\ntmpdir: "{folder}/tmp.%u.%j"\n'
    with service(preloaded, config=config) as made:
        made.folder = folder  # type: ignore[attr-defined]
        yield made


def log(served: Service) -> list[str]:
    folder: Path = served.folder  # type: ignore[attr-defined]
    return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []


def test_nodes_are_prepared_and_cleaned_around_jobs(served: Service) -> None:
    user = served.user.name
    job = served.wrap('stat -c %a "$SLURM_TMPDIR"; touch "$SLURM_TMPDIR/x"; echo $SLURM_TMPDIR')
    served.wait(job, "COMPLETED")
    folder = f"{served.folder}/tmp.{user}.{job}"  # type: ignore[attr-defined]
    assert served.file(f"slurm-{job}.out").splitlines() == ["700", folder]
    expected = [
        "setup",
        f"prolog_slurmd {job} {user} own-1",
        f"epilog_slurmd {job} {user} own-1",
    ]
    until(lambda: log(served) == expected, "the epilog")
    until(lambda: not Path(folder).exists(), "the folder to be gone")
    again = served.run("srun", "-N2", "true")
    assert again.code == 0
    until(lambda: len(log(served)) == 8, "two prologs and epilogs more, one setup more")
    assert log(served).count("setup") == 2, "once on each node"


def test_a_job_whose_prolog_fails_does_not_run(served: Service) -> None:
    prolog = served.folder / "prolog"  # type: ignore[attr-defined]
    prolog.write_text("#!/bin/sh\nexit 3\n")
    prolog.chmod(prolog.stat().st_mode | stat.S_IXUSR)
    job = served.wrap("echo ran")
    served.wait(job, "FAILED")
    assert served.exit(job) == (0, 53)
