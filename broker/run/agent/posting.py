"""What the agent does about posting its journal; the posting itself is a process of its own."""

import os
import subprocess
import sys

from . import journal, spool, trouble, version, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGENT = "agent.sock"
TOLD = "push"
"""What the service told: `url`, `pin`, `ca` and `token`; for the agent's own user alone."""
NEWS = "push.sock"
"""Who connects there has written into the journal."""
LOCK = "push.lock"
PREDECESSOR_PATIENCE = 60.0
"""So long one whose agent is gone may take to its end."""


def tell(request: "dict[str, Any]") -> "dict[str, Any]":
    """Where to post from now on; kept, for an agent that is started here later."""
    told = {name: str(request["to"][name]) for name in ("url", "pin", "ca", "token")}
    journal.save(TOLD, told, durable=True)
    nudge()
    return {"ok": True}


def begin(patience: float = PREDECESSOR_PATIENCE) -> None:
    """Where it was told to; of several one goes on, the others wait for its end so long."""
    if not os.path.exists(TOLD):
        return
    argv = [sys.executable, "-IS", sys.argv[0], "push", ".", str(patience)]
    try:
        with open("push.log", "ab") as log:
            subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={},
                start_new_session=True,
            )
    except OSError:
        trouble.tell()  # the disk is full: the next line of the journal tries again


def nudge() -> None:
    """The journal has grown; a process that was killed is begun again."""
    if not held(LOCK):
        begin(0.0)
    wire.shout(NEWS, b"\n")


def known() -> str:
    """Digest of what was told; empty where nothing was, or nobody posts."""
    told = journal.load(TOLD)
    return "" if told is None or not held(LOCK) else version.told(told)


def held(path: str) -> bool:
    """Whether somebody has locked it."""
    try:
        fd = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not spool.lock(fd)
    finally:
        os.close(fd)
