"""Who calls: the kernel's word for the Unix socket, a signed token over TCP."""

import hmac
import socket
import struct
from asyncio import Transport
from collections.abc import Callable, Mapping, MutableMapping
from hashlib import sha256
from typing import Any

from broker.model.errors import Denied
from broker.model.site import Site
from gateway.api.crowd import Crowd
from gateway.api.heads import HeadProtocol
from gateway.api.wire import Peer

UCRED = struct.Struct("3i")
SCHEME = "bearer "
PREFIX = "spz1"
ROOT = 0

Scope = MutableMapping[str, Any]


Who = Callable[[socket.socket], Peer | None]
"""Who is at the other end of a connection; None where only a token says so."""


def peer_of(connection: socket.socket) -> Peer | None:
    """Who opened the connection, as the kernel noted then; None over TCP."""
    if connection.family != socket.AF_UNIX:
        return None
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED.size)
    pid, uid, gid = UCRED.unpack(told)
    return Peer(uid=uid, gid=gid, pid=pid)


class PeerProtocol(HeadProtocol):
    """Uvicorn's protocol, which also puts the caller's `Peer` into the scope of each request."""

    crowd: Crowd | None = None
    """Keeps users out who have too many connections."""
    who: Who = staticmethod(peer_of)
    peer: Peer | None = None
    entered: bool = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.peer = self.who(transport.get_extra_info("socket"))
        if self.peer is not None and self.crowd is not None:
            self.entered = self.crowd.enter(self.peer.uid)
            if not self.entered:
                transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.entered and self.peer is not None and self.crowd is not None:
            self.crowd.leave(self.peer.uid)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["peer"] = self.peer  # type: ignore[typeddict-unknown-key]


def caller(scope: Scope, *, key: bytes | None, now: int) -> Peer:
    """Who asks. Raises Denied if neither the kernel nor a valid token says so.

    Without a key no token is valid.
    """
    peer = scope.get("peer")
    if isinstance(peer, Peer):
        return peer
    if key is None:
        raise Denied("this address takes no tokens", hint="use the service's Unix socket")
    return Peer(uid=verify(key, bearer(scope), now=now), gid=-1)


def bearer(scope: Scope) -> str:
    """The token that a request shows. Raises Denied."""
    headers: Mapping[bytes, bytes] = dict(scope.get("headers", ()))
    value = headers.get(b"authorization", b"").decode("latin-1")
    if not value.lower().startswith(SCHEME):
        raise Denied("no token", hint="send the header Authorization: Bearer TOKEN")
    return value[len(SCHEME) :].strip()


def sign(key: bytes, uid: int, *, expires: int) -> str:
    """A token that lets its bearer act as `uid` until `expires` (seconds UTC)."""
    claim = f"{PREFIX}.{uid}.{expires}"
    return f"{claim}.{_mac(key, claim)}"


def verify(key: bytes, token: str, *, now: int) -> int:
    """The uid that the token was signed for. Raises Denied."""
    claim, _, mac = token.rpartition(".")
    if not hmac.compare_digest(_mac(key, claim).encode(), mac.encode("utf-8", "replace")):
        raise Denied("the token is not signed by this service")
    _, uid, expires = claim.split(".")
    if now >= int(expires):
        raise Denied("the token has expired", hint="ask the operator for a new one")
    return int(uid)


def _mac(key: bytes, claim: str) -> str:
    return hmac.new(key, claim.encode("utf-8", "replace"), sha256).hexdigest()


def may_write(site: Site, uid: int) -> bool:
    """Whether this uid may submit and change here: in a user's own service only that user."""
    return site.service_uid in (None, uid) or uid == ROOT or uid in site.admins


def someone_elses(owner: str) -> Denied:
    """The refusal of a service that serves one user only."""
    return Denied(
        "Access/permission denied",
        hint=f"this service is {owner}'s own: start one of yours with spz api start",
    )
