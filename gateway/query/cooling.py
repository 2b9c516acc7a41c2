"""What is not bought for a while, refused or never come up, in the lines of `sinfo -R`."""

from collections.abc import Iterable

from broker.model.boots import FailedBoots
from broker.model.errors import Refusal
from broker.optimize.cooldown import Cooling
from gateway.query.context import Context
from gateway.query.moments import show_moment

MOST_LINES = 50
ANYWHERE = "all"


def lines(cooling: Iterable[Cooling], ctx: Context) -> list[str]:
    """Kind and number of refusals, since when, and what is left alone until when."""
    found = sorted(cooling, key=lambda entry: (-entry.since, entry.key))
    told = [_line(entry, ctx) for entry in found[:MOST_LINES]]
    more = len(found) - MOST_LINES
    return [*told, f"({more} more)"] if more > 0 else told


def _line(entry: Cooling, ctx: Context) -> str:
    """`refused: capacity x3   root      2026-11-29T14:02:00 ec2:us-east-1,use1-az6,m7i.large ...`.

    Of a quota also which it is, and its number.
    """
    times = f" x{entry.strikes}" if entry.strikes > 1 else ""
    kind = f"refused: {entry.refusal}{times}"
    since, until = show_moment(entry.since, ctx), show_moment(entry.until, ctx)
    said = f": {entry.message}" if entry.refusal is Refusal.QUOTA and entry.message else ""
    return f"{kind:<20} {'root':<9} {since:<19} {_what(entry)} until {until}{said}"


def protected(boots: Iterable[FailedBoots], ctx: Context) -> list[str]:
    """`protected mode x3 root      2026-11-29T14:02:00 ec2:us-east-1,m7i.large until ...: why`."""
    return [
        f"{f'protected mode x{one.failed}':<20} {'root':<9} {show_moment(one.since, ctx):<19} "
        f"{one.name} until {show_moment(one.until, ctx)}: {one.why}"
        for one in boots
        if one.until is not None
    ]


def _what(entry: Cooling) -> str:
    _, provider, *rest = entry.key
    return f"{provider}:{','.join(rest) or ANYWHERE}"
