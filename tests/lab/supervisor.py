# ruff: noqa: PTH110, PTH123, PTH208
"""Runs one machine of the box: sshd and whatever comes of it, until stdin closes or power is cut.

Started as `python -ISs supervisor.py FOLDER -- ARGV...`. Every process of the machine descends from
this one, also what has made itself a daemon; none of them outlives it. Exits 10 after `shutdown`.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
HALTED = 10


def parents():
    """The parent of every process."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                found[int(name)] = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return found


def descendants():
    parent = parents()
    children = {}
    for pid, above in parent.items():
        children.setdefault(above, []).append(pid)
    found, look = [], [os.getpid()]
    while look:
        below = children.get(look.pop(), [])
        found += below
        look += below
    return found


def end_all():
    """Kills until nothing is left; what is killed late falls to this process by and by."""
    while True:
        reap()
        left = descendants()
        if not left:
            return
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.005)


def stop(*_):
    end_all()
    os._exit(1)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def power(line):
    """When the machine is to go off: `off SECONDS` or `on`, as `shutdown` writes it."""
    words = line.split()
    if words[:1] == [b"off"]:
        return time.monotonic() + float(words[1])
    return None


def run(folder, argv):
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    switch = os.open(f"{folder}/power", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, stop)
    nothing = os.open("/dev/null", os.O_RDWR)
    for words in ([f"{folder}/boot.sh"], argv):
        if os.path.exists(words[0]) and os.fork() == 0:
            os.setsid()
            os.dup2(nothing, 0)
            os.execv(words[0], words)
    off = None
    while off is None or time.monotonic() < off:
        wait = None if off is None else max(0.0, off - time.monotonic())
        ready = select.select([0, switch, woken], [], [], wait)[0]
        if woken in ready:
            os.read(woken, 4096)
            reap()
        if switch in ready:
            off = power(os.read(switch, 4096).strip().rpartition(b"\n")[2])
        if 0 in ready and not os.read(0, 1):
            end_all()
            return 0
    end_all()
    return HALTED


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[3:]))
