"""Sees to it that a machine ends when nobody wants it, and tells its agent when it is taken away.

A process of its own, which an agent that dies does not take with it.
"""

import json
import os
import sys
import time

from . import fetched, spool, wire
from .posting import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .order import Options

SOCKET = "agent.sock"
LOCK = "keeper.lock"
TURN = 5.0
"""Seconds between two looks at what the cloud says; it warns 120 s ahead."""
LOOK = 30.0
"""Seconds between two looks at the agent."""
NEAR = 600.0
"""So long before its end a machine on which something lives gets more time, as often as needed."""
MORE = 1800.0
MOST_OFF = 60.0
"""Seconds that the clock may be off."""
TOKEN_SECONDS = 300
IMDS = "http://169.254.169.254"
ELSEWHERE = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
"""AWS's own variable for another address of the metadata service."""
NOTICE = "/latest/meta-data/spot/instance-action"


class Keeper:
    """`lease` and `deadline` as the agent's options have them; 0 is none."""

    def __init__(self, lease: float, deadline: float, notices: bool) -> None:
        self.lease = lease
        self.deadline = deadline
        self.notices = notices
        self.off = 0.0
        """Seconds that this machine's clock is ahead, as far as was told."""
        self.told = ""
        self.token = ""
        self.token_until = 0.0
        self.heard = time.monotonic()
        """When somebody last wanted something here."""

    def run(self) -> None:
        self.arm()
        looked = 0.0
        while os.path.exists(LOCK):
            now = time.monotonic()
            if now - looked >= LOOK or self.short():
                looked = now
                self.look()
            if self.notices:
                self.listen()
            time.sleep(min(TURN, self.lease / 4 or TURN))

    def arm(self) -> None:
        """A machine that was stopped forgot its timer; its user data is read at the first boot.

        Not at once: its clock may be ahead, which nobody could tell it yet.
        """
        if self.deadline:
            left = max(NEAR, self.deadline - time.time())
            power_off("+{}".format(-(-int(left) // 60)))

    def set_right(self, now: float) -> None:
        """Its hard end is by the service's clock, which says `now`."""
        off = time.time() - now
        if self.deadline and abs(off - self.off) > MOST_OFF:
            self.deadline += off - self.off
            self.off = off
            self.arm()

    def short(self) -> bool:
        """Whether the lease is so short that it is looked at each turn."""
        return 0 < self.lease < 4 * LOOK

    # ---------------------------------------------------------------- the end

    def look(self) -> None:
        idle, lives, now = self.state()
        self.set_right(now)
        if lives:
            self.heard = time.monotonic()
            self.prolong()
        elif idle is not None:
            self.heard = max(self.heard, time.monotonic() - idle)
        if self.lease and time.monotonic() - self.heard >= self.lease and not self.owes():
            power_off("now")

    def owes(self) -> bool:
        """Results that nobody has fetched wait for somebody, until the hard end."""
        return bool(self.deadline) and time.time() < self.deadline and fetched.owed()

    def state(self) -> "tuple[Optional[float], bool, float]":
        """For how long nobody has spoken to the agent, None if it is dead; whether steps live; the
        time, as the agent was told it.
        """
        try:
            said = json.loads(wire.ask(SOCKET, wire.encode({"do": "idle"}), 5.0).decode())
            now = float(said.get("now", time.time() - self.off))
            return float(said["idle"]), bool(said["live"]), now
        except (OSError, ValueError, KeyError):
            places = [spool.Place(key) for key in spool.step_keys()]
            lives = any(held(one.file("lock")) for one in places if not one.stays())
            return None, lives, time.time() - self.off

    def prolong(self) -> None:
        """Steps that live end at their own limits: until then their machine is wanted."""
        if self.deadline and self.deadline - time.time() < NEAR:
            self.deadline = time.time() + MORE
            power_off("+{}".format(int(MORE // 60)))

    # ---------------------------------------------------------------- the cloud

    def listen(self) -> None:
        """Hears whether the machine will be taken back, and tells the agent until it has it."""
        try:
            said = self.get(NOTICE)
        except OSError:
            return  # there is none, or the service does not answer now
        if said and said != self.told and self.pass_on(said):
            self.told = said

    def pass_on(self, said: str) -> bool:
        try:
            notice = json.loads(said)
            order = {"do": "notice", "action": str(notice["action"]), "when": str(notice["time"])}
            answer = wire.ask(SOCKET, wire.encode(order), 5.0)
            return bool(json.loads(answer.decode()).get("ok"))
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def get(self, path: str) -> str:
        if time.monotonic() >= self.token_until:
            self.token = fetch(
                "/latest/api/token",
                "PUT",
                {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_SECONDS)},
            )
            self.token_until = time.monotonic() + TOKEN_SECONDS / 2
        return fetch(path, "GET", {"X-aws-ec2-metadata-token": self.token})


def fetch(path: str, method: str, headers: "dict[str, str]") -> str:
    """Raises OSError, of which urllib's errors are."""
    from urllib.request import ProxyHandler, Request, build_opener  # noqa: PLC0415

    base = os.environ.get(ELSEWHERE) or IMDS
    asked = Request(base.rstrip("/") + path, headers=headers, method=method)
    with build_opener(ProxyHandler({})).open(asked, timeout=2.0) as answer:
        text: str = answer.read().decode("utf-8", "replace")
        return text


def power_off(when: str) -> None:
    """`now`, or `+MINUTES`, which takes the place of what was said before."""
    import subprocess  # noqa: PLC0415

    subprocess.call(["shutdown", "-h", when], stdin=subprocess.DEVNULL)


def start(archive: str, options: "Options") -> None:
    """In a session of its own; one that is there already is enough."""
    import subprocess  # noqa: PLC0415

    argv = [sys.executable, "-IS", archive, "keep", options.dir, str(options.lease)]
    argv += [str(options.deadline), "1" if options.notices else ""]
    with open("keeper.log", "ab") as log:
        subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


def main(argv: "list[str]") -> int:
    """DIR LEASE DEADLINE NOTICES."""
    os.chdir(argv[0])
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if spool.lock(lock):
        Keeper(float(argv[1]), float(argv[2]), bool(argv[3])).run()
    return 0
