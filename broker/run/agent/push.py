"""Posts the journal to the service over HTTPS, where the node was told to: a process of its own.

However slow or silent the service is, the agent and its steps do not notice. No variable of the
environment says where it goes: a proxy would see the token.
"""

import contextlib
import hashlib
import http.client
import json
import os
import random
import select
import socket
import ssl
import time
import urllib.parse

from . import journal, spool, wire
from .posting import AGENT, LOCK, NEWS, TOLD, held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Told = dict[str, Any]

PULSE = 10.0
"""Seconds between two letters at most: they say that the agent lives."""
PIECE = 256 << 10
"""Bytes of the journal in one letter; a single line may be longer, up to MOST."""
MOST = 4 << 20
PATIENCE = 30.0
"""Seconds that the service may take for an answer; it waits ten for its disk."""
AGENT_PATIENCE = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Until the next try after one that failed: doubling, and by chance up to a half less."""
SOON = 0.5
"""The same where the service has a letter and not yet committed it."""
AGENT_LOCK = "lock"
MOST_ANSWER = 64 << 10


class AnswerError(OSError):
    """The service said no."""


class Line:
    """A kept connection to the service; it is who it should be before it hears anything."""

    def __init__(self, told: "Told") -> None:
        self.told = told
        self.http = None  # type: Optional[http.client.HTTPSConnection]

    def post(self, body: bytes) -> "tuple[int, dict[str, Any]]":
        """Status and answer. A connection that the service had closed is made anew. OSError."""
        fresh = self.http is None
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if fresh or isinstance(error, AnswerError):
                raise OSError(str(error) or repr(error)) from None
        try:
            return self._post(body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise OSError(str(error) or repr(error)) from None

    def _post(self, body: bytes) -> "tuple[int, dict[str, Any]]":
        if self.http is None:
            self.http = self._opened()
        path = urllib.parse.urlsplit(self.told["url"]).path.rstrip("/") + "/reports"
        headers = {"Authorization": "Bearer " + self.told["token"]}
        self.http.request("POST", path, body, headers)
        answer = self.http.getresponse()
        text = answer.read(MOST_ANSWER)
        if answer.read(1):
            raise AnswerError("the answer is too long")
        return answer.status, _object(text)

    def _opened(self) -> "http.client.HTTPSConnection":
        where = urllib.parse.urlsplit(self.told["url"])
        context = ssl.create_default_context(cadata=self.told["ca"] or None)
        if self.told["pin"]:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        made = http.client.HTTPSConnection(
            where.hostname or "", where.port or 443, timeout=PATIENCE, context=context
        )
        try:
            made.connect()
            self._check(made.sock)
        except BaseException:
            made.close()
            raise
        return made

    def _check(self, sock: "ssl.SSLSocket") -> None:
        """Raises AnswerError where another certificate is shown than was told."""
        shown = hashlib.sha256(sock.getpeercert(True) or b"").hexdigest()
        if self.told["pin"] and shown != self.told["pin"]:
            raise AnswerError("it shows another certificate: {}".format(shown))

    def close(self) -> None:
        if self.http is not None:
            self.http.close()
            self.http = None


def _object(text: bytes) -> "dict[str, Any]":
    """Anything else says nothing."""
    try:
        value = json.loads(text.decode("utf-8"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Pusher:
    """Reads on from where the service says that it stands."""

    def __init__(self) -> None:
        self.news = wire.listen(NEWS)
        self.agent = None  # type: Optional[socket.socket]
        self.line = None  # type: Optional[Line]
        self.position = None  # type: Optional[int]
        self.pause = FIRST_PAUSE

    def run(self) -> None:
        """Until the agent is gone, which is the last that is told, or its folder."""
        while os.path.exists(LOCK):
            said = self.pulse()
            wait, deaf = self.turn(said)
            if said is None and not held(AGENT_LOCK):
                return
            self.rest(wait, deaf)

    def turn(self, said: "Optional[dict[str, Any]]") -> "tuple[float, bool]":
        """One letter; for how long to rest then, and whether news are no reason to end that."""
        try:
            status, answer = self.connected().post(self.letter(said))
        except (OSError, ValueError, OverflowError) as error:
            return self.failed(str(error))
        before = self.position
        if isinstance(answer.get("position"), int):
            self.position = answer["position"]
        if status in {200, 202}:
            self.heard()
            self.pause = FIRST_PAUSE
            if status == 202:
                return SOON, True
            more = self.position != before or before is None
            return (0.0 if more else PULSE), False
        if status == 409 and self.position != before:
            return 0.0, False
        return self.failed("{} {}".format(status, answer.get("error", "")))

    def failed(self, why: str) -> "tuple[float, bool]":
        with contextlib.suppress(OSError):  # the disk is full
            print(time.strftime("%Y-%m-%dT%H:%M:%S"), why[:500], flush=True)
        pause = self.pause * random.uniform(0.5, 1.0)
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
        return pause, True

    def connected(self) -> Line:
        """By what was told last. Raises ValueError while nothing is."""
        told = journal.load(TOLD)
        if told is None:
            raise ValueError("nothing was told")
        if self.line is None or self.line.told != told:
            if self.line is not None:
                self.line.close()
            self.line, self.pause = Line(told), FIRST_PAUSE
        return self.line

    def letter(self, said: "Optional[dict[str, Any]]") -> bytes:
        """A line about itself, then the journal's from its position on."""
        return wire.encode({"at": self.position, "said": said}) + self.lines()

    def lines(self) -> bytes:
        """Whole ones; none as long as the service has not said where it stands."""
        if self.position is None:
            return b""
        with open("journal", "rb") as file:
            file.seek(self.position)
            data = file.read(PIECE)
            if b"\n" not in data:
                data += file.read(MOST - PIECE)
        return data[: data.rfind(b"\n") + 1]

    # ---------------------------------------------------------------- the agent

    def pulse(self) -> "Optional[dict[str, Any]]":
        """What the agent says of itself; None if it is gone."""
        for _try in range(2):  # one that was started anew has another socket
            said = self.ask({"do": "pulse"})
            if said is not None:
                return said
        return None

    def heard(self) -> None:
        """Somebody wants this machine: its lease is renewed."""
        self.ask({"do": "heard", "fetched": self.position})

    def ask(self, request: "dict[str, Any]") -> "Optional[dict[str, Any]]":
        try:
            if self.agent is None:
                self.agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.agent.settimeout(AGENT_PATIENCE)
                wire.reach(self.agent.connect, AGENT)
            self.agent.sendall(wire.encode(request))
            answer = b""
            while not answer.endswith(b"\n"):
                piece = self.agent.recv(1 << 16)
                if not piece:
                    raise ConnectionError(AGENT)
                answer += piece
            return wire.decode(answer)
        except (OSError, ValueError, TypeError):
            self.hang_up()
            return None

    def hang_up(self) -> None:
        if self.agent is not None:
            self.agent.close()
            self.agent = None

    def rest(self, seconds: float, deaf: bool) -> None:
        """Ends before its time by news, and where the agent's end of the connection is closed."""
        until = time.monotonic() + seconds
        left = seconds
        while left > 0:
            watched = [one for one in (self.news, self.agent) if one is not None]
            ready = select.select(watched, [], [], left)[0]
            self.clear()
            if ready and (not deaf or self.agent in ready):
                return
            left = until - time.monotonic()

    def clear(self) -> None:
        """That there are news is all that they say."""
        try:
            while True:
                self.news.accept()[0].close()
        except OSError:
            return


def main(argv: "list[str]") -> int:
    """DIR PATIENCE: seconds that a predecessor has to its end."""
    os.chdir(argv[0])
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + float(argv[1])
    while not spool.lock(lock):
        if time.monotonic() > until:
            return 0
        time.sleep(0.2)
    Pusher().run()
    return 0
