"""`spz`: a client of the service's HTTP API; only serve, db, shims and api start work without it.

What a verb needs is imported in the verb, so that help and completion come at once.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from broker.model.errors import Refused, SpzError
from gateway.config.paths import Paths

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
Detach = Annotated[bool, typer.Option("--detach-run", "-d", help="Do not wait for the run.")]
TaskWords = Annotated[
    list[str] | None, typer.Argument(metavar="TASK...", help="A task file, or a command.")
]
Env = Annotated[list[str] | None, typer.Option(help="NAME=VALUE, or NAME of this shell's.")]
EnvFile = Annotated[list[Path] | None, typer.Option(help="File of NAME=VALUE lines.")]
Secret = Annotated[list[str] | None, typer.Option(help="As --env, and never shown.")]
Names = Annotated[list[str] | None, typer.Argument(help="Clusters; may hold * and ?.")]
Target = Annotated[str, typer.Argument(metavar="CLUSTER|JOB", help="A cluster, or a job id.")]
RunNumber = Annotated[int | None, typer.Argument(help="Of the run; absent: the last.")]
Name = Annotated[str | None, typer.Option("--name", "-n", help="Name of the task.")]
Workdir = Annotated[str | None, typer.Option(help="Folder where it runs.")]
Infra = Annotated[str | None, typer.Option(help="aws, aws/REGION, aws/REGION/ZONE-ID.")]
Gpus = Annotated[str | None, typer.Option(help="NAME or NAME:COUNT; none clears.")]
Cpus = Annotated[str | None, typer.Option(help="4 exactly, 4+ at least.")]
Memory = Annotated[str | None, typer.Option(help="GB: 16, 16+, or 4x times the vCPUs.")]
InstanceType = Annotated[str | None, typer.Option("--instance-type", "-t", help="g5.xlarge.")]
Spot = Annotated[bool | None, typer.Option("--use-spot/--no-use-spot", help="Spot only.")]


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


# --- launch and exec


@app.command()
def launch(
    task: TaskWords = None,
    cluster: Annotated[str | None, typer.Option("--cluster", "-c", help="Its name.")] = None,
    yes: Yes = False,
    detach: Detach = False,
    dryrun: Annotated[bool, typer.Option("--dryrun", help="Only show it.")] = False,
    down: Annotated[bool, typer.Option("--down", help="`spz down` it after the run.")] = False,
    no_setup: Annotated[bool, typer.Option("--no-setup", help="Leave setup out.")] = False,
    name: Name = None,
    workdir: Workdir = None,
    infra: Infra = None,
    gpus: Gpus = None,
    cpus: Cpus = None,
    memory: Memory = None,
    instance_type: InstanceType = None,
    use_spot: Spot = None,
    num_nodes: Annotated[int | None, typer.Option(help="Nodes.")] = None,
    env: Env = None,
    env_file: EnvFile = None,
    secret: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Run a task on a machine bought for it (or on one of that name): a cluster.

    Exits as the run does; 103 if it was cancelled.
    """
    from gateway.sdk.launch import Launch
    from gateway.sdk.sending import body_of

    overrides = {
        "name": name,
        "workdir": workdir,
        "infra": infra,
        "accelerators": gpus,
        "cpus": cpus,
        "memory": memory,
        "instance_type": instance_type,
        "use_spot": use_spot,
        "num_nodes": num_nodes,
    }
    body = body_of(task, overrides, env=env, env_files=env_file, secret=secret)
    body |= {"cluster": cluster, "setup": not no_setup}
    ask = None if yes or as_json else confirm
    made = Launch(client(), say, as_json=as_json)
    if not made.launch(body, confirm=ask, dry_run=dryrun):
        return
    raise typer.Exit(made.finish(detach=detach, down=down))


@app.command("exec")
def execute(
    cluster: Annotated[str, typer.Argument(help="A cluster that is up.")],
    task: TaskWords = None,
    detach: Detach = False,
    name: Name = None,
    workdir: Workdir = None,
    env: Env = None,
    env_file: EnvFile = None,
    secret: Secret = None,
    as_json: AsJson = False,
) -> None:
    """Run a task, without its setup, on a cluster that is up."""
    from gateway.sdk.launch import Launch
    from gateway.sdk.sending import body_of

    overrides = {"name": name, "workdir": workdir}
    body = body_of(task, overrides, env=env, env_files=env_file, secret=secret)
    made = Launch(client(), say, as_json=as_json)
    made.execute(cluster, body)
    raise typer.Exit(made.finish(detach=detach, down=False))


@app.command()
def status(names: Names = None, as_json: AsJson = False) -> None:
    """Clusters, and jobs that are not over."""
    from gateway.sdk import show as tables

    service = client()
    found = tables.matching(service.get("/v1/clusters")["clusters"], names)
    told = service.get("/v1/jobs")
    others = [one for one in told["jobs"] if not one["over"] and not one["cluster"]]
    jobs = [] if names else others
    data = {"clusters": found, "jobs": jobs}
    show(data, as_json, lambda: tables.overview(found, jobs, told["at"]))


@app.command()
def queue(names: Names = None, as_json: AsJson = False) -> None:
    """The runs of clusters."""
    from gateway.sdk import show as tables

    service = client()
    now = service.get("/v1/health")["at"]
    found = tables.matching(service.get("/v1/clusters")["clusters"], names)
    queues = {one["name"]: one["runs"] for one in found}
    show(queues, as_json, lambda: tables.queues(queues, now))


@app.command()
def logs(
    target: Target,
    run: RunNumber = None,
    no_follow: Annotated[bool, typer.Option("--no-follow", help="Only what there is.")] = False,
    tail: Annotated[int | None, typer.Option(help="Only the last lines.")] = None,
    only_status: Annotated[bool, typer.Option("--status", "-s", help="Only the status.")] = False,
) -> None:
    """The text of a run.

    Exits 0 if it succeeded, 100 failed, 101 is not over, 102 not found, 103 cancelled.
    """
    from gateway.sdk.follow import NOT_FOUND, Follower, logs_status
    from gateway.sdk.launch import is_unknown, state_of, which

    service = client()
    try:
        wanted = which(service, target, run)
        state = state_of(service, wanted)
    except SpzError as error:
        if not is_unknown(error):
            raise
        _tell(error)
        raise typer.Exit(NOT_FOUND) from None
    follower = Follower(service, sys.stdout.buffer, say=say)
    if only_status:
        typer.echo(f"{target}: {state['status']}")
    elif no_follow:
        state = follower.show(wanted, tail=tail)
    else:
        state = follower.follow(wanted, tail=tail)
    raise typer.Exit(logs_status(state))


@app.command()
def why(job: Target, as_json: AsJson = False) -> None:
    """Why this type, zone and market, and what the runner-up would have cost."""
    from gateway.sdk.launch import which

    service = client()
    told = service.get(f"/v1/jobs/{which(service, job, None).job}/why")
    show(told, as_json, lambda: "\n".join(told["lines"]))


@app.command()
def down(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All of yours.")] = False,
    yes: Yes = False,
) -> None:
    """End clusters and let their machines go."""
    if not names and not everything:
        raise Refused("no cluster named", hint="spz down NAME, or --all")
    from gateway.sdk.show import matching

    service = client()
    found = service.get("/v1/clusters")["clusters"]
    found = matching([one for one in found if names or one["uid"] == os.getuid()], names)
    question = f"End {', '.join(one['name'] for one in found)}?"
    if found and not yes and sys.stdin.isatty() and not confirm(question):
        raise typer.Exit(1)
    for one in found:
        service.post(f"/v1/clusters/{one['name']}/down")
        typer.echo(f"Terminating cluster {one['name']} (job {one['job']})")


@app.command()
def cancel(
    target: Target,
    run: RunNumber = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All its runs.")] = False,
) -> None:
    """End a run of a cluster, which stays up; or a job."""
    from gateway.sdk.launch import cancel as cancelled

    typer.echo(cancelled(client(), target, run, everything=everything))


# --- the service


@app.command()
def serve() -> None:
    """Run the service in the foreground, until SIGTERM or Ctrl-C."""
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
    from gateway.sdk.launch import kept_running

    service = _background()
    left = kept_running(service.client)
    pid = service.stop()
    typer.echo(f"Service stopped (pid {pid}). {left}")


@api.command("status")
def api_status(as_json: AsJson = False) -> None:
    """Whether it runs, and what it has to do. Exits 1 if it does not answer."""
    from gateway.sdk.show import service_text

    told = client().get("/v1/health")
    show(told, as_json, lambda: service_text(told))


@api.command("logs")
def api_logs(
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last.")] = 50,
) -> None:
    """The end of its log."""
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
    from gateway.sdk.launch import sweep_text

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


def main() -> NoReturn:
    """The entry point: a user's mistake is told in words, never by a traceback."""
    try:
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
