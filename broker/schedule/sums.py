"""What the jobs come to that are held against a limit: added up once, then kept up to date."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from accounting.assoc import Book, association
from accounting.ids import AccountName, UserName
from broker.model.site import Site
from broker.model.tally import Charges, Party, Tally, Used


class Family(Enum):
    """By what jobs are held against limits of one kind."""

    QOS = auto()
    """Its own, or their partition's."""
    QOS_USER = auto()
    QOS_ACCOUNT = auto()
    ASSOCIATION = auto()
    ACCOUNT = auto()
    """With all below it."""


Key = tuple[str, ...]
"""A QOS, and of whose jobs; user, account and partition of an association; or an account."""


@dataclass(slots=True)
class Known:
    """What limits are measured against, as of an instant."""

    book: Book
    tally: Tally
    charges: Charges = field(default_factory=dict)
    partition_qos: Mapping[str, str] = field(default_factory=dict)
    """QOS by partition, where it has one."""
    now: int = 0
    keep: float = 1.0
    """What a second leaves of what was used before."""
    _used: dict[Family, dict[Key, Used]] = field(default_factory=dict)
    _charged: dict[Family, dict[Key, dict[str, float]]] = field(default_factory=dict)
    _more: list[tuple[Party, Used, int]] = field(default_factory=list)
    """What came to the tally since."""

    def add(self, party: Party, used: Used, sign: int = 1) -> None:
        """The party uses more from now, or with a sign of -1 less."""
        self._more.append((party, used, sign))
        for family, sums in self._used.items():
            self._add(family, sums, (party, used, sign))

    def used(self, family: Family, key: Key) -> Used:
        """What they use now."""
        if family not in self._used:
            sums = self._used[family] = {}
            for one in (*((party, held, 1) for party, held in self.tally.items()), *self._more):
                self._add(family, sums, one)
        return self._used[family].get(key) or Used()

    def _add(self, family: Family, sums: dict[Key, Used], one: tuple[Party, Used, int]) -> None:
        """What running jobs may still use counts times the UsageFactor of their QOS (22.05)."""
        party, used, sign = one
        factor = self.book.factor(party.qos)
        for key in KEYS[family](self, party):
            sums.setdefault(key, Used()).add(used, sign, factor=factor)

    @property
    def parties(self) -> set[Party]:
        """Who has used something, or does."""
        return {*self.charges, *self.tally}

    def counts(self, party: Party) -> dict[str, float]:
        """TRES-seconds that the party has used so far, as they count for shares."""
        return self._counts(Family.ACCOUNT, (party.account,), party)

    def charged(self, family: Family, key: Key) -> Mapping[str, float]:
        """TRES-seconds that they have used so far, as they count for limits."""
        if family not in self._charged:
            self._charged[family] = self._sums(family)
        return self._charged[family].get(key) or {}

    def _sums(self, family: Family) -> dict[Key, dict[str, float]]:
        sums: dict[Key, dict[str, float]] = {}
        for party in self.parties:
            for key in KEYS[family](self, party):
                total = sums.setdefault(key, {})
                for name, count in self._counts(family, key, party).items():
                    total[name] = total.get(name, 0.0) + count
        return sums

    def _counts(self, family: Family, key: Key, party: Party) -> dict[str, float]:
        """All of it counts under a QOS that says NoDecay."""
        grade = self.book.qos.get(key[0]) if family in OF_QOS else None
        whole = grade is not None and "NoDecay" in grade.flags
        found: dict[str, float] = {}
        charge = self.charges.get(party)
        if charge is not None:
            counts = charge.graded if family in OF_QOS else charge.faded
            part = 1.0 if whole else self.keep ** max(0, self.now - charge.at)
            found = {n: count * part for n, count in (charge.whole if whole else counts).items()}
        held, factor = self.tally.get(party) or Used(), self.book.factor(party.qos)
        for name in held.held:
            running = held.charged(name, self.now, keep=1.0 if whole else self.keep)
            found[name] = found.get(name, 0.0) + factor * running
        return found


def known_of(site: Site, tally: Tally, charges: Charges, *, now: int) -> Known:
    """Of a whole site."""
    return Known(
        book=site.book,
        tally=tally,
        charges=charges,
        partition_qos={p.name: p.qos.lower() for p in site.partitions if p.qos},
        now=now,
        keep=site.ranking.keep,
    )


def _grades(known: Known, party: Party) -> set[str]:
    """What it runs under, by its own choice or by its partition's."""
    part = known.partition_qos.get(party.partition)
    return {party.qos} if part is None else {party.qos, part}


def association_key(known: Known, party: Party) -> Key:
    """One that holds in a partition alone has jobs of its own."""
    own = association(
        known.book, UserName(party.user), account=party.account, partition=party.partition
    )
    where = own.partition if own is not None else None
    return party.user, party.account, where or ""


KEYS: Mapping[Family, Callable[[Known, Party], Iterable[Key]]] = {
    Family.QOS: lambda known, party: [(name,) for name in _grades(known, party)],
    Family.QOS_USER: lambda known, party: [(n, party.user) for n in _grades(known, party)],
    Family.QOS_ACCOUNT: lambda known, party: [(n, party.account) for n in _grades(known, party)],
    Family.ASSOCIATION: lambda known, party: [association_key(known, party)],
    Family.ACCOUNT: lambda known, party: [
        (step.name,) for step in known.book.lineage(AccountName(party.account))
    ],
}
"""Under which keys what a party uses is counted."""
OF_QOS = frozenset({Family.QOS, Family.QOS_USER, Family.QOS_ACCOUNT})
