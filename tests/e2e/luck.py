"""Luck that leaves nothing out."""

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def drawn(kinds: Sequence[T], count: int, dice: random.Random) -> list[T]:
    """So many of them in random order; each has come before any comes again."""
    rounds = -(-count // len(kinds))
    return [kind for _ in range(rounds) for kind in dice.sample(kinds, len(kinds))][:count]
