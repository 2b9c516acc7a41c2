"""`spz`: a client of the service's HTTP API; only serve, db, shims and api start work without it.

What a verb needs is imported in the verb, so that help and completion come at once.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from broker.model.errors import Refused, SpzError
from gateway.config.paths import Paths
from gateway.sdk.verbs.table import BY_NAME, VERBS

if TYPE_CHECKING:
    from gateway.sdk.background import Background
    from gateway.sdk.client import Client

INTERRUPTED = 130
Json = dict[str, Any]

app = typer.Typer(
    name="spz",
    help="Run tasks and Slurm jobs on the cheapest machines that will have them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
api = typer.Typer(help="The service in the background, for this user.", no_args_is_help=True)
shims = typer.Typer(help="The Slurm commands (sbatch, squeue, ...).", no_args_is_help=True)
db = typer.Typer(help="The database.", no_args_is_help=True)
app.add_typer(api, name="api")
app.add_typer(shims, name="shims")
app.add_typer(db, name="db")

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Target = Annotated[str, typer.Argument(metavar="CLUSTER|JOB", help="A cluster, or a job id.")]
Request = Annotated[str | None, typer.Argument(help="What --async printed.")]


# --- shared


def paths() -> Paths:
    """The places of the service meant by the environment. Raises Refused."""
    return Paths.from_environ(os.environ, uid=os.getuid(), user_home=Path.home())


def client() -> "Client":
    from gateway.sdk.client import Client

    return Client(paths().socket)


def say(text: str) -> None:
    """To people, beside what programs read."""
    typer.echo(f"spz: {text}", err=True)


def confirm(question: str) -> bool:
    return typer.confirm(question, default=True, err=True)


def show(data: object, as_json: bool, text: Callable[[], str]) -> None:
    typer.echo(json.dumps(data, indent=2) if as_json else text())


# --- the verbs that speak SkyPilot


def _groups() -> dict[str, typer.Typer]:
    """Groups of verbs, by their words."""
    found = {"": app, "api": api}
    told = {
        "task": "Task files: check, show.",
        "jobs": "Managed jobs.",
        "jobs pool": "Workers that are kept up for managed jobs.",
        "gpus": "Accelerators: list.",
        "catalog": "Types and prices: refresh.",
        "storage": "Buckets.",
        "volumes": "Volumes.",
        "serve": "Services.",
    }
    for words, text in told.items():
        outer, _, name = words.rpartition(" ")
        found[words] = typer.Typer(help=text, no_args_is_help=True)
        if words != "serve":
            found[outer].add_typer(found[words], name=name)
    return found


def _list_verbs() -> None:
    """For help: what they do is done by `verbs.counter.run`, without this library."""
    groups = _groups()
    for verb in VERBS:
        group, _, name = verb.name.rpartition(" ")
        groups[group].command(name, help=verb.help)(_nothing)


def _nothing() -> None:
    """Stands for a verb in listings."""


_list_verbs()


@app.command()
def why(job: Target, as_json: AsJson = False) -> None:
    """Why this type, zone and market, and what the runner-up would have cost."""
    from gateway.sdk.launching import which

    service = client()
    told = service.get(f"/v1/jobs/{which(service, job, None).job}/why")
    show(told, as_json, lambda: "\n".join(told["lines"]))


# --- the service


@app.command()
def serve() -> None:
    """Run the service in the foreground, until SIGTERM or Ctrl-C.

    SkyPilot's `serve up` and its like are not offered, and say why.
    """
    from gateway.sdk.background import foreground

    raise typer.Exit(foreground(paths()))


def _background() -> "Background":
    from gateway.sdk.background import Background

    return Background(paths(), say)


@api.command("start")
def api_start() -> None:
    """Start it and wait until it takes requests."""
    service = _background()
    pid = service.start()
    typer.echo(f"Service started (pid {pid}) on {service.paths.socket}")


@api.command("stop")
def api_stop() -> None:
    """Stop it; what runs on machines goes on, and is taken up again at the next start."""
    from gateway.sdk.launching import kept_running

    service = _background()
    left = kept_running(service.client)
    pid = service.stop()
    typer.echo(f"Service stopped (pid {pid}). {left}")


@api.command("status")
def api_status(request: Request = None, as_json: AsJson = False) -> None:
    """Whether it runs, and what it has to do; or of one request. Exits 1 without an answer."""
    from gateway.sdk.show import service_text

    if request is not None:
        raise typer.Exit(_of_request("request_status", request))
    told = client().get("/v1/health")
    show(told, as_json, lambda: service_text(told))


def _of_request(name: str, request: str) -> int:
    from gateway.sdk.verbs import service
    from gateway.sdk.verbs.counter import here

    return int(getattr(service, name)(here(), request))


@api.command("logs")
def api_logs(
    request: Request = None,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last.")] = 50,
) -> None:
    """The end of its log; or what a request began says."""
    if request is not None:
        raise typer.Exit(_of_request("request_logs", request))
    typer.echo(_background().log_end(lines), nl=False)


# --- the commands


@shims.command("install")
def shims_install(
    prefix: Annotated[Path, typer.Option(help="They go to PREFIX/bin.")],
    socket: Annotated[Path | None, typer.Option(help="The service's; absent: as here.")] = None,
) -> None:
    """Write sbatch, squeue, sacct, scancel, sinfo and scontrol for a site."""
    for command in _installed(prefix.absolute(), (socket or paths().socket).absolute()):
        typer.echo(command)


@shims.command("env")
def shims_env() -> None:
    """What puts them first on PATH: eval "$(spz shims env)"."""
    import shlex

    where = paths()
    commands = _installed(where.home / "shims", where.socket)
    typer.echo(f'export PATH={shlex.quote(str(commands[0].parent))}:"$PATH"')


def _installed(prefix: Path, socket: Path) -> list[Path]:
    from gateway.config.load import read
    from sbatch_shim.install import InstallError, install

    try:
        return install(prefix, socket, f"slurm {read(paths()).slurm_version}")
    except InstallError as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(
            f"{error.filename or prefix}: {error.strerror}",
            hint="spz shims install --prefix DIR, with a folder of yours",
        ) from error


# --- operators


@app.command()
def check(as_json: AsJson = False) -> None:
    """Look at what a service needs here. Exits 1 if something has to be done."""
    from dataclasses import asdict

    from gateway.sdk.health import findings, lines

    found = list(findings(paths()))
    show([asdict(one) for one in found], as_json, lambda: lines(found))
    raise typer.Exit(0 if all(one.good for one in found) else 1)


@app.command()
def sweep(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only look.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let go of machines that providers hold and nobody knows. Exits 1 if --dry-run finds any."""
    from gateway.sdk.launching import sweep_text

    service = client()
    told = service.get("/v1/sweep") if dry_run else service.post("/v1/sweep")
    show(told, as_json, lambda: sweep_text(told, dry_run=dry_run))
    strays = any(one["stray"] for one in told["providers"])
    raise typer.Exit(1 if dry_run and strays else 0)


@db.command("backup")
def db_backup(
    target: Annotated[Path | None, typer.Argument(help="A new file.")] = None,
) -> None:
    """Copy the database as of one moment; the service may be running."""
    from gateway.sdk.databases import backup

    typer.echo(backup(paths(), target))


@db.command("check")
def db_check() -> None:
    """Read all of the database and say what is wrong with it. Exits 1 if something is."""
    from gateway.sdk.databases import problems

    where, wrong = problems(paths())
    typer.echo("\n".join(wrong) or f"ok: {where}")
    raise typer.Exit(1 if wrong else 0)


@app.command()
def version() -> None:
    """Versions of SkyPurza and of the Slurm it presents."""
    from importlib.metadata import version as of

    from gateway.config.load import read

    typer.echo(f"skypurza {of('skypurza')}, slurm {read(paths()).slurm_version}")


# --- the border


def _tell(error: SpzError) -> None:
    for line in error.message.splitlines():
        typer.echo(f"spz: error: {line}", err=True)
    if error.hint and not error.message.endswith(error.hint):
        typer.echo(f"     {error.hint}", err=True)


def _by_table(argv: Sequence[str]) -> int | None:
    """Does the verb of the table that the line begins with; None if there is none."""
    for length in (3, 2, 1):
        verb = BY_NAME.get(" ".join(argv[:length])) if len(argv) >= length else None
        if verb is not None:
            from gateway.sdk.verbs.counter import run

            return run(verb, argv[length:])
    return None


def main() -> NoReturn:
    """The entry point: a user's mistake is told in words, never by a traceback."""
    try:
        done = _by_table(sys.argv[1:])
        if done is not None:
            sys.stdout.flush()
            sys.exit(done)
        app()
    except SpzError as error:
        _tell(error)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)
    sys.exit(1)


if __name__ == "__main__":
    main()
