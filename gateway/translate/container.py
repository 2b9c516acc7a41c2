"""`--container-image` and its kin, as users of the pyxis plugin write them."""

from collections.abc import Mapping

from broker.model.spec import Container
from sbatch_shim.grammar.errors import failed
from sbatch_shim.grammar.parse import Given

NO_IMAGE = "pyxis: --{} needs --container-image"
BAD_MOUNT = "pyxis: --container-mounts: {!r} is not SRC:DST[:FLAGS] with absolute paths"
BAD_FOLDER = "pyxis: --container-workdir: {!r} is no absolute path"
BAD_IMAGE = "pyxis: --container-image: {!r} is no image"


def container(part: Mapping[str, Given], program: str) -> Container | None:
    """None where no image is named. Raises GrammarError."""
    image = _text(part, "container-image")
    if image is None:
        for long in ("container-mounts", "container-workdir"):
            if long in part:
                raise failed(program, NO_IMAGE.format(long))
        return None
    if not image or image.startswith("-") or not image.isprintable():
        raise failed(program, BAD_IMAGE.format(image))
    workdir = _text(part, "container-workdir")
    if workdir is not None and not workdir.startswith("/"):
        raise failed(program, BAD_FOLDER.format(workdir))
    return Container(
        image=image,
        mounts=tuple(_mount(text, program) for text in _listed(part)),
        workdir=workdir,
        home="container-mount-home" in part,
    )


def _text(part: Mapping[str, Given], long: str) -> str | None:
    return part[long].text if long in part else None


def _listed(part: Mapping[str, Given]) -> list[str]:
    return [text for text in (_text(part, "container-mounts") or "").split(",") if text]


def _mount(text: str, program: str) -> tuple[str, str, str]:
    """Source, destination and flags (joined by `+`, as pyxis has them). Raises GrammarError."""
    source, _, rest = text.partition(":")
    target, _, flags = rest.partition(":")
    target = target or source
    if not source.startswith("/") or not target.startswith("/") or ":" in flags:
        raise failed(program, BAD_MOUNT.format(text))
    return source, target, flags
