"""Kinds of machines that never came up: what they are, and which offers are of them."""

from collections.abc import Iterable, Mapping

from accounting.age import in_utc
from broker.model.boots import FailedBoots
from broker.model.build import Build
from broker.model.errors import Refusal, Width
from broker.model.offer import Machine, Offer, Ranked
from broker.model.reports import Tried

MOST_FAILED = 3
"""In a row, of one kind: then none of it is bought for a while."""
PROTECTED_SECONDS = 1800


def kind_of(provider: str, of: Offer | Machine, build: Build | None) -> str:
    """What comes up or does not: a type in a region; a job's own image, of whatever type."""
    image = build.image(of.region) if build else None
    return f"{provider}:{image or f'{of.region},{of.instance_type}'}"


def barred(
    rungs: Iterable[Ranked], build: Build | None, boots: Mapping[str, FailedBoots]
) -> tuple[tuple[Ranked, ...], tuple[Tried, ...]]:
    """Those of the rungs that may be bought, and of the others why not.

    Where the image is the job's own, no other job is to be kept from the type.
    """
    if not boots:
        return tuple(rungs), ()
    free: list[Ranked] = []
    shut: list[Tried] = []
    for rung in rungs:
        offer = rung.offer
        known = boots.get(kind_of(offer.provider, offer, build))
        if known is None or known.until is None:
            free.append(rung)
        elif build is not None and build.image(offer.region):
            shut.append(Tried(offer, Refusal.INVALID, Width.NOTHING, _told(known)))
        else:
            shut.append(Tried(offer, Refusal.TRANSIENT, Width.TYPE_IN_REGION, _told(known)))
    return tuple(free), tuple(shut)


def _told(known: FailedBoots) -> str:
    until = in_utc(known.until or known.since)
    last = f" ({known.why})" if known.why else ""
    return (
        f"protected mode: {known.failed} of {known.name} in a row never came up{last}; "
        f"next try by {until}"
    )
