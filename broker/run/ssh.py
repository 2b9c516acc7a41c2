"""The way to a node over SSH: one kept connection each, its host key known from the first byte."""

import errno
import io
import os
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import paramiko

from broker.ports import Done
from broker.run.knock import Knocker
from broker.run.scripts import ASK, NOT_ASKED, PUT, READ

CONNECT_SECONDS = 10.0
KEEPALIVE_SECONDS = 30
MOST_KEPT = 64
"""Connections that stay open though nobody uses them: each is a thread of paramiko's."""
SESSIONS = 6
"""Commands at a time on one connection: OpenSSH takes ten."""
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 15.0
"""Seconds until a connection that failed is tried again; doubles in between."""
FULL_PAUSE = 0.05
ED25519 = "ssh-ed25519"
CIPHERS = (
    *("aes128-gcm@openssh.com", "aes256-gcm@openssh.com"),
    *("aes128-ctr", "aes192-ctr", "aes256-ctr"),
)
"""Those that take the least time for large files first."""
SENT_AT_ONCE = 1 << 17
BIG = 1 << 20
"""Input longer than this is written by a thread of its own, lest both sides wait."""
NOT_FOUND = 127


class Quiet(paramiko.Transport):
    """Its thread wakes once in a second to see whether it is to end, not ten times."""

    _active_check_timeout = 1.0

    def __init__(self, sock: Any, over: Callable[["Quiet"], None]) -> None:
        """`over` is called by its thread, however it ended."""
        super().__init__(sock)
        self._over = over

    def run(self) -> None:
        super().run()
        self._over(self)


class HostKeyError(ConnectionError):
    """Somebody else answers at that address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """How a host is entered."""

    host: str
    port: int = 22
    user: str
    private_key: str = field(repr=False)
    """ed25519, as OpenSSH writes it."""
    host_key: str | None
    """`ssh-ed25519 AAAA...`; None takes any, which only a bastion of the site's own may."""

    @property
    def door(self) -> tuple[str, int]:
        return self.host, self.port


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A node: its login, the bastion before it, whether its commands are run as root."""

    login: Login
    bastion: Login | None = None
    sudo: bool = False
    python: str = "/usr/bin/python3"

    def line(self, argv: Sequence[str], home: str) -> str:
        """What the login's shell is told; `home` is its own, for words that begin with `~/`."""
        prefix = ["sudo", "-n", "--"] if self.sudo else []
        there = (f"{home}{word[1:]}" if word.startswith("~/") else word for word in argv)
        return shlex.join([*prefix, *there])


@dataclass(slots=True)
class _Kept:
    """One host's connection, made when first used; instants in monotonic seconds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    sessions: threading.BoundedSemaphore = field(
        default_factory=lambda: threading.BoundedSemaphore(SESSIONS)
    )
    transport: paramiko.Transport | None = None
    home: str = ""
    users: int = 0
    used_at: float = 0.0
    failures: int = 0
    not_before: float = 0.0


class Connections:
    """Every kept connection of the service; may be used from any thread."""

    def __init__(
        self,
        *,
        knocker: Knocker | None = None,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda _text: None,
        most: int = MOST_KEPT,
    ) -> None:
        """`tell` hears of hosts that answer and do not let us in."""
        self.ended: Callable[[str], None] = lambda _host: None
        """Hears of the host of a kept connection that ended by itself; may be set later."""
        self.knocker = knocker or Knocker()
        self._clock = clock
        self._tell = tell
        self._most = most
        self._kept: dict[Login, _Kept] = {}
        self._lock = threading.Lock()

    def channel(self, target: Target) -> "SshChannel":
        return SshChannel(self, target)

    @contextmanager
    def session(self, target: Target, timeout: float) -> Iterator[tuple[paramiko.Channel, str]]:
        """An open session and the login's home. Raises OSError."""
        kept = self._of(target.login)
        if not kept.sessions.acquire(timeout=timeout):
            raise TimeoutError(f"{target.login.host} is busy with {SESSIONS} commands")
        with self._lock:
            kept.users += 1
        try:
            channel = self._opened(kept, target, timeout)
            with channel:
                yield channel, kept.home
        except (paramiko.SSHException, EOFError) as error:
            raise ConnectionError(f"{target.login.host}: {error or 'connection lost'}") from error
        finally:
            with self._lock:
                kept.users -= 1
                kept.used_at = self._clock()
            kept.sessions.release()

    def home(self, target: Target) -> str:
        """The login's; empty before its first connection."""
        with self._lock:
            kept = self._kept.get(target.login)
        return kept.home if kept is not None else ""

    def forget(self, host: str) -> None:
        """Closes what is kept of a host that is gone."""
        with self._lock:
            gone = [login for login in self._kept if login.host == host]
            kept = [self._kept.pop(login) for login in gone]
        for login in gone:
            self.knocker.forget(login.door)
        _close(kept)

    def close(self) -> None:
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        _close(kept)

    # --- connecting

    def _of(self, login: Login) -> _Kept:
        with self._lock:
            kept = self._kept.setdefault(login, _Kept())
            kept.used_at = self._clock()
            idle = [one for one in self._kept.values() if one.transport and not one.users]
            spare = sorted(idle, key=lambda one: one.used_at)[: max(0, len(idle) - self._most)]
        _close([one for one in spare if one is not kept])
        return kept

    def _opened(self, kept: _Kept, target: Target, timeout: float) -> paramiko.Channel:
        """A connection that has died unnoticed is made anew, once."""
        patience = min(timeout, CONNECT_SECONDS)
        transport, fresh = self._connected(kept, target)
        try:
            return _session(transport, patience)
        except (paramiko.SSHException, EOFError, OSError):
            transport.close()
            if fresh:
                raise
        return _session(self._connected(kept, target)[0], patience)

    def _connected(self, kept: _Kept, target: Target) -> tuple[paramiko.Transport, bool]:
        """And whether it was made just now."""
        with kept.lock:
            if kept.transport is not None and kept.transport.is_active():
                return kept.transport, False
            if target.bastion is None and not self.knocker.answers(target.login.door):
                # Not a failure: a machine that boots is entered as soon as it greets.
                raise OSError(errno.EHOSTUNREACH, f"no SSH server at {target.login.host} yet")
            if self._clock() < kept.not_before:
                raise ConnectionError(f"{target.login.host} did not answer a moment ago")
            try:
                kept.transport = self._connect(target)
                kept.home = kept.home or _home(kept.transport)
            except (OSError, paramiko.SSHException, EOFError) as error:
                self._failed(kept, target.login, error)
                raise
            kept.failures = 0
            return kept.transport, True

    def _failed(self, kept: _Kept, login: Login, error: Exception) -> None:
        kept.transport = None
        pause = min(FIRST_PAUSE * 2**kept.failures, LONGEST_PAUSE)
        kept.failures, kept.not_before = kept.failures + 1, self._clock() + pause
        if isinstance(error, HostKeyError | paramiko.AuthenticationException):
            self._tell(f"{login.user}@{login.host}: {error}")
        else:
            self.knocker.forget(login.door)

    def _connect(self, target: Target) -> paramiko.Transport:
        login, bastion = target.login, target.bastion
        if bastion is not None:
            before = self._connected(self._of(bastion), Target(login=bastion))[0]
            through = before.open_channel(
                "direct-tcpip", login.door, ("127.0.0.1", 0), timeout=CONNECT_SECONDS
            )
            return _entered(Quiet(through, partial(self._over, login)), login)
        sock = socket.create_connection(login.door, timeout=CONNECT_SECONDS)
        return _entered(Quiet(sock, partial(self._over, login)), login)

    def _over(self, login: Login, transport: paramiko.Transport) -> None:
        """Told of if it is kept: one that was closed here is not any more."""
        with self._lock:
            kept = self._kept.get(login)
        if kept is not None and kept.transport is transport:
            self.ended(login.host)


def _session(transport: paramiko.Transport, patience: float) -> paramiko.Channel:
    """One that has ended here may still count over there: then it is asked again a moment later.

    What is not told as a refusal may be another thread's, for paramiko keeps one error for all.
    """
    until, pause = time.monotonic() + patience, threading.Event()
    while True:
        try:
            return transport.open_session(timeout=patience)
        except paramiko.SSHException:
            if time.monotonic() > until or not transport.is_active():
                raise
            pause.wait(FULL_PAUSE)


def _entered(transport: paramiko.Transport, login: Login) -> paramiko.Transport:
    """Logged in, after the host has shown its key. Raises OSError, SSHException."""
    try:
        if login.host_key is not None:
            transport.get_security_options().key_types = (ED25519,)
        transport.get_security_options().ciphers = CIPHERS
        transport.start_client(timeout=CONNECT_SECONDS)
        _check_host(transport.get_remote_server_key(), login.host_key)
        key = paramiko.Ed25519Key.from_private_key(io.StringIO(login.private_key))
        transport.auth_publickey(login.user, key)
        transport.set_keepalive(KEEPALIVE_SECONDS)
    except BaseException:
        transport.close()
        raise
    return transport


def _check_host(shown: paramiko.PKey, wanted: str | None) -> None:
    if wanted is not None and f"{shown.get_name()} {shown.get_base64()}" != wanted:
        raise HostKeyError("the host key is not the one that the machine was given")


def _home(transport: paramiko.Transport) -> str:
    """The login's home, as its own shell has it."""
    with transport.open_session(timeout=CONNECT_SECONDS) as channel:
        channel.settimeout(CONNECT_SECONDS)
        channel.exec_command('printf %s "$HOME"')
        return channel.makefile("rb").read().decode("utf-8", "surrogateescape")


def _close(kept: Sequence[_Kept]) -> None:
    for one in kept:
        transport, one.transport = one.transport, None
        if transport is not None:
            transport.close()


class SshChannel:
    """`broker.ports.Channel` over a kept connection; paths may begin with `~/`."""

    def __init__(self, connections: Connections, target: Target) -> None:
        self._connections = connections
        self._target = target

    def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float) -> Done:
        """Raises TimeoutError, which is an OSError, when it takes longer."""
        with self._connections.session(self._target, timeout) as (channel, home):
            command = self._target.line(argv, home)
            done = _exchange(channel, command, stdin=stdin, timeout=timeout)
        said = done.err.decode("utf-8", "replace")
        if argv[0] in said and "not found" in said and done.code in {1, NOT_FOUND}:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        return done

    def put(self, data: bytes, path: str, mode: int) -> None:
        draft = f"{os.getpid()}.{time.monotonic_ns()}"
        self._shell(PUT, [path, draft, f"{mode:o}"], data)

    def read(self, path: str, offset: int) -> bytes:
        return self._shell(READ, [path, str(offset + 1)]).out

    def ask(self, path: str, request: bytes, *, timeout: float) -> bytes:
        """Raises ConnectionError, which is an OSError, when no answer comes."""
        argv = [self._target.python, "-IS", "-c", ASK, path, str(timeout)]
        done = self.run(argv, stdin=request, timeout=timeout + CONNECT_SECONDS)
        if done.code == NOT_ASKED:
            number, _, text = done.err.decode("utf-8", "replace").partition(" ")
            raise OSError(int(number) if number.isdigit() else errno.EIO, text)
        if done.code != 0:
            raise OSError(errno.EIO, f"{path} cannot be asked: {_last(done)}")
        if not done.out:
            raise ConnectionError(f"{path}: no answer")
        return done.out

    def open(self, argv: Sequence[str], *, timeout: float) -> "SshPipe":
        """A program that stays; it takes one of the connection's sessions. Raises OSError."""
        held = ExitStack()
        channel, home = held.enter_context(self._connections.session(self._target, timeout))
        with held:
            channel.settimeout(timeout)
            command = self._target.line(argv, home)
            channel.exec_command(command.encode("utf-8", "surrogateescape"))
            return SshPipe(channel, held.pop_all())

    def _shell(self, script: str, words: Sequence[str], stdin: bytes = b"") -> Done:
        argv = ["/bin/sh", "-c", script, "sh", *words]
        done = self.run(argv, stdin=stdin, timeout=CONNECT_SECONDS + len(stdin) / BIG)
        if done.code != 0:
            raise OSError(errno.EIO, f"{words[0]} on {self._target.login.host}: {_last(done)}")
        return done


class SshPipe:
    """`broker.ports.Pipe` over a session; what the program says of errors is left unread."""

    def __init__(self, channel: paramiko.Channel, held: ExitStack) -> None:
        self._channel = channel
        self._held = held

    def fileno(self) -> int:
        return self._channel.fileno()

    def read(self, most: int) -> bytes | None:
        """None where nothing has come."""
        while self._channel.recv_stderr_ready():
            self._channel.recv_stderr(most)
        if self._channel.recv_ready() or self._channel.eof_received or self._channel.closed:
            return self._channel.recv(most)
        return None

    def write(self, data: bytes) -> None:
        """Raises OSError."""
        self._channel.sendall(data)

    def close(self, *, lost: bool = False) -> None:
        """Ends the session; of a lost connection everything, or it would be waited for."""
        transport = self._channel.get_transport()
        if lost and transport is not None:
            transport.close()
        self._channel.close()
        self._held.close()


def _last(done: Done) -> str:
    lines = done.err.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.code}"


def _exchange(channel: paramiko.Channel, command: str, *, stdin: bytes, timeout: float) -> Done:
    """Runs it to its end. Raises OSError when it takes longer, or the connection is lost."""
    until = time.monotonic() + timeout
    channel.settimeout(timeout)
    channel.exec_command(command.encode("utf-8", "surrogateescape"))
    writer = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)
    if len(stdin) > BIG:
        writer.start()
    else:
        _feed(channel, stdin)
    try:
        out = channel.makefile("rb").read()
        err = channel.makefile_stderr("rb").read()
    except TimeoutError as error:
        raise TimeoutError(f"{command[:60]} took more than {timeout:g} s") from error
    if not channel.status_event.wait(max(0.0, until - time.monotonic())):
        raise TimeoutError(f"{command[:60]} took more than {timeout:g} s")
    if channel.exit_status < 0:
        raise ConnectionError("the connection was lost, or the command was killed")
    return Done(channel.exit_status, out, err)


def _feed(channel: paramiko.Channel, stdin: bytes) -> None:
    """A program that ends without reading all of its input is no error.

    Paramiko copies what is left of its argument at each packet, so it gets little at a time.
    """
    with suppress(OSError, EOFError):
        for start in range(0, len(stdin), SENT_AT_ONCE):
            channel.sendall(stdin[start : start + SENT_AT_ONCE])
    with suppress(OSError, EOFError):
        channel.shutdown_write()
