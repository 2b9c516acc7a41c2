"""What is refused leaves nothing behind: no row, no id, no file, no process."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.config.paths import Paths
from tests.e2e.agents import until
from tests.e2e.service import Preloaded, Service, User, script, service

FAILED = "sbatch: error: Batch job submission failed: "
NO_SCRIPT = (
    "sbatch: error: This does not look like a batch script.  The first\n"
    "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
    "sbatch: error: For instance: #!/bin/sh\n"
)
UNAVAILABLE = FAILED + "Requested node configuration is not available\n"
MEMORY = "sbatch: error: Memory specification can not be satisfied\n" + UNAVAILABLE
REFUSED = {
    ("no-such.sh",): (1, "sbatch: error: Unable to open file no-such.sh\n"),
    ("empty.sh",): (1, "sbatch: error: Batch script is empty!\n"),
    ("plain.sh",): (1, NO_SCRIPT),
    ("dos.sh",): (
        1,
        "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
        "sbatch: error: instead of expected UNIX line breaks (\\n).\n",
    ),
    ("option.sh",): (
        255,
        "sbatch: unrecognized option '--no-such'\nTry \"sbatch --help\" for more information\n",
    ),
    ("--no-such", "--wrap", "true"): (
        255,
        "sbatch: unrecognized option '--no-such'\nTry \"sbatch --help\" for more information\n",
    ),
    ("-t", "abc", "--wrap", "true"): (255, "sbatch: error: Invalid --time specification\n"),
    ("--mem=1X", "--wrap", "true"): (255, "sbatch: error: Invalid --mem specification\n"),
    ("-c", "0", "--wrap", "true"): (
        1,
        'sbatch: error: Invalid numeric value "0" for --cpus-per-task.\n',
    ),
    ("-a", "1-0", "--wrap", "true"): (1, FAILED + "Invalid job array specification\n"),
    ("-p", "no-such", "--wrap", "true"): (
        1,
        "sbatch: error: invalid partition specified: no-such\n"
        + FAILED
        + "Invalid partition name specified\n",
    ),
    ("-d", "afterok:4711", "--wrap", "true"): (1, FAILED + "Job dependency problem\n"),
    ("--mem=17000G", "--wrap", "true"): (1, MEMORY),
    ("--gres=gpu:a10g:3", "--wrap", "true"): (1, UNAVAILABLE),
    ("-C", "no-such", "--wrap", "true"): (1, FAILED + "Invalid feature specification\n"),
    ("-p", "ec2", "-C", "no-such", "--wrap", "true"): (
        1,
        FAILED + "Invalid feature specification\n",
    ),
}
UNMET = {
    ("-c", "9999"): "no instance type offers 9999 cpus",
    ("--mem=9000G", "-c", "1", "--gres=gpu:16"): "no instance type offers 9216000 MiB of memory",
    ("--gres=gpu:no-such:1",): "no instance type offers 1 no-such in one node; try one of: A100",
}
"""What no instance type can meet: Slurm's words, and then which wish it is."""
SCRIPTS = {
    "empty.sh": b"",
    "plain.sh": b"echo hello\n",
    "dos.sh": b"#!/bin/sh\r\ntrue\r\n",
    "option.sh": b"#!/bin/sh\n#SBATCH --no-such\ntrue\n",
    "secret.sh": b"#!/bin/sh\ntrue\n",
}


@pytest.fixture(scope="module")
def asked(served: Service) -> Service:
    for name, content in SCRIPTS.items():
        script(served.work, name, content)
    states = 'select count(*) from nodes where doc like \'%"state":"UP"%\''
    until(lambda: served.rows(states)[0][0] == 2, "the declared nodes")
    return served


@pytest.mark.parametrize("argv", REFUSED, ids=" ".join)
def test_a_refusal_says_what_slurm_says_and_leaves_nothing(
    asked: Service, argv: tuple[str, ...]
) -> None:
    before, processes = asked.counts(), asked.processes()
    told = asked.run("sbatch", *argv)
    assert (told.code, told.out, told.err) == (REFUSED[argv][0], "", REFUSED[argv][1])
    assert asked.counts() == before
    assert asked.processes() == processes


@pytest.mark.parametrize("argv", UNMET, ids=" ".join)
def test_what_no_machine_can_meet_is_refused_with_the_wish(
    asked: Service, argv: tuple[str, ...]
) -> None:
    before = asked.counts()
    told = asked.run("sbatch", "-p", "ec2", *argv, "--wrap", "true")
    assert (told.code, told.out) == (1, "")
    assert told.err.startswith(UNAVAILABLE)
    assert UNMET[argv] in told.err
    assert asked.counts() == before


def test_a_script_that_may_not_be_read_is_refused_as_in_slurm(asked: Service) -> None:
    path = asked.work / "secret.sh"
    path.chmod(0)
    user = User.named("nobody") if os.geteuid() == 0 else None
    before = asked.counts()
    told = asked.run("sbatch", str(path), user=user)
    assert (told.code, told.err) == (1, f"sbatch: error: Unable to open file {path}\n")
    assert asked.counts() == before


def test_a_folder_that_is_gone_is_refused_as_in_slurm(asked: Service) -> None:
    before = asked.counts()
    words = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" --wrap true'
    told = asked.run("/bin/sh", "-c", words, str(asked.bin / "sbatch"))
    assert (told.code, told.err) == (
        1,
        "sbatch: error: getcwd failed: No such file or directory\n",
    )
    assert asked.counts() == before


def test_a_working_directory_that_does_not_exist_fails_the_job_not_the_service(
    asked: Service,
) -> None:
    """Slurm runs it in /tmp, and says so."""
    job = asked.wrap("pwd", "-D", str(asked.work / "no-such-folder"), "-o", f"{asked.work}/cwd.out")
    asked.wait(job, "COMPLETED", "FAILED")
    assert "/tmp" in asked.file("cwd.out")


# --- the service itself


def _words(served: Service, was: int) -> str:
    until(lambda: not Path(f"/proc/{served.pid}").exists(), "the second service's end")
    return served.out.read_text(errors="replace")[was:]


def test_a_second_service_on_the_same_home_is_refused_with_the_pid(served: Service) -> None:
    first, was = served.pid, len(served.out.read_text(errors="replace"))
    served.launch()
    words = _words(served, was)
    served.pid = first
    assert f"another service runs on {served.home} (pid {first})" in words
    assert int((served.home / "gateway.pid").read_text()) == first
    assert served.run("squeue").code == 0


def test_a_pid_file_of_a_dead_service_does_not_stop_the_next(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        served.kill()
        (served.home / "gateway.pid").write_text("1\n")
        served.start()
        assert int((served.home / "gateway.pid").read_text()) == served.pid


def test_a_socket_path_that_is_too_long_is_refused_by_name(tmp_path: Path) -> None:
    home = tmp_path / ("x" * 100)
    with pytest.raises(Refused) as refused:
        Paths.from_environ({"SKYPURZA_HOME": str(home)}, uid=1, user_home=tmp_path)
    assert str(home / "gateway.sock") in refused.value.message
    assert "SKYPURZA_SOCKET" in refused.value.hint
    spz = Path(sys.executable).parent / "spz"
    done = subprocess.run(
        [spz, "serve"],
        env={"SKYPURZA_HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "gateway.sock" in done.stderr
    assert "SKYPURZA_SOCKET" in done.stderr
    assert not home.exists()


def test_something_else_at_the_sockets_place_is_left_alone(preloaded: Preloaded) -> None:
    with service(preloaded) as served:
        served.stop()
        served.socket.write_text("mine")
        was = len(served.out.read_text(errors="replace"))
        served.launch()
        words = _words(served, was)
        assert f"{served.socket} is there and no socket" in words
        assert served.socket.read_text() == "mine"
        served.socket.unlink()
        served.start()


# --- a full disk


@pytest.fixture
def small_disk() -> Iterator[Path]:
    folder = Path("/tmp") / f"spz-disk-{os.getpid()}"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        folder.rmdir()
        pytest.skip(f"cannot mount a tmpfs here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def filled(disk: Path) -> Path:
    """The file that took all that was left."""
    fill = disk / "fill"
    with fill.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    return fill


@pytest.mark.root
def test_a_full_disk_refuses_submissions_and_running_jobs_end_well(
    preloaded: Preloaded, small_disk: Path
) -> None:
    database = {"SKYPURZA_STATE_DB": str(small_disk / "state.db")}
    with service(preloaded, environ=database) as served:
        words = "echo up; while ! [ -e go ]; do sleep 0.05; done; echo down; exit 6"
        job = served.wrap(words)
        served.wait_file(f"slurm-{job}.out", "up")
        served.wait(job, "RUNNING")
        fill = filled(small_disk)
        refusals = [served.run("sbatch", "-H", "--wrap", f"true {'x' * 9000}") for _ in range(3)]
        assert all(told.code == 1 for told in refusals), refusals
        assert all("Submitted" not in told.out for told in refusals)
        assert all("disk is full" in told.err for told in refusals), refusals
        assert served.run("squeue", "-h", "-j", str(job), "-o", "%T").out == "RUNNING\n"
        (served.work / "go").touch()
        served.wait_file(f"slurm-{job}.out", "down")
        fill.unlink()
        served.wait(job, "FAILED")
        assert served.exit(job) == (6, 0)
        assert served.wrap("true", "-H") == job + 1, "a refusal took an id"


@pytest.mark.root
def test_nothing_is_lost_when_the_disk_of_nodes_and_log_is_full_too(
    preloaded: Preloaded, small_disk: Path
) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="spz-work-") as work,
        service(preloaded, folder=small_disk) as served,
    ):
        words = f"echo up > {work}/up; while ! [ -e {work}/go ]; do sleep 0.05; done; exit 6"
        jobs = [served.wrap(words, "-o", "/dev/null", "-p", name) for name in ("own", "ec2")]
        until(lambda: all(served.state(job) == "RUNNING" for job in jobs), "their start")
        fill = filled(small_disk)
        told = served.run("sbatch", "-H", "--wrap", f"true {'x' * 9000}")
        assert "disk is full" in told.err
        (Path(work) / "go").touch()
        time.sleep(1.0)
        assert served.run("squeue", "-h", "-o", "%T").code == 0
        fill.unlink()
        for job in jobs:
            served.wait(job, "FAILED")
            assert served.exit(job) == (6, 0)
        assert served.wrap("true", "-H") == jobs[-1] + 1, "a refusal took an id"
