"""From the options of launch and exec to what is sent."""

import os
from collections.abc import Sequence
from pathlib import Path

from broker.model.errors import Refused
from gateway.sdk.client import Json
from gateway.sdk.sending import request, task_text, variables
from gateway.sdk.verbs.line import UsageError, Values

DIRECT = (
    *("name", "workdir", "infra", "cloud", "region", "zone", "cpus", "memory", "instance_type"),
    *("use_spot", "image_id", "disk_size", "disk_tier", "network_tier", "local_disk", "num_nodes"),
    *("priority", "job_recovery"),
)
"""Options that are keys of a task."""


def body_of(given: Values, words: Sequence[str]) -> Json:
    """What to send for a command line. Raises Refused."""
    return request(
        task_text(words),
        environ=os.environ,
        overrides=overrides(given),
        envs=variables_of(given, "env"),
        secret=variables_of(given, "secret"),
    )


def variables_of(given: Values, key: str) -> dict[str, str]:
    """`--env` or `--secret` and their files.

    Raises UsageError for one that is not set and for a file that cannot be read, as SkyPilot does.
    """
    files = map(Path, given[f"{key}_file"])
    try:
        return variables(given[key], files, os.environ, option=f"--{key}")
    except Refused as error:
        raise UsageError(error.message, hint=error.hint) from None


def overrides(given: Values) -> Json:
    """Keys of a task, as the options say. Raises Refused."""
    found = {key: given.get(key) for key in DIRECT}
    found["accelerators"] = given.get("gpus")
    if given.get("git_url"):
        ref = given.get("git_ref")
        found["workdir"] = {"url": given["git_url"], **({"ref": ref} if ref else {})}
    if given.get("ports"):
        found["ports"] = given["ports"]
    if settings := [*(given.get("config") or ()), *_partition(given)]:
        found["config"] = _settings(settings)
    found["autostop"] = _autostop(given)
    return {key: value for key, value in found.items() if value is not None}


def _partition(given: Values) -> list[str]:
    """Where tasks name their partition."""
    name = given.get("partition")
    return [f"slurm.sbatch_options.partition={name}"] if name else []


def _autostop(given: Values) -> Json | None:
    minutes = given.get("idle_minutes_to_autostop")
    if minutes is None and not given.get("down"):
        return None
    if minutes is not None and minutes < 0:
        return None
    waits = {"wait_for": given["wait_for"]} if given.get("wait_for") else {}
    return {"idle_minutes": minutes or 0, "down": bool(given.get("down")), **waits}


def _settings(texts: Sequence[str]) -> Json:
    """`slurm.quota.queue=long` as a tree. Raises Refused."""
    tree: Json = {}
    for text in (one for given in texts for one in given.split(",")):
        path, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"option --config: {text!r} is not KEY=VALUE")
        *groups, last = path.split(".")
        place = tree
        for group in groups:
            place = place.setdefault(group, {})
        place[last] = value
    return tree
