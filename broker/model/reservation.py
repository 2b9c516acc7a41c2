"""Reservations: declared nodes kept for some users or accounts from one moment to another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from broker.model.facts import RecordGone, RecordSet
from broker.model.ids import NodeName
from broker.model.job import Owner

DAY, HOUR = 86_400, 3_600
REPEATS: Mapping[str, int] = {"HOURLY": HOUR, "DAILY": DAY, "WEEKLY": 7 * DAY}
"""Flags that make it come again, and after how many seconds."""
BY_WEEK: Mapping[str, tuple[int, ...]] = {"WEEKDAY": (0, 1, 2, 3, 4), "WEEKEND": (5, 6)}
"""Flags that make it come again on days of the week (Monday is 0)."""
OPEN_ENDED = 365 * DAY
"""How long one lasts that is asked for without an end (Slurm: a year)."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """Who may use which nodes from `start` to `end` (seconds UTC), and nobody else."""

    name: str
    start: int
    end: int
    nodes: tuple[NodeName, ...]
    users: tuple[str, ...] = ()
    """A name with `-` before it is one that may not."""
    groups: tuple[str, ...] = ()
    gids: tuple[int, ...] = ()
    """The numbers of `groups`."""
    accounts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    partition: str | None = None
    features: str | None = None
    purge: int | None = None
    """Seconds of disuse after which it goes (PURGE_COMP)."""
    max_start_delay: int | None = None
    comment: str | None = None
    begun: bool = False
    """Whether its beginning was told."""

    def active(self, now: int) -> bool:
        return self.start <= now < self.end

    def has(self, flag: str) -> bool:
        return flag in self.flags

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it, now or when it comes again, and the time from `start` to `end` meet."""
        if self.start < end and start < self.end:
            return True
        again = self.following()
        while again is not None and again.start < end:
            if start < again.end:
                return True
            again = again.following()
        return False

    def following(self) -> "Reservation | None":
        """It when it comes the next time; None for one that does not."""
        step = min((REPEATS[flag] for flag in self.flags if flag in REPEATS), default=None)
        if step is not None:
            return self._moved(step)
        days = [day for flag in self.flags for day in BY_WEEK.get(flag, ())]
        if not days:
            return None
        moved = DAY
        while datetime.fromtimestamp(self.start + moved, UTC).weekday() not in days:
            moved += DAY
        return self._moved(moved)

    def _moved(self, seconds: int) -> "Reservation":
        return replace(self, start=self.start + seconds, end=self.end + seconds, begun=False)

    def admits(self, owner: Owner, account: str) -> bool:
        """Whether the user may use it with the account; all lists have to agree (22.05)."""
        if self.gids and not {owner.gid, *owner.groups} & set(self.gids):
            return False
        return _listed(self.users, owner.user) and _listed(self.accounts, account)


def _listed(names: tuple[str, ...], name: str) -> bool:
    """An empty list says nothing; of one with `-` everybody else is on it."""
    barred = {one[1:] for one in names if one.startswith("-")}
    if barred:
        return name not in barred
    return not names or name in names


def names_of(text: str | None) -> tuple[str, ...]:
    """`--reservation=a,b` as names."""
    return tuple(one for one in (text or "").split(",") if one)


Reservations = Mapping[str, Reservation]
"""By name."""


def asked_of(text: str | None, known: Reservations) -> list[Reservation]:
    """The reservations that a job names, those that are there."""
    return [known[name] for name in names_of(text) if name in known]


# ---------------------------------------------------------------- what is asked, what happened


@dataclass(frozen=True, slots=True)
class Edit:
    """What becomes of a list of names: `=` takes their place, `+=` adds, `-=` takes away."""

    names: tuple[str, ...]
    sign: str = ""
    """Empty, `+` or `-`."""

    def of(self, before: tuple[str, ...]) -> tuple[str, ...]:
        if not self.sign:
            return self.names
        kept = tuple(name for name in before if name not in self.names)
        return kept if self.sign == "-" else (*kept, *self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReservation:
    """`scontrol create` and `update reservation`; None leaves as it is. Reply: its name.

    Raises Denied, Unknown, Refused, Conflict with Slurm's texts.
    """

    by: Owner
    make: bool
    name: str = ""
    """Empty: it is named after its first user or account."""
    start: int | None = None
    end: int | None = None
    duration: int | None = None
    """Seconds."""
    nodes: tuple[str, ...] | None = None
    """`ALL` alone is every one that is declared."""
    node_count: int | None = None
    core_count: int | None = None
    users: Edit | None = None
    groups: Edit | None = None
    gids: tuple[int, ...] = ()
    accounts: Edit | None = None
    flags: Edit | None = None
    partition: str | None = None
    features: str | None = None
    purge: int | None = None
    max_start_delay: int | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropReservation:
    """`scontrol delete reservation`. Raises Denied, Unknown, Conflict (a job runs in it)."""

    name: str
    by: Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationSet(RecordSet):
    """A reservation is made or changed, has begun, or moves to its next time."""

    record: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservationGone(RecordGone):
    """Deleted, over, or not used for too long."""


ReservationEvent = ReservationSet | ReservationGone
