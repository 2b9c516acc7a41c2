"""A script of a user's that is told of something: run with the user's rights, for so long."""

import contextlib
import json
import os
import signal
import subprocess
import sys

from . import landing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOOK_TOO_LONG = 124
"""Exit code, as timeout(1) has it."""


def main(argv: "list[str]") -> int:
    """`call UID GID GROUPS SECONDS FOLDER LOG`; script and variables come on standard input."""
    uid, gid, groups, seconds, folder, log = argv
    asked = json.loads(sys.stdin.buffer.read().decode("ascii"))
    try:
        landing.become(int(uid), int(gid), [int(one) for one in groups.split(",") if one])
        os.makedirs(os.path.dirname(log), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        out = os.open(log, flags, 0o600)
        return _run(asked, folder, out=out, seconds=float(seconds))
    except OSError as error:
        sys.stderr.write("{}: {}\n".format(error.filename or log, error.strerror))
        return 1


def _run(asked: "dict[str, Any]", folder: str, *, out: int, seconds: float) -> int:
    child = subprocess.Popen(
        ["/bin/bash", "-c", asked["script"]],
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        cwd=folder,
        env=asked["env"],
        start_new_session=True,
    )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return TOOK_TOO_LONG
    finally:
        _end(child)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """What it left behind goes with it."""
    with contextlib.suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
