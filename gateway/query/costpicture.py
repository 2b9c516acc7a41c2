"""Costs as bars: an SVG of its own, for `spz cost --svg` and for pages."""

from collections.abc import Mapping
from html import escape
from typing import Any

from gateway.query.dollars import usd

BARS, WIDTH, ROW, TEXT = 20, 720, 24, 220


def labelled(told: Mapping[str, Any]) -> list[tuple[list[str], int]]:
    """Labels and micro-dollars of what the route of costs told."""
    return [([text or "-" for text in labels], amount) for *labels, amount in told["rows"]]


def picture(told: Mapping[str, Any]) -> str:
    """Bars, the dearest first, or by day; what does not fit is one bar at the end."""
    rows = labelled(told)
    shown = [(" ".join(labels), amount) for labels, amount in rows]
    if len(shown) > BARS and "day" not in told["by"]:
        rest = sum(amount for _, amount in shown[BARS:])
        shown = [*shown[:BARS], (f"{len(rows) - BARS} more", rest)]
    most = max((amount for _, amount in shown), default=1) or 1
    height = ROW * (len(shown) + 2)
    bars = "".join(
        _bar(place, label, amount, most=most) for place, (label, amount) in enumerate(shown)
    )
    title = escape(f"{' and '.join(told['by'])}: {usd(told['micro_usd'])}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{title}">'
        f'<text x="8" y="{ROW - 6}" font-weight="bold">{title}</text>{bars}</svg>\n'
    )


def _bar(place: int, label: str, amount: int, *, most: int) -> str:
    top = ROW * (place + 1) + 8
    length = max(1, round((WIDTH - TEXT - 100) * max(0, amount) / most))
    middle = top + ROW // 2
    return (
        f'<text x="{TEXT - 8}" y="{middle}" text-anchor="end">{escape(label[:32])}</text>'
        f'<rect x="{TEXT}" y="{top}" width="{length}" height="{ROW - 8}" fill="#4063d8"/>'
        f'<text x="{TEXT + length + 6}" y="{middle}">{escape(usd(amount))}</text>'
    )
