"""What of a step is to be run in a container, with what of the host."""

import os
import re

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Environment = dict[bytes, bytes]
    Mount = tuple[bytes, bytes, bytes]

OF_THE_IMAGE = frozenset(
    b"PATH HOME SHELL USER LOGNAME PWD OLDPWD SHLVL HOSTNAME LD_LIBRARY_PATH _".split()
)
"""Variables that a container has of its own."""
SCRIPT = b"/slurm_script"
GPU = "/dev/nvidia0"
ODD = re.compile(rb"[^A-Za-z0-9_.-]")


class Box:
    """What is to be run, in which image, with what of the host."""

    def __init__(self, step: "dict[str, Any]", argv: "list[bytes]", environment: "Environment"):
        asked = step["container"]
        self.step = step
        self.argv = argv
        self.environment = environment
        self.asked = asked
        self.image = asked["image"] or ""
        self.here = wire.text(step.get("cwd") or "/")
        self.cwd = wire.text(asked.get("workdir") or step.get("cwd") or "/")
        self.home = bool(asked.get("home"))
        self.job = environment.get(b"SLURM_JOB_ID", b"0")
        self.attempt = wire.text(step.get("attempt") or "")
        self.key = wire.text(step.get("key") or "")
        self.program = b""
        """The runtime's own path."""
        self.scripts = [word for word in argv if word.endswith(SCRIPT)]
        named = [self._mount(*map(wire.text, mount)) for mount in asked["mounts"]]
        own = [] if asked.get("workdir") and not self.home else [(self.here, self.here, b"")]
        home = environment.get(b"HOME", b"")
        self.mounts = [*named, *own, *([(home, home, b"")] if self.home and home else [])]

    def _mount(self, source: bytes, target: bytes, flags: bytes) -> "Mount":
        """Relative ones are in the working directory; a target is below the container's root."""
        if source.startswith(b"."):
            source = os.path.normpath(os.path.join(self.here, source))
        return source, os.path.normpath(os.path.join(b"/", target)), flags

    @property
    def is_file(self) -> bool:
        """Whether the image is a file of the node's and none of a registry."""
        return bool(self.image.startswith(("/", "./", "../")))

    @property
    def file(self) -> bytes:
        return os.path.normpath(os.path.join(self.here, wire.text(self.image)))

    @property
    def registry_name(self) -> bytes:
        """For runtimes that take docker's names: pyxis has `#` behind the registry."""
        return wire.text(self.image.rpartition("@")[2].replace("#", "/"))

    @property
    def stays(self) -> bool:
        return bool(self.asked.get("name") or self.asked.get("save"))

    @property
    def name(self) -> bytes:
        """Of one that stays: of the job, or of one step of it."""
        if self.asked.get("name"):
            return b"spz_%b_%b" % (self.job, wire.text(self.asked["name"]))
        return b"spz_%b" % ODD.sub(b".", self.key)

    def passed(self) -> "list[bytes]":
        """Variables that it gets; of those that the image has too only what is asked for."""
        asked = {wire.text(name) for name in self.asked.get("env") or ()}
        return sorted((set(self.environment) - OF_THE_IMAGE) | (asked & set(self.environment)))

    def forced(self) -> "set[bytes]":
        return {wire.text(name) for name in self.asked.get("env") or ()}

    def wants_gpus(self) -> bool:
        return bool(self.environment.get(b"CUDA_VISIBLE_DEVICES")) and os.path.exists(GPU)

    def place(self, *parts: bytes) -> bytes:
        """A path of the job's on this node, which goes with the job."""
        folder = self.environment.get(b"SLURM_TMPDIR") or self.environment.get(b"TMPDIR") or b"/tmp"
        return os.path.join(folder, b"spz-%b-%b" % (self.job, b".".join(parts)))
