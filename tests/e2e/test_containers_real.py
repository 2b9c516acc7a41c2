"""Steps in containers of real runtimes, whose image is a busybox; skipped where there are none."""

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.agents import until
from tests.e2e.service import CONFIG, Preloaded, Service, script, service
from tests.e2e.terminal import CLUSTERS, Terminal

pytestmark = [pytest.mark.e2e, pytest.mark.root, pytest.mark.timeout(120)]
BUSYBOX = Path("/bin/busybox")
TOOLS = ("sh", "cat", "echo", "id", "ls", "sleep", "true", "chmod", "touch", "kill", "env", "pwd")
IMAGE = "localhost/spz-test:1"
CONTAINERS = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
"""
STORAGE = '[storage]\ndriver = "vfs"\nrunroot = "{0}/run"\ngraphroot = "{0}/graph"\n'
Runtime = tuple[str, dict[str, str]]
"""A folder for PATH with a `podman`, and what it needs of variables."""


def image() -> bytes:
    """A root file system."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        tar.add(BUSYBOX.resolve(), "bin/busybox")
        for name in TOOLS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        bash = b'#!/bin/sh\nexec /bin/sh "$@"\n'
        file = tarfile.TarInfo("bin/bash")
        file.size, file.mode = len(bash), 0o755
        tar.addfile(file, io.BytesIO(bash))
        for name in ("tmp", "etc", "proc", "sys", "dev", "root"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
    return made.getvalue()


def podman(folder: Path, _ends: ExitStack) -> dict[str, str]:
    (folder / "containers.conf").write_text(CONTAINERS)
    (folder / "storage.conf").write_text(STORAGE.format(folder))
    (folder / "podman").symlink_to(shutil.which("podman") or "")
    return {
        "CONTAINERS_CONF": str(folder / "containers.conf"),
        "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
    }


def docker(folder: Path, ends: ExitStack) -> dict[str, str]:
    """A daemon of our own, called by the other's name so that it is the first that is found."""
    address = f"unix://{folder}/sock"
    argv = ["dockerd", "--storage-driver=vfs", "--iptables=false", "--ip6tables=false"]
    argv += ["--bridge=none", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec"]
    log = ends.enter_context((folder / "log").open("wb"))
    daemon = subprocess.Popen(
        [*argv, "--host", address, "--pidfile", f"{folder}/pid"], stdout=log, stderr=log
    )
    ends.callback(daemon.wait, 30)
    ends.callback(daemon.terminate)
    until((folder / "sock").exists, "the daemon", 30)
    program = shutil.which("docker") or ""
    script(folder, "podman", f'#!/bin/sh\nexec {program} --host {address} "$@"\n')
    return {}


NEEDED = {"podman": (podman, ("podman", "runc")), "docker": (docker, ("dockerd", "docker"))}


@pytest.fixture(scope="module", params=NEEDED)
def runtime(request: pytest.FixtureRequest) -> Iterator[Runtime]:
    begin, programs = NEEDED[request.param]
    if os.getuid() or not all(map(shutil.which, programs)) or not BUSYBOX.exists():
        pytest.skip(f"needs root, Debian's busybox-static and {', '.join(programs)}")
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        environ = {"PATH": f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin", **begin(folder, ends)}
        argv = [str(folder / "podman"), "import", "-", IMAGE]
        done = subprocess.run(
            argv, input=image(), env=environ, capture_output=True, check=False, timeout=60
        )
        if done.returncode:
            pytest.skip(f"{request.param} does not work here: {done.stderr.decode()[-200:]}")
        yield str(folder), environ


@pytest.fixture(scope="module")
def gateway(preloaded: Preloaded) -> Iterator[Service]:
    with service(
        preloaded, CONFIG.replace("default: true,", "default: true, containers: true,")
    ) as made:
        yield made


def called(runtime: Runtime, *words: str) -> list[str]:
    argv = [f"{runtime[0]}/podman", *words]
    return subprocess.check_output(argv, env=runtime[1], text=True, timeout=60).split()


def test_a_batch_script_and_its_steps_run_in_the_image(gateway: Service, runtime: Runtime) -> None:
    text = "#!/bin/sh\nls / > seen; pwd; echo $SLURM_JOB_ID $OWN; exit 3\n"
    (gateway.work / "in.sh").write_text(text)
    environ = {**runtime[1], "OWN": "a b"}
    job = gateway.submit(f"--container-image={IMAGE}", "in.sh", env=environ)
    gateway.wait(job, "FAILED")
    assert gateway.file(f"slurm-{job}.out") == f"{gateway.work}\n{job} a b\n"
    assert "usr" not in gateway.file("seen").split()
    assert gateway.exit(job) == (3, 0)
    assert called(runtime, "ps", "--all", "--quiet") == []


def test_one_with_a_name_keeps_its_files_for_the_job(gateway: Service, runtime: Runtime) -> None:
    lines = (
        f"srun --container-image={IMAGE} --container-name=a -n2 -l touch /tmp/kept",
        "srun -n1 --container-name=a sh -c 'ls /tmp/kept; exit 4'; echo $?",
        "srun -n1 --container-name=b true; echo $?",
    )
    path = f"{gateway.bin}:{runtime[1]['PATH']}"
    job = gateway.submit("-n2", "--wrap", "\n".join(lines), env={**runtime[1], "PATH": path})
    gateway.wait(job, "COMPLETED")
    said = gateway.file(f"slurm-{job}.out")
    assert said.startswith("/tmp/kept\n")
    assert "\n4\n" in said
    assert 'a container with name "b" does not exist, and --container-image is not set' in said
    assert said.endswith("\n1\n")
    until(lambda: not called(runtime, "ps", "--all", "--quiet"), "it to be gone with the job", 20)


def test_one_is_saved_as_a_file_that_is_an_image(gateway: Service, runtime: Runtime) -> None:
    words = ("srun", "--container-save=saved.tar")
    ran = gateway.run(*words, f"--container-image={IMAGE}", "touch", "/tmp/in-it", env=runtime[1])
    assert ran.code == 0, ran.err
    again = ("srun", "--container-image=./saved.tar", "ls", "/tmp/in-it")
    ran = gateway.run(*again, env=runtime[1])
    assert (ran.out, ran.code) == ("/tmp/in-it\n", 0), ran.err


@pytest.mark.parametrize("name", [(), ("--container-name=c",)])
def test_what_is_cancelled_leaves_nothing(
    gateway: Service, runtime: Runtime, name: tuple[str, ...]
) -> None:
    inner = "trap 'echo asked > asked; exit' TERM; echo begun > begun; sleep 600 & wait"
    (gateway.work / "long.sh").write_text(f"#!/bin/sh\n{inner}\n")
    job = gateway.submit(f"--container-image={IMAGE}", *name, "long.sh", env=runtime[1])
    gateway.wait_file("begun")
    gateway.run("scancel", str(job))
    gateway.wait(job, "CANCELLED")
    until(lambda: not called(runtime, "ps", "--all", "--quiet"), "all to be gone", 20)
    assert (gateway.work / "asked").exists()
    for said in ("begun", "asked"):
        (gateway.work / said).unlink(missing_ok=True)


TASK = """\
resources: {{image_id: 'docker:{image}', cpus: 1}}
envs: {{{envs}}}
setup: |
  echo of setup > /kept
  sleep 3000 & echo $! > /server
run: cat /kept && kill -0 $(cat /server) && echo serving; sleep 0.3 & exit
"""


def test_a_task_of_skypilots_has_one_for_its_cluster(
    preloaded: Preloaded, runtime: Runtime
) -> None:
    envs = ", ".join(f"{name}: '{text}'" for name, text in runtime[1].items())
    with service(preloaded, CLUSTERS) as made:
        (made.work / "me").mkdir()
        spz = Terminal(made, made.work / "me")
        task = spz.file("t.yaml", TASK.format(image=IMAGE, envs=envs))
        done = spz("launch", "-y", "-c", "boxed", task)
        assert (done.code, "of setup\nserving\n" in done.out) == (0, True), done
        again = spz("exec", "boxed", task)
        assert "of setup\nserving" in again.out, again
        assert spz("down", "-y", "boxed").code == 0
        until(lambda: not called(runtime, "ps", "--all", "--quiet"), "it to be gone", 20)
