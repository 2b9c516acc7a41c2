"""Options of listings that have no effect are named, and nothing else is said."""

import asyncio

import pytest

from gateway.api.desk import Desk
from gateway.api.programs.notes import notes, noting
from gateway.api.wire import Answer, Call, Peer
from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.options_query import COMMANDS
from sbatch_shim.grammar.table import IGNORED as TABLE_IGNORED
from sbatch_shim.grammar.table import REQ
from tests.unit.gateway.api.office import Office

IGNORED = "{}: warning: --{} has no effect here and is ignored\n"


async def fails(desk: Desk, call: Call) -> Answer:
    return Answer(err="own\n", code=3)


def said(program: str, *argv: str) -> tuple[str | bytes, int]:
    call = Call(program=program, argv=argv, peer=Peer(0, 0), request="0" * 32)
    run = noting({program: fails})[program]
    answer = asyncio.run(run(Office().desk, call))  # type: ignore[operator, arg-type]
    return answer.err, answer.code


@pytest.mark.parametrize(
    ("program", "argv", "named"),
    [
        ("scontrol", ("-u", "5", "show", "job"), ["uid"]),
        ("scontrol", ("-ou5", "show", "job"), ["uid"]),
        ("scontrol", ("--ui=5", "--uid=6", "show", "job"), ["uid"]),
    ],
)
def test_each_is_named_once_before_own_errors(
    program: str, argv: tuple[str, ...], named: list[str]
) -> None:
    err, code = said(program, *argv)
    assert err == "".join(IGNORED.format(program, long) for long in named).encode() + b"own\n"
    assert code == 3


@pytest.mark.parametrize("argv", [(), ("-o", "show", "job"), ("--json",), ("-u",), ("--nonsense",)])
def test_nothing_is_said_of_what_counts(argv: tuple[str, ...]) -> None:
    assert said("scontrol", *argv) == ("own\n", 3)


EVERY = [
    (program, str(opt.long), str(opt.arg))
    for program in COMMANDS
    for opt in TABLES[program].by_long.values()
    if opt.cls == TABLE_IGNORED
]


@pytest.mark.parametrize(("program", "long", "arg"), EVERY)
def test_every_option_without_effect_of_every_listing_is_named(
    program: str, long: str, arg: str
) -> None:
    call = Call(
        program=program,
        argv=(f"--{long}" if arg != REQ else f"--{long}=1",),
        peer=Peer(0, 0),
        request="0" * 32,
    )
    assert notes(program, call) == IGNORED.format(program, long)


def test_only_what_counts_for_nothing_is_named_among_other_options() -> None:
    argv = ("--input-filter=1", "--output-filter=0", "7.0")
    call = Call(program="sattach", argv=argv, peer=Peer(0, 0), request="0" * 32)
    assert notes("sattach", call) == IGNORED.format("sattach", "input-filter")
