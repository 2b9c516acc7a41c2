"""`-i SECONDS`: the same listing again and again, each below its date, until the caller leaves."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from gateway.api.desk import Desk
from gateway.api.wire import Answer, Call, raw
from gateway.query.context import Context
from gateway.query.moments import headline
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.parse import EARLY, parse_query
from sbatch_shim.grammar.values import read_digits

Once = Callable[[Desk, Call], Awaitable[Answer]]
OTHERWISE = EARLY | {"json", "yaml", "helpFormat", "helpformat", "helpstate"}
"""Options that are answered once, whatever -i says."""


def iterated(call: Call) -> int | None:
    """Seconds between two listings; None for one listing, also where -i is not a number."""
    if not any("i" in word for word in call.argv if word.startswith("-")):
        return None
    try:
        query = parse_query(call.program, call.argv, call.environ)
    except GrammarError:
        return None
    given = query.given.get("iterate")
    if given is None or given.text is None or not OTHERWISE.isdisjoint(query.given):
        return None
    return read_digits(given.text)


async def repeated(desk: Desk, call: Call, once: Once, *, seconds: int, before: str = "") -> Answer:
    """The listing, and what follows; an answer that complains ends it.

    A line is left free below each, which is said later where the site's lines are still to come.
    """
    answer = await once(desk, call)
    if answer.code:
        return answer
    dated = not _dated(call) and "noheader" not in _given(call)
    ctx = Context(now=desk.now(), site=desk.site, zone=desk.zone(call))
    top = headline(ctx) + "\n" if dated else ""
    now, later = ("\n", "") if answer.also is None else ("", "\n")
    rest = _later(desk, call, once, seconds=seconds, before=later)
    return replace(answer, out=raw(before + top) + raw(answer.out) + raw(now), rest=rest)


async def _later(desk: Desk, call: Call, once: Once, *, seconds: int, before: str) -> Answer:
    await desk.pause(seconds)
    return await repeated(desk, call, once, seconds=seconds, before=before)


def _given(call: Call) -> set[str]:
    return set(parse_query(call.program, call.argv, call.environ).given)


def _dated(call: Call) -> bool:
    """Whether the listing has a date of its own."""
    given = _given(call)
    return "long" in given and given.isdisjoint({"format", "Format"})
