"""The agent as one file to put on a node, and the lines that are spoken with it. Pure."""

import base64
import functools
import importlib.resources
import importlib.util
import io
import json
import marshal
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from broker.model import octets
from broker.ports import Push
from broker.run.agent import commands, version
from sbatch_shim.parts import MODULES, PROGRAMS

PACKAGE = "spz_agent"
ENTRY = f"import sys\nfrom {PACKAGE}.__main__ import main\nsys.exit(main(sys.argv[1:]))\n"
STAMP = (2020, 1, 1, 0, 0, 0)
"""One date for all, so that the same sources make the same bytes."""
PLAIN_MARSHAL = 2
"""Newer ones write what is shared in this process otherwise: the bytes would change by chance."""
UNCHECKED_HASH = 1
"""Flag of a compiled file that is not compared with its source (PEP 552)."""


@functools.cache
def agent_zipapp() -> bytes:
    """A Python archive for any Python from 3.6; compiled beforehand for the one that runs this."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in [("__main__.py", ENTRY.encode()), *_sources()]:
            archive.writestr(zipfile.ZipInfo(name, STAMP), source)
            archive.writestr(zipfile.ZipInfo(name + "c", STAMP), _compiled(source, name))
        for name, content in _commands():
            archive.writestr(zipfile.ZipInfo(name, STAMP), content)
    return b"#!/usr/bin/env python3\n" + buffer.getvalue()


@functools.cache
def agent_package() -> str:
    """The archive's digest, by which an agent says which one it runs from."""
    return version.digest(agent_zipapp())


def _commands() -> Iterable[tuple[str, bytes]]:
    """What the commands of users are run from: the agent unpacks it where a node needs it."""
    folder = importlib.resources.files("sbatch_shim")
    yield commands.NAMES, "\n".join(PROGRAMS).encode("ascii")
    for source, name in MODULES.items():
        yield commands.PACKED + name, folder.joinpath(source).read_bytes()


def _sources() -> Iterable[tuple[str, bytes]]:
    folder = importlib.resources.files("broker.run.agent")
    found = [item for item in folder.iterdir() if item.name.endswith(".py")]
    for item in sorted(found, key=lambda item: item.name):
        yield f"{PACKAGE}/{item.name}", item.read_bytes()


def _compiled(source: bytes, name: str) -> bytes:
    """Spares the agent's start some 50 ms; a Python of another version takes the source."""
    code = compile(source, name, "exec", dont_inherit=True)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH.to_bytes(4, "little")
    return head + importlib.util.source_hash(source) + marshal.dumps(code, PLAIN_MARSHAL)


@dataclass(frozen=True, slots=True)
class Phase:
    """A program of a step; `script`, if given, is a file whose path stands where argv has None."""

    name: str
    """`setup` or `run`."""
    argv: tuple[bytes | None, ...]
    script: bytes | None = None
    inside: int | None = 0
    """From which word on it runs in the step's container; None: not."""


RELAYED: Literal[True] = True
"""A stream of a task that passes through the io file."""
Stream = bytes | Literal[True] | None
"""A path, RELAYED, or nothing (/dev/null)."""


@dataclass(frozen=True, slots=True)
class Task:
    """One of several programs of a step that run at the same time."""

    variables: bytes = b""
    """`NAME=value` entries over the step's, separated by NUL."""
    argv: tuple[bytes, ...] | None = None
    """None: as the phase has it."""
    stdin: Stream = None
    stdout: Stream = None
    stderr: Stream = None
    rank: int | None = None
    """Among the tasks of all nodes; None: its place here."""


@dataclass(frozen=True, slots=True)
class Warn:
    """A signal some seconds before the time limit."""

    signal: int
    before: int
    batch: bool = False
    """To the batch shell alone; else to steps that are not the batch step."""
    own: bool = False
    """Of one step: the sooner of its limit and its job's counts, not its job's alone."""


@dataclass(frozen=True, slots=True)
class Bind:
    """To which cpus tasks are held, by their places on the node."""

    kind: str
    """`cores`, `mask_cpu` and so on as Slurm has them; empty or `none`: to none."""
    items: tuple[str, ...]
    """Cpus, or masks in hexadecimal."""
    verbose: bool
    each: int
    """Cpus of a task, of kinds without items."""
    cpus: tuple[int, ...]
    """The node's that the step has; the agent takes those that are there."""


@dataclass(frozen=True, slots=True)
class Kin:
    """What the nodes of a job need to enter each other by ssh, as the job's user."""

    key: str = field(repr=False)
    """ed25519, as OpenSSH writes it; of the job alone."""
    public: str
    port: int
    """Where the job's own sshd listens on each of them."""
    here: str
    nodes: tuple[tuple[str, str, int], ...]
    """Name, address, tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOrder:
    """All that an agent needs to know to run a step; bytes are what the kernel will see."""

    uid: int
    gid: int
    user: str
    group: str = ""
    home: str = ""
    shell: str = ""
    """Of the user, where the node does not know him."""
    groups: tuple[int, ...] | None = None
    """None: those that the node's own group file gives the user."""
    umask: int = 0o022
    rlimits: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    """Soft and hard by name, such as `NOFILE`; None is unlimited."""
    nice: int = 0
    cwd: bytes
    phases: tuple[Phase, ...] = ()
    environment: bytes = b""
    """`NAME=value` entries, separated by NUL."""
    login: tuple[str, ...] = ()
    """Names there that stand in for what a login shell of the user's makes, below all the rest."""
    stdin: bytes | None = None
    """None is /dev/null, for stdout too."""
    stdout: bytes | None = None
    stderr: bytes | None = None
    """None: the same file as stdout."""
    append: bool = False
    time_limit: int | None = None
    """Seconds from the start of the first phase; None is no limit."""
    settle: float = 0.0
    """Seconds between its files' being opened and its first word, where others write them too."""
    over_time: int = 0
    """Seconds beyond its time limit that it may run."""
    unkillable_timeout: int = 60
    """Seconds after SIGKILL when it is told that processes are left all the same."""
    kill_wait: int = 30
    """Seconds between SIGTERM and SIGKILL."""
    hears_why: bool = False
    """It gets SIGUSR1 in place of SIGTERM where its machine is taken, SIGUSR2 where that stops."""
    warn: Warn | None = None
    hold: bool = False
    """No process: the step lives until it is killed."""
    label: str = ""
    """How Slurm names it in messages: `JOB 4711`, `STEP 4711.0`."""
    tasks: tuple[Task, ...] = ()
    """Where there are any, `stdin`, `stdout` and `stderr` above say nothing."""
    relay: bool = False
    """An io file is kept: text of RELAYED streams, and how each task ended."""
    unbuffered: bool = False
    """Passed on as it is written, not by lines."""
    numbered: int = 0
    """Width of a task's number before each line that goes into a file; 0: there is none."""
    pty: tuple[int, int] | None = None
    """Rows and columns of the terminal that the first task gets for its streams."""
    kill_on_bad_exit: bool = False
    wait: int | None = None
    """Seconds after the first task's end when the others are killed; None or 0 is never."""
    in_batch: bool = False
    """Runs in what a batch step has: takes no slot of its own."""
    further: bool = False
    """Not the first node of the step's: what is told of all of it is told there."""
    job_ends: int | None = None
    """Instant from which `warn` counts back; None: the end of `time_limit`."""
    setup: str | None = None
    """Lines for the shell that are run once on a node, as the agent's own user."""
    prolog: str | None = None
    """A program that is run there before the first step of an attempt."""
    epilog: str | None = None
    """One that is run there when nothing of an attempt is left."""
    tmpdir: str | None = None
    """A folder that the job's user has there as long as the attempt."""
    cpus: int = 1
    cpu_ids: tuple[int, ...] = ()
    """The node's cpus that its processes are held to; empty: to none."""
    bind: Bind | None = None
    """None: tasks run wherever the step may."""
    memory_mib: int = 0
    memory_limit_mib: int | None = None
    """What it is held to; None: to nothing."""
    job_memory_mib: int = 0
    """What all steps of the job together are held to here, where any is."""
    oom_kill_step: bool = False
    """Whether want of memory ends all of the step and not one process of it."""
    gpus: tuple[int, ...] = ()
    container: Mapping[str, object] | None = None
    """Image, mounts, workdir and home of what its programs run in."""
    kin: Kin | None = None
    """None: the job has one node, or its nodes are of one host."""


def start(key: str, order: StepOrder) -> bytes:
    """Repeatable: a step of this key starts at most once on its node."""
    return _line(do="start", key=key, step=_step(order))


def dated(request: bytes, now: float) -> bytes:
    """With the service's time, by which instants in it go: a node's clock may be wrong."""
    return request[:-2] + b',"now":%.3f}\n' % now


def kill(attempt: str, *, grace: float, cause: str) -> bytes:
    """Ends in a `gone` record, also for an attempt that the node never had.

    Causes with words of their own in the job's output: `time_limit`, `requeued`, `preempted`,
    `taken_back`, `node_fail`; any other reads as a signal, as `cancelled` does.
    """
    return _line(do="kill", attempt=attempt, grace=grace, cause=cause)


def kill_step(key: str, *, grace: float, cause: str, number: int) -> bytes:
    """Signal `number`, SIGKILL after the grace; a step that was not begun never will be."""
    return _line(do="kill_step", key=key, grace=grace, cause=cause, signal=number)


def signal(key: str, number: int, scope: str) -> bytes:
    """To a step, or to every step of an attempt; scope `steps`, `batch` or `full` as in scancel."""
    return _line(do="signal", key=key, signal=number, scope=scope)


def feed(key: str, data: bytes, *, at: int, eof: bool = False) -> bytes:
    """Input of a step; `at` is the offset of `data` in all of it. The answer's `size` says how
    much was taken in all: what is beyond is to be sent again.
    """
    return _line(do="input", key=key, data=_base64(data), at=at, eof=eof)


def window(key: str, rows: int, columns: int) -> bytes:
    """The size of a step's terminal."""
    return _line(do="window", key=key, rows=rows, cols=columns)


def acknowledge(key: str, at: int) -> bytes:
    """A step's io file was read up to there: the room is the node's again."""
    return _line(do="ack", key=key, at=at)


def forget(key: str) -> bytes:
    """The io file of a step that is over was read."""
    return _line(do="forget", key=key)


def use(job: int) -> bytes:
    """What the job's steps use on the node now; by step in the answer's `steps`."""
    return _line(do="use", job=job)


def ping(fetched: int = 0) -> bytes:
    """`fetched`: bytes of its journal that are in the store, whose ends' results are here."""
    return _line(do="ping", fetched=fetched)


def limit(key: str, *, serial: int, seconds: int | None) -> bytes:
    """A step's own limit from its start on, None for none; of several the highest serial holds."""
    return _line(do="limit", key=key, serial=serial, time_limit=seconds)


def job_limit(
    attempt: str, *, serial: int, seconds: int | None, ends: int | None, paused: bool
) -> bytes:
    """The job's limit for the batch step, the instant of its end for the warnings of others.

    While `paused` no limit of a step runs.
    """
    told = {"serial": serial, "time_limit": seconds, "job_ends": ends, "paused": paused}
    return _line(do="limit", attempt=attempt, **told)


def notify(attempt: str, text: str, *, serial: int) -> bytes:
    """A line for the standard error of the batch step; each serial is written once."""
    return _line(do="notify", attempt=attempt, text=text, serial=serial)


def leave() -> bytes:
    """The agent goes as soon as nothing lives on its node; `live` in the answer names what does."""
    return _line(do="leave")


def halt() -> bytes:
    """Ends everything on the node; answered when nothing is left."""
    return _line(do="halt")


def reply(line: bytes) -> Mapping[str, object]:
    """What the agent answered. Raises ValueError if that is not one whole line."""
    if not line.endswith(b"\n"):
        raise ValueError(f"the agent's answer is cut off: {line[:80]!r}")
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError(f"the agent's answer is no object: {line[:80]!r}")  # noqa: TRY004
    return value


def push(told: Push) -> bytes:
    """Where its journal is posted from now on; kept on the node, for its agent alone."""
    return _line(do="push", to=asdict(told))


def serve_argv(python: str, archive: str, *, folder: str, node: str) -> list[str]:
    """The command that starts the agent of a node; started again, it does nothing."""
    return [python, "-IS", archive, "serve", "--dir", folder, "--node", node]


def _line(**request: object) -> bytes:
    return json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n"


def _step(order: StepOrder) -> dict[str, object]:
    return {
        "uid": order.uid,
        "gid": order.gid,
        "user": order.user,
        "group": order.group,
        "home": order.home,
        "shell": order.shell,
        "groups": None if order.groups is None else list(order.groups),
        "umask": order.umask,
        "rlimits": {name: list(limit) for name, limit in order.rlimits.items()},
        "nice": order.nice,
        "cwd": octets.text(order.cwd),
        "phases": [_phase(phase) for phase in order.phases],
        "env": _base64(order.environment),
        "login": list(order.login),
        "stdin": _base64(order.stdin),
        "stdout": _base64(order.stdout),
        "stderr": _base64(order.stderr),
        "open_mode": "append" if order.append else "truncate",
        **_moments(order),
        "hears_why": order.hears_why,
        "hold": order.hold,
        "job_label": order.label,
        "tasks": [_task(task) for task in order.tasks],
        "relay": order.relay,
        "unbuffered": order.unbuffered,
        "numbered": order.numbered,
        "pty": order.pty,
        "kill_on_bad_exit": order.kill_on_bad_exit,
        "in_batch": order.in_batch,
        "further": order.further,
        "setup": order.setup,
        "prolog": order.prolog,
        "epilog": order.epilog,
        "tmpdir": order.tmpdir,
        "cpus": order.cpus,
        "cpu_ids": list(order.cpu_ids),
        "bind": None if order.bind is None else asdict(order.bind),
        "memory_mib": order.memory_mib,
        "memory_limit_mib": order.memory_limit_mib,
        "job_memory_mib": order.job_memory_mib,
        "oom_kill_step": order.oom_kill_step,
        "gpus": list(order.gpus),
        "container": order.container,
        "kin": None if order.kin is None else asdict(order.kin),
    }


def _moments(order: StepOrder) -> dict[str, object]:
    """What is told in seconds."""
    return {
        "settle": order.settle,
        "time_limit": order.time_limit,
        "over_time": order.over_time,
        "job_ends": order.job_ends,
        "warn": None if order.warn is None else asdict(order.warn),
        "wait": order.wait,
        "kill_wait": order.kill_wait,
        "unkillable_timeout": order.unkillable_timeout,
    }


def _phase(phase: Phase) -> dict[str, object]:
    argv = [None if item is None else octets.text(item) for item in phase.argv]
    script, inside = _base64(phase.script), phase.inside
    return {"name": phase.name, "argv": argv, "script": script, "inside": inside}


def _task(task: Task) -> dict[str, object]:
    return {
        "rank": task.rank,
        "env": _base64(task.variables),
        "argv": None if task.argv is None else [octets.text(word) for word in task.argv],
        "stdin": _stream(task.stdin),
        "stdout": _stream(task.stdout),
        "stderr": _stream(task.stderr),
    }


def _stream(given: Stream) -> str | bool | None:
    return True if given is True else _base64(given)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
