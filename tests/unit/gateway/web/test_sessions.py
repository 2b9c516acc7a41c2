"""Tickets and sessions: good for one user, once, for a while."""

from collections.abc import Callable

import pytest

from broker.model.errors import Denied
from gateway.web.sessions import SESSION_SECONDS, TICKET_SECONDS, Session, Sessions

ANN, BOB = 1000, 1001


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000
        self.nonces = 0

    def nonce(self) -> str:
        self.nonces += 1
        return f"n{self.nonces}"

    def sessions(self, key: bytes = b"key") -> Sessions:
        return Sessions(key=key, now=lambda: self.at, nonce=self.nonce)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_ticket_becomes_a_session_of_its_user_in_its_zone(clock: Clock) -> None:
    known = clock.sessions()
    folder, cookie = known.enter(known.ticket(ANN, "Europe/Berlin"))
    assert known.who(folder, ["other", cookie]) == Session(ANN, "Europe/Berlin")


def used(known: Sessions, clock: Clock) -> str:
    ticket = known.ticket(ANN, "")
    known.enter(ticket)
    return ticket


def late(known: Sessions, clock: Clock) -> str:
    ticket = known.ticket(ANN, "")
    clock.at += TICKET_SECONDS
    return ticket


def replaced(known: Sessions, clock: Clock) -> str:
    ticket = known.ticket(ANN, "")
    known.ticket(ANN, "")
    return ticket


def of_another_service(known: Sessions, clock: Clock) -> str:
    return clock.sessions(b"other").ticket(ANN, "")


def for_another_user(known: Sessions, clock: Clock) -> str:
    return known.ticket(ANN, "").replace(str(ANN), str(BOB), 1)


def longer(known: Sessions, clock: Clock) -> str:
    uid, expires, rest = known.ticket(ANN, "").split(".", 2)
    return f"{uid}.{int(expires) + 999}.{rest}"


def a_session(known: Sessions, clock: Clock) -> str:
    return known.enter(known.ticket(ANN, ""))[1]


@pytest.mark.parametrize(
    "bad",
    [
        *(used, late, replaced, of_another_service, for_another_user, longer, a_session),
        *(lambda known, clock: "", lambda known, clock: "é", lambda known, clock: "a.b"),
    ],
)
def test_no_other_ticket_lets_anybody_in(clock: Clock, bad: Callable[..., str]) -> None:
    known = clock.sessions()
    ticket = bad(known, clock)
    with pytest.raises(Denied, match="the ticket was used, has expired or is none"):
        known.enter(ticket)


def test_a_session_ends(clock: Clock) -> None:
    known = clock.sessions()
    folder, cookie = known.enter(known.ticket(ANN, ""))
    clock.at += SESSION_SECONDS - 1
    assert known.who(folder, [cookie]).uid == ANN
    clock.at += 1
    with pytest.raises(Denied, match="nobody is known here"):
        known.who(folder, [cookie])


def test_neither_the_folder_nor_the_cookie_alone_lets_anybody_in(clock: Clock) -> None:
    known = clock.sessions()
    anns, cookie = known.enter(known.ticket(ANN, ""))
    bobs, his = known.enter(known.ticket(BOB, ""))
    ticket = known.ticket(ANN, "")
    for folder, cookies in ((anns, []), (anns, [his]), (bobs, [cookie]), ("", [cookie])):
        with pytest.raises(Denied):
            known.who(folder, cookies)
    with pytest.raises(Denied):
        known.who(anns, [ticket])
    assert clock.sessions(b"other").folder(ANN) != anns


def test_a_cookie_that_somebody_else_set_beside_it_does_no_harm(clock: Clock) -> None:
    known = clock.sessions()
    _, his = known.enter(known.ticket(BOB, ""))
    anns, cookie = known.enter(known.ticket(ANN, ""))
    assert known.who(anns, [his, "x.y.z.w", cookie]).uid == ANN


@pytest.mark.parametrize("folder", ["é", "\ud800", ""])
def test_a_folder_may_be_any_text(clock: Clock, folder: str) -> None:
    known = clock.sessions()
    _, cookie = known.enter(known.ticket(ANN, ""))
    with pytest.raises(Denied):
        known.who(folder, [cookie])
