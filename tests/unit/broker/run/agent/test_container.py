"""What is run for a program in a container, by each runtime that a node may have."""

import os
from pathlib import Path
from typing import Any

import pytest

from broker.run.agent import container, enroot, programs, runtime

ASKED: dict[str, Any] = {
    "image": "registry.example#team/pytorch:24.01",
    "mounts": [["/data", "/mnt/data", "ro+rslave"], ["/x", "/x", ""]],
    "workdir": None,
    "home": False,
}
STEP: dict[str, Any] = {
    "container": ASKED,
    "cwd": "/work",
    "attempt": "7/1",
    "key": "7/1/0",
}
ARGV = [b"/spool/steps/7.1.batch/slurm_script", b"$(touch x); 'a b'"]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH that runtimes can be put into; the host's own are not seen."""
    monkeypatch.setattr(programs, "PATH", "")
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


IDS = f"{os.geteuid()}:{os.getegid()}"
LABELS = ["--label", "spz.step=7/1/0", "--label", "spz.attempt=7/1"]


def expected(name: str) -> list[str]:
    image = "registry.example/team/pytorch:24.01"
    binds = [word for bind in [*BINDS, SCRIPT] for word in ("--bind", bind)]
    apptainer = ["exec", "--no-home", *binds, "--pwd", "/work", f"docker://{image}"]
    rootless = ["--userns=keep-id"]
    users = {"docker": ["--user", IDS], "podman": rootless if os.geteuid() else ["--user", IDS]}
    volumes = [word for bind in [*BINDS, SCRIPT] for word in ("--volume", bind)]
    shared = ["--network=host", "--ipc=host", "--pid=host", *users.get(name, []), *LABELS, *volumes]
    ends = ["--env", "A", "--rm", "--workdir", "/work", "--entrypoint", ""]
    docker = ["run", "--interactive", *shared, *ends, image]
    return docker if name in users else apptainer


@pytest.mark.parametrize("name", ["apptainer", "singularity", "podman", "docker"])
def test_each_runtime_is_told_the_same_in_its_own_words(node: Path, name: str) -> None:
    program = put(node, name)
    told = [word.encode() for word in expected(name)]
    assert wrapped(node) == [program, *told, *ARGV]


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_words_of_the_users_come_last_so_that_they_hold(node: Path, name: str) -> None:
    put(node, name)
    asked = {**STEP, "container": {**ASKED, "options": ["--shm-size=2g", "-v", "/a b:/c"]}}
    words = wrapped(node, asked)
    place = words.index(b"--shm-size=2g")
    assert words[place : place + 3] == [b"--shm-size=2g", b"-v", b"/a b:/c"]
    assert words.index(b"--network=host") < place < words.index(b"--rm")


def test_another_runtime_tells_once_that_it_has_no_use_for_them(
    node: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(node, "enroot", '#!/bin/sh\n[ "$1" != import ] || : > "$3"\n')
    asked = {**ASKED, "name": "task", "options": ["--shm-size=2g"]}
    variables = {"TMPDIR": str(node), "SLURM_JOB_ID": "7"}
    wrapped(node, {**STEP, "container": asked}, **variables)
    assert "note: options of docker are not for enroot: --shm-size=2g\n" in capfd.readouterr().err


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
    assert first[place:] == [b"/bin/sh", b"-c", enroot.ENTER, b"sh", b"/work", *ARGV]


def test_an_image_that_cannot_be_brought_is_named(node: Path) -> None:
    put(node, "enroot", "#!/bin/sh\nexit 1\n")
    with pytest.raises(runtime.ContainerError, match=r"team/pytorch:24.01: enroot import failed"):
        wrapped(node, TMPDIR=str(node))


def changed(**changes: Any) -> dict[str, Any]:
    return {**STEP, "container": {**ASKED, **changes}}


def test_the_first_runtime_of_several_is_used_and_files_are_images_too(node: Path) -> None:
    put(node, "docker")
    program = put(node, "apptainer")
    step = changed(image="/images/own.sif", workdir="/in", mounts=[], home=True)
    binds = [
        word for bind in ("/work:/work", "/home/u:/home/u", SCRIPT) for word in ("--bind", bind)
    ]
    words = ["exec", *binds, "--pwd", "/in"]
    told = [word.encode() for word in [*words, "/images/own.sif"]]
    assert wrapped(node, step) == [program, *told, *ARGV]


def test_a_file_is_no_image_for_docker(node: Path) -> None:
    put(node, "docker")
    with pytest.raises(runtime.ContainerError, match="it takes apptainer or enroot"):
        wrapped(node, changed(image="./own.sqsh"))


def test_a_node_without_any_says_so(node: Path) -> None:
    with pytest.raises(runtime.ContainerError, match=r"none of apptainer, .*docker is here"):
        wrapped(node)


def test_what_is_in_no_container_is_left_as_it_is(node: Path) -> None:
    assert wrapped(node, {"container": None}) == ARGV


RECORDS = """#!/bin/sh
for word in "$@"; do printf '<%s>' "$word"; done >> "${0%/*}/said"
echo >> "${0%/*}/said"
"""


def told(node: Path) -> list[list[str]]:
    """What a stand-in was told, call by call."""
    lines = (node / "said").read_text().splitlines()
    return [line[1:-1].split("><") for line in lines]


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"root": True}, "docker", "--user 0:0"),
        ({"writable": False}, "docker", "--read-only"),
        ({"mounts": [["tmpfs", "/t", "size=1m"]]}, "docker", "--tmpfs /t:size=1m"),
        ({"mounts": [["../d", "./e", "ro"]]}, "docker", "--volume /d:/e:ro"),
        ({"mounts": [["tmpfs", "/t", ""]]}, "apptainer", "--scratch /t"),
        ({"root": True}, "apptainer", "--fakeroot"),
        ({"writable": True}, "apptainer", "--writable-tmpfs"),
        ({"env": ["A", "NONE"]}, "apptainer", "--env A=1"),
        ({"entrypoint": True}, "apptainer", "run"),
        ({"root": True}, "enroot", "--root"),
        ({"writable": True}, "enroot", "--rw"),
    ],
)
def test_each_wish_has_its_words(
    node: Path, changes: dict[str, Any], name: str, words: str
) -> None:
    put(node, name)
    image = "/i.sif" if name != "docker" else "i"
    plain, made = (wrapped(node, changed(image=image, **more)) for more in ({}, changes))
    asked = f" {words} ".encode()
    assert asked in b" ".join(made)
    assert (asked in b" ".join(plain)) is (words == f"--user {IDS}")


def test_an_entry_point_is_left_out_unless_it_is_asked_for(node: Path) -> None:
    put(node, "docker")
    assert b"--entrypoint" in wrapped(node)
    assert b"--entrypoint" not in wrapped(node, changed(entrypoint=True))


IMAGES = """#!/bin/sh
case "$1 $2" in "image inspect") echo '["PATH=/x", "A=theirs", "B=theirs"]' ;; esac
"""


@pytest.mark.parametrize(
    ("asked", "passed"), [([], [b"C"]), (["B", "PATH"], [b"B", b"C", b"PATH"])]
)
def test_an_images_own_variables_win_over_all_but_those_asked_for(
    node: Path, asked: list[str], passed: list[bytes]
) -> None:
    put(node, "docker", IMAGES)
    made = wrapped(node, changed(env=asked), B="2", C="3")
    assert [made[at + 1] for at, word in enumerate(made) if word == b"--env"] == passed


def test_what_is_around_the_command_stays_outside(node: Path) -> None:
    put(node, "docker")
    argv = wrapped(node, {**STEP, "inside": 1})
    assert argv[0] == ARGV[0]
    assert argv[-1] == ARGV[1]
    assert b"run" in argv
    assert wrapped(node, {**STEP, "inside": None}) == ARGV


def test_one_that_has_a_name_is_made_once_and_entered(node: Path) -> None:
    put(node, "enroot", RECORDS + '[ "$1" = list ] && /bin/cat "${0%/*}/there" 2>/dev/null; :\n')
    step = changed(name="kept", image="/i.sqsh")
    variables = {"TMPDIR": str(node), "SLURM_JOB_ID": "7"}
    argv = wrapped(node, step, **variables)
    assert [call[0] for call in told(node)] == ["list", "create"]
    assert argv[argv.index(b"/bin/sh") - 1] == b"spz_7_kept"
    (node / "there").write_text("other\nspz_7_kept\n")
    assert wrapped(node, step, **variables) == argv
    assert [call[0] for call in told(node)] == ["list", "create", "list"]
    with pytest.raises(runtime.ContainerError, match="is there already"):
        wrapped(node, changed(name="kept", image="/i.sqsh", reuse="create"), **variables)


@pytest.mark.parametrize("reuse", ["auto", "exec"])
def test_one_that_is_not_there_cannot_be_entered(node: Path, reuse: str) -> None:
    put(node, "enroot")
    step = changed(name="kept", image=None, reuse=reuse)
    with pytest.raises(runtime.ContainerError, match='name "kept" does not exist'):
        wrapped(node, step, TMPDIR=str(node))
