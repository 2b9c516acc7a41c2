"""What runs as ourselves around a job: setup of the node, prolog, epilog, and the job's own folder.

Setup runs once on a node, the prolog once for an attempt there, before its first step; what follows
the attempt's end is remembered in a file until it is done. Their words are in `hooks.log`.
"""

import base64
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess

from . import container, etc, journal, kit, programs, scratch, spool, trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

LOG = "hooks.log"
LOCK = "hooks.lock"
SETUP = "setup.done"
AFTER = "after"
BEFORE = "before"
REMEMBERED = ("epilog", "tmpdir", "env", "uid", "gid", "user", "groups")
SHELL = "/bin/sh"
NAMES = ("setup", "prolog", "tmpdir", "kin")
AFTERWARDS = ("epilog", "tmpdir", "kin", "container")


def wanted(step: "dict[str, Any]") -> bool:
    """Whether anything is to be done before the step."""
    return any(step.get(name) for name in NAMES) or etc.lacks_user(step)


def fork_before(step: "dict[str, Any]", key: str) -> int:
    """The process that does it; it ends with 0 if the step may begin."""
    return _fork(lambda: _before(step, spool.attempt_of(key)))


def fork_tidy(step: "dict[str, Any]") -> "Optional[int]":
    """The process that does, as the step's user, what is to be done behind its last task."""
    if not step.get("container"):
        return None
    return _fork(lambda: container.tidy(step))


def _fork(act: "Callable[[], bool]") -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 0 if act() else 1
    except BaseException:  # border: nothing of the agent may run in this process
        trouble.tell()
    finally:
        os._exit(code)


def _before(step: "dict[str, Any]", attempt: str) -> bool:
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # another step may be at it
    return (
        _set_up(step.get("setup"))
        and etc.make_user(step)
        and etc.add_hosts(step, attempt)
        and kit.lay_out(step, attempt)
        and _prologue(step, attempt)
        and _make_folder(step, attempt)
    )


def _set_up(lines: "str | None") -> bool:
    """Once on a node; other lines than before run again."""
    if not lines:
        return True
    mark = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    if (journal.load(SETUP) or {}).get("lines") == mark:
        return True
    done = _run([SHELL, "-e", "-c", lines], {}) == 0
    if done:
        journal.save(SETUP, {"lines": mark})
    return done


def _prologue(step: "dict[str, Any]", attempt: str) -> bool:
    program = step.get("prolog")
    mark = os.path.join(BEFORE, attempt.replace("/", "."))
    if not program or os.path.exists(mark):
        return True
    done = _run([program], _variables(step, "prolog_slurmd")) == 0
    if done:
        os.makedirs(BEFORE, 0o700, exist_ok=True)
        journal.save(mark, {})
    return done


def _make_folder(step: "dict[str, Any]", attempt: str) -> bool:
    """The job's own, which is gone with it; one that another user has is not taken.

    Where the machine has disks of its own it is a link to a folder there.
    """
    path = step.get("tmpdir")
    if not path:
        return True
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    place = scratch.place() if step.get("ours") and os.geteuid() == 0 else ""
    if not place:
        return _make_own(path, step)
    real = scratch.folder(attempt)
    if not _make_own(real, step):
        return False
    if path == real:
        return True
    if not os.path.lexists(path):
        os.symlink(real, path)
    return os.path.islink(path) and os.readlink(path) == real


def _make_own(path: str, step: "dict[str, Any]") -> bool:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        found = os.lstat(path)
        return found.st_uid == step["uid"] and os.path.isdir(path) and not os.path.islink(path)
    if os.geteuid() == 0:
        os.chown(path, step["uid"], step["gid"])
    return True


def _drop_folder(path: str) -> None:
    if os.path.islink(path) and os.path.dirname(os.readlink(path)) == scratch.PLACE:
        shutil.rmtree(os.readlink(path), ignore_errors=True)
        os.unlink(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _run(argv: "list[str]", variables: "dict[str, str]") -> int:
    print("running", argv[0] if argv[0] != SHELL else "setup", flush=True)
    environment = dict(variables, PATH=programs.PATH)
    code = subprocess.call(argv, env=environment, cwd="/", stdin=subprocess.DEVNULL)
    if code:
        print(argv[0], "ended with", code, flush=True)
    return code


def _variables(step: "dict[str, Any]", context: str) -> "dict[str, str]":
    """Of the job's variables Slurm's own, as its prologs have them."""
    entries = base64.b64decode(step.get("env") or "").split(b"\0")
    pairs = (entry.decode("utf-8", "surrogateescape").partition("=") for entry in entries)
    found = {name: value for name, _, value in pairs if name.startswith("SLURM")}
    return dict(found, SLURM_SCRIPT_CONTEXT=context)


# ---------------------------------------------------------------- behind it


def remember(step: "dict[str, Any]", key: str, *, ours: bool) -> None:
    """What is to be done on this node when the attempt is over."""
    if ours and os.geteuid() == 0:
        scratch.give(step, spool.attempt_of(key))
    if not any(step.get(name) for name in AFTERWARDS):
        return
    os.makedirs(AFTER, 0o700, exist_ok=True)
    after = _after(spool.attempt_of(key))
    facts = {name: step.get(name) for name in REMEMBERED}
    before = journal.load(after) or {}
    facts["container"] = bool(step.get("container") or before.get("container"))
    journal.save(after, facts)


def _after(attempt: str) -> str:
    return os.path.join(AFTER, attempt.replace("/", "."))


class Epilogs:
    """Those that run."""

    def __init__(self) -> None:
        self.running = {}  # type: dict[int, str]

    def pending(self, attempt: str) -> bool:
        """Whether something is still being done for the attempt, which is begun if need be."""
        if attempt in self.running.values():
            return True
        facts = journal.load(_after(attempt))
        if facts is None:
            return False
        self.running[_fork(lambda: _behind(facts, attempt))] = attempt
        return True

    def reaped(self, pid: int) -> None:
        attempt = self.running.pop(pid, None)
        if attempt is not None:
            spool.discard(_after(attempt))
            spool.discard(os.path.join(BEFORE, attempt.replace("/", ".")))


def _behind(facts: "dict[str, Any]", attempt: str) -> bool:
    done = True
    kit.discard(attempt)
    etc.drop_hosts(attempt)
    if facts.get("epilog"):
        done = _run([facts["epilog"]], _variables(facts, "epilog_slurmd")) == 0
    if facts.get("container"):
        os.waitpid(_fork(lambda: container.drop(facts, attempt)), 0)
    if facts.get("tmpdir"):
        _drop_folder(facts["tmpdir"])
    return done
