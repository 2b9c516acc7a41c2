"""Where a job goes on that lost machines: to other regions, or first to the same one again."""

from collections.abc import Iterable, Iterator

from broker.model.offer import Need, Ranked


def by_region(need: Need, found: Iterable[Ranked]) -> Iterator[Ranked]:
    """The same offers, each region as near to the front as the need has it.

    What was refused lately is no place to go back to first.
    """
    later: list[Ranked] = []
    for one in found:
        if _wanted(need, one):
            yield one
        else:
            later.append(one)
    yield from sorted(later, key=lambda one: _rank(need, one.offer.region))


def _wanted(need: Need, one: Ranked) -> bool:
    if need.first_region:
        return one.offer.region == need.first_region and one.cooling_until is None
    return one.offer.region not in need.last_regions


def _rank(need: Need, region: str) -> int:
    """Of those behind: where a machine was lost long ago before where it was lost just now."""
    return need.last_regions.index(region) if region in need.last_regions else 0
