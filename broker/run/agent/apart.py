"""How the supervisor of a step comes to live apart from the agent that forked it."""

import os
import signal

from . import procs, trouble
from .order import Order
from .supervisor import Supervisor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

NAME = b"spz-step"


def main(order: Order, keep: "set[int]") -> "NoReturn":
    """Runs in a fork of the agent and never returns; of its descriptors only `keep` stay."""
    status = 70
    try:
        wake = _settle(keep)
        Supervisor(order, wake).run()
        status = 0
    except BaseException:  # border: nothing of the agent may run in this process
        trouble.tell()
    finally:
        os._exit(status)


def _settle(keep: "set[int]") -> int:
    """Away from the agent: own session, no descriptors of its, orphans come here."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    procs.close_others(keep | {0, 1, 2})
    procs.prctl(procs.PR_SET_CHILD_SUBREAPER, 1)
    procs.prctl(procs.PR_SET_NAME, NAME)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # at shutdown the step ends first, then its record
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    return wake
