"""`python -m tests.lab`: the cloud in a box, by hand. Its first line is JSON with the endpoint."""

import argparse
import fcntl
import json
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.lab.app import Lab, Server, new_box
from tests.lab.host import NO_SSHD, SSHD, Hosts, login
from tests.lab.machines import Delays
from tests.lab.wares import Wares
from tests.lab.weather import Weather


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.lab", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the endpoint; 0 is any")
    parser.add_argument("--ssh-port", type=int, default=2222, help="of every machine")
    parser.add_argument("--state", type=Path, help="folder of the machines; a fresh one if absent")
    parser.add_argument("--speed", type=float, default=1.0, help="EC2's delays are divided by it")
    parser.add_argument("--boot", type=float, default=Delays().boot, help="seconds to running")
    parser.add_argument(
        "--ssh", type=float, default=Delays().ssh, help="seconds from there to sshd"
    )
    parser.add_argument("--stop", type=float, default=Delays().stop, help="seconds to terminated")
    parser.add_argument("--visible", type=float, default=Delays().visible, help="until found")
    parser.add_argument(
        "--listed", type=float, default=600.0, help="after termination; not sped up"
    )
    parser.add_argument("--seed", type=int, default=0, help="of everything that is left to luck")
    for share in ("refuse", "throttle", "lose"):
        parser.add_argument(f"--{share}", type=float, default=0.0, help="share, of 1")
    parser.add_argument("--hang", type=float, default=0.0, help="seconds that a lost answer takes")
    parser.add_argument(
        "--private", type=Path, help="folder that every machine has for itself; takes root"
    )
    parser.add_argument("--tied", action="store_true", help="end when stdin does")
    return parser


def main() -> int:
    asked = options().parse_args()
    state = asked.state or Path(tempfile.mkdtemp(prefix="spz-lab-", dir="/tmp"))
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{state}: another box uses it; name another --state", file=sys.stderr)
            return 1
        serve(asked, state.resolve())
    return 0


def serve(asked: argparse.Namespace, state: Path) -> None:
    hosts = Hosts(state, asked.ssh_port, private=asked.private)
    named = ("boot", "ssh", "stop", "visible", "listed", "speed")
    delays = Delays(**{name: getattr(asked, name) for name in named})
    weather = Weather(asked.seed, asked.refuse, asked.throttle, asked.lose, asked.hang)
    box = new_box(hosts, time.time, delays, weather=weather, wares=Wares.bundled())
    box.luck.seed(asked.seed)
    server = Server(Lab(box), asked.port)
    hosts.endpoint = server.endpoint
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    server.start()
    if not SSHD:
        print(f"{NO_SSHD}; machines run, and nobody gets in", file=sys.stderr)
    told = {
        "endpoint": server.endpoint,
        "ssh_port": asked.ssh_port,
        "ssh_user": login(),
        "state": str(state),
    }
    print(json.dumps(told), flush=True)
    if asked.tied:
        threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    over.wait()
    server.close()
    hosts.close()


if __name__ == "__main__":
    sys.exit(main())
