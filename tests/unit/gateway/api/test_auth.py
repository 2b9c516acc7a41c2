"""Who calls, and what they may."""

import os
import socket
from dataclasses import replace

import pytest

from broker.model.errors import Denied
from broker.model.site import Site
from gateway.api.auth import caller, may_write, peer_of, sign, someone_elses, verify
from gateway.api.wire import Peer

KEY = b"a key of this service"
NOW = 1000


def bearer(token: str) -> dict[str, object]:
    return {"headers": [(b"authorization", f"Bearer {token}".encode())]}


def test_the_kernel_names_the_caller_of_a_unix_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_of(ours) == Peer(os.getuid(), os.getgid(), os.getpid())


def test_over_tcp_the_kernel_knows_nothing() -> None:
    with socket.socket(socket.AF_INET) as tcp:
        assert peer_of(tcp) is None


def test_the_kernels_word_goes_before_any_token() -> None:
    scope = {"peer": Peer(5, 5, 1), **bearer(sign(KEY, 0, expires=NOW + 1))}
    assert caller(scope, key=KEY, now=NOW) == Peer(5, 5, 1)


def test_a_signed_token_names_its_user_until_it_expires() -> None:
    token = sign(KEY, 2001, expires=NOW + 1)
    assert caller(bearer(token), key=KEY, now=NOW).uid == 2001
    with pytest.raises(Denied, match="expired"):
        verify(KEY, token, now=NOW + 1)


@pytest.mark.parametrize(
    "forge",
    [
        lambda token: token.replace(".2001.", ".0."),
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: sign(b"another key", 0, expires=NOW + 9),
        lambda token: "",
        lambda token: "...",
        lambda token: "spz1.0.9999999999.",
        lambda token: "\N{SNOWMAN}." + token,
    ],
)
def test_a_forged_token_is_denied(forge: object) -> None:
    token = forge(sign(KEY, 2001, expires=NOW + 9))  # type: ignore[operator]
    with pytest.raises(Denied):
        verify(KEY, token, now=NOW)


def test_without_a_key_and_without_a_token_nobody_is_let_in() -> None:
    token = sign(KEY, 2001, expires=NOW + 9)
    with pytest.raises(Denied, match="takes no tokens"):
        caller(bearer(token), key=None, now=NOW)
    for scope in ({"headers": []}, {"headers": [(b"authorization", b"Basic x")]}, {}):
        with pytest.raises(Denied, match="no token"):
            caller(scope, key=KEY, now=NOW)


def test_a_users_own_service_is_written_to_by_its_user_and_root_only() -> None:
    own = replace(Site(), service_uid=2001)
    assert [may_write(own, uid) for uid in (2001, 0, 2002)] == [True, True, False]
    assert may_write(Site(), 2002)
    denied = someone_elses("alice")
    assert "denied" in denied.message
    assert "alice" in denied.hint
