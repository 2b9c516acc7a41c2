"""What keeps a purchase from being made: ceilings, quotas just met."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from accounting.rates import dollars
from broker.model.build import Build
from broker.model.errors import CEILING, ProviderError, Refusal, Width
from broker.model.offer import Machine, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2.errors import quota_of
from broker.providers.ec2.naming import Identity, Purchase

QUOTA_SECONDS = 60.0
"""So long a quota that was met is believed without asking EC2 again."""
Quota = tuple[str, str]
"""Region, and a quota's code or where none is known its group and market."""
Over = Callable[[Purchase, Iterable[Machine], Iterable[Purchase]], str | None]
"""Why a launch would be over a quota beside these machines and these launches."""


def _not_known(_bought: Purchase, _there: object, _coming: object) -> None:
    """Nobody has read quotas: any launch may work."""


Beside = Callable[[str, Build], int]


def _nothing(_region: str, _build: Build) -> int:
    """Machines have nothing beside them that is billed."""
    return 0


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Most micro-dollars per hour that machines may cost together; None is no limit."""

    site: int | None = None
    account: int | None = None
    user: int | None = None


@dataclass(slots=True)
class Guard:
    """Asked before each launch; may be asked from any thread. `clock` never jumps."""

    ceilings: Ceilings
    purpose: Callable[[Sequence[Identity], str], Purpose]
    clock: Callable[[], float]
    over: Over = _not_known
    beside: Beside = _nothing
    """Micro-dollars an hour of a machine's volume and address, in a region."""
    _under_way: dict[str, Purchase] = field(default_factory=dict)
    _quotas: dict[Quota, tuple[float, int, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def admitted(self, bought: Purchase, living: Callable[[], Iterable[Machine]]) -> Iterator[None]:
        """Counts the purchase as made while it is under way. Raises ProviderError."""
        with self._lock:
            self._check_quota(bought)
        there = list(living())
        with self._lock:
            self._check_money(bought, there)
            self._check_room(bought, there)
            self._under_way[bought.token] = bought
        try:
            yield
        finally:
            with self._lock:
                self._under_way.pop(bought.token, None)

    def refused(self, bought: Purchase, why: ProviderError) -> None:
        """Remembers a quota for all types that count against it."""
        if why.refusal is not Refusal.QUOTA or why.width is not Width.FAMILY_IN_REGION:
            return
        with self._lock:
            until = self.clock() + QUOTA_SECONDS
            self._quotas[_quota(bought.offer)] = until, _cpus(bought), why.message

    def room_again(self, machine: Machine) -> None:
        """One that counted against a quota is gone."""
        with self._lock:
            self._quotas.pop(_quota(machine), None)

    def _check_quota(self, bought: Purchase) -> None:
        known = self._quotas.get(_quota(bought.offer))
        if known is not None and self.clock() < known[0] and _cpus(bought) >= known[1]:
            raise ProviderError(Refusal.QUOTA, Width.FAMILY_IN_REGION, known[2])

    def _check_room(self, bought: Purchase, there: Sequence[Machine]) -> None:
        """What would surely be refused is passed over without a call; no cool-down is needed."""
        coming = self._under_way.values()
        beside = [machine for machine in there if machine.token not in self._under_way]
        told = self.over(bought, beside, coming)
        if told is not None:
            raise ProviderError(Refusal.QUOTA, Width.NOTHING, told)

    def _check_money(self, bought: Purchase, there: Sequence[Machine]) -> None:
        wanted = self._price(bought)
        for name, whose, most in self._limits(bought.purpose):
            spent = self._spent(whose, there)
            if most is not None and spent + wanted > most:
                # What costs more than all that is allowed is never bought: others are asked on.
                never = wanted > most
                raise ProviderError(
                    Refusal.INVALID if never else Refusal.QUOTA,
                    Width.TYPE_IN_REGION if never else Width.PROVIDER,
                    f"{CEILING}{name}: {dollars(spent)} of {dollars(most)} USD an hour in use, "
                    f"{dollars(wanted)} more wanted",
                )

    def _limits(
        self, purpose: Purpose
    ) -> Iterable[tuple[str, Callable[[Purpose], bool], int | None]]:
        most = self.ceilings
        return (
            ("the site", lambda _: True, most.site),
            (f"account {purpose.account}", lambda p: p.account == purpose.account, most.account),
            (f"user {purpose.user}", lambda p: p.user == purpose.user, most.user),
        )

    def _spent(self, whose: Callable[[Purpose], bool], there: Sequence[Machine]) -> int:
        """Micro-dollars an hour of what is there and what is being bought."""
        standing = (one for one in there if one.token not in self._under_way)
        known = ((one, self.purpose([one.identity], one.token)) for one in standing)
        now = sum(
            one.micro_usd_per_hour + self.beside(one.region, purpose.build)
            for one, purpose in known
            if whose(purpose)
        )
        coming = (one for one in self._under_way.values() if whose(one.purpose))
        return now + sum(map(self._price, coming))

    def _price(self, bought: Purchase) -> int:
        offer = bought.offer
        each = offer.micro_usd_per_hour + self.beside(offer.region, bought.purpose.build)
        return each * len(bought.nodes)


def _cpus(bought: Purchase) -> int:
    return bought.offer.cpus * len(bought.nodes)


def _quota(of: Offer | Machine) -> Quota:
    code, group = quota_of(of.instance_type, of.market)
    return of.region, code or f"{group}, {of.market}"
