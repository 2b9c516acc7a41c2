"""The wire between the commands and the service: bytes to a Call, an Answer to frames."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from broker.model import octets
from broker.model.errors import Refused
from broker.model.evolve import evolved

VERSION = b"1"
CEILING = 64 << 20
"""Bytes that a request may have; a script has at most 4 MiB."""
FIXED = 7
"""Fields before the arguments: version, request id, program, cwd, umask, limits, columns."""
OWN = 2
"""Of those, the first are no part of what is said."""
MOST_KNOWN, LONGEST_KNOWN = 32, 1 << 15
"""How much of what was said lately is kept in mind; bytes of each at most."""
INFINITE = -1

OUT = b"o"
ERR = b"e"
EXIT = b"x"
WRITE = b"w"
"""A file to write as the user: its path, NUL, its content. Only a path that was typed, or one
without a slash, is taken."""
EXEC = b"c"
PROMPT = b"m"
"""Run the site's own command in place of this one: its path and arguments, each ended by NUL."""
ALSO_RUN = b"b"
"""Run the site's own command behind this one, too: the higher exit status is that of both."""
ASK = b"a"
"""Send the request again, with this file too (`-` for standard input).

What an answer with ASK has printed is not printed again: the next answer repeats it and goes on.
"""
STDIN = "-"
LINE = "-\n"
"""Asked for in place of a file: one more line of standard input; the file then holds all so far."""


class BadEnvelope(Refused):
    """The bytes are not what a command sends."""


@dataclass(frozen=True, slots=True)
class Given:
    """A file as the user's own process saw it; `error` is the errno that stopped it, 0 for none.

    For LINE an error says that there are no more lines.
    """

    content: bytes = b""
    error: int = 0


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end, as the kernel says; pid 0 where it is not known."""

    uid: int
    gid: int
    pid: int = 0


NOBODY = Peer(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One command as typed; text keeps undecodable bytes as surrogates (PEP 383)."""

    program: str
    argv: tuple[str, ...]
    """Without the program's name."""
    peer: Peer
    request: str
    """The same for every try of one command."""
    cwd: str = "/"
    """Empty where the folder is gone."""
    umask: int = 0o022
    limits: tuple[tuple[str, int, int], ...] = ()
    """Name such as `NOFILE`, soft, hard; -1 is no limit. Only for programs that submit."""
    columns: int | None = None
    """Width of the terminal, None where there is none."""
    environ: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Given] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command is to do: write, then end with `code`, or one of the other ends.

    `rest` makes what follows later (`--wait`); the first part does not wait for it, and its own
    `code` does not count.
    """

    out: str | bytes = ""
    err: str | bytes = ""
    code: int = 0
    ask: str | None = None
    exec: tuple[str, ...] | None = None
    """What the command becomes: path and arguments."""
    prompt: tuple[str, ...] | None = None
    """Lines are read and each is a command of its own, with these options in front."""
    also: tuple[str, ...] | None = None
    """The site's own command, to be run when this is said.

    Behind an empty word: how both are put together, what is ours, then the command.
    """
    write: tuple[str, bytes] | None = None
    """A file that the command is to write first, and its content."""
    rest: "Awaitable[Answer] | None" = None


def parse_call(body: bytes, peer: Peer) -> Call:
    """The request in `body`. Raises BadEnvelope, which names what is wrong with it."""
    (version, request), rest = _fields(body, OWN, "header")
    if version != VERSION:
        raise BadEnvelope(
            f"request of wire version {octets.text(version)[:20]!r}, not {octets.text(VERSION)!r}",
            hint="install the commands again: spz shims install",
        )
    said = _known(rest) if len(rest) <= LONGEST_KNOWN else _said(rest)
    return evolved(said, peer=peer, request=_request(request))


def _said(data: bytes) -> Call:
    """All that a command says beside which request it is. Raises BadEnvelope."""
    fixed, rest = _fields(data, FIXED - OWN, "header")
    argv, rest = _counted(rest, "argument")
    environment, rest = _counted(rest, "variable")
    files = _files(rest)
    return Call(
        program=octets.text(fixed[0]),
        argv=tuple(_texts(argv)),
        peer=NOBODY,
        request="",
        cwd=_folder(fixed[1]),
        umask=_number(fixed[2], "umask", base=8),
        limits=_limits(fixed[3]),
        columns=_number(fixed[4], "columns") if fixed[4] else None,
        environ=_environ(environment),
        files=files,
    )


_known = lru_cache(MOST_KNOWN)(_said)
"""Loops say the same over and over: it is read once."""


def raw(value: str | bytes) -> bytes:
    """What is said as it travels."""
    return value if isinstance(value, bytes) else octets.raw(value)


def frames(answer: Answer) -> bytes:
    """The frames of one answer; without an end if more follows.

    Errors come first, as from a program whose output is a pipe: callers that join both streams
    read the job id off the last line.
    """
    parts = []
    if answer.write is not None:
        path, content = answer.write
        parts.append(frame(WRITE, raw(path) + b"\0" + content))
    if answer.err:
        parts.append(frame(ERR, raw(answer.err)))
    if answer.out:
        parts.append(frame(OUT, raw(answer.out)))
    if answer.also is not None:
        parts.append(frame(ALSO_RUN, _words(answer.also)))
    if answer.rest is None:
        parts.append(_end(answer))
    return b"".join(parts)


def frame(kind: bytes, payload: bytes) -> bytes:
    """One byte for the kind, four for the length (big end first), the payload."""
    return kind + len(payload).to_bytes(4, "big") + payload


def _end(answer: Answer) -> bytes:
    if answer.ask is not None:
        return frame(ASK, raw(answer.ask))
    if answer.exec is not None:
        return frame(EXEC, _words(answer.exec))
    if answer.prompt is not None:
        return frame(PROMPT, _words(answer.prompt))
    return frame(EXIT, b"%d" % answer.code)


def _words(words: tuple[str, ...]) -> bytes:
    return b"".join(raw(word) + b"\0" for word in words)


def _fields(data: bytes, count: int, what: str) -> tuple[list[bytes], bytes]:
    """The first `count` fields, and what stands behind them."""
    if count > len(data):
        raise BadEnvelope(f"request ends within its {what}s")
    parts = data.split(b"\0", count)
    if len(parts) <= count:
        raise BadEnvelope(f"request ends within its {what}s")
    return parts[:-1], parts[-1]


def _counted(data: bytes, what: str) -> tuple[list[bytes], bytes]:
    (count,), rest = _fields(data, 1, f"{what} count")
    return _fields(rest, _number(count, f"{what} count"), what)


def _number(field_: bytes, what: str, *, base: int = 10) -> int:
    if not field_.isdigit() or len(field_) > 12:
        raise BadEnvelope(f"{what} is {octets.text(field_)[:20]!r}, not a number")
    try:
        return int(field_, base)
    except ValueError:
        raise BadEnvelope(f"{what} is {octets.text(field_)!r}, not a number") from None


def _request(field_: bytes) -> str:
    if not (field_.isalnum() and field_.isascii() and 16 <= len(field_) <= 64):
        raise BadEnvelope("request id is not 16 to 64 letters and digits")
    return field_.decode("ascii")


def _texts(fields: list[bytes]) -> list[str]:
    """`text` of each, in one go: an environment has hundreds."""
    return octets.text(b"\0".join(fields)).split("\0") if fields else []


def _folder(field_: bytes) -> str:
    """A relative one would be taken from wherever the service or an agent happens to be."""
    if field_ and not field_.startswith(b"/"):
        raise BadEnvelope(f"working directory {octets.text(field_)!r} is no absolute path")
    return octets.text(field_)


def _environ(entries: list[bytes]) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in _texts(entries))
    return {name: value for name, equals, value in pairs if equals}


def _files(data: bytes) -> dict[str, Given]:
    (count,), rest = _fields(data, 1, "file count")
    heads, content = _fields(rest, 3 * _number(count, "file count"), "file")
    files, start = {}, 0
    for path, error, length in zip(heads[::3], heads[1::3], heads[2::3], strict=True):
        end = start + _number(length, "file length")
        if end > len(content):
            raise BadEnvelope("request ends within a file")
        files[octets.text(path)] = Given(content[start:end], _number(error, "file status"))
        start = end
    if start != len(content):
        raise BadEnvelope(f"{len(content) - start} bytes stand behind the files")
    return files


LIMITS = {
    b"Max cpu time": "CPU",
    b"Max file size": "FSIZE",
    b"Max data size": "DATA",
    b"Max stack size": "STACK",
    b"Max core file size": "CORE",
    b"Max resident set": "RSS",
    b"Max processes": "NPROC",
    b"Max open files": "NOFILE",
    b"Max locked memory": "MEMLOCK",
    b"Max address space": "AS",
    b"Max file locks": "LOCKS",
    b"Max pending signals": "SIGPENDING",
    b"Max msgqueue size": "MSGQUEUE",
    b"Max nice priority": "NICE",
    b"Max realtime priority": "RTPRIO",
    b"Max realtime timeout": "RTTIME",
}
"""Linux's words in /proc/PID/limits, which the commands send as they are, and setrlimit's."""


def _limits(table: bytes) -> tuple[tuple[str, int, int], ...]:
    """The limits in the kernel's table; rows that are not known are left out."""
    rows = []
    for line in table.splitlines()[1:]:
        name = LIMITS.get(line[:25].rstrip())
        words = line[25:].split()
        if name is not None and len(words) >= 2:
            rows.append((name, _limit(words[0]), _limit(words[1])))
    return tuple(rows)


def _limit(word: bytes) -> int:
    return INFINITE if word == b"unlimited" else int(word) if word.isdigit() else INFINITE
