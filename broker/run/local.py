"""The way to a node that is a folder of this host, and the certain end of everything on it."""

import errno
import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from broker.ports import Done
from broker.run import launch
from broker.run.agent import wire
from broker.run.agent.daemon import HALTED
from broker.run.records import records

FOLDER_MODE = 0o711
"""Users pass through to their own spool; what lies beside it they cannot list."""
HALT_SECONDS = 30.0
LEAVE_SECONDS = 5.0
"""How long an agent that has answered `halt` may take to be gone."""
ATTEMPTS = 3


class LocalChannel:
    """Runs programs of this host; `up` says whether the node can be reached now."""

    def __init__(self, up: Callable[[], bool]) -> None:
        self._up = up

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        """Raises TimeoutError, which is an OSError, when it takes longer."""
        self._check()
        try:
            done = subprocess.run(
                list(argv), input=stdin, capture_output=True, timeout=timeout, check=False, cwd="/"
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"{argv[0]} took more than {timeout:g} s") from error
        return Done(done.returncode, done.stdout, done.stderr)

    def put(self, data: bytes, path: str, mode: int) -> None:
        self._check()
        place = Path(path)
        place.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}.{os.getpid()}.{time.monotonic_ns()}")
        try:
            draft.write_bytes(data)
            draft.chmod(mode)
            draft.rename(place)
        finally:
            draft.unlink(missing_ok=True)

    def read(self, path: str, offset: int) -> bytes:
        self._check()
        try:
            with Path(path).open("rb") as file:
                file.seek(offset)
                return file.read()
        except FileNotFoundError:
            return b""

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        """Raises ConnectionError, which is an OSError, when no answer comes."""
        self._check()
        return _ask(path, request, timeout)

    def _check(self) -> None:
        if not self._up():
            raise OSError(errno.EHOSTUNREACH, "the machine is not up")


def _ask(path: str, request: bytes, timeout: float) -> bytes:
    answer = wire.ask(path, request, timeout)
    if not answer:
        raise ConnectionError(f"{path}: no answer")
    return answer


def end_node(folder: Path, *, archive: str, python: str) -> None:
    """Ends agent and steps of the node in `folder`; on return no process of its is left.

    A dead agent is started again first, since it alone knows what it began. Raises OSError if
    something does not end; may then be called again.
    """
    if not folder.exists():
        return
    (folder / HALTED).touch()  # whoever starts an agent there from now on only ends what is left
    for _ in range(ATTEMPTS):
        if is_quiet(folder):
            return
        try:
            _ask(str(folder / "agent.sock"), launch.halt(), HALT_SECONDS)
        except OSError:
            argv = launch.serve_argv(python, str(folder / archive), folder=str(folder), node="")
            subprocess.run(argv, capture_output=True, timeout=HALT_SECONDS, check=False)
        _wait_for_lock(folder / "lock")
    if not is_quiet(folder):
        raise OSError(errno.EBUSY, f"processes of {folder} do not end")


def reopen_node(folder: Path) -> None:
    """Lets an agent begin anew in the folder of a node that `end_node` ended."""
    (folder / HALTED).unlink(missing_ok=True)


def is_quiet(folder: Path) -> bool:
    """Whether neither an agent nor a step lives in `folder`, nor any whose end is not written."""
    locks = [folder / "lock", *folder.glob("steps/*/lock")]
    return not any(_is_held(lock) for lock in locks) and not _unfinished(folder / "journal")


def _is_held(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _unfinished(journal: Path) -> bool:
    """Whether steps were accepted whose end is not written: their processes may live."""
    data = journal.read_bytes() if journal.exists() else b""
    keys: dict[object, set[object]] = {"accepted": set(), "exited": set()}
    for record in records(data)[0]:
        keys.setdefault(record["kind"], set()).add(record.get("key"))
    return not keys["accepted"] <= keys["exited"]


def _wait_for_lock(path: Path) -> None:
    end = time.monotonic() + LEAVE_SECONDS
    while _is_held(path) and time.monotonic() < end:
        time.sleep(0.01)
