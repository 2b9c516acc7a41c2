"""Which of the submitter's variables reach the job: the grammar of `--export` (25.11)."""

from collections.abc import Mapping
from dataclasses import dataclass

from broker.model import octets

ALWAYS = ("SLURM_", "SPANK_")
"""Beginnings of variables that go along whatever `--export` says."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The submitter's variables for the job, and whether a login environment comes below them."""

    variables: Mapping[str, str]
    login: bool


def exported(
    environ: Mapping[str, str], export: str | None, file: Mapping[str, str] | None = None
) -> Exported:
    """What `--export` lets through; `file` holds the variables of `--export-file`.

    `ALL` is everything, `NIL` nothing but SLURM_*; `NONE` and lists load a login environment.
    """
    base = dict(file or {})
    word = "ALL" if export is None else export.upper()
    if word == "ALL":
        return Exported({**base, **environ}, login=False)
    always = {name: text for name, text in environ.items() if name.startswith(ALWAYS)}
    if word in ("NIL", "NONE"):
        return Exported({**base, **always}, login=word == "NONE")
    return Exported({**base, **_listed(environ, export or ""), **always}, login=True)


def _listed(environ: Mapping[str, str], text: str) -> dict[str, str]:
    """`NAME`, `NAME=value` and `ALL` in turn; a later one wins."""
    found: dict[str, str] = {}
    for token in _tokens(text):
        name, equals, value = token.partition("=")
        if equals:
            found[name] = value
        elif name.upper() == "ALL":
            found.update(environ)
        elif name in environ:
            found[name] = environ[name]
    return found


def _tokens(text: str) -> list[str]:
    """Cut at commas outside quotes; the quotes stay in the value."""
    tokens, quote, start = [], "", 0
    for place, char in enumerate(text):
        if char == quote:
            quote = ""
        elif char in "\"'" and not quote:
            quote = char
        elif char == "," and not quote:
            tokens.append(text[start:place])
            start = place + 1
    return [token for token in [*tokens, text[start:]] if token]


def pack(variables: Mapping[str, str]) -> bytes:
    """`NAME=value` entries, separated by NUL, byte for byte as they came."""
    entries = [f"{name}={text}" for name, text in variables.items()]
    return octets.raw("\0".join(entries))


def unpack(data: bytes) -> dict[str, str]:
    """The variables of a block of entries separated by NUL; what is no entry is left out."""
    pairs = (entry.partition("=") for entry in octets.text(data).split("\0"))
    return {name: text for name, equals, text in pairs if equals and name}
