"""A task's program in a container, by whichever runtime its node has; nothing passes a shell.

A container is the task's own, or one that stays: until the step's end where it is to be saved,
until the job's where it has a name.
"""

import fcntl
import os

from . import identity, programs, wire
from .apptainer import Apptainer
from .box import Box
from .docker import Docker, Podman
from .enroot import Enroot
from .runtime import ContainerError, Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from .runtime import Runtime

    Environment = dict[bytes, bytes]

BY_NAME: "tuple[tuple[bytes, Callable[[Box], Runtime]], ...]" = (
    (b"apptainer", Apptainer),
    (b"singularity", Apptainer),
    (b"enroot", Enroot),
    (b"podman", Podman),
    (b"docker", Docker),
)
"""In this order; the first that is there is used."""
NO_SUCH = 'a container with name "{}" does not exist, and --container-image is not set'


def wrapped(
    step: "dict[str, Any]", argv: "list[bytes]", environment: "Environment"
) -> "list[bytes]":
    """What is to be run for `argv`: itself, where the step is in no container; else the words from
    `inside` on are run in one. Raises ContainerError.
    """
    begin = step.get("inside", 0)
    if not step.get("container") or begin is None:
        return argv
    box = Box(step, argv[begin:], environment)
    runtime = _runtime(box)
    if not box.stays:
        return [*argv[:begin], *runtime.own()]
    used = Lock(box.place(box.name, b"used"), fcntl.LOCK_SH)
    os.set_inheritable(used.fd, True)  # as long as the task lives
    with Lock(box.place(box.name, b"lock")):  # another task may be at it
        _begun(box, runtime)
    return [*argv[:begin], *runtime.within()]


def _begun(box: Box, runtime: "Runtime") -> None:
    there, how = runtime.there(), box.asked.get("reuse") or "auto"
    if how == "create" and there:
        raise ContainerError("a container with name {!r} is there already".format(_said(box)))
    if not there and (how == "exec" or not box.image):
        raise ContainerError(NO_SUCH.format(_said(box)))
    if box.asked.get("options") and not there and not isinstance(runtime, Docker):
        name = os.fsdecode(os.path.basename(box.program))
        note = "note: options of docker are not for {}: {}\n"
        os.write(2, os.fsencode(note.format(name, " ".join(box.asked["options"]))))
    runtime.begin(there)


def _said(box: Box) -> str:
    return str(box.asked.get("name"))


def _runtime(box: Box) -> "Runtime":
    for name, make in BY_NAME:
        program = programs.located(name, box.environment)
        if program:
            box.program = program
            return make(box)
    names = ", ".join(name.decode("ascii") for name, _ in BY_NAME)
    raise ContainerError("{} cannot be run: none of {} is here".format(box.image, names))


# ---------------------------------------------------------------- behind a step, behind a job

UNTIDY = b"container: what was to be left of it could not be saved, or not ended"


def tidy(step: "dict[str, Any]") -> bool:
    """Behind a step's last task, as its user: what is to be saved is, what it left is ended."""
    identity.become(step)
    box = Box(step, [], wire.variables(step))
    runtime = _runtime(box)
    if box.stays and box.asked.get("save"):
        runtime.save(os.path.join(box.here, wire.text(box.asked["save"])))
    if not box.stays:
        runtime.clear(b"step", box.key)
        return True
    serves = box.place(box.name, b"serves")
    if step.get("serves"):
        Lock(serves, fcntl.LOCK_SH)
    if os.path.exists(serves):
        return True  # what a setup left is in it
    try:
        with Lock(box.place(box.name, b"used"), fcntl.LOCK_EX | fcntl.LOCK_NB):
            runtime.rest(for_good=not box.asked.get("name"))
    except BlockingIOError:
        return True  # another step is in it
    return True


def drop(facts: "dict[str, Any]", attempt: str) -> bool:
    """Behind a job, in a process of its own, which becomes the job's user."""
    step = dict(facts, attempt=attempt, container={"image": "", "mounts": []})
    identity.become(step)
    box = Box(step, [], wire.variables(step))
    runtime = _runtime(box)
    runtime.clear(b"attempt", box.attempt)
    runtime.discard(box.place())
    return True
