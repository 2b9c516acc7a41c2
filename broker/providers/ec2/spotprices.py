"""What pools of spot machines cost, by EC2's history of prices, as long as we hold some of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from accounting.rates import Price
from broker.model.offer import Machine, Market
from broker.providers.ec2.clients import Api, pages
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.figures import LINUX
from broker.providers.ec2.network import Zones
from broker.providers.ec2.pricelist import micro_usd

EVERY_SECONDS = 300
"""A region's prices are read so often while machines run there, and when one has ended."""
SILENT_SECONDS = 60
"""A region that did not tell any is asked again after so long."""

Pool = tuple[str, str]
"""Instance type and zone id."""


@dataclass(slots=True)
class _Told:
    """Of one region: prices by pool, until when they are known, and when it is to be asked next."""

    pools: dict[Pool, set[Price]] = field(default_factory=dict)
    until: int = 0
    next_at: int = 0
    silent: bool = False


class SpotPrices:
    """For one thread at a time in each region, as `Holdings` reads regions."""

    def __init__(self, api: Api, zones: Zones) -> None:
        self._api = api
        self._zones = zones
        self._regions: dict[str, _Told] = {}

    def told(self, region: str, machines: Mapping[str, Machine], now: int) -> dict[str, Machine]:
        """The machines by id, spot ones with what their pools have cost since they were launched.

        One that has ended has them whole where EC2 answers; as far as they are known where not.
        """
        spot = {id: one for id, one in machines.items() if one.market is Market.SPOT}
        if not spot:
            self._regions.pop(region, None)
            return dict(machines)
        known = self._regions.setdefault(region, _Told())
        news = not known.silent and _unknown(spot.values(), known)
        if news or now >= known.next_at:
            self._read(region, known, list(spot.values()), now=now)
        return {**machines, **{id: _priced(one, known.pools) for id, one in spot.items()}}

    def _read(self, region: str, known: _Told, machines: Sequence[Machine], *, now: int) -> None:
        wanted = {_pool(one) for one in machines}
        first = min(one.launched_at for one in machines)
        since = max(first, known.until) if wanted <= known.pools.keys() else first
        try:
            found = list(self._history(region, {kind for kind, _ in wanted}, since=since))
        except (AwsError, NoAnswerError):
            known.silent, known.next_at = True, now + SILENT_SECONDS
            return
        pools = {pool: known.pools.get(pool, set()) for pool in wanted}
        for pool, price in found:
            if pool in pools:
                pools[pool].add(price)
        known.pools, known.until = pools, now
        known.silent, known.next_at = False, now + EVERY_SECONDS

    def _history(
        self, region: str, types: Iterable[str], *, since: int
    ) -> Iterator[tuple[Pool, Price]]:
        """With the price that was in force at the beginning. Raises AwsError, NoAnswerError."""
        rows = pages(
            self._api,
            region,
            "describe_spot_price_history",
            key="SpotPriceHistory",
            StartTime=datetime.fromtimestamp(since, UTC),
            InstanceTypes=sorted(types),
            ProductDescriptions=[LINUX],
        )
        for row in rows:
            pool = row["InstanceType"], self._zones.id(region, row["AvailabilityZone"])
            yield pool, Price(int(row["Timestamp"].timestamp()), micro_usd(row["SpotPrice"]))


def _unknown(machines: Iterable[Machine], known: _Told) -> bool:
    """Whether one ended, or was bought in a pool that nobody has asked about, since then."""
    return any(
        _pool(one) not in known.pools or _end(one) > known.until
        for one in machines
        if one.running_at is not None
    )


def _pool(machine: Machine) -> Pool:
    return machine.instance_type, machine.zone


def _end(machine: Machine) -> int:
    return max(machine.terminated_at or 0, machine.stopped_at or 0)


def _priced(machine: Machine, pools: Mapping[Pool, Iterable[Price]]) -> Machine:
    told = sorted(pools.get(_pool(machine), ()))
    before = [price for price in told if price.since <= machine.launched_at]
    return replace(machine, prices=(*before[-1:], *told[len(before) :]))
