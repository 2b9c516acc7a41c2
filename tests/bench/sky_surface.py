"""What the real SkyPilot's command line and functions take and ours do not: a line for each.

sky_surface.py --venv DIR

Exits 1 if there is any. Its environment is one where `skypilot[aws]` is installed; without one a
line says so and nothing is compared.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from gateway import sdk
from gateway.sdk.verbs.line import PAIR
from gateway.sdk.verbs.table import BY_NAME

REFUSED = frozenset({"serve", "workspace", "ssh", "debug-dump", "gpus label"})
"""Verbs, by their first words, that are refused whatever they are given."""
OLDER = frozenset({("exec", "--cluster"), ("logs", "--autostop"), ("launch", "-no-d")})
"""Spellings that SkyPilot hides and warns of."""
FUNCTIONS = (
    *("launch", "exec", "status", "queue", "job_status", "tail_logs", "cancel", "down", "stop"),
    *("start", "autostop", "cost_report", "endpoints", "get", "stream_and_get"),
    *("jobs.launch", "jobs.queue"),
    *("jobs.cancel", "jobs.tail_logs", "Task.__init__", "Task.from_yaml", "Task.set_resources"),
    *("Resources.__init__", "Resources.copy"),
)
ASK = """
import inspect, json
import click
import sky
from sky.client.cli import command
verbs = {}
def walk(group, before):
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            walk(found, [*before, name])
        else:
            options = [p for p in found.params if isinstance(p, click.Option)]
            verbs[" ".join([*before, name])] = [[*p.opts, *p.secondary_opts] for p in options]
walk(command.cli, [])
def parameters(path):
    found = sky
    for name in path.split("."):
        found = getattr(found, name)
    return [p for p in inspect.signature(found).parameters if not p.startswith("_")]
print(json.dumps([verbs, {name: parameters(name) for name in NAMES}]))
"""


def asked(python: Path) -> tuple[dict[str, list[list[str]]], dict[str, list[str]]]:
    """Options by verb and parameters by function, as SkyPilot has them."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [python, "-c", ASK.replace("NAMES", repr(FUNCTIONS))],
            env={**os.environ, "HOME": home, "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    verbs, functions = json.loads(done.stdout.splitlines()[-1])
    return verbs, functions


def options_of(verb: str) -> set[str]:
    names: set[str] = set()
    for opt in BY_NAME[verb].options:
        own = opt.names.split()
        names.update(own)
        if opt.kind == PAIR:
            names.update(f"--no-{name.removeprefix('--')}" for name in own if name[:2] == "--")
    return names


def missing_options(verbs: dict[str, list[list[str]]]) -> Iterator[str]:
    for verb, options in verbs.items():
        if any(verb == word or verb.startswith(f"{word} ") for word in REFUSED):
            continue
        if verb not in BY_NAME:
            yield f"verb {verb}"
            continue
        ours = options_of(verb)
        for names in options:
            if ours.isdisjoint(names) and not any((verb, name) in OLDER for name in names):
                yield f"{verb} {' '.join(names)}"


def missing_parameters(functions: dict[str, list[str]]) -> Iterator[str]:
    for path, names in functions.items():
        found: Any = sdk
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is None:
            yield f"function {path}"
            continue
        ours = inspect.signature(found).parameters
        loose = any(one.kind is one.VAR_KEYWORD for one in ours.values())
        yield from (f"{path}({name})" for name in names if name not in ours and not loose)


def main() -> int:
    parser = argparse.ArgumentParser(description="what SkyPilot takes and ours does not")
    parser.add_argument("--venv", type=Path, required=True)
    python = parser.parse_args().venv / "bin" / "python"
    if not python.exists():
        sys.stdout.write(f"SKIP: no {python}\n")
        return 0
    verbs, functions = asked(python)
    found = [*missing_options(verbs), *missing_parameters(functions)]
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
