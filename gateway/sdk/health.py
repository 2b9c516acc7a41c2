"""`spz check`: what a service needs to work here, one line each, with the way out."""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from broker.model.errors import SpzError
from broker.model.finding import Finding
from broker.optimize.bundled import bundled
from gateway.config.load import config_file, read
from gateway.config.paths import Paths
from gateway.config.settings import Config
from gateway.config.site import site
from gateway.sdk.client import Client, NoService
from gateway.store.backup import check
from gateway.store.place import place, reach

COMMANDS_PYTHON = Path("/usr/bin/python3")
OLDEST = (3, 9)
LEAST_FREE = 200 << 20
"""Bytes on the disk of the state directory, below which submissions will soon be refused."""


def findings(paths: Paths, python: Path = COMMANDS_PYTHON) -> Iterator[Finding]:
    """What is right and what is not, the first needs first."""
    config, told = _config(paths)
    yield told
    yield _home(paths)
    yield _disk(paths)
    yield _python(python)
    if config is None:
        return
    yield from _each("provider", lambda: _provider(config))
    yield from _aws(paths, config)
    yield from _site_slurm(config)
    yield from _each("database", lambda: _database(paths, config))
    yield from _each("service", lambda: _service(paths))


def _each(name: str, look: Callable[[], Finding]) -> Iterator[Finding]:
    try:
        yield look()
    except SpzError as error:
        yield Finding(name, False, error.message, error.hint)


def _config(paths: Paths) -> tuple[Config | None, Finding]:
    try:
        config = read(paths)
    except SpzError as error:
        return None, Finding("configuration", False, error.message, error.hint)
    file = config_file(paths)
    text = str(file) if file else "none, the defaults hold"
    return config, Finding("configuration", True, text)


def _home(paths: Paths) -> Finding:
    here = _nearest(paths.home)
    good = os.access(here, os.W_OK | os.X_OK)
    hint = "" if good else f"set SKYPURZA_HOME to a folder of yours, or make {paths.home} yours"
    return Finding("state directory", good, str(paths.home), hint)


def _nearest(path: Path) -> Path:
    """It, or the folder above it that there is."""
    return path if path.exists() else _nearest(path.parent)


def _disk(paths: Paths) -> Finding:
    here = _nearest(paths.home)
    free = os.statvfs(here)
    left = free.f_bavail * free.f_frsize
    good = left >= LEAST_FREE
    hint = "" if good else "make room: a full disk refuses submissions"
    return Finding("disk", good, f"{left >> 20} MiB free at {here}", hint)


def _python(python: Path) -> Finding:
    """The interpreter of the commands and of the agent on this host."""
    script = "import sys; print(*sys.version_info[:3])"
    said = ""
    with suppress(OSError, subprocess.CalledProcessError):
        said = subprocess.check_output([python, "-IS", "-c", script], text=True).strip()
    version = tuple(int(part) for part in said.split())
    if not version:
        hint = "apt-get install python3"
        return Finding("python of the commands", False, f"{python} does not run", hint)
    good = version >= OLDEST
    hint = "" if good else f"the commands need Python {'.'.join(map(str, OLDEST))}"
    return Finding("python of the commands", good, f"{python} {said.replace(' ', '.')}", hint)


def _provider(config: Config) -> Finding:
    names = sorted({p.elastic.provider for p in config.partitions if p.elastic})
    kinds = len(bundled().shapes)
    text = f"{', '.join(names) or 'none'}; {kinds} instance types in the catalogue"
    return Finding("provider", True, text)


def _aws(paths: Paths, config: Config) -> Iterator[Finding]:
    """The account, where any partition's machines come from there."""
    if not any(p.elastic and p.elastic.provider == "ec2" for p in config.partitions):
        return
    from gateway.account import aws_findings  # noqa: PLC0415 (boto3 takes 0.2 s)

    yield from aws_findings(paths, config)


def _site_slurm(config: Config) -> Iterator[Finding]:
    """The site's own, where there is one beside ours."""
    if config.passthrough is None:
        return
    from gateway.neighbour import site_lines  # noqa: PLC0415 (the commands' room takes 0.2 s)

    ours = site(config, service_uid=0, uid_of=lambda _: None, price_of=lambda _: None)
    for good, text, hint in site_lines(config.passthrough, ours):
        yield Finding("site's Slurm", good, text, hint)


def _database(paths: Paths, config: Config) -> Finding:
    where = place(paths.database(config.database.url))
    if where.file is None:
        if where.dialect == "postgresql":
            reach(where)
        return Finding("database", True, where.name)
    if where.file.is_dir():
        hint = "move it away, or set SKYPURZA_STATE_DB"
        return Finding("database", False, f"{where.name} is a folder", hint)
    if not where.file.exists():
        return Finding("database", True, f"{where.name}, made at the first start")
    wrong = check(where.file)
    hint = "stop the service and put a backup in its place (`spz db backup` makes them)"
    return Finding("database", not wrong, "; ".join(wrong) or where.name, hint if wrong else "")


def _service(paths: Paths) -> Finding:
    if paths.socket.exists() and not paths.socket.is_socket():
        hint = "move it away, or set SKYPURZA_SOCKET"
        return Finding("service", False, f"{paths.socket} is there and no socket", hint)
    try:
        told = Client(paths.socket, tries=1).get("/v1/health")
    except NoService:
        return Finding("service", True, f"none on {paths.socket}; `spz api start` starts it")
    text = f"{told['cluster']}, pid {told['pid']}, {told['jobs_live']} jobs"
    return Finding("service", True, text)


def lines(found: Sequence[Finding]) -> str:
    """Each with a word in front that says whether it is right, the way out below."""
    told = []
    for one in found:
        told.append(f"{'ok  ' if one.good else 'FAIL'}  {one.name}: {one.text}")
        told += [f"      {one.hint}"] if one.hint else []
    return "\n".join(told)
