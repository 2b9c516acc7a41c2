"""What PrivateData refuses altogether, with Slurm's texts (25.11)."""

from gateway.api.desk import Desk
from gateway.api.programs.reading import fail
from gateway.api.wire import Call

DENIED = "Access/permission denied"


async def must_see(desk: Desk, call: Call, kind: str, *, told: str) -> None:
    """Raises Finished where they may not look at `kind`; the complaint begins with `told`."""
    if not (await desk.viewer(call.peer.uid)).may(kind):
        raise fail(f"{told}: {DENIED}\n")
