"""What `spz check` looked at: whether it is right, and else what to do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    good: bool
    text: str
    hint: str = ""
    """The way out."""
