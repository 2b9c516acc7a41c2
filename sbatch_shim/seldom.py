"""What a command seldom does: words without a service, the site's own commands, files, questions.

Loaded by the shim when it comes to that.
"""

import posix

from shim import VERSION_ASKED, RefusalError, write  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTACT = b"Unable to contact slurm controller (connect failure)\n"
UNREACHABLE = {
    b"sbatch": b"sbatch: error: Batch job submission failed: " + CONTACT,
    b"salloc": b"salloc: error: Job submit/allocate failed: " + CONTACT,
    b"sattach": b"sattach: error: Could not get job step info: " + CONTACT,
    b"srun": b"srun: error: Unable to allocate resources: " + CONTACT,
    b"squeue": b"slurm_load_jobs error: " + CONTACT,
    b"scancel": b"slurm_load_jobs error: " + CONTACT,
    b"sinfo": b"slurm_load_partitions: " + CONTACT,
    b"scontrol": b"slurm_load_ctl_conf error: " + CONTACT,
    b"sacct": b"sacct: error: Problem talking to the database: Connection refused\n",
}
NEW_FILE = posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC | posix.O_CLOEXEC
AT_END = 61
"""ENODATA: the status of a line asked for when there are no more."""
PART = 1 << 16
JSON = b"json"
LEFT_OUT = b"the site's own Slurm %b, we %b: its %b are left out"
KILLED = 128
"""What a shell adds to the signal that ended a command."""


def unreachable(command: "Any", version: bytes) -> int:
    """Slurm's words for a controller that does not answer, and the exit status."""
    if command.argv in VERSION_ASKED:
        write(1, version + b"\n", command.program)
        return 0
    write(2, UNREACHABLE.get(command.program, command.program + b": error: " + CONTACT))
    return 1


def alone(command: "Any") -> bool:
    """Whether it could be answered without a service, and was."""
    if command.program != b"scontrol":
        return False
    import offline  # type: ignore[import-not-found]  # noqa: PLC0415 - not for other commands

    found = offline.answer(command.argv, command.variables)
    for stream, text in enumerate(found or (), 1):
        write(stream, text)
    return found is not None


def become(command: "Any", words: "list[bytes]") -> None:
    """Turns into the site's own command. Raises RefusalError if that cannot be started."""
    try:
        posix.execve(words[0], words, _environment(command.variables))
    except OSError as error:
        raise _not_started(words[0], error) from None


def converse(command: "Any", options: "list[bytes]") -> None:
    """Turns into a prompt, whose lines are asked with these options in front."""
    import prompt  # type: ignore[import-not-found]  # noqa: PLC0415 - for scontrol alone

    posix._exit(prompt.run(command, options))


def run_behind(words: "list[bytes]", variables: "list[bytes]") -> int:
    """The exit status of the site's own command, once it has ended. Raises RefusalError.

    Behind an empty word: how it is put together with ours (JSON, or the order of lines), and ours.
    """
    if words[0]:
        return _ended(_started(words, variables, ()))
    spec, ours, *words = words[1:]
    ending, start = posix.pipe()
    child = _started(words, variables, ((posix.POSIX_SPAWN_DUP2, start, 1),))
    posix.close(start)
    theirs = b""
    while part := posix.read(ending, PART):
        theirs += part
    if spec == JSON:
        ours, left_out = in_one_document(ours, theirs)
        if left_out:
            write(2, b"%b: warning: %b\n" % (words[0].rpartition(b"/")[2], left_out))
    else:
        ours = in_one_order(spec, ours, theirs)
    write(1, ours, words[0])
    return _ended(child)


def in_one_document(ours: bytes, theirs: bytes) -> "tuple[bytes, bytes]":
    """Our document with the site's records before ours in its first list, and why they are not.

    They are only where both speak the same version of data_parser: one document has one shape.
    """
    import json  # noqa: PLC0415 - for this alone

    head, bracket, rest = ours.partition(b"[")
    name = head.split(b'"')[1].decode()
    own = json.loads(b"{%b" % rest[rest.rindex(b'"meta"') :])
    mine = own["meta"]["plugin"]["data_parser"]
    try:
        told = json.loads(theirs)
        records, other = told[name], told["meta"]["plugin"].get("data_parser") or "an older one"
    except (ValueError, LookupError, TypeError, AttributeError):
        return ours, LEFT_OUT % (b"gave no such JSON", mine.encode(), name.encode())
    if other != mine:
        speaks = b"speaks " + str(other).encode()
        return ours, LEFT_OUT % (speaks, mine.encode(), name.encode())
    texts = [json.dumps(record, indent=2).replace("\n", "\n    ") for record in records]
    if not texts:
        return ours, b""
    between = b"," if rest.lstrip()[:1] != b"]" else b""
    more = ",".join("\n    " + text for text in texts).encode()
    return head + bracket + more + between + rest, b""


def in_one_order(spec: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Lines of both without the columns in front, by which they are sorted.

    `spec`: how many of our lines are headline, how wide the columns are together, then of each
    its start, its end, and 1 if it counts downwards. Without columns the site's lines come first.
    """
    headline, width, *keys = spec.split()
    if theirs[-1:] not in (b"", b"\n"):  # it died in the middle of a line
        theirs += b"\n"
    lines = ours.splitlines(True)
    rows = theirs.splitlines(True) + lines[int(headline) :]
    for key in reversed(keys):
        start, end, down = map(int, key.split(b":"))
        ranks = [_rank(row[start:end]) for row in rows]
        order = sorted(range(len(rows)), key=ranks.__getitem__, reverse=bool(down))
        rows = [rows[place] for place in order]
    return b"".join(line[int(width) :] for line in lines[: int(headline)] + rows)


def _rank(text: bytes) -> "tuple[bool, float, bytes]":
    """Numbers by their value, before all else."""
    word = text.strip()
    if word.lstrip(b"-").replace(b".", b"", 1).isdigit():
        return False, float(word), b""
    return True, 0, word


def _started(words: "list[bytes]", variables: "list[bytes]", actions: "Any") -> int:
    try:
        child: int = posix.posix_spawn(
            words[0], words, _environment(variables), file_actions=actions
        )
    except OSError as error:
        raise _not_started(words[0], error) from None
    return child


def _ended(child: int) -> int:
    code: int = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    return code if code >= 0 else KILLED - code


def _environment(variables: "list[bytes]") -> "dict[bytes, bytes]":
    pairs = (entry.partition(b"=") for entry in variables)
    return {name: value for name, _, value in pairs}


def _not_started(path: bytes, error: OSError) -> Exception:
    refusal: Exception = RefusalError(b"%b: %b" % (path, posix.strerror(error.errno or 0).encode()))
    return refusal


def one_more_line(before: bytes) -> "tuple[bytes, int]":
    """All lines of answers so far, and AT_END when there are no more."""
    line = read_line()
    return before + line, 0 if line else AT_END


def read_line() -> bytes:
    """One line of standard input and not a byte more; empty at its end."""
    line = b""
    try:
        while line[-1:] != b"\n":
            byte = posix.read(0, 1)
            if not byte:
                break
            line += byte
    except OSError:
        return b""
    return line


def keep(payload: bytes, typed: "list[bytes]") -> None:
    """Writes a file that was asked for: only where a path that was typed, or a plain name, says."""
    path, _, content = payload.partition(b"\0")
    named = any(word == path or word.endswith(b"=" + path) for word in typed)
    if not named and b"/" in path:
        raise RefusalError(b"the service wants to write %b, which nobody asked for" % path)
    try:
        file = posix.open(path, NEW_FILE, 0o600)
    except OSError as error:
        reason = posix.strerror(error.errno or 0).encode()
        raise RefusalError(b"failed to open file `%b`: %b" % (path, reason)) from None
    while content:
        content = content[posix.write(file, content) :]
    posix.close(file)


def wait_for(stream: int) -> None:
    """Until a stream that must not block takes more."""
    from select import select  # noqa: PLC0415 - the rest is done without

    select([], [stream], [])
