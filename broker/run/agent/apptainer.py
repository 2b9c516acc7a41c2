"""apptainer, or singularity."""

import os
import shutil

from .runtime import Program, joined


class Apptainer(Program):
    """apptainer, or singularity; one that stays is a folder."""

    def own(self) -> "list[bytes]":
        return self.run(self.image(), tmpfs=bool(self.box.asked.get("writable")))

    def there(self) -> bool:
        return os.path.isdir(self.folder())

    def begin(self, there: bool) -> None:
        if not there:
            self.call(b"build", b"--sandbox", self.folder(), self.image())

    def within(self) -> "list[bytes]":
        return self.run(self.folder(), writable=self.box.asked.get("writable") is not False)

    def save(self, path: bytes) -> None:
        self.call(b"build", b"--force", path, self.folder())

    def rest(self, *, for_good: bool) -> None:
        if for_good:
            shutil.rmtree(self.folder(), ignore_errors=True)

    def folder(self) -> bytes:
        return self.box.place(self.box.name, b"root")

    def image(self) -> bytes:
        return self.box.file if self.box.is_file else b"docker://" + self.box.registry_name

    def run(self, image: bytes, *, tmpfs: bool = False, writable: bool = False) -> "list[bytes]":
        box = self.box
        words = [] if box.home else [b"--no-home"]
        words += [b"--nv"] if box.wants_gpus() else []
        words += [b"--fakeroot"] if box.asked.get("root") else []
        words += [b"--writable-tmpfs"] if tmpfs else [b"--writable"] if writable else []
        scripts = ((path, path, b"ro") for path in box.scripts)
        words += [word for one in (*box.mounts, *scripts) for word in _apptainer_mount(one)]
        given = sorted(box.forced() & set(box.environment))
        words += [w for n in given for w in (b"--env", b"%b=%b" % (n, box.environment[n]))]
        verb = b"run" if box.asked.get("entrypoint") else b"exec"
        return [box.program, verb, *words, b"--pwd", box.cwd, image, *box.argv]


def _apptainer_mount(mount: "tuple[bytes, bytes, bytes]") -> "list[bytes]":
    if mount[0] == b"tmpfs":
        return [b"--scratch", mount[1]]
    return [b"--bind", joined(mount)]
