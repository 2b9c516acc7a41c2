"""How the agent tells of errors: in its log, and never at the price of going on."""

import time
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

WRITE_AGAIN = 1.0
"""Seconds after which a disk that was full is tried again."""


def tell() -> None:
    """The error that is being handled; a disk that is full takes no log line either."""
    try:
        traceback.print_exc()
    except OSError:
        return


def patiently(write: "Callable[[], None]") -> None:
    """A full disk only delays what has to be written."""
    while not _written(write):
        time.sleep(WRITE_AGAIN)


def _written(write: "Callable[[], None]") -> bool:
    try:
        write()
    except OSError:
        tell()
        return False
    return True
