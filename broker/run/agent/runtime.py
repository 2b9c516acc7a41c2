"""What is asked of a program that runs containers, and how it is called."""

import fcntl
import glob
import os
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from .box import Box

    class Runtime(Protocol):
        """One of them, for one task or behind one step."""

        def own(self) -> "list[bytes]":
            """What runs the task in a container of its own."""

        def there(self) -> bool:
            """Whether the one that stays is there."""

        def begin(self, there: bool) -> None:
            """From now on it is there, and tasks can be run in it."""

        def within(self) -> "list[bytes]":
            """What runs the task in the one that stays."""

        def save(self, path: bytes) -> None:
            """The one that stays, as an image in a file."""

        def rest(self, *, for_good: bool) -> None:
            """Nobody is in the one that stays; `for_good` it is gone."""

        def clear(self, label: bytes, value: bytes) -> None:
            """Containers of a step or an attempt that are left are gone."""

        def discard(self, place: bytes) -> None:
            """Files of the job's that begin so are gone."""


class ContainerError(Exception):
    """The container cannot be run; in words for the user."""


class Lock:
    """A file's lock, as long as it is open."""

    def __init__(self, path: bytes, how: int = fcntl.LOCK_EX) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(self.fd, how)

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


class Program:
    """A program that runs containers, as it is called for one of them."""

    def __init__(self, box: "Box") -> None:
        self.box = box

    def clear(self, label: bytes, value: bytes) -> None:
        """Nothing: a container that ends with its task leaves none."""

    def discard(self, place: bytes) -> None:
        """Files of the job's that begin so are gone."""
        for path in glob.glob(glob.escape(os.fsdecode(place)) + "*"):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    def call(self, *words: bytes, stdin: "int | None" = None) -> None:
        """What the program says of it is the task's error text. Raises ContainerError."""
        argv = [self.box.program, *words]
        source = subprocess.DEVNULL if stdin is None else stdin
        null = subprocess.DEVNULL
        if subprocess.call(argv, env=self.box.environment, stdin=source, stdout=null):
            what = self.box.image or os.fsdecode(self.box.name)
            text = "{}: {} {} failed"
            said = os.fsdecode(os.path.basename(self.box.program)), os.fsdecode(words[0])
            raise ContainerError(text.format(what, *said))

    def asked(self, *words: bytes) -> "bytes | None":
        """What it answers; None where it says no."""
        argv = [self.box.program, *words]
        null = subprocess.DEVNULL
        try:
            return subprocess.check_output(
                argv, env=self.box.environment, stdin=null, stderr=null
            ).strip()
        except subprocess.CalledProcessError:
            return None


def joined(mount: "tuple[bytes, bytes, bytes]") -> bytes:
    """As the programs are told a mount."""
    source, target, flags = mount
    return b":".join([source, target, flags.replace(b"+", b",")] if flags else [source, target])
