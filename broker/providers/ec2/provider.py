"""Machines of EC2: bought by one call each, found by their tags, ended for certain."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from broker.model.build import USUAL
from broker.model.errors import ProviderError, Refusal, Refused
from broker.model.leftover import Leftover
from broker.model.node import Node
from broker.model.offer import Machine, MachineState, Offer, pool_of
from broker.model.purpose import Purpose
from broker.optimize.shelf import shelve
from broker.providers.ec2 import errors, naming
from broker.providers.ec2.asking import Asking
from broker.providers.ec2.buying import Arrives, Buying
from broker.providers.ec2.clients import HOME_REGION, Api, region_names
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.guard import Guard
from broker.providers.ec2.holdings import Clocks, Holdings, Written
from broker.providers.ec2.images import Images, filled, named
from broker.providers.ec2.instances import KEPT, LIVING
from broker.providers.ec2.intents import Intents, Regions
from broker.providers.ec2.keys import SiteKeys
from broker.providers.ec2.leftovers import Leftovers
from broker.providers.ec2.naming import Identity, prefix
from broker.providers.ec2.network import Networks
from broker.providers.ec2.reserved import Reservations
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.ec2.together import Together, Want, purchase
from broker.providers.ec2.volumes import EbsVolumes

ASKED_SECONDS = 3600
"""After so long a purchase that was never answered is left to the sweep."""
ANSWERED_SECONDS = 600
"""So long what was asked and answered stays written down: EC2 shows new machines much sooner."""
AT_ONCE = 8
"""Regions that are searched at a time."""
BESIDE = 32
"""Questions that launches put while they wait for the answers to others."""
MOST_AT_ONCE = 500
"""Machines of one call that ends, stops or starts some."""
FEWER_MAY = frozenset({Refusal.CAPACITY, Refusal.INVALID, Refusal.QUOTA})
"""Where several are refused for these, one of them may be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a provider works with."""

    api: Api
    site: naming.Site
    keys: SiteKeys
    settings: Ec2Settings
    folder: Path
    """Where its intents are kept."""
    catalog: Callable[[], Iterable[Offer]]
    purpose: Callable[[Sequence[Identity], str], Purpose]
    """For whom a purchase is."""
    guard: Guard
    clocks: Clocks
    recalled: Callable[[], Iterable[Machine]] = tuple
    """Machines of nodes that live, as they were last written down."""


class Ec2Provider:
    """`broker.ports.Provider` on EC2; all of it may be called from any thread."""

    name = "ec2"

    def __init__(self, outside: Outside) -> None:
        self._with = outside
        self.arrives: Arrives = lambda bought, user: ()
        """How the agent comes to machines; not by itself, if nobody says so."""
        self._intents = Intents(outside.folder / "intents")
        self._book = Regions(outside.folder / "regions")
        self._asking = Asking(outside.api, outside.site, outside.clocks.pause)
        self.images = Images(outside.api, outside.clocks.monotonic)
        self._beside = ThreadPoolExecutor(BESIDE, thread_name_prefix="ground")
        self.networks = Networks(outside.api, outside.site, outside.settings, beside=self._beside)
        self.reserved = Reservations(
            outside.api, lambda: shelve(outside.catalog()), outside.clocks.monotonic
        )
        self.holdings = Holdings(
            outside.api,
            outside.site,
            written=Written(
                lambda: {*self._book.all(), *self._intents.regions()}, outside.recalled
            ),
            settings=outside.settings,
            clocks=outside.clocks,
        )
        self.holdings.could_not_start = self.images.forget
        self.volumes = EbsVolumes(self._asking, outside.site, outside.settings)
        self._leftovers = Leftovers(outside.api, outside.site, outside.clocks.monotonic)
        self.buying = Buying(
            site=outside.site,
            keys=outside.keys,
            settings=outside.settings,
            guard=outside.guard,
            clocks=outside.clocks,
            asking=self._asking,
            images=self.images,
            networks=self.networks,
            reserved=self.reserved,
            holdings=self.holdings,
            intents=self._intents,
            book=self._book,
            arrives=self._arrival,
            beside=self._beside,
        )
        self._together = Together(self._buy_together, outside.clocks.pause)
        self._buying: set[str] = set()
        self._bought_one = threading.Condition()

    # --- Provider

    def offers(self) -> Iterable[Offer]:
        return self._with.catalog()

    def launch(self, offer: Offer, nodes: Sequence[Identity], *, token: str) -> list[Machine]:
        """The purchase is on disk before it is made.

        Raises OSError where nobody knows whether it was made: asked again with the same token, it
        is found out before anything else is bought.
        """
        with self._alone(token):
            found = self.buying.found_out(nodes) or self._bought(nodes)
            if found is not None:
                return found
            purpose = self._with.purpose(nodes, token)
            if len(nodes) == 1 and not (offer.reservation or purpose.beside):
                one = self._together.launch(Want(offer, nodes[0], token, purpose))
                if one is not None:
                    return [one]
            bought = naming.Purchase(
                offer=offer, nodes=tuple(nodes), token=token, purpose=purpose, at=self._now()
            )
            with self._with.guard.admitted(bought, self._living):
                return self.buying.buy(bought)

    def machines(self) -> list[Machine]:
        """Raises OSError where a region that may hold some cannot be asked."""
        return self.holdings.machines()

    def terminate(self, machines: Sequence[Machine]) -> None:
        """Asks for the end of those that are there and not ending yet."""
        for region, there in self._in(machines, LIVING | KEPT):
            self._terminate(region, [machine.id for machine in there])

    def stop(self, machines: Sequence[Machine]) -> None:
        """Asks for the end of what runs on them; their root volumes stay. Raises OSError."""
        for region, there in self._in(machines, LIVING):
            self._power(region, "stop_instances", there)

    def start(self, machines: Sequence[Machine]) -> None:
        """Asks for stopped ones to run again, in their zones, as far as ceilings and quotas go."""
        for region, there in self._in(machines, frozenset({MachineState.STOPPED})):
            for machine in there:
                again = self._again(machine)
                with self._with.guard.admitted(again, self._living):
                    self._start(region, machine, again)

    def _again(self, machine: Machine) -> naming.Purchase:
        """A start counts as what it costs from then on."""
        shape = shelve(self.offers()).shape(machine.instance_type)
        return naming.Purchase(
            offer=replace(pool_of(machine, self.name), cpus=shape.cpus if shape else 0),
            nodes=(machine.identity,),
            token=f"{machine.token} again {machine.id}",
            purpose=self._with.purpose([machine.identity], machine.token),
            at=self._now(),
        )

    def _start(self, region: str, machine: Machine, again: naming.Purchase) -> None:
        try:
            self._power(region, "start_instances", [machine])
        except AwsError as error:
            told = errors.refused(error, again.offer, zone=machine.zone)
            self._with.guard.refused(again, told)
            raise told from error

    def open_ports(self, machines: Sequence[Machine], ports: tuple[str, ...]) -> None:
        """To the world, and no others than these. Raises Refused, OSError."""
        for machine in machines:
            try:
                self.networks.open(machine.region, machine.id, ports)
            except AwsError as error:
                raise Refused(f"ports {', '.join(ports)} of {machine.node}: {error}") from error

    def _in(
        self, machines: Sequence[Machine], states: frozenset[MachineState]
    ) -> Iterator[tuple[str, list[Machine]]]:
        """Those of them that are in one of the states now, region by region, as one call takes."""
        held = {machine.id: machine for machine in self.machines()}
        by_region: dict[str, list[Machine]] = {}
        for machine in machines:
            there = held.get(machine.id)
            if there is not None and there.node == machine.node and there.state in states:
                by_region.setdefault(there.region, []).append(there)
        for region, found in by_region.items():
            for start in range(0, len(found), MOST_AT_ONCE):
                yield region, found[start : start + MOST_AT_ONCE]

    def _power(self, region: str, operation: str, machines: Sequence[Machine]) -> None:
        try:
            self._asking.ask(
                region, operation, {"InstanceIds": [machine.id for machine in machines]}
            )
        finally:
            self.holdings.stale(region)

    # --- beyond

    def seen(self, machine: Machine) -> Machine:
        """As last described, without asking anew while it has an address. Raises OSError."""
        found = self.holdings.remembered(machine.id, machine.region)
        if found is not None and found.address != found.id:
            return found
        held = {one.id: one for one in self.machines()}
        return held.get(machine.id, machine)

    def host_key(self, machine: Machine) -> str:
        """The public host key that it was given."""
        return self._with.keys.host(machine.token).public

    def login(self, node: Node, machine: Machine, *, nvidia: bool) -> str:
        """Who logs in on its image. Raises OSError while that cannot be looked up."""
        arch = "arm64" if "arm64" in node.features else "x86_64"
        wish = (node.build or USUAL).image(machine.region)
        name = (
            filled(wish, arch)
            if wish
            else named(prefix(node.name), arch, self._with.settings.images, nvidia=nvidia)
        )
        try:
            return self.images.find(machine.region, name).user
        except AwsError as error:
            raise NoAnswerError(f"{name} in {machine.region}: {error}") from error

    def regions(self) -> list[str]:
        """Where something was ever bought."""
        return self._book.all()

    def leftovers(self) -> list[Leftover]:
        """Volumes, addresses and the like that nothing uses. Raises OSError."""
        return self._leftovers.found(self._book.all())

    def let_go(self, things: Iterable[Leftover]) -> list[Leftover]:
        """Those that are gone. Where something is being bought, what it needs may look unused."""
        bought_in = self._intents.regions()
        return self._leftovers.let_go(one for one in things if one.region not in bought_in)

    def sweep(self) -> list[Leftover]:
        """Lets go of what has been unused for a while; those that went.

        And of purchases that nobody asks about any more.
        """
        for call, bought in self._intents.old(self._now() - ASKED_SECONDS):
            self._book.add(call.region)
            self._intents.end(bought)
        self._intents.forget(self._now() - ANSWERED_SECONDS)
        return self._leftovers.tidy(self._book.all())

    def search(self) -> list[str]:
        """Looks in every region of the account for what is this site's; where it found any.

        It counts from now on: after its folder was lost, a site finds what it had. Raises OSError.
        """
        home = next(iter(self._book.all()), HOME_REGION)
        try:
            names = region_names(self._with.api, home)
        except AwsError as error:
            raise NoAnswerError(f"regions: {error}") from error
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="search") as pool:
            found = [
                name
                for name, any_there in zip(names, pool.map(self._any_in, names), strict=True)
                if any_there
            ]
        for name in found:
            self._book.add(name)
        return found

    def _any_in(self, region: str) -> bool:
        return self.holdings.any_in(region) or self._leftovers.any_in(region)

    def close(self) -> None:
        """Ends what watches EC2; the machines stay."""
        self.holdings.stop()
        self._beside.shutdown(wait=False, cancel_futures=True)

    # --- buying

    def _arrival(self, bought: naming.Purchase, user: str) -> Sequence[str]:
        return self.arrives(bought, user)

    def _now(self) -> int:
        return int(self._with.clocks.now())

    @contextmanager
    def _alone(self, token: str) -> Iterator[None]:
        """Two purchases of one token wait for each other, those of several do not."""
        with self._bought_one:
            self._bought_one.wait_for(lambda: token not in self._buying)
            self._buying.add(token)
        try:
            yield
        finally:
            with self._bought_one:
                self._buying.discard(token)
                self._bought_one.notify_all()

    def _living(self) -> list[Machine]:
        return [machine for machine in self.machines() if machine.state in LIVING]

    def _bought(self, nodes: Sequence[Identity]) -> list[Machine] | None:
        """What was bought for all of these nodes, in their order."""
        held = {m.identity: m for m in self.machines()}
        found = [held[node] for node in nodes if node in held]
        return found if found and len(found) == len(nodes) else None

    def _buy_together(self, wants: Sequence[Want]) -> dict[Identity, Machine]:
        """As many as the first zone has. Raises OSError, and ProviderError that is for all."""
        bought = purchase(wants, self._now())
        try:
            with self._with.guard.admitted(bought, self._living):
                return {m.identity: m for m in self.buying.buy(bought)}
        except ProviderError as error:
            if error.refusal not in FEWER_MAY:
                raise
            return {}

    # --- ending

    def _terminate(self, region: str, ids: list[str]) -> None:
        try:
            self._asking.ask(region, "terminate_instances", {"InstanceIds": ids})
        except AwsError as error:
            if error.code != "InvalidInstanceID.NotFound":
                raise NoAnswerError(f"{', '.join(ids)} in {region}: {error}") from error
            for id in ids if len(ids) > 1 else ():  # none was ended: each by itself
                self._terminate(region, [id])
        self.holdings.stale(region)
