"""Starts services from a process that has everything loaded: a restart takes a fork, not seconds.

Each line of standard input is an order as JSON; the answer is the pid of the new service, a process
with a session of its own that has nothing of ours but the loaded modules.
"""

import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from broker.model.errors import SpzError
from broker.optimize.bundled import bundled
from broker.run.launch import agent_zipapp
from gateway.config.paths import Paths
from gateway.sdk.background import foreground

LOADED_LATE = (
    "encodings.ascii",
    "encodings.idna",
    "encodings.latin_1",
    "gateway.config.load",
    "gateway.observe.log",
    "gateway.serve",
)
"""What is imported late; another user may not even be able to read this Python."""


def main() -> None:
    for name in LOADED_LATE:
        importlib.import_module(name)
    agent_zipapp()
    bundled("local")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()


def become(order: dict[str, Any]) -> None:
    """The service, as the order's user; never returns."""
    status = 1
    try:
        settle(order)
        paths = Paths.from_environ(os.environ, uid=os.getuid(), user_home=Path(order["home"]))
        status = foreground(paths)
    except SpzError as error:
        sys.stderr.write(f"spz: error: {error.message}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def settle(order: dict[str, Any]) -> None:
    """Streams, session, user and environment of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    out = os.open(order["out"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((null, 0), (out, 1), (out, 2)):
        os.dup2(old, new)
    if order["uid"] != os.getuid():
        os.initgroups(order["user"], order["gid"])
        os.setgid(order["gid"])
        os.setuid(order["uid"])
    os.environ.clear()
    os.environ.update(order["environ"])
    os.chdir("/")


if __name__ == "__main__":
    main()
