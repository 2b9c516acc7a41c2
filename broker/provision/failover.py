"""Walks ranked offers until one works: all nodes or none, each refusal told."""

from collections.abc import Mapping

from broker.model.commands import Launched, NotLaunched, Tried
from broker.model.effects import Launch
from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Machine, Offer
from broker.ports import Provider


def launch(effect: Launch, providers: Mapping[str, Provider]) -> Launched | NotLaunched:
    """The first rung that gives all of the nodes. The same group never buys twice.

    A machine that a former walk bought (the service was killed before it was told) is found
    by its token before anything else is tried.
    """
    found = _bought_before(effect, providers)
    if found is not None:
        return Launched(group=effect.group, machines=found)
    tried: list[Tried] = []
    for rung in effect.rungs:
        if _ruled_out(rung.offer, tried):
            continue
        provider = providers.get(rung.offer.provider)
        if provider is None:
            tried.append(_no_provider(rung.offer))
            continue
        try:
            machines = provider.launch(rung.offer, effect.nodes, token=effect.group)
        except ProviderError as error:
            tried.append(Tried(rung.offer, error.refusal, error.width, error.message))
            continue
        return Launched(
            group=effect.group, machines=tuple(machines), offer=rung.offer, tried=tuple(tried)
        )
    return NotLaunched(group=effect.group, tried=tuple(tried), nodes=len(effect.nodes))


def _bought_before(effect: Launch, providers: Mapping[str, Provider]) -> tuple[Machine, ...] | None:
    names = {rung.offer.provider for rung in effect.rungs}
    for name in sorted(names & providers.keys()):
        held = {
            (machine.node, machine.launch): machine
            for machine in providers[name].machines()
            if machine.token == effect.group and machine.terminated_at is None
        }
        if held and all(node in held for node in effect.nodes):
            return tuple(held[node] for node in effect.nodes)
    return None


def _ruled_out(offer: Offer, tried: list[Tried]) -> bool:
    """Whether a refusal on this walk already says no to this offer."""
    return any(_covers(one, offer) for one in tried)


def _covers(one: Tried, offer: Offer) -> bool:
    was = one.offer
    same_region = (was.provider, was.region) == (offer.provider, offer.region)
    match one.width:
        case Width.PROVIDER:
            return was.provider == offer.provider
        case Width.REGION:
            return same_region
        case Width.MARKET_IN_REGION:
            return same_region and was.market is offer.market
        case Width.FAMILY_IN_REGION:
            return same_region and was.family == offer.family
        case Width.TYPE_IN_REGION:
            return same_region and was.instance_type == offer.instance_type
        case _:
            return False


def _no_provider(offer: Offer) -> Tried:
    message = f"no provider {offer.provider!r} is configured"
    return Tried(offer, Refusal.INVALID, Width.PROVIDER, message)
