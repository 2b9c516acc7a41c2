"""Columns of squeue and sinfo whose texts fit a width otherwise than by being cut (22.05)."""

from collections.abc import Callable

Fit = Callable[[str, int, bool], str]
"""A text that is too long, the width, whether it stands on the right side: what is left of it."""


def _whole_right(keeps: Callable[[str], bool]) -> Fit:
    """Texts of that kind, headers among them, are not cut on the right side; others are."""

    def fit(text: str, width: int, right: bool) -> str:
        return text if right and keeps(text) else text[:width]

    return fit


def _keep_star(text: str, width: int, _: bool) -> str:
    """The star of the default partition stays."""
    return f"{text[: width - 1]}*" if text.endswith("*") else text[:width]


_LISTS = _whole_right(lambda _: True)
_SPANS = _whole_right(lambda text: text[:1].isdigit())
_NO_REASONS = _whole_right(lambda text: not text.startswith("("))
_NO_HEADERS = _whole_right(lambda text: text not in ("REQ_NODES", "EXC_NODES"))
_HEADERS = _whole_right(lambda text: text in ("NODELIST", "HOSTNAMES"))

SQUEUE_FITS = {
    "nodes": _LISTS,
    "scheduled_nodes": _LISTS,
    "nodes_or_reason": _NO_REASONS,
    "required_nodes": _NO_HEADERS,
    "excluded_nodes": _NO_HEADERS,
    "time_left": _SPANS,
    "time_limit": _SPANS,
    "time_used": _SPANS,
}
"""By key of the column: lists of nodes, and spans of time below a header that is cut."""
SINFO_FITS: dict[str, Fit] = {"N": _HEADERS, "n": _HEADERS, "P": _keep_star}
"""By letter."""
