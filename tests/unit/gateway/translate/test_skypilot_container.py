"""Scripts of tasks in containers, run by bash with a stand-in for docker."""

import subprocess
from pathlib import Path

import pytest

from gateway.translate.skypilot import read
from gateway.translate.skypilot_container import image_of, inside

DOCKER = """\
#!/bin/bash
echo "$1 ${*: -1}" >> "$CALLS"
case $1 in
  inspect) [ -e "$CALLS.up" ] && echo true || exit 1 ;;
  run) echo "$@" >> "$CALLS"; touch "$CALLS.up" ;;
  login) cat > "$CALLS.login" ;;
  exec)
    shift; names=
    while :; do
      case $1 in
        -i) shift ;;
        -e) names="$names $2"; shift 2 ;;
        -w) cd "$2" && shift 2 ;;
        *) shift; break ;;
      esac
    done
    echo "passed$names" >> "$CALLS.passed"
    exec "$@" ;;
esac
"""


def ran(folder: Path, text: str, *, docker: bool = True, **environ: str) -> tuple[int, str, str]:
    bin_ = folder / "bin"
    bin_.mkdir(exist_ok=True)
    if docker:
        (bin_ / "docker").write_text(DOCKER)
        (bin_ / "docker").chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", inside(text, "busybox:1")],
        env={
            "PATH": f"{bin_}:/usr/bin:/bin",
            "CALLS": str(folder / "calls"),
            "HOME": str(folder),
            "SLURM_JOB_ID": "7",
            "SLURMD_NODENAME": "n1",
            **environ,
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_script_runs_in_one_container_of_the_cluster(tmp_path: Path) -> None:
    text = 'echo "$A {x}" in "$PWD"\nexit 3'
    for _ in range(2):
        assert ran(tmp_path, text, A="a\nb") == (3, f"a\nb {{x}} in {tmp_path}\n", "")
    calls = (tmp_path / "calls").read_text()
    assert calls.count("run -d --name spz-7-n1 --network host --ipc host") == 1
    assert "busybox:1 -c sleep infinity" in calls
    passed = (tmp_path / "calls.passed").read_text()
    assert " A" in passed and " PATH" not in passed and " HOME" not in passed


def test_a_registry_gets_its_password_and_gpus_are_handed_on(tmp_path: Path) -> None:
    secret = {"SKYPILOT_DOCKER_USERNAME": "me", "SKYPILOT_DOCKER_PASSWORD": "hush"}
    assert ran(tmp_path, "true", CUDA_VISIBLE_DEVICES="0", **secret)[0] == 0
    assert (tmp_path / "calls.login").read_text() == "hush"
    assert "--gpus all" in (tmp_path / "calls").read_text()


def test_a_node_without_docker_says_so(tmp_path: Path) -> None:
    code, _, err = ran(tmp_path, "true", docker=False, PATH=str(tmp_path / "none"))
    assert code == 127
    assert "neither docker nor podman" in err


@pytest.mark.parametrize(
    ("resources", "image"),
    [
        ("{image_id: 'docker:nvcr.io/a/b:1'}", "nvcr.io/a/b:1"),
        ("{image_id: ami-1}", None),
        ("{image_id: {us-east-1: 'docker:x'}}", "x"),
        ("{image_id: {us-east-1: ami-1, docker: 'debian:12'}}", "debian:12"),
        ("{image_id: {us-east-1: ami-1, docker: 'docker:debian'}}", "debian"),
        ("{any_of: [{image_id: 'docker:x'}]}", "x"),
        ("{}", None),
    ],
)
def test_the_image_is_the_first_alternatives(resources: str, image: str | None) -> None:
    (task,) = read(f"resources: {resources}")
    assert image_of(task) == image
