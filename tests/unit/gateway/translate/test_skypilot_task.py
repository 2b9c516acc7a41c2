"""A task as a cluster with its run in it: scripts, variables, files."""

import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from broker.model.spec import Checkpoint, Mount
from gateway.translate.environment import unpack
from gateway.translate.skypilot import read
from gateway.translate.skypilot_run import Within, run_of
from tests.unit.gateway.translate.tasks import ORIGIN, task


def test_a_cluster_is_a_machine_kept_open_with_the_run_in_it() -> None:
    made = task("name: train\nsetup: |\n  one\nrun: |\n  two 'x' $Y\nenvs: {Y: 1}\nworkdir: src")
    spec = made.spec
    assert (spec.batch, spec.cluster, spec.name) == (None, "dev", "train")
    (step,) = spec.steps
    assert [(p.name, made.blobs[p.script or ""]) for p in step.phases] == [  # type: ignore[index]
        ("setup", b"one\n"),
        ("run", b"two 'x' $Y\n"),
    ]
    assert step.phases[1].argv == ("/bin/bash", None)
    assert unpack(made.blobs[step.environment or ""]) == {"PYTHONUNBUFFERED": "1", "Y": "1"}  # type: ignore[index]
    assert spec.cwd == "/home/ann/project/src"
    assert spec.output.stdout == "/home/ann/sky_logs/dev-%j.%s.log"
    assert (spec.requeue, spec.submit_host) == (False, "login1")


def test_setup_runs_again_only_if_it_or_its_variables_changed(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_START_TIME": "1",
        "SLURMD_NODENAME": "n1",
    }
    said = []
    for text in (
        "setup: exit 3",
        "setup: echo ran",
        "setup: echo ran",
        "setup: echo ran\nenvs: {A: 1}",
        "setup: echo other",
    ):
        made = task(text)
        (phase,) = made.spec.steps[0].phases
        script = tmp_path / "script"
        script.write_bytes(made.blobs[phase.script or ""])  # type: ignore[index]
        argv = [str(script) if word is None else word for word in phase.argv]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        said.append((done.returncode, done.stdout.strip()))
    left_out = "spz: setup is as it was and is left out"
    assert said == [(3, ""), (0, "ran"), (0, left_out), (0, "ran"), (0, "other")]


def test_what_a_node_has_bash_read_is_read_by_scripts_and_not_by_what_is_around_them(
    tmp_path: Path,
) -> None:
    mount = "file_mounts: {/tmp/x: {source: 's3://b', mode: MOUNT_CACHED}}"
    made = task(f"setup: conda activate s\nrun: conda activate r\n{mount}")
    said = []
    with tempfile.NamedTemporaryFile("w") as profile:  # bash expands the name
        profile.write("unset BASH_ENV; conda() { echo conda $*; }\n")
        profile.flush()
        environ = {"HOME": str(tmp_path), "BASH_ENV": profile.name, "PATH": "/usr/bin:/bin"}
        for phase in made.spec.steps[0].phases[1:]:
            script = tmp_path / "script"
            script.write_bytes(made.blobs[phase.script or ""])  # type: ignore[index]
            argv = [str(script) if word is None else word for word in phase.argv]
            done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
            said.append(done.stdout)
    assert said == ["conda activate s\n", "conda activate r\n"]


def test_bytes_are_kept_under_their_own_hash() -> None:
    made = task("run: echo é")
    assert {sha256(content).hexdigest() for content in made.blobs.values()} == set(made.blobs)
    assert "echo é".encode() in made.blobs.values()


def test_only_what_a_shell_needs_of_the_submitters_variables_goes_along() -> None:
    made = task("run: x")
    assert unpack(made.blobs[made.spec.environment or ""]) == {"PATH": "/bin", "LC_ALL": "C"}  # type: ignore[index]


def test_secrets_reach_the_run_as_variables() -> None:
    made = task("envs: {A: 1}\nsecrets: {T: null}\nrun: x", secrets={"T": "hush"})
    (step,) = made.spec.steps
    found = unpack(made.blobs[step.environment or ""])  # type: ignore[index]
    assert found == {"PYTHONUNBUFFERED": "1", "A": "1", "T": "hush"}


def test_a_task_says_itself_whether_python_holds_its_text_back() -> None:
    made = task("envs: {PYTHONUNBUFFERED: ''}\nrun: x")
    (step,) = made.spec.steps
    assert unpack(made.blobs[step.environment or ""]) == {"PYTHONUNBUFFERED": ""}  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "cwd"),
    [
        ("run: x", "/home/ann/sky_workdir"),
        ("workdir: .", "/home/ann/project"),
        ("workdir: ~/data", "/home/ann/data"),
        ("workdir: /srv/x/", "/srv/x"),
    ],
)
def test_scripts_start_in_the_workdir(text: str, cwd: str) -> None:
    assert task(text).spec.cwd == cwd


def test_a_task_without_setup_and_run_only_keeps_a_machine() -> None:
    assert task("resources: {cpus: 2}").spec.steps == ()


def test_setup_can_be_left_out() -> None:
    (one,) = read("setup: a\nrun: b")
    assert [
        phase.name
        for phase in run_of(one, cluster="dev", origin=ORIGIN, with_setup=False).step.phases
    ] == ["run"]


def test_a_run_elsewhere_than_its_cluster_changes_folder_without_a_shell_of_ours() -> None:
    (one,) = read("run: b")
    (phase,) = run_of(one, cluster="dev", origin=ORIGIN, where=Within("/a b; rm x")).step.phases
    assert phase.argv == ("/usr/bin/env", "--chdir=/a b; rm x", "/bin/bash", None)


def test_a_mount_of_what_is_there_under_that_name_is_no_mount() -> None:
    assert task("file_mounts: {/home/ann/x: ~/x}")


@pytest.mark.parametrize(
    ("workdir", "source", "comes"),
    [
        (".", "./data", None),
        ("src", "src/data", None),
        ("~/src", "~/src/data", None),
        (".", "../data", "/home/ann/data"),
        ("src", "srcs/data", "/home/ann/project/srcs/data"),
        (".", "/data", "/data"),
        (".", "s3://b", None),
    ],
)
def test_what_lies_outside_of_the_workdir_is_brought_beside_it_elsewhere(
    workdir: str, source: str, comes: str | None
) -> None:
    text = f"workdir: {workdir}\nfile_mounts: {{/to: '{source}'}}\nrun: x"
    assert task(text).spec.files == ()
    found = task(text, replace(ORIGIN, provider="ec2"))
    assert found.spec.files == ((Mount(source=comes, target=comes),) if comes else ())


def test_what_opens_a_private_repository_comes_from_the_shell_and_on_no_command_line() -> None:
    keys = {"GIT_TOKEN": "s3cret", "GIT_SSH_KEY_PATH": "~/.ssh/deploy", "OTHER": "x"}
    far = replace(ORIGIN, provider="ec2", environ={**ORIGIN.environ, **keys})
    made = task("workdir: {url: https://x/y}\nrun: x", far)
    assert [mount.source for mount in made.spec.files] == ["/home/ann/.ssh/deploy"]
    (step,) = made.spec.steps
    assert step.environment is not None
    variables = made.blobs[step.environment].split(b"\0")
    assert {b"GIT_TOKEN=s3cret", b"GIT_SSH_KEY_PATH=~/.ssh/deploy"} <= set(variables)
    assert not any(one.startswith(b"OTHER") for one in variables)
    scripts = [made.blobs[phase.script] for phase in step.phases if phase.script in made.blobs]
    assert not any(b"s3cret" in text for text in scripts)
    plain = task("workdir: .\nrun: x", far)
    assert not any(b"s3cret" in text for text in plain.blobs.values())


@pytest.mark.parametrize(
    ("text", "where", "part"),
    [
        ("run: x", Within(None, 48, 4), {"overlap": True}),
        ("resources: {accelerators: A10G:2}\nrun: x", Within(None, 48, 4), {"cpus": 24, "gpus": 2}),
        (
            "resources: {accelerators: 'A10G:0.5'}\nrun: x",
            Within(None, 8, 8),
            {"cpus": 1, "gpus": 1},
        ),
        ("resources: {accelerators: A10G:4}\nrun: x", Within(), {"cpus": None, "gpus": 4}),
    ],
)
def test_runs_that_ask_for_gpus_wait_for_them_and_others_for_nobody(
    text: str, where: Within, part: Mapping[str, object]
) -> None:
    (one,) = read(text)
    step = run_of(one, cluster="dev", origin=ORIGIN, where=where).step
    gpus = sum(gres.count for gres in step.gres or ())
    found = {"overlap": True} if step.overlap else {"cpus": step.cpus_per_task, "gpus": gpus}
    assert found == part
    assert step.exact == (step.cpus_per_task is not None)


def test_files_travel_and_checkpoints_are_kept_as_a_batch_script_says_it() -> None:
    spec = task("run: |\n  #SPZ stage-in=data checkpoint=ckpt every=2\n  python fit.py\n").spec
    cwd = "/home/ann/sky_workdir"
    assert [mount.source for mount in spec.files] == [f"{cwd}/data"]
    assert spec.checkpoint == Checkpoint(folder=f"{cwd}/ckpt", every=120)
