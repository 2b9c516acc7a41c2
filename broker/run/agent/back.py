"""The way back from a node: what is said to a socket here goes to the service by our own streams.

`agent back --dir DIR` runs as long as the service listens; jobs' commands and the agent connect to
its socket. Who they are is nothing that is told from here: they show a token.
"""

import os
import selectors
import socket
import sys
import time

from . import commands, wire
from .mux import DATA, END, GONE, OPEN, PIECE, PING, SILENCE, TAKEN, WINDOW, BrokenError, Frames
from .mux import pack as frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .order import Options

STDIN, STDOUT = 0, 1


class Guest:
    """One connection of this host's."""

    def __init__(self, number: int, sock: "socket.socket") -> None:
        self.number = number
        self.sock = sock
        self.unwritten = bytearray()
        self.under_way = 0
        """Bytes that were sent and not said to be passed on."""
        self.said_all = self.heard_all = False
        """Whether nothing more will come from it; from the service."""

    def events(self) -> int:
        reads = not self.said_all and self.under_way < WINDOW
        writes = bool(self.unwritten) or self.heard_all
        return (selectors.EVENT_READ if reads else 0) | (selectors.EVENT_WRITE if writes else 0)


class Relay:
    """One thread; the service's end decides how much it may hold of each connection."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.listener = wire.listen(path)
        os.chmod(path, 0o666)
        self.place = os.stat(path).st_ino
        self.guests = {}  # type: dict[int, Guest]
        self.last = 0
        self.over = False
        self.frames = Frames()
        self.heard = time.monotonic()
        self.selector = selectors.DefaultSelector()
        self.selector.register(STDIN, selectors.EVENT_READ, None)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Until the service's end closes, or nothing is heard of it any more."""
        try:
            while not self.over and time.monotonic() - self.heard < SILENCE:
                for key, events in self.selector.select(SILENCE):
                    self.turn(key, events)
        finally:
            self.close()

    def turn(self, key: "selectors.SelectorKey", events: int) -> None:
        if key.fd == STDIN:
            self.hear()
        elif key.data is None:
            self.welcome()
        else:
            self.serve(key.data, events)

    def close(self) -> None:
        """A successor may have its own socket there already."""
        if os.path.exists(self.path) and os.stat(self.path).st_ino == self.place:
            os.unlink(self.path)

    def say(self, number: int, kind: bytes, payload: bytes = b"") -> None:
        data = frame(number, kind, payload)
        while data:
            data = data[os.write(STDOUT, data) :]

    def welcome(self) -> None:
        try:
            sock = self.listener.accept()[0]
        except OSError:
            return  # it went away, or there are too many
        sock.setblocking(False)
        self.last += 1
        self.guests[self.last] = Guest(self.last, sock)
        self.selector.register(sock, selectors.EVENT_READ, self.guests[self.last])
        self.say(self.last, OPEN)

    # ---------------------------------------------------------------- from the service

    def hear(self) -> None:
        data = os.read(STDIN, PIECE)
        self.heard = time.monotonic()
        for number, kind, payload in self.frames.feed(data):
            guest = self.guests.get(number)
            if kind == PING:
                self.say(0, PING)
            elif guest is not None:
                self.obey(guest, kind, payload)
        self.over = not data

    def obey(self, guest: Guest, kind: bytes, payload: bytes) -> None:
        if kind == GONE:
            self.drop(guest)
            return
        if kind == DATA:
            guest.unwritten += payload
        elif kind == END:
            guest.heard_all = True
        elif kind == TAKEN:
            guest.under_way -= int(payload)
        self.watch(guest)

    # ---------------------------------------------------------------- from here

    def serve(self, guest: Guest, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                self.write(guest)
            if events & selectors.EVENT_READ:
                self.read(guest)
        except BlockingIOError:
            return
        except OSError:
            self.say(guest.number, GONE)
            self.drop(guest)
            return
        if guest.said_all and guest.heard_all and not guest.unwritten:
            self.drop(guest)
        else:
            self.watch(guest)

    def write(self, guest: Guest) -> None:
        if guest.unwritten:
            taken = guest.sock.send(bytes(guest.unwritten[:PIECE]))
            del guest.unwritten[:taken]
            self.say(guest.number, TAKEN, str(taken).encode("ascii"))
        if guest.heard_all and not guest.unwritten:
            # Who is answered is done: commands read to the end and say no more.
            self.say(guest.number, GONE)
            guest.said_all = True

    def read(self, guest: Guest) -> None:
        data = guest.sock.recv(PIECE)
        guest.under_way += len(data)
        guest.said_all = guest.said_all or not data
        self.say(guest.number, DATA if data else END, data)

    def watch(self, guest: Guest) -> None:
        """Nothing is asked of a socket that has nothing to say or hear at the moment."""
        events = guest.events()
        known = guest.sock.fileno() in self.selector.get_map()
        if events and known:
            self.selector.modify(guest.sock, events, guest)
        elif events:
            self.selector.register(guest.sock, events, guest)
        elif known:
            self.selector.unregister(guest.sock)

    def drop(self, guest: Guest) -> None:
        if self.guests.pop(guest.number, None) is not None:
            if guest.sock.fileno() in self.selector.get_map():
                self.selector.unregister(guest.sock)
            guest.sock.close()


def main(options: "Options") -> int:
    """0 when the service's end closed."""
    os.chdir(options.dir)
    try:
        Relay(commands.SOCKET).run()
    except (BrokenError, BrokenPipeError) as error:
        sys.stderr.write("agent: back: {}\n".format(error))
        return 1
    return 0
