"""serve, api, db, check, sweep, why, version: the service itself, for who runs it."""

from dataclasses import asdict
from importlib.metadata import version as version_of
from pathlib import Path

from gateway.config.load import read
from gateway.sdk import show
from gateway.sdk.background import Background, foreground
from gateway.sdk.client import Client
from gateway.sdk.databases import backup, problems
from gateway.sdk.health import findings, lines
from gateway.sdk.launching import kept_running, sweep_text
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.line import Values


def serve(given: Values, counter: Counter) -> int:
    """Until SIGTERM or Ctrl-C; the service's own status."""
    return foreground(counter.paths)


def start(given: Values, counter: Counter) -> int:
    service = Background(counter.paths, counter.say)
    pid = service.start()
    print(f"Service started (pid {pid}) on {service.paths.socket}")
    return 0


def stop(given: Values, counter: Counter) -> int:
    service = Background(counter.paths, counter.say)
    left = kept_running(service.client)
    pid = service.stop()
    print(f"Service stopped (pid {pid}). {left}")
    return 0


def check(given: Values, counter: Counter) -> int:
    """1 if something has to be done."""
    found = list(findings(counter.paths))
    counter.show([asdict(one) for one in found], given, lambda: lines(found))
    return 0 if all(one.good for one in found) else 1


def sweep(given: Values, counter: Counter) -> int:
    """1 if --dry-run finds any."""
    service, dry_run = counter.service, given["dry_run"]
    ask = service.get if dry_run else service.post
    told = ask("/v1/sweep", everywhere=bool(given["all"]))
    counter.show(told, given, lambda: sweep_text(told, dry_run=dry_run))
    any_there = any(one["stray"] or one["leftovers"] for one in told["providers"])
    return 1 if dry_run and any_there else 0


def unprotect(given: Values, counter: Counter) -> int:
    """Without a kind it only looks."""
    service, names = counter.service, given["words"] or ([None] if given["all"] else [])
    if not names:
        found = service.get("/v1/protected")["kinds"]
        counter.show(found, given, lambda: show.protected(found))
        return 0
    ended = [kind for name in names for kind in _trusted(service, name)]
    counter.show(ended, given, lambda: "\n".join(f"{kind} is bought again" for kind in ended))
    return 0


def _trusted(service: Client, name: str | None) -> list[str]:
    """Raises Told."""
    route = "/v1/protected/end"
    told = service.post(route) if name is None else service.post(route, kind=name)
    kinds: list[str] = told["kinds"]
    return kinds


def db_backup(given: Values, counter: Counter) -> int:
    target = Path(given["words"][0]) if given["words"] else None
    print(backup(counter.paths, target))
    return 0


def db_check(given: Values, counter: Counter) -> int:
    """1 if something is wrong."""
    where, wrong = problems(counter.paths)
    print("\n".join(wrong) or f"ok: {where}")
    return 1 if wrong else 0


def version(given: Values, counter: Counter) -> int:
    print(f"skypurza {version_of('skypurza')}, slurm {read(counter.paths).slurm_version}")
    return 0
