"""Who looks: a ticket of one use, signed for a user, becomes a cookie of a session.

Both are signed with a key that only this process has: a restart ends all sessions. The pages of a
user stand below a folder that nobody can guess, because browsers send cookies of 127.0.0.1 to each
of its ports: a cookie with that path goes nowhere else.
"""

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from broker.model.errors import Denied

TICKET_SECONDS = 60
SESSION_SECONDS = 8 * 3600
TICKET, SESSION, FOLDER = "ticket", "session", "folder"
AGAIN = "`spz dashboard` makes a new one"


@dataclass(frozen=True, slots=True)
class Session:
    """Whose it is, and the zone in which times are told."""

    uid: int
    zone: str


@dataclass(slots=True, kw_only=True)
class Sessions:
    """`key` signs; `nonce` makes a text that nobody can guess."""

    key: bytes
    now: Callable[[], int]
    nonce: Callable[[], str]
    _open: dict[int, str] = field(default_factory=dict)
    """The latest ticket of each user, as long as it was not used."""
    _zones: dict[int, str] = field(default_factory=dict)

    def ticket(self, uid: int, zone: str) -> str:
        """Good once, for a minute; the user's earlier one is not any more."""
        made = self._signed(TICKET, uid, TICKET_SECONDS)
        self._open[uid], self._zones[uid] = made, zone
        return made

    def enter(self, ticket: str) -> tuple[str, str]:
        """The user's folder, and the cookie for it. Raises Denied."""
        uid = self._read(TICKET, ticket)
        if uid is None or not _same(self._open.get(uid, ""), ticket):
            raise Denied("the ticket was used, has expired or is none", hint=AGAIN)
        del self._open[uid]
        return self.folder(uid), self._signed(SESSION, uid, SESSION_SECONDS)

    def who(self, folder: str, cookies: Iterable[str]) -> Session:
        """Whose pages these are, if one of the cookies is that user's. Raises Denied."""
        for uid in (self._read(SESSION, cookie) for cookie in cookies):
            if uid is not None and _same(self.folder(uid), folder):
                return Session(uid, self._zones.get(uid, ""))
        raise Denied("nobody is known here by this browser", hint="`spz dashboard` lets you in")

    def folder(self, uid: int) -> str:
        """Below which the user's pages are."""
        return self._mac(f"{FOLDER}.{uid}")[:32]

    def _signed(self, what: str, uid: int, seconds: int) -> str:
        claim = f"{uid}.{self.now() + seconds}.{self.nonce()}"
        return f"{claim}.{self._mac(f'{what}.{claim}')}"

    def _read(self, what: str, text: str) -> int | None:
        """The uid that it was signed for, for this purpose; None for what is not good (now)."""
        claim, _, mac = text.rpartition(".")
        if not text.isascii() or not _same(self._mac(f"{what}.{claim}"), mac):
            return None
        uid, expires, _ = claim.split(".")
        return int(uid) if self.now() < int(expires) else None

    def _mac(self, claim: str) -> str:
        return hmac.new(self.key, claim.encode(), sha256).hexdigest()


def _same(ours: str, shown: str) -> bool:
    """In a time that tells nothing; what is shown may be any text."""
    return hmac.compare_digest(ours.encode(), shown.encode("utf-8", "replace"))
