"""Machines for several jobs that want the same at the same moment, bought by one call.

EC2 admits few launches a second, and many machines in each: an array whose elements have a
machine of their own each would otherwise wait for its calls.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from broker.model.offer import Machine, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2.naming import LONGEST_VALUE, Identity, Purchase, prefix

WINDOW = 0.05
"""Seconds for which the first waits for others."""
MOST = 100
"""Machines of one call: their names are in its tags."""


@dataclass(frozen=True, slots=True)
class Want:
    """One machine that a job wants."""

    offer: Offer
    node: Identity
    token: str
    purpose: Purpose

    @property
    def kind(self) -> Hashable:
        """Alike for those that one call can serve: the same machine, for the same user."""
        whom = self.purpose
        return self.offer, prefix(self.node[0]), whom.user, whom.account, whom.build


def purchase(wants: Sequence[Want], at: int) -> Purchase:
    """Of as many of them as there are; the machines live as long as the longest needs its own."""
    first = wants[0].purpose
    return Purchase(
        offer=wants[0].offer,
        nodes=tuple(want.node for want in wants),
        token=f"{wants[0].token}+{len(wants) - 1}",
        purpose=replace(
            first,
            job=",".join(want.purpose.job for want in wants)[:LONGEST_VALUE],
            seconds=max(want.purpose.seconds for want in wants),
        ),
        at=at,
        partial=True,
    )


@dataclass(slots=True)
class _Batch:
    wants: list[Want] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    machines: Mapping[Identity, Machine] = field(default_factory=dict)
    error: Exception | None = None


class Together:
    """May be asked from any thread; `buy` gives as many of several wants as can be had."""

    def __init__(
        self,
        buy: Callable[[Sequence[Want]], Mapping[Identity, Machine]],
        pause: Callable[[float], None],
    ) -> None:
        self._buy = buy
        self._pause = pause
        self._open: dict[Hashable, _Batch] = {}
        self._lock = threading.Lock()

    def launch(self, want: Want) -> Machine | None:
        """None where nobody wants the same, or it was not among those that could be had.

        Raises what `buy` raises, for all of them.
        """
        batch, first = self._join(want)
        if first:
            self._settle(batch, want.kind)
        batch.done.wait()
        if batch.error is not None:
            raise batch.error
        return batch.machines.get(want.node)

    def _join(self, want: Want) -> tuple[_Batch, bool]:
        with self._lock:
            batch = self._open.get(want.kind)
            first = batch is None or len(batch.wants) >= MOST
            if batch is None or first:
                batch = self._open[want.kind] = _Batch()
            batch.wants.append(want)
            return batch, first

    def _settle(self, batch: _Batch, kind: Hashable) -> None:
        try:
            self._pause(WINDOW)
            self._close(batch, kind)
            if len(batch.wants) > 1:
                batch.machines = self._buy(batch.wants)
        except Exception as error:  # border: it is raised by everybody who waits
            batch.error = error
        finally:
            self._close(batch, kind)
            batch.done.set()

    def _close(self, batch: _Batch, kind: Hashable) -> None:
        """Who comes from now on is one of the next."""
        with self._lock:
            if self._open.get(kind) is batch:
                del self._open[kind]
