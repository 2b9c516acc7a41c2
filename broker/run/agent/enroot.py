"""enroot."""

import hashlib
import os

from . import wire
from .runtime import Lock, Program, joined

ENTER = b'cd "$1" && shift && exec "$@"'
"""Run by a shell in the container, where its runtime cannot be told a folder to begin in."""


class Enroot(Program):
    """enroot, which pyxis uses."""

    def own(self) -> "list[bytes]":
        return self.start(self.image(), writable=bool(self.box.asked.get("writable")))

    def there(self) -> bool:
        return self.box.name in (self.asked(b"list") or b"").split()

    def begin(self, there: bool) -> None:
        if not there:
            self.call(b"create", b"--name", self.box.name, self.image())

    def within(self) -> "list[bytes]":
        return self.start(self.box.name, writable=self.box.asked.get("writable") is not False)

    def save(self, path: bytes) -> None:
        self.call(b"export", b"--force", b"--output", path, self.box.name)

    def rest(self, *, for_good: bool) -> None:
        if for_good:
            self.asked(b"remove", b"--force", self.box.name)

    def discard(self, place: bytes) -> None:
        mine = b"spz_%b_" % self.box.job  # as a box names them
        names = [name for name in (self.asked(b"list") or b"").split() if name.startswith(mine)]
        if names:
            self.asked(b"remove", b"--force", *names)
        Program.discard(self, place)

    def image(self) -> bytes:
        """A file; of a registry's image one that is brought once for a job."""
        if self.box.is_file:
            return self.box.file
        name = wire.text(self.box.image)
        path = self.box.place(hashlib.sha256(name).hexdigest()[:16].encode("ascii"), b"sqsh")
        with Lock(path + b".lock"):  # another task may be at it
            if not os.path.exists(path):
                self.call(b"import", b"--output", path, b"docker://" + name)
        return path

    def start(self, image: bytes, *, writable: bool) -> "list[bytes]":
        box = self.box
        words = [b"--rw"] if writable else []
        words += [b"--root"] if box.asked.get("root") else []
        scripts = ((path, path, b"ro") for path in box.scripts)
        words += [word for one in (*box.mounts, *scripts) for word in (b"--mount", joined(one))]
        words += [word for name in box.passed() for word in (b"--env", name)]
        inside = [b"/bin/sh", b"-c", ENTER, b"sh", box.cwd, *box.argv]
        return [box.program, b"start", *words, image, *inside]
