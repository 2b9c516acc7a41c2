"""The table of managed jobs for the terminal."""

from collections.abc import Sequence

from gateway.query.listed import Json, listed
from gateway.query.managedlist import MANAGED, lines
from gateway.sdk.show import drawn


def managed(found: Sequence[Json], now: int, *, also: frozenset[str] = frozenset()) -> str:
    """`also` names what is shown beside the usual: USERS, VERBOSE."""
    return drawn(listed(MANAGED, lines(found), now, also=also)) if found else "No managed jobs."
