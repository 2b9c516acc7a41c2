"""What a run has said so far, of each node into a file of its own."""

from pathlib import Path

from gateway.sdk.client import Client, Json
from gateway.sdk.follow import Follower, Which
from gateway.sdk.texts import name_of


def synced(
    service: Client, wanted: Which, state: Json, *, start: Path, only: int | None = None
) -> list[Path]:
    """Files that begin with `start`, by node where there are several. Raises Unknown, OSError."""
    start.parent.mkdir(parents=True, exist_ok=True)
    count = len(state["texts"])
    ranks = range(count) if only is None and count > 1 else [only or 0]
    endings = {rank: f"-{name_of(rank)}" if count > 1 else "" for rank in ranks}
    paths = {rank: start.with_name(f"{start.name}{end}.log") for rank, end in endings.items()}
    for rank, path in paths.items():
        with path.open("wb") as file:
            Follower(service, file, only=rank).show(wanted)
    return list(paths.values())
