"""The environment that a login shell of the user's makes here, for jobs of `--export=NONE`."""

import os
import signal
import subprocess
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 10
"""Seconds that a shell's own files may take; then the job does without."""
MARK = b"=== environment ===\n"
"""What a shell's files print comes before it."""
ASK = "/bin/echo '{}'; /usr/bin/env -0".format(MARK.decode("ascii").strip())
NOT_TAKEN = frozenset(b"DISPLAY ENVIRONMENT HOSTNAME OLDPWD PWD SHLVL _".split())
"""Of that shell, or of who asked it, and not of the user."""


def below(values: "dict[bytes, bytes]", step: "dict[str, Any]", longest: float = LONGEST) -> None:
    """What the login shell has comes below the step's own; as it is where there is none to be had.

    `step["login"]` names those of `values` that stand in for the shell's.
    """
    names = [os.fsencode(name) for name in step.get("login") or ()]
    if not names:
        return
    ours = {name: values[name] for name in names if name in values}
    for name, value in _of_shell(ours, longest).items():
        if name in ours or name not in values:
            values[name] = value


def _of_shell(given: "dict[bytes, bytes]", longest: float) -> "dict[bytes, bytes]":
    try:
        said = _answer(given, longest)
    except OSError:
        return {}
    found = {}  # type: dict[bytes, bytes]
    for entry in said.partition(MARK)[2].split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if name and equals and name not in NOT_TAKEN:
            found[name] = value
    return found


def _answer(given: "dict[bytes, bytes]", longest: float) -> bytes:
    """All that the shell wrote; nothing where it took too long. Raises OSError."""
    shell, home = given.get(b"SHELL") or b"/bin/sh", given.get(b"HOME", b"/")
    with tempfile.TemporaryFile() as told:  # not a pipe: what it leaves running keeps its streams
        child = subprocess.Popen(
            [b"-" + os.path.basename(shell), b"-c", os.fsencode(ASK)],  # so a shell knows a login
            executable=shell,
            cwd=home if os.access(home, os.X_OK) else b"/",
            env=given,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            child.wait(longest)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return b""
        told.seek(0)
        return told.read()
