"""Walks ranked offers until one works: all nodes or none, each refusal told."""

from collections.abc import Mapping

from broker.model.effects import Launch
from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Machine, Offer
from broker.model.reports import Launched, NotLaunched, Tried
from broker.optimize.cooldown import Cooldown, Place
from broker.ports import Provider


def launch(effect: Launch, providers: Mapping[str, Provider]) -> Launched | NotLaunched:
    """The first rung that gives all of the nodes. The same group never buys twice.

    A machine that a former walk bought (the service was killed before it was told) is found
    by its node before anything else is tried.
    """
    found = _bought_before(effect, providers)
    if found is not None:
        return Launched(group=effect.group, machines=found)
    tried = list(effect.tried)
    walk = Cooldown()
    for rung in effect.rungs:
        if _ruled_out(rung.offer, walk, len(effect.nodes)):
            continue
        provider = providers.get(rung.offer.provider)
        if provider is None:
            tried.append(_no_provider(rung.offer))
            walk.refused(rung.offer, tried[-1], now=0)
            continue
        try:
            machines = provider.launch(rung.offer, effect.nodes, token=effect.group)
        except ProviderError as error:
            tried.append(Tried(rung.offer, error.refusal, error.width, error.message))
            walk.refused(rung.offer, error, now=0, nodes=len(effect.nodes))
            continue
        return Launched(
            group=effect.group, machines=tuple(machines), offer=rung.offer, tried=tuple(tried)
        )
    return NotLaunched(group=effect.group, tried=tuple(tried), nodes=len(effect.nodes))


def _bought_before(effect: Launch, providers: Mapping[str, Provider]) -> tuple[Machine, ...] | None:
    names = {rung.offer.provider for rung in effect.rungs}
    for name in sorted(names & providers.keys()):
        held = {
            machine.identity: machine
            for machine in providers[name].machines()
            if machine.terminated_at is None
        }
        if held and all(node in held for node in effect.nodes):
            return tuple(held[node] for node in effect.nodes)
    return None


def _ruled_out(offer: Offer, walk: Cooldown, nodes: int) -> bool:
    """Whether refusals on this walk already say no to this offer in each of its zones."""
    places = (
        Place(offer.provider, offer.region, zone, offer.instance_type, offer.family, offer.market)
        for zone in offer.zones or ("",)
    )
    return all(walk.against(place, now=0, nodes=nodes) for place in places)


def _no_provider(offer: Offer) -> Tried:
    message = f"no provider {offer.provider!r} is configured"
    return Tried(offer, Refusal.INVALID, Width.PROVIDER, message)
