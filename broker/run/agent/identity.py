"""Whose step it is: user, groups, file mask and limits, as the submitter had them."""

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INFINITE = resource.RLIM_INFINITY


def problem(step: "dict[str, Any]") -> "str | None":
    """Why this agent cannot run a step as its user; None if it can."""
    uid = step.get("uid")
    if os.geteuid() in {0, uid}:
        return None
    return "the agent runs as uid {} and cannot run a step as uid {}".format(os.geteuid(), uid)


def become(step: "dict[str, Any]") -> None:
    """The step's user for good, in this process. Raises OSError."""
    if step.get("nice"):
        _try_nice(step["nice"])
    for name, limit in _limits(step):
        _set_hard(name, limit)
    if os.geteuid() == 0:
        _drop(step)
    os.umask(step.get("umask", 0o022))


def _drop(step: "dict[str, Any]") -> None:
    groups = step.get("groups")
    if groups is None:
        os.initgroups(step["user"], step["gid"])
    else:
        os.setgroups(groups)
    os.setresgid(step["gid"], step["gid"], step["gid"])
    os.setresuid(step["uid"], step["uid"], step["uid"])


def _try_nice(value: int) -> None:
    try:
        os.nice(value)
    except PermissionError:
        return  # only root may raise a priority; Slurm ignores it too


def _limits(step: "dict[str, Any]") -> "list[tuple[int, list[int | None]]]":
    known = []
    for name, limit in (step.get("rlimits") or {}).items():
        text = name.upper()
        number = getattr(resource, text if text.startswith("RLIMIT_") else "RLIMIT_" + text, None)
        if number is not None:
            known.append((number, limit))
    return known


def _plain(value: "int | None") -> int:
    return INFINITE if value is None or value < 0 else value


def _least(first: int, second: int) -> int:
    finite = [value for value in (first, second) if value != INFINITE]
    return min(finite) if finite else INFINITE


def _set_hard(number: int, limit: "list[int | None]") -> None:
    soft = resource.getrlimit(number)[0]
    hard = _plain(limit[1])
    _try_limit(number, _least(soft, hard), hard)


def apply_soft_limits(step: "dict[str, Any]") -> None:
    """The last thing before exec, since a small limit may hinder this process too."""
    for number, limit in _limits(step):
        hard = resource.getrlimit(number)[1]
        _try_limit(number, _least(_plain(limit[0]), hard), hard)


def _try_limit(number: int, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(number, (soft, hard))
    except (ValueError, OSError):
        return  # more than this node or user may have: what holds here stays, as with Slurm
