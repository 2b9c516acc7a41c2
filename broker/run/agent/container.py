"""A task's program in a container, by whichever runtime its node has; nothing passes a shell."""

import fcntl
import hashlib
import os
import subprocess

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Environment = dict[bytes, bytes]

SYSTEM_PATH = b"/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
OF_THE_IMAGE = frozenset(
    b"PATH HOME SHELL USER LOGNAME PWD OLDPWD SHLVL HOSTNAME LD_LIBRARY_PATH _".split()
)
"""Variables that a container has of its own."""
SCRIPT = b"/slurm_script"
ENTER = b'cd "$1" && shift && exec "$@"'
"""Run by a shell in the container, where its runtime cannot be told a folder to begin in."""
GPU = "/dev/nvidia0"


class ContainerError(Exception):
    """The container cannot be run; in words for the user."""


class Box:
    """What is to be run, in which image, with what of the host."""

    def __init__(self, step: "dict[str, Any]", argv: "list[bytes]", environment: "Environment"):
        asked = step["container"]
        self.step = step
        self.argv = argv
        self.environment = environment
        self.image = asked["image"]
        self.cwd = wire.text(asked.get("workdir") or step.get("cwd") or "/")
        self.home = bool(asked.get("home"))
        self.program = b""
        """The runtime's own path."""
        named = [
            (wire.text(one[0]), wire.text(one[1]), wire.text(one[2])) for one in asked["mounts"]
        ]
        own = [] if asked.get("workdir") else [(self.cwd, self.cwd, b"")]
        script = [(word, word, b"ro") for word in argv[:1] if word.endswith(SCRIPT)]
        home = environment.get(b"HOME", b"")
        self.mounts = [*named, *own, *script, *([(home, home, b"")] if self.home and home else [])]

    @property
    def is_file(self) -> bool:
        """Whether the image is a file of the node's and none of a registry."""
        return bool(self.image.startswith(("/", "./", "../")))

    @property
    def name(self) -> bytes:
        """For runtimes that take docker's names: pyxis has `#` behind the registry."""
        return wire.text(self.image.rpartition("@")[2].replace("#", "/"))

    def passed(self) -> "list[bytes]":
        return sorted(set(self.environment) - OF_THE_IMAGE)

    def wants_gpus(self) -> bool:
        return bool(self.environment.get(b"CUDA_VISIBLE_DEVICES")) and os.path.exists(GPU)


def wrapped(
    step: "dict[str, Any]", argv: "list[bytes]", environment: "Environment"
) -> "list[bytes]":
    """What is to be run for `argv`: itself, where the step is in no container.

    Raises ContainerError.
    """
    if not step.get("container"):
        return argv
    box = Box(step, argv, environment)
    for name, wrap in RUNTIMES:
        program = _found(name, environment)
        if program:
            box.program = program
            return wrap(box)
    names = ", ".join(name.decode("ascii") for name, _ in RUNTIMES)
    raise ContainerError("{} cannot be run: none of {} is here".format(box.image, names))


def _found(name: bytes, environment: "Environment") -> bytes:
    path = environment.get(b"PATH", b"") + b":" + SYSTEM_PATH
    for folder in path.split(b":"):
        program = os.path.join(folder, name)
        if folder and os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    return b""


def _joined(mount: "tuple[bytes, bytes, bytes]", glue: bytes = b",") -> bytes:
    source, target, flags = mount
    return b":".join([source, target, flags.replace(b"+", glue)] if flags else [source, target])


# ---------------------------------------------------------------- the runtimes


def _apptainer(box: Box) -> "list[bytes]":
    image = wire.text(box.image) if box.is_file else b"docker://" + box.name
    binds = [word for mount in box.mounts for word in (b"--bind", _joined(mount))]
    home = [] if box.home else [b"--no-home"]
    gpus = [b"--nv"] if box.wants_gpus() else []
    return [box.program, b"exec", *home, *gpus, *binds, b"--pwd", box.cwd, image, *box.argv]


def _enroot(box: Box) -> "list[bytes]":
    mounts = [word for mount in box.mounts for word in (b"--mount", _joined(mount))]
    given = [word for name in box.passed() for word in (b"--env", name)]
    inside = [b"/bin/sh", b"-c", ENTER, b"sh", box.cwd, *box.argv]
    return [box.program, b"start", *mounts, *given, _enroot_image(box), *inside]


def _enroot_image(box: Box) -> bytes:
    """A file; of a registry's image one that is brought once for a job. Raises ContainerError."""
    if box.is_file:
        return wire.text(box.image)
    folder = box.environment.get(b"SLURM_TMPDIR") or box.environment.get(b"TMPDIR") or b"/tmp"
    job = box.environment.get(b"SLURM_JOB_ID", b"0")
    mark = hashlib.sha256(wire.text(box.image)).hexdigest()[:16].encode("ascii")
    path = os.path.join(folder, b"spz-%b-%b.sqsh" % (job, mark))
    lock = os.open(path + b".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # another task may be at it
    if not os.path.exists(path):
        argv = [box.program, b"import", b"--output", path, b"docker://" + wire.text(box.image)]
        if subprocess.call(argv, env=box.environment, stdin=subprocess.DEVNULL):
            raise ContainerError("{} cannot be imported".format(box.image))
    os.close(lock)
    return path


def _podman(box: Box) -> "list[bytes]":
    gpus = [b"--device", b"nvidia.com/gpu=all"] if box.wants_gpus() else []
    return _like_docker(box, [b"--userns=keep-id", *gpus])


def _docker(box: Box) -> "list[bytes]":
    user = b"%d:%d" % (box.step["uid"], box.step["gid"])
    gpus = [b"--gpus", b"all"] if box.wants_gpus() else []
    return _like_docker(box, [b"--user", user, *gpus])


def _like_docker(box: Box, own: "list[bytes]") -> "list[bytes]":
    if box.is_file:
        text = "{} is a file: it takes apptainer or enroot, which are not here"
        raise ContainerError(text.format(box.image))
    mounts = [word for mount in box.mounts for word in (b"--volume", _joined(mount))]
    given = [word for name in box.passed() for word in (b"--env", name)]
    terminal = [b"--tty"] if box.step.get("pty") else []
    common = [b"--rm", b"--interactive", b"--init", b"--network=host", b"--ipc=host", *terminal]
    words = [*common, *own, *mounts, *given, b"--workdir", box.cwd, b"--entrypoint", b""]
    return [box.program, b"run", *words, box.name, *box.argv]


RUNTIMES = (
    (b"apptainer", _apptainer),
    (b"singularity", _apptainer),
    (b"enroot", _enroot),
    (b"podman", _podman),
    (b"docker", _docker),
)
"""In this order; the first that is there is used."""
