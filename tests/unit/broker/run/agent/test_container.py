"""What is run for a program in a container, by each runtime that a node may have."""

import os
from pathlib import Path
from typing import Any

import pytest

from broker.run.agent import container

ASKED: dict[str, Any] = {
    "image": "registry.example#team/pytorch:24.01",
    "mounts": [["/data", "/mnt/data", "ro+rslave"], ["/x", "/x", ""]],
    "workdir": None,
    "home": False,
}
STEP: dict[str, Any] = {"container": ASKED, "cwd": "/work", "uid": 7, "gid": 8}
ARGV = [b"/spool/steps/7.1.batch/slurm_script", b"$(touch x); 'a b'"]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH that runtimes can be put into; the host's own are not seen."""
    monkeypatch.setattr(container, "SYSTEM_PATH", b"")
    return tmp_path


def put(node: Path, name: str, text: str = "#!/bin/sh\n") -> bytes:
    (node / name).write_text(text)
    (node / name).chmod(0o755)
    return os.fsencode(node / name)


def wrapped(node: Path, step: dict[str, Any] = STEP, **variables: str) -> list[bytes]:
    given = {"PATH": str(node), "HOME": "/home/u", "A": "1", **variables}
    environment = {os.fsencode(name): os.fsencode(text) for name, text in given.items()}
    return container.wrapped(step, ARGV, environment)


BINDS = ["/data:/mnt/data:ro,rslave", "/x:/x", "/work:/work"]
SCRIPT = "/spool/steps/7.1.batch/slurm_script:/spool/steps/7.1.batch/slurm_script:ro"


def expected(name: str) -> list[str]:
    common = ["--rm", "--interactive", "--init", "--network=host", "--ipc=host"]
    volumes = [word for bind in [*BINDS, SCRIPT] for word in ("--volume", bind)]
    ends = ["--env", "A", "--workdir", "/work", "--entrypoint", ""]
    image = "registry.example/team/pytorch:24.01"
    binds = [word for bind in [*BINDS, SCRIPT] for word in ("--bind", bind)]
    apptainer = ["exec", "--no-home", *binds, "--pwd", "/work", f"docker://{image}"]
    return {
        "apptainer": apptainer,
        "singularity": apptainer,
        "podman": ["run", *common, "--userns=keep-id", *volumes, *ends, image],
        "docker": ["run", *common, "--user", "7:8", *volumes, *ends, image],
    }[name]


@pytest.mark.parametrize("name", ["apptainer", "singularity", "podman", "docker"])
def test_each_runtime_is_told_the_same_in_its_own_words(node: Path, name: str) -> None:
    program = put(node, name)
    told = [word.encode() for word in expected(name)]
    assert wrapped(node) == [program, *told, *ARGV]


ENROOT = """#!/bin/sh
[ "$1" = import ] || exit 9
printf '%s\\n' "$@" >> "${0%/*}/said"
: > "$3"
"""


def test_enroot_brings_an_image_once_for_a_job(node: Path) -> None:
    program = put(node, "enroot", ENROOT)
    variables = {"TMPDIR": str(node), "SLURM_JOB_ID": "7"}
    first, again = wrapped(node, **variables), wrapped(node, **variables)
    assert first == again
    said = (node / "said").read_text().rstrip("\n").rpartition("\n")[2]
    assert said == "docker://registry.example#team/pytorch:24.01"
    assert (node / "said").read_text().count("import\n") == 1
    assert first[:2] == [program, b"start"]
    place = first.index(b"/bin/sh")
    assert first[place - 1].startswith(os.fsencode(node) + b"/spz-7-")
    assert first[place:] == [b"/bin/sh", b"-c", container.ENTER, b"sh", b"/work", *ARGV]


def test_an_image_that_cannot_be_brought_is_named(node: Path) -> None:
    put(node, "enroot", "#!/bin/sh\nexit 1\n")
    with pytest.raises(container.ContainerError, match=r"team/pytorch:24.01 cannot be imported"):
        wrapped(node, TMPDIR=str(node))


def changed(**changes: Any) -> dict[str, Any]:
    return {**STEP, "container": {**ASKED, **changes}}


def test_the_first_runtime_of_several_is_used_and_files_are_images_too(node: Path) -> None:
    put(node, "docker")
    program = put(node, "apptainer")
    step = changed(image="/images/own.sif", workdir="/in", mounts=[], home=True)
    words = ["exec", "--bind", SCRIPT, "--bind", "/home/u:/home/u", "--pwd", "/in"]
    told = [word.encode() for word in [*words, "/images/own.sif"]]
    assert wrapped(node, step) == [program, *told, *ARGV]


def test_a_file_is_no_image_for_docker(node: Path) -> None:
    put(node, "docker")
    with pytest.raises(container.ContainerError, match="it takes apptainer or enroot"):
        wrapped(node, changed(image="./own.sqsh"))


def test_a_node_without_any_says_so(node: Path) -> None:
    with pytest.raises(container.ContainerError, match=r"none of apptainer, .*docker is here"):
        wrapped(node)


def test_what_is_in_no_container_is_left_as_it_is(node: Path) -> None:
    assert wrapped(node, {"container": None}) == ARGV
