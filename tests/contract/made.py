"""The EC2 provider as tests join it."""

from collections.abc import Callable, Iterable
from pathlib import Path

from broker.model.offer import Machine, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2.clients import Api
from broker.providers.ec2.guard import Ceilings, Guard
from broker.providers.ec2.holdings import Clocks
from broker.providers.ec2.keys import site_keys
from broker.providers.ec2.naming import Site
from broker.providers.ec2.provider import Ec2Provider, Outside
from broker.providers.ec2.settings import Ec2Settings

FOR = Purpose(job="4711", user="alice", account="physics", seconds=4200)


def ec2_provider(
    folder: Path,
    api: Api,
    now: Callable[[], int],
    offers: Iterable[Offer] = (),
    *,
    settings: Ec2Settings = Ec2Settings(),
    ceilings: Ceilings = Ceilings(),
    pause: Callable[[float], None] = lambda _seconds: None,
    whose: Purpose = FOR,
    recalled: Callable[[], Iterable[Machine]] = tuple,
) -> Ec2Provider:
    keys = site_keys(folder)
    return Ec2Provider(
        Outside(
            api=api,
            site=Site(keys.id, "skypurza", "test"),
            keys=keys,
            settings=settings,
            folder=folder,
            catalog=lambda: list(offers),
            purpose=lambda _nodes, _token: whose,
            guard=Guard(ceilings, lambda _nodes, _token: whose, now),
            clocks=Clocks(now, now, pause),
            recalled=recalled,
        )
    )
