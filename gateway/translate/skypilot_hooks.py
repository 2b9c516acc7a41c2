"""SkyPilot's hooks: scripts for the end of a cluster or managed job, on its first node.

They are what holds the allocation, once it is asked to end: with the task's variables, in its
folder, each as long as it may take. One that fails holds nothing up.
"""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.translate.skypilot import Task
from gateway.translate.skypilot_files import forgetting

EVENTS: Final = ("stop", "preemption", "down")
USUAL_SECONDS: Final = 3600
FORGET_SECONDS: Final = 600
LONGEST: Final = 24 * 3600
KEEPER: Final = """\
hooks() {{
  trap '' TERM USR1 USR2
  event=$1
{calls}  exit 0
}}
hook() {{  # EVENTS SECONDS SCRIPT
  case " $1 " in *" $event "*) ;; *) return ;; esac
  SKYPILOT_HOOK_EVENT=$event SKYPURZA_HOOK_EVENT=$event timeout "$2" /bin/bash -c "$3" </dev/null
  local code=$?
  [ "$code" -eq 0 ] || echo "spz: a hook of $event ended with $code" >&2
}}
trap 'hooks preemption' USR1
trap 'hooks stop' USR2
trap 'hooks down' TERM
while :; do sleep 86400 & wait $!; done
"""
"""Waits; told why it is to end it calls what belongs to that."""


@dataclass(frozen=True, slots=True)
class Hook:
    """One script, when it runs, and how long it may."""

    script: str
    events: tuple[str, ...] = EVENTS
    seconds: int = USUAL_SECONDS


def hooks_of(task: Task) -> tuple[Hook, ...]:
    """All that the task has, in any of the places where SkyPilot's versions have them.

    The last of all is for buckets that go with it.
    """
    script = forgetting(task)
    ours = () if script is None else (Hook(script, ("down",), FORGET_SECONDS),)
    return (*dict.fromkeys(_found(task)), *ours)


def _found(task: Task) -> Iterator[Hook]:
    old = task.experimental.config_overrides if task.experimental else None
    for config in (task.config, old):
        for one in (config.hooks if config else None) or ():
            yield _hook(one)
    for candidate in task.resources.candidates:
        for one in candidate.hooks or ():
            yield _hook(one)
        if candidate.termination_hook is not None:
            yield _hook(candidate.termination_hook)
        if (last := candidate.preemption) is not None:
            yield Hook(str(last["hook"]), ("preemption",), _bounded(last.get("hook_timeout")))
        asked = candidate.autostop
        if asked is not None and asked.hook is not None:
            yield Hook(asked.hook, ("stop", "down"), _bounded(asked.hook_seconds))


def _hook(tree: Mapping[str, Any]) -> Hook:
    script = str(tree.get("run") or tree.get("command") or "")
    return Hook(script, tuple(tree.get("events") or EVENTS), _bounded(tree.get("timeout")))


def _bounded(seconds: float | str | None) -> int:
    """As asked, the usual ones where nothing is; a day at most."""
    return min(max(1, int(float(seconds or USUAL_SECONDS))), LONGEST)


def keeper(hooks: tuple[Hook, ...]) -> str:
    """The script that holds an allocation until it ends, and then runs these."""
    calls = (
        f"  hook {shlex.join([' '.join(one.events), str(one.seconds), one.script])}\n"
        for one in hooks
    )
    return KEEPER.format(calls="".join(calls))


def seconds_of(hooks: tuple[Hook, ...]) -> int:
    """How long they may take together."""
    return sum(one.seconds for one in hooks)
