"""How many connections a user may hold."""

import asyncio
import os
from pathlib import Path

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from broker.model.errors import Busy
from gateway.api.crowd import Crowd, Held, Looks, crowd
from gateway.api.knock import knocking

ANN, BOB = 2001, 2002


def test_a_user_with_too_many_waits_until_one_is_over_and_others_do_not() -> None:
    here = Crowd(most=2)
    assert [here.enter(uid) for uid in (ANN, ANN, ANN, BOB)] == [True, True, False, True]
    here.leave(ANN)
    assert here.enter(ANN)


def test_root_and_the_owner_of_the_service_are_never_kept_out() -> None:
    assert {0, os.getuid()} <= crowd().free
    here = Crowd(most=0, free=frozenset({0}))
    assert (here.enter(0), here.enter(ANN)) == (True, False)


def test_nothing_is_kept_of_those_who_left() -> None:
    here = Crowd(most=2)
    here.enter(ANN)
    here.leave(ANN)
    assert here.count == {}


def test_what_a_user_sends_at_once_has_a_limit_and_is_forgotten_at_its_end() -> None:
    held = Held(most=10)
    with held.by(ANN) as first, held.by(ANN) as second, held.by(BOB) as other:
        first(6)
        other(6)
        with pytest.raises(Busy, match="too many large requests"):
            second(6)
    assert held.count == {}
    with held.by(ANN) as again:
        again(10)


def test_of_one_users_logs_only_some_are_read_at_once() -> None:
    looks = Looks()
    third = looks.one(ANN, "ann")
    with (
        looks.one(ANN, "ann"),
        looks.one(ANN, "ann"),
        looks.one(BOB, "bob"),
        pytest.raises(Busy, match="logs of ann are being read"),
    ):
        third.__enter__()
    assert looks.crowd.count == {}


async def nobody(scope: object, receive: object, send: object) -> None:
    """An application that is never asked."""


def test_the_door_closes_what_is_too_much_and_counts_who_leaves(short_tmp: Path) -> None:
    here = Crowd(most=1)
    config = Config(app=nobody, lifespan="off", log_config=None)

    async def knock() -> None:
        path = str(short_tmp / "s")
        loop = asyncio.get_running_loop()
        make = knocking(here)

        def protocol() -> asyncio.Protocol:
            return make(config=config, server_state=ServerState(), app_state={})

        config.load()
        served = await loop.create_unix_server(protocol, path)
        async with served:
            _, first = await asyncio.open_unix_connection(path)
            second, theirs = await asyncio.open_unix_connection(path)
            assert await second.read() == b""
            assert here.count == {os.getuid(): 1}
            first.close()
            theirs.close()
            while here.count:
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(knock(), 10))
