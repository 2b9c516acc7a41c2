"""The programs that run containers, each in its own words."""

import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from .box import Box

IDLE = [b"/bin/sh", b"-c", b"while :; do sleep 3600; done"]
"""What a container that stays runs for itself."""
TAKE = b'umask 077; cat > "$1" && chmod 700 "$1"'
ENTER = b'cd "$1" && shift && exec "$@"'
"""Run by a shell in the container, where its runtime cannot be told a folder to begin in."""
SQUASHED = (".sqsh", ".squashfs", ".sif", ".simg")
PREFIX = b"spz_"


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


class Runtime:
    """One of them, for one task or behind one step."""

    def __init__(self, box: "Box") -> None:
        self.box = box

    def own(self) -> "list[bytes]":
        """What runs the task in a container of its own."""
        raise NotImplementedError

    def there(self) -> bool:
        """Whether the one that stays is there."""
        raise NotImplementedError

    def begin(self, there: bool) -> None:
        """From now on it is there, and tasks can be run in it."""
        raise NotImplementedError

    def within(self) -> "list[bytes]":
        """What runs the task in the one that stays."""
        raise NotImplementedError

    def save(self, path: bytes) -> None:
        """The one that stays, as an image in a file."""
        raise NotImplementedError

    def rest(self, *, for_good: bool) -> None:
        """Nobody is in the one that stays; `for_good` it is gone."""
        raise NotImplementedError

    def clear(self, label: bytes, value: bytes) -> None:
        """Containers of a step or an attempt that are left are gone."""

    def discard(self, place: bytes) -> None:
        """Files of the job's that begin so."""
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


class Docker(Runtime):
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
        return words + [word for mount in mounts for word in _docker_mount(mount)]

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
    return [b"--volume", _joined(mount)]


def _joined(mount: "tuple[bytes, bytes, bytes]") -> bytes:
    source, target, flags = mount
    return b":".join([source, target, flags.replace(b"+", b",")] if flags else [source, target])


class Apptainer(Runtime):
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
    return [b"--bind", _joined(mount)]


class Enroot(Runtime):
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
        mine = b"%b%b_" % (PREFIX, self.box.job)
        names = [name for name in (self.asked(b"list") or b"").split() if name.startswith(mine)]
        if names:
            self.asked(b"remove", b"--force", *names)
        Runtime.discard(self, place)

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
        words += [word for one in (*box.mounts, *scripts) for word in (b"--mount", _joined(one))]
        words += [word for name in box.passed() for word in (b"--env", name)]
        inside = [b"/bin/sh", b"-c", ENTER, b"sh", box.cwd, *box.argv]
        return [box.program, b"start", *words, image, *inside]


BY_NAME: "tuple[tuple[bytes, Callable[[Box], Runtime]], ...]" = (
    (b"apptainer", Apptainer),
    (b"singularity", Apptainer),
    (b"enroot", Enroot),
    (b"podman", Podman),
    (b"docker", Docker),
)
"""In this order; the first that is there is used."""
