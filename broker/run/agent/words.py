"""What slurmstepd writes into a job's output file (forms of Slurm 25.11)."""

import os
import select
import time

BECAUSE = {
    "time_limit": "DUE TO TIME LIMIT",
    "requeued": "DUE TO JOB REQUEUE",
    "preempted": "DUE TO PREEMPTION",
    "taken_back": "DUE TO PREEMPTION",
    "node_fail": "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
    "task_failure": "DUE TO TASK FAILURE",
}
WHY = {"preempted": 10, "taken_back": 10, "stopped": 12}
"""Signals by which a step that wants to know hears why it is ended (SIGUSR1, SIGUSR2)."""
PAUSES = {"requeued": 0.2}
"""Seconds before the end: a job that asked for its own requeue hears the answer first."""
SIGNALS = {9: "Killed", 15: "Terminated"}


def moment(now: float) -> str:
    """Local time of this node to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now))


def error(text: bytes, now: float) -> bytes:
    """A line as slurmstepd logs it, such as `[2026-11-29T16:31:14.247] error: ...`."""
    stamp = "[{}.{:03d}] error: ".format(moment(now), int(now * 1000) % 1000)
    return stamp.encode("ascii") + text + b"\n"


def cancelled(who: str, node: str, *, why: str, now: float) -> bytes:
    """The line about a job's or step's end; `why` is a BECAUSE or `DUE to SIGNAL ...`."""
    text = "*** {} ON {} CANCELLED AT {} {} ***".format(who, node, moment(now), why)
    return error(text.encode("utf-8", "surrogateescape"), now)


def because(cause: str, number: int = 15) -> str:
    """Slurm's reason for a kill; a signal's name where it has none of its own."""
    return BECAUSE.get(cause) or by_signal(number)


def by_signal(number: int) -> str:
    return "DUE to SIGNAL {}".format(SIGNALS[number])


def put(fd: int, data: bytes) -> None:
    """Into a step's output, if that takes it now."""
    try:
        if select.select([], [fd], [], 0)[1]:  # a pipe that nobody empties must not hold us up
            os.write(fd, data)
    except OSError:
        return  # the user's disk is full or the reader gone; the journal has the reason too
