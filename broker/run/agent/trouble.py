"""How the agent tells of errors: in its log, and never at the price of going on."""

import traceback


def tell() -> None:
    """The error that is being handled; a disk that is full takes no log line either."""
    try:
        traceback.print_exc()
    except OSError:
        return
