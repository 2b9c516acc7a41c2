"""What pages ask of the service: the commands and routes of programs, in the name of one user."""

from collections.abc import Iterator
from typing import Any, Protocol

Json = dict[str, Any]
COLUMN = "{}:{},"


class Said(Protocol):
    """What a command printed, and its exit status."""

    @property
    def out(self) -> str: ...
    @property
    def err(self) -> str: ...
    @property
    def code(self) -> int: ...


class Doors(Protocol):
    """The service as its user sees it: what programs of that user are refused is refused here."""

    @property
    def zone(self) -> str:
        """In which zone this user's days begin, by name."""
        ...

    def ahead(self, at: int) -> int:
        """Seconds that the zone is ahead of UTC at an instant."""
        ...

    async def get(self, route: str, **query: object) -> Json:
        """What a route tells. Raises SpzError."""
        ...

    async def read(self, route: str, **query: object) -> bytes:
        """A route's answer as it is. Raises SpzError."""
        ...

    async def run(self, program: str, *argv: str) -> Said:
        """A command of ours, as typed."""
        ...


def names(columns: tuple[str, ...], mark: str) -> str:
    """The value of `-O`: columns as wide as they are, each with the mark behind it."""
    return "".join(COLUMN.format(name, mark) for name in columns)


def rows(text: str, width: int, mark: str) -> Iterator[list[str]]:
    """Cells of what a command printed so: whatever users write, only the mark parts cells."""
    cells = text.split(mark)
    for at in range(0, len(cells) - 1, width):
        yield [cells[at].removeprefix("\n"), *cells[at + 1 : at + width]]
