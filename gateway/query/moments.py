"""Instants as text: Slurm's standard form, relative words, or the caller's own pattern."""

from datetime import UTC, datetime, timedelta, timezone

from gateway.query.context import Context
from sbatch_shim.grammar.instants import show_instant

STANDARD = {"", "standard"}
RELATIVE = "relative"


def show_moment(at: int, ctx: Context) -> str:
    """An instant in the caller's zone and form."""
    if ctx.time_format in STANDARD:
        return show_instant(at, ctx.zone)
    pattern = ctx.time_format
    if pattern == RELATIVE:
        pattern = _relative(at, ctx)
    return _local(at, ctx).strftime(pattern.replace("%s", str(at)))


def _local(at: int, ctx: Context) -> datetime:
    zone = timezone(timedelta(seconds=ctx.zone(at)))
    return datetime.fromtimestamp(at, UTC).astimezone(zone)


def _relative(at: int, ctx: Context) -> str:
    """The pattern for how far off the day is: near days by word, then week, then year (25.11)."""
    days = (_local(at, ctx).date() - _local(ctx.now, ctx).date()).days
    near = {-1: "Ystday %H:%M", 0: "%H:%M", 1: "Tomorr %H:%M"}.get(days)
    if near is not None:
        return near
    if 1 < days <= 6:
        return "%a %H:%M"
    return "%-d %b %H:%M" if abs(days) <= 365 else "%-d %b %Y"


def headline(ctx: Context) -> str:
    """The line with the date that the long listings begin with."""
    return show_date(ctx.now, ctx)


def show_date(instant: int, ctx: Context) -> str:
    """`Mon Nov 30 16:00:00 2026`, as statistics tell it too."""
    return _local(instant, ctx).strftime("%a %b %d %H:%M:%S %Y")
