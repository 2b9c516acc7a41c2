"""`spz`: finds the verb in the table, has Typer read the line by its row, and has it done.

What a verb needs is loaded by the verb, Typer by the first line that says more than a verb.

Only serve, db, shims, task and api start work without a service.
"""

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from broker.model.errors import Refused, SpzError
from gateway.sdk.verbs.counter import Counter, here, tell
from gateway.sdk.verbs.line import FLAG, MANY, NUMBER, PAIR, TEXT, Opt, UsageError, Values, Verb
from gateway.sdk.verbs.overview import groups, listing, suggestion
from gateway.sdk.verbs.table import BY_NAME

if TYPE_CHECKING:
    from typer import Typer

INTERRUPTED = 130
OTHERWISE = {
    "--install-shell-completion": ("completion", "--install"),
    "--uninstall-shell-completion": ("completion", "--uninstall"),
    "volume": ("volumes",),
}
"""SkyPilot's spelling of verbs."""
HELP = frozenset({"-h", "--help", "help"})
TYPES: Mapping[str, Any] = {FLAG: bool, PAIR: bool, TEXT: str, NUMBER: int, MANY: list[str]}


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


def _beside_ssh(prefix: Path, counter: Counter) -> list[Path]:
    """For ssh's way in. The site's configuration may be nobody's to read; it is not needed."""
    from gateway.config.settings import Config

    return _written(prefix, counter.paths.socket, Config().slurm_version)


def _installed(prefix: Path, socket: Path, counter: Counter) -> list[Path]:
    from gateway.config.load import read

    return _written(prefix, socket, read(counter.paths).slurm_version)


def _written(prefix: Path, socket: Path, version: str) -> list[Path]:
    """Raises Refused."""
    from sbatch_shim.install import InstallError, install

    try:
        return install(prefix, socket, f"slurm {version}")
    except InstallError as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(
            f"{error.filename or prefix}: {error.strerror}",
            hint="spz shims install --prefix DIR, with a folder of yours",
        ) from error


# --- reading the line


def read(verb: Verb, argv: Sequence[str]) -> Values | None:
    """Options by key (absent ones None, False or empty) and `words`; None when help was asked for.

    Raises UsageError.
    """
    if not argv and not _needed(verb):
        return _values(verb, {}, ())
    # Typer splits the line. What it would then make of the texts is left out: it loads pydantic
    # before it looks at the first, which takes longer than all the rest of a command.
    from typer import Context, TyperException
    from typer.main import get_command

    command = get_command(_app(verb))
    line = Context(
        command,
        info_name=f"spz {verb.name}",
        help_option_names=["-h", "--help"],
        allow_interspersed_args=not verb.words.endswith("!"),
        ignore_unknown_options=verb.words.endswith("!"),
    )
    try:
        given, words, _ = command.make_parser(line).parse_args([*argv])
    except TyperException as error:
        hint = f"`spz {verb.name} -h` lists what it takes"
        raise UsageError(error.format_message(), hint=hint) from None
    if "help" in given:
        print(command.get_help(line))
        return None
    _must_fit(verb, words, usage=command.get_usage(line))
    return _values(verb, given, words)


def _values(verb: Verb, given: Mapping[str, Any], words: Sequence[str]) -> Values:
    return {"words": words, **{opt.key: _value(opt, given.get(_name(opt))) for opt in verb.options}}


def _app(verb: Verb) -> "Typer":
    """The one command of a row: Typer takes it from the signature of a function."""
    from inspect import Parameter, Signature

    from typer import Option, Typer

    def row() -> None:
        """Only its signature is of use."""

    row.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                _name(opt),
                Parameter.KEYWORD_ONLY,
                default=Option(None, *_declared(opt), help=_help(opt), metavar=opt.metavar or None),
                annotation=TYPES[opt.kind],
            )
            for opt in verb.options
        ]
    )
    app = Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    takes = f"[OPTIONS] {verb.words.rstrip('!')}".rstrip()
    app.command(verb.name, help=verb.help, options_metavar=takes)(row)
    return app


def _help(opt: Opt) -> str:
    return f"{opt.help.rstrip('.')}: {', '.join(opt.choices)}." if opt.choices else opt.help


def _name(opt: Opt) -> str:
    """No keyword of Python's, as `--async` and `--as` would be."""
    return f"{opt.key}_"


def _declared(opt: Opt) -> list[str]:
    names = opt.names.split()
    if opt.kind == PAIR:
        names[-1] += f"/--no-{names[-1].removeprefix('--')}"
    return names


def _value(opt: Opt, given: Any) -> Any:
    if given is None:
        return {FLAG: False, MANY: []}.get(opt.kind)
    long = opt.names.split()[-1]
    if opt.choices:
        if str(given).lower() not in opt.choices:
            raise UsageError(f"option {long}: {given!r} is none of {', '.join(opt.choices)}")
        return str(given).lower()
    if opt.kind != NUMBER:
        return given
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"option {long}: {given!r} is no whole number") from None


def _must_fit(verb: Verb, words: Sequence[str], *, usage: str) -> None:
    wanted, needed = verb.words.rstrip("!").split(), _needed(verb)
    many = any(word.rstrip("]").endswith("...") for word in wanted)
    if len(words) < len(needed):
        raise UsageError(f"{needed[len(words)]} is missing", hint=usage)
    if len(words) > len(wanted) and not many:
        raise UsageError(f"{words[len(wanted)]!r} is too much", hint=usage)


def _needed(verb: Verb) -> list[str]:
    """Names of the words without which there is nothing to do."""
    return [word for word in verb.words.rstrip("!").split() if not word.startswith("[")]


# --- finding the verb


def done(argv: Sequence[str]) -> int:
    """Does what a command line says; the exit status. Raises SpzError."""
    if not argv or argv[0] in HELP:
        print(listing(""))
        return 0
    argv = [*OTHERWISE.get(argv[0], argv[:1]), *argv[1:]]
    for words in _beginnings(argv):
        verb = BY_NAME.get(words)
        if verb is not None:
            return run(verb, argv[len(words.split()) :])
        if words in groups():
            return _listed(words, argv[len(words.split()) :])
    raise UsageError(f"no such command: {argv[0]}", hint=suggestion(argv[0], ""))


def run(verb: Verb, argv: Sequence[str]) -> int:
    """Reads the line and does it; the exit status. Raises Refused, Told."""
    given = read(verb, argv)
    if given is None:
        return 0
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # texts of runs go beside it, as bytes
    module, _, name = verb.does.partition(":")
    home = module if "." in module else f"gateway.sdk.verbs.{module}"
    does: Any = getattr(import_module(home), name)
    counter = _counter()
    for opt in verb.options:
        if opt.note and given[opt.key]:
            counter.say(f"note: option --{opt.key.replace('_', '-')}: ignored, {opt.note}")
    return int(does(given, counter) or 0)


def _counter() -> Counter:
    made = here()
    return replace(made, commands=lambda to: _beside_ssh(to, made))


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


def main() -> NoReturn:
    """The entry point: a user's mistake is told in words, never by a traceback."""
    status = 1
    try:
        status = done(sys.argv[1:])
        sys.stdout.flush()
    except SpzError as error:
        tell(error)
        status = UsageError.status if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)


if __name__ == "__main__":
    main()
