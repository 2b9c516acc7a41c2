"""`--container-image` and its kin, as users of the pyxis plugin write them (pyxis 0.21)."""

import posixpath
import re
from collections.abc import Mapping
from typing import Literal, cast

from broker.model.site import Site
from broker.model.spec import Container
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line
from sbatch_shim.grammar.parse import Given

NO_IMAGE = "pyxis: --{} needs --container-image or --container-name"
NOT_THERE = "pyxis: partition {} takes no containers"
NO_ARGUMENT = "pyxis: --{}: argument required"
BAD_FORMAT = "pyxis: --{}: invalid format: {}"
BAD_SOURCE = 'pyxis: mount source must be a relative path, an absolute path, "tmpfs" or "umount"'
BAD_TARGET = "pyxis: mount target must be a relative path or an absolute path"
BAD_ENTRY = "pyxis: could not add mount entry: {}:{}"
UMOUNT = "pyxis: --container-mounts: umount is not served here: {}"
BAD_IMAGE = "pyxis: --container-image: {!r} is no image"
BAD_FOLDER = "pyxis: --container-workdir: {!r} is no absolute path"
BAD_NAME = "pyxis: --container-name: {!r} is no name: letters, digits, _, . and - are"
EMPTY_NAME = "pyxis: --container-name: empty name"
BAD_FLAG = 'pyxis: --container-name: flag must be "auto", "create", "exec" or "no_exec"'
NO_EXEC = "pyxis: --container-name: no_exec is not served here: use auto"
A_FOLDER = "pyxis: --container-save: target is a directory"
BOTH = "pyxis: both --{} and --{} were specified"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
REUSE = ("auto", "create", "exec")
OPPOSED = (
    ("container-mount-home", "no-container-mount-home"),
    ("container-remap-root", "no-container-remap-root"),
    ("container-entrypoint", "no-container-entrypoint"),
    ("container-writable", "container-readonly"),
)
OF_ONE = (
    *("container-mounts", "container-workdir", "container-save", "container-env"),
    *(long for pair in OPPOSED for long in pair),
)
"""What says nothing without a container."""


def container(
    part: Mapping[str, Given], program: str, *, site: Site, partition: str | None = None
) -> Container | None:
    """None where no image and no name is given; the partition is that of a job, or as asked.

    Raises GrammarError.
    """
    asked = _Asked(part, program)
    found = asked.container()
    text = partition or (part["partition"].text if "partition" in part else None)
    names = text.split(",") if text else []
    wanted = [site.partition(name) for name in names] or [site.default_partition]
    for one in wanted if found is not None else ():
        if one is not None and not one.containers:
            raise asked.wrong(NOT_THERE.format(one.name))
    return found


class _Asked:
    def __init__(self, part: Mapping[str, Given], program: str) -> None:
        self.part = part
        self.program = program

    def container(self) -> Container | None:
        image, name = self.text("container-image"), self.text("container-name")
        if image is None and name is None:
            for long in OF_ONE:
                if long in self.part:
                    raise self.wrong(NO_IMAGE.format(long))
            return None
        for yes, no in OPPOSED:
            if yes in self.part and no in self.part:
                raise self.wrong(BOTH.format(yes, no))
        if image is not None and (image.startswith("-") or not image.isprintable()):
            raise self.wrong(BAD_IMAGE.format(image))
        kept, reuse = self.named(name)
        return Container(
            image=image,
            mounts=tuple(dict.fromkeys(map(self.mount, self.listed("container-mounts")))),
            workdir=self.workdir(),
            home="container-mount-home" in self.part,
            name=kept,
            reuse=reuse,
            save=self.save(),
            root="container-remap-root" in self.part,
            entrypoint="container-entrypoint" in self.part,
            writable=self.writable(),
            env=tuple(self.listed("container-env")),
        )

    def wrong(self, *lines: str) -> GrammarError:
        said = "".join(error_line(self.program, line) for line in lines)
        return GrammarError(said, FAILURE)

    def text(self, long: str) -> str | None:
        if long not in self.part:
            return None
        text: str | None = self.part[long].text
        if not text:
            raise self.wrong(NO_ARGUMENT.format(long))
        return text

    def listed(self, long: str) -> list[str]:
        """Between commas, of which each has something on both sides."""
        text = self.text(long)
        words = [] if text is None else text.split(",")
        if not all(words):
            raise self.wrong(BAD_FORMAT.format(long, "" if "mounts" in long else text))
        return words

    def mount(self, text: str) -> tuple[str, str, str]:
        """Source, destination and flags (joined by `+`, as pyxis has them)."""
        source, colon, rest = text.partition(":")
        target, _, flags = rest.partition(":")
        if not source or (colon and not target):
            raise self.wrong(BAD_FORMAT.format("container-mounts", text))
        target = target or source
        if source == "umount":
            raise self.wrong(UMOUNT.format(text))
        if source[0] not in "./" and source != "tmpfs":
            raise self.wrong(BAD_SOURCE, BAD_ENTRY.format(source, target))
        if target[0] not in "./":
            raise self.wrong(BAD_TARGET, BAD_ENTRY.format(source, target))
        if posixpath.normpath(target).startswith("..") or ":" in flags:
            raise self.wrong(BAD_FORMAT.format("container-mounts", text))
        return source, target, flags

    def workdir(self) -> str | None:
        text = self.text("container-workdir")
        if text is not None and not text.startswith("/"):
            raise self.wrong(BAD_FOLDER.format(text))
        return text

    def named(self, text: str | None) -> tuple[str | None, Literal["auto", "create", "exec"]]:
        """`NAME[:FLAG]`."""
        if text is None:
            return None, "auto"
        name, _, flag = text.partition(":")
        if not name:
            raise self.wrong(EMPTY_NAME)
        if flag and flag not in (*REUSE, "no_exec"):
            raise self.wrong(BAD_FLAG)
        if flag == "no_exec":
            raise self.wrong(NO_EXEC)
        if not NAME.fullmatch(name):
            raise self.wrong(BAD_NAME.format(name))
        return name, cast(Literal["auto", "create", "exec"], flag or "auto")

    def save(self) -> str | None:
        text = self.text("container-save")
        if text is not None and text.endswith("/"):
            raise self.wrong(A_FOLDER)
        return text

    def writable(self) -> bool | None:
        if "container-writable" in self.part:
            return True
        return False if "container-readonly" in self.part else None
