"""Money for people: short where it can be, exact always."""

from accounting.rates import dollars


def usd(micro_usd: int) -> str:
    """`$1.006`, `-$0.0001`: at least three decimals, as many as it takes."""
    whole, _, part = dollars(abs(micro_usd)).partition(".")
    return f"{'-' if micro_usd < 0 else ''}${whole}.{part.rstrip('0').ljust(3, '0')}"
