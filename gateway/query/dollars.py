"""Money for people: short where it can be, exact always."""

from accounting.rates import dollars


def usd(micro_usd: int) -> str:
    """`$1.006`: at least three decimals, as many as it takes."""
    whole, _, part = dollars(micro_usd).partition(".")
    return f"${whole}.{part.rstrip('0').ljust(3, '0')}"
