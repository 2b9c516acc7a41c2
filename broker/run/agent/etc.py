"""Users and names of nodes in /etc, of a machine that is ours alone.

Names stand in lines that end in a mark of their attempt, by which they are found again.
"""

import fcntl
import grp
import os
import pwd

from . import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

HOSTS = "/etc/hosts"
MARK = "# skypurza {}"


def lacks_user(step: "dict[str, Any]") -> bool:
    """Whether the step's user is to be made here."""
    return bool(step.get("ours")) and os.geteuid() == 0 and not _known(step)


def _known(step: "dict[str, Any]") -> bool:
    try:
        found = pwd.getpwnam(step["user"]).pw_uid
    except KeyError:
        return False
    return bool(found == step["uid"])


def make_user(step: "dict[str, Any]") -> bool:
    """The step's user with uid, group and home as on the login node; a uid may have two names.

    A step whose user could not be made still runs by its uid.
    """
    if not lacks_user(step):
        return True
    uid, gid, user = step["uid"], step["gid"], step["user"]
    home = step.get("home") or "/"
    if not _has_group(gid):
        programs.done(["groupadd", "-o", "-g", str(gid), step.get("group") or user])
    shell = step.get("shell") or "/bin/sh"
    shell = shell if os.access(shell, os.X_OK) else "/bin/sh"
    programs.done(
        ["useradd", "-o", "-M", "-N", "-u", str(uid), "-g", str(gid), "-d", home, "-s", shell, user]
    )
    if not os.path.lexists(home):
        os.makedirs(os.path.dirname(home), 0o755, exist_ok=True)
        os.mkdir(home, 0o700)
        os.chown(home, uid, gid)
    return True


def _has_group(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True


def add_hosts(step: "dict[str, Any]", attempt: str, path: str = HOSTS) -> bool:
    """The names of the job's nodes, each with its address."""
    kin = step.get("kin")
    if not kin or not step.get("ours") or os.geteuid() != 0:
        return True
    mark = MARK.format(attempt)
    ours = ["{} {} {}\n".format(address, name, mark) for name, address, _tasks in kin["nodes"]]
    _rewrite(path, lambda lines: [*_without(lines, mark), *ours])
    return True


def drop_hosts(attempt: str, path: str = HOSTS) -> None:
    """Only where there are any."""
    mark = MARK.format(attempt)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            there = any(line.rstrip().endswith(mark) for line in file)
    except OSError:
        return
    if there:
        _rewrite(path, lambda lines: _without(lines, mark))


def _without(lines: "list[str]", mark: str) -> "list[str]":
    return [line for line in lines if not line.rstrip().endswith(mark)]


def _rewrite(path: str, change: "Callable[[list[str]], list[str]]") -> None:
    """In place, since it may be mounted; whole at any moment but one."""
    with open(path, "r+", encoding="utf-8", errors="surrogateescape") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        text = "".join(change(lines))
        file.seek(0)
        file.write(text)
        file.truncate()
