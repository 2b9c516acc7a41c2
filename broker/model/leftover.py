"""What machines leave behind at their provider."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing of ours that nothing uses any more, as the provider calls it."""

    kind: str
    """`volume`, `address` and so on."""
    id: str
    region: str
