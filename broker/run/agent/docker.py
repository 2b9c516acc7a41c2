"""docker and podman."""

import json
import os

from . import wire
from .runtime import ContainerError, Program, joined

IDLE = [b"/bin/sh", b"-c", b"while :; do sleep 3600; done"]
"""What a container that stays runs for itself."""
TAKE = b'umask 077; cat > "$1" && chmod 700 "$1"'
SQUASHED = (".sqsh", ".squashfs", ".sif", ".simg")


class Docker(Program):
    """docker, and podman, which is told the same."""

    def own(self) -> "list[bytes]":
        box, image = self.box, self.image()
        scripts = ((path, path, b"ro") for path in box.scripts)
        words = [*self.outer([*box.mounts, *scripts]), *self.terminal(), *self.variables(image)]
        words += [b"--rm", b"--workdir", box.cwd, *self.entrypoint()]
        return [box.program, b"run", b"--interactive", *words, image, *box.argv]

    def there(self) -> bool:
        return self.state() is not None

    def begin(self, there: bool) -> None:
        if self.alive():
            return
        if not there:
            self.create(self.image())
            return
        self.asked(b"stop", b"--time", b"0", self.box.name)
        self.asked(b"start", self.box.name)
        if not self.alive():  # killed with all that held it up: its files begin anew elsewhere
            kept = b"localhost/" + self.box.name.lower()
            self.call(b"commit", self.box.name, kept)
            self.call(b"rm", b"--force", self.box.name)
            self.create(kept)

    def create(self, image: bytes) -> None:
        box = self.box
        words = [*self.outer(box.mounts), b"--name", box.name]
        if box.asked.get("entrypoint"):
            words += [image, *IDLE]
        else:
            words += [b"--entrypoint", IDLE[0], image, *IDLE[1:]]
        self.call(b"run", b"--detach", *words)

    def within(self) -> "list[bytes]":
        box, name = self.box, self.box.name
        argv = [self.taken(word) if word in box.scripts else word for word in box.argv]
        image = self.asked(b"inspect", b"--format", b"{{.Image}}", name) or b""
        words = [*self.terminal(), *self.variables(image), b"--workdir", box.cwd]
        words += [b"--env", box.step["inside_entry"]]
        return [box.program, b"exec", b"--interactive", *words, name, *argv]

    def taken(self, script: bytes) -> bytes:
        """Where a script of the host's is in the container from now on."""
        inside = b"/tmp/spz_%b.%d" % (self.box.key.replace(b"/", b"."), os.getpid())
        with open(script, "rb") as file:
            shell = [b"/bin/sh", b"-c", TAKE, b"sh", inside]
            self.call(b"exec", b"--interactive", self.box.name, *shell, stdin=file.fileno())
        return inside

    def save(self, path: bytes) -> None:
        image = b"localhost/" + self.box.name.lower() + b"-saved"
        self.call(b"commit", self.box.name, image)
        if os.path.exists(path):
            os.unlink(path)
        self.call(b"save", b"--output", path, image)
        self.asked(b"rmi", image)

    def rest(self, *, for_good: bool) -> None:
        words = [b"rm", b"--force"] if for_good else [b"stop", b"--time", b"0"]
        self.asked(*words, self.box.name)

    def clear(self, label: bytes, value: bytes) -> None:
        chosen = b"label=spz.%b=%b" % (label, value)
        found = self.asked(b"ps", b"--all", b"--quiet", b"--filter", chosen)
        if found:
            self.asked(b"rm", b"--force", *found.split())

    # ---------------------------------------------------------------- words

    def outer(self, mounts: "list[tuple[bytes, bytes, bytes]]") -> "list[bytes]":
        box = self.box
        words = [b"--network=host", b"--ipc=host", b"--pid=host", *self.gpus(), *self.user()]
        words += [b"--read-only"] if box.asked.get("writable") is False else []
        words += [b"--label", b"spz.step=" + box.key, b"--label", b"spz.attempt=" + box.attempt]
        words += [word for mount in mounts for word in _docker_mount(mount)]
        return words + [wire.text(word) for word in box.asked.get("options") or ()]

    def gpus(self) -> "list[bytes]":
        return [b"--gpus", b"all"] if self.box.wants_gpus() else []

    def user(self) -> "list[bytes]":
        ids = (0, 0) if self.box.asked.get("root") else (os.geteuid(), os.getegid())
        return [b"--user", b"%d:%d" % ids]

    def terminal(self) -> "list[bytes]":
        return [b"--tty"] if self.box.step.get("pty") else []

    def entrypoint(self) -> "list[bytes]":
        return [] if self.box.asked.get("entrypoint") else [b"--entrypoint", b""]

    def variables(self, image: bytes) -> "list[bytes]":
        """An image's own values win, but over those that were asked for."""
        told = self.asked(b"image", b"inspect", b"--format", b"{{json .Config.Env}}", image)
        entries = json.loads(told.decode("utf-8", "surrogateescape")) if told else []
        own = {os.fsencode(entry.partition("=")[0]) for entry in entries or []}
        names = [one for one in self.box.passed() if one not in own or one in self.box.forced()]
        return [word for name in names for word in (b"--env", name)]

    def state(self) -> "list[bytes] | None":
        """Whether it runs, and its process; None where there is none."""
        form = b"{{.State.Running}} {{.State.Pid}}"
        told = self.asked(b"container", b"inspect", b"--format", form, self.box.name)
        return None if told is None else told.split()

    def alive(self) -> bool:
        state = self.state() or [b"false"]
        return state[0] == b"true" and os.path.exists(b"/proc/" + state[1])

    # ---------------------------------------------------------------- images

    def image(self) -> bytes:
        """Its name once it is here. Raises ContainerError."""
        if self.box.is_file:
            return self.loaded()
        name = self.box.registry_name
        if self.asked(b"image", b"inspect", name) is None:
            self.log_in()
            self.call(b"pull", b"--quiet", name)
        return name

    def log_in(self) -> None:
        names = self.box.asked.get("credentials")
        user, secret, server = (
            self.box.environment.get(name.encode("ascii"), b"") for name in names or ("", "", "")
        )
        if not user:
            return
        source, sink = os.pipe()
        os.write(sink, secret)
        os.close(sink)
        where = [server] if server else []
        self.call(b"login", b"--username", user, b"--password-stdin", *where, stdin=source)
        os.close(source)

    def loaded(self) -> bytes:
        """Of a file as `docker save` writes it."""
        if self.box.image.lower().endswith(SQUASHED):
            text = "{} is a file: it takes apptainer or enroot, which are not here"
            raise ContainerError(text.format(self.box.image))
        told = self.asked(b"load", b"--quiet", b"--input", self.box.file)
        if told is None:
            text = "{} is no file that {} saves"
            name = os.fsdecode(os.path.basename(self.box.program))
            raise ContainerError(text.format(self.box.image, name))
        return told.splitlines()[-1].split(b": ", 1)[-1].strip()


class Podman(Docker):
    def gpus(self) -> "list[bytes]":
        return [b"--device", b"nvidia.com/gpu=all"] if self.box.wants_gpus() else []

    def user(self) -> "list[bytes]":
        """Without root's rights the user is root inside, unless asked to stay who he is."""
        if os.geteuid() == 0:
            return Docker.user(self)
        return [] if self.box.asked.get("root") else [b"--userns=keep-id"]


def _docker_mount(mount: "tuple[bytes, bytes, bytes]") -> "list[bytes]":
    source, target, flags = mount
    if source == b"tmpfs":
        return [b"--tmpfs", b":".join(filter(None, (target, flags.replace(b"+", b","))))]
    return [b"--volume", joined(mount)]
