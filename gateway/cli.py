"""`spz`: finds the verb in the table and has it done; what a verb needs is loaded by the verb.

Only serve, db, shims, task and api start work without a service.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from broker.model.errors import Refused, SpzError
from gateway.sdk.verbs.counter import Counter, run
from gateway.sdk.verbs.line import UsageError, Values
from gateway.sdk.verbs.overview import groups, listing, suggestion
from gateway.sdk.verbs.table import BY_NAME

INTERRUPTED = 130
HELP = frozenset({"-h", "--help", "help"})


# --- the commands: the only verbs here, for what writes them may be loaded here alone


def shims_install(given: Values, counter: Counter) -> int:
    """Raises Refused."""
    if not given["prefix"]:
        raise Refused("option --prefix is missing", hint="spz shims install --prefix DIR")
    socket = Path(given["socket"]) if given["socket"] else counter.paths.socket
    for command in _installed(Path(given["prefix"]).absolute(), socket.absolute(), counter):
        print(command)
    return 0


def shims_env(given: Values, counter: Counter) -> int:
    """Raises Refused."""
    import shlex

    where = counter.paths
    commands = _installed(where.home / "shims", where.socket, counter)
    print(f'export PATH={shlex.quote(str(commands[0].parent))}:"$PATH"')
    return 0


def _installed(prefix: Path, socket: Path, counter: Counter) -> list[Path]:
    from gateway.config.load import read
    from sbatch_shim.install import InstallError, install

    try:
        return install(prefix, socket, f"slurm {read(counter.paths).slurm_version}")
    except InstallError as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(
            f"{error.filename or prefix}: {error.strerror}",
            hint="spz shims install --prefix DIR, with a folder of yours",
        ) from error


# --- finding the verb


def done(argv: Sequence[str]) -> int:
    """Does what a command line says; the exit status. Raises SpzError."""
    if not argv or argv[0] in HELP:
        print(listing(""))
        return 0
    for words in _beginnings(argv):
        verb = BY_NAME.get(words)
        if verb is not None:
            return run(verb, argv[len(words.split()) :])
        if words in groups():
            return _listed(words, argv[len(words.split()) :])
    raise UsageError(f"no such command: {argv[0]}", hint=suggestion(argv[0], ""))


def _beginnings(argv: Sequence[str]) -> Iterator[str]:
    """The first three words, two and one."""
    for length in (3, 2, 1):
        if len(argv) >= length:
            yield " ".join(argv[:length])


def _listed(group: str, rest: Sequence[str]) -> int:
    """Raises UsageError for a word that is none of the group's."""
    if rest and rest[0] not in HELP:
        raise UsageError(f"no such command: {group} {rest[0]}", hint=suggestion(rest[0], group))
    print(listing(group))
    return 0


# --- the border


def _tell(error: SpzError) -> None:
    for line in error.message.splitlines():
        print(f"spz: error: {line}", file=sys.stderr)
    if error.hint and not error.message.endswith(error.hint):
        print(f"     {error.hint}", file=sys.stderr)


def main() -> NoReturn:
    """The entry point: a user's mistake is told in words, never by a traceback."""
    status = 1
    try:
        status = done(sys.argv[1:])
        sys.stdout.flush()
    except SpzError as error:
        _tell(error)
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)


if __name__ == "__main__":
    main()
