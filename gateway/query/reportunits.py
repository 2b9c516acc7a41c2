"""How sreport writes time: seconds, minutes, hours, or parts of all there was (25.11)."""

from dataclasses import dataclass

UNITS = {
    "seconds": "Seconds", "minutes": "Minutes", "hours": "Hours", "percent": "Percentage of Total",
    "secper": "Seconds/Percentage of Total", "minper": "Minutes/Percentage of Total",
    "hourper": "Hours/Percentage of Total",
}  # fmt: skip
DIVISORS = {"seconds": 1, "secper": 1, "minutes": 60, "minper": 60, "hours": 3600, "hourper": 3600}


@dataclass(frozen=True, slots=True)
class Unit:
    """One of UNITS."""

    name: str

    @property
    def in_parts(self) -> bool:
        """Whether a percentage stands behind the amount."""
        return self.name.endswith("per")

    def show(self, seconds: int, whole: int) -> str:
        """The time, rounded; and its part of the whole where that is asked for."""
        part = f"{100 * seconds / whole if whole else 0:.2f}%"
        if self.name == "percent":
            return part
        count = f"{seconds / DIVISORS[self.name]:.0f}"
        return f"{count}({part})" if self.in_parts else count


MINUTES = Unit("minutes")
SPELLED_OUT = 6
"""Letters that a unit with parts needs at least (22.05)."""


def unit_of(text: str) -> Unit | None:
    """The unit of a word that may be cut short; None for what is none."""
    low = text.lower()
    found = next((name for name in UNITS if name.startswith(low)), None)
    if not found or not low or (len(low) < SPELLED_OUT and Unit(found).in_parts):
        return None
    return Unit(found)
