"""Money for people: short where it can be, exact always."""

from collections.abc import Iterable, Iterator, Mapping

from accounting.rates import dollars


def usd(micro_usd: int) -> str:
    """`$1.006`, `-$0.0001`: at least three decimals, as many as it takes."""
    whole, _, part = dollars(abs(micro_usd)).partition(".")
    return f"{'-' if micro_usd < 0 else ''}${whole}.{part.rstrip('0').ljust(3, '0')}"


def oldest(told: Iterable[str | None]) -> str | None:
    """Of what is said of several old prices (`price of DAY, ...`) what stands for all of them."""
    return min(filter(None, told), default=None)


def oldest_in(data: object) -> str | None:
    """The same of all that is listed, however deep it lies."""
    return oldest(_old_prices(data))


def _old_prices(data: object) -> Iterator[str | None]:
    if isinstance(data, Mapping):
        yield data.get("old_price")
        data = [*data.values()]
    for one in data if isinstance(data, list) else ():
        yield from _old_prices(one)


def beside(told: str | None) -> str:
    """In brackets behind a price; nothing where nothing is said of it."""
    return f" ({told})" if told else ""
