"""From a purchase to machines: what the region gives, the calls, what a refusal teaches."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from broker.model.build import USUAL
from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import Machine
from broker.providers.ec2 import errors, naming, requests
from broker.providers.ec2.asking import Asking
from broker.providers.ec2.bought import dealt
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.guard import Guard
from broker.providers.ec2.holdings import Clocks, Holdings
from broker.providers.ec2.images import Image, Images, filled, must_fit, wanted
from broker.providers.ec2.intents import Intents, Regions
from broker.providers.ec2.keys import SiteKeys
from broker.providers.ec2.naming import Identity, prefix
from broker.providers.ec2.network import Networks
from broker.providers.ec2.requests import EFA, Call, Ground
from broker.providers.ec2.reserved import Reservations
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.ec2.userdata import user_data

Arrives = Callable[[naming.Purchase, str], Sequence[str]]
"""The command by which the agent comes to what is bought, whose image has that user; or none."""
WALKS_ON = frozenset({Refusal.CAPACITY, Refusal.INVALID})
"""After these the next zone is asked; the others would say the same again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Buying:
    """May be asked from any thread; every call is on disk before it is made."""

    site: naming.Site
    keys: SiteKeys
    settings: Ec2Settings
    guard: Guard
    clocks: Clocks
    asking: Asking
    images: Images
    networks: Networks
    reserved: Reservations
    holdings: Holdings
    intents: Intents
    book: Regions
    """Where something was ever bought."""
    arrives: Arrives
    beside: Executor
    """For what need not wait for each other; nothing in it waits for another task."""

    def found_out(self, nodes: Sequence[Identity]) -> list[Machine] | None:
        """What became of a call that was made and not answered: it is made again.

        Raises NoAnswerError where nothing was said about what the first one did.
        """
        asked = self.intents.open(nodes)
        if asked is None:
            return None
        try:
            made = {m.identity: m for m in self._make(*asked)}
        except AwsError as error:
            if error.code in errors.NOT_LET_IN:
                self.intents.begin(*asked)
                raise NoAnswerError(f"what was bought is not told: {error}") from error
            return None
        return [made[node] for node in nodes] if {*nodes} <= made.keys() else None

    def buy(self, bought: naming.Purchase) -> list[Machine]:
        """What is known of a region is looked up again, once, where that is stale.

        Raises ProviderError.
        """
        try:
            return self._try_zones(bought)
        except ProviderError as error:
            if error.refusal is not Refusal.TRANSIENT:
                raise
        # Another instant is another client token, also within the same second.
        return self._try_zones(replace(bought, at=max(int(self.clocks.now()), bought.at + 1)))

    def _try_zones(self, bought: naming.Purchase) -> list[Machine]:
        """From the first of the offer's zones that has all of it. Raises ProviderError."""
        try:
            self._check_room(bought)
            calls = list(requests.calls(bought, self.ground(bought)))
        except AwsError as error:
            raise _told(error, bought) from error
        refusals: list[ProviderError] = []
        for call in calls:
            try:
                return self._make(call, bought)
            except AwsError as error:
                refusals.append(self._refusal(error, bought, call))
                if refusals[-1].refusal not in WALKS_ON:
                    break
        raise refusals[-1]

    def _check_room(self, bought: naming.Purchase) -> None:
        """What is known to be taken is not asked for. Raises AwsError."""
        id, count = bought.offer.reservation, len(bought.nodes)
        if id and self.reserved.free(id) < count:
            raise AwsError(errors.RESERVATION_FULL, f"{id} has no room for {count} more")

    def _refusal(self, error: AwsError, bought: naming.Purchase, call: Call) -> ProviderError:
        refusal, _ = errors.meaning(error.code)
        if refusal is Refusal.TRANSIENT:  # what we know of the region is stale
            self.networks.forget(call.region)
            self.images.forget(call.region)
        zones = "+".join(zone.partition("=")[2] for zone in call.zones)
        told = _told(error, bought, zones)
        if told.refusal in errors.OF_RESERVATIONS and bought.offer.reservation:
            self.reserved.taken(bought.offer.reservation, bought.offer.free)
        self.guard.refused(bought, told)
        return told

    def ground(self, bought: naming.Purchase) -> Ground:
        """Raises AwsError, NoAnswerError."""
        offer, settings = bought.offer, self.settings
        keys, build = self.keys, bought.purpose.build
        looked_up = self.beside.submit(self._image, bought)
        network = self.networks.opened(offer.region, build.ports)
        image = looked_up.result()
        return Ground(
            image=image,
            network=network,
            settings=settings,
            site=self.site,
            joins=self._joined(bought),
            user_data=user_data(
                host=keys.host(bought.token),
                login=keys.login().public,
                minutes=-(-bought.purpose.seconds // 60),
                arrives=self.arrives(bought, image.user),
            ),
        )

    def _joined(self, bought: naming.Purchase) -> str:
        """The placement group of the machine that it is to be beside. Raises AwsError."""
        beside = bought.purpose.beside
        if not beside or EFA not in bought.offer.features:
            return ""
        asked = {"InstanceIds": [beside]}
        told = self.asking.ask(bought.offer.region, "describe_instances", asked)
        there = [one for some in told["Reservations"] for one in some["Instances"]]
        return next((str(one.get("Placement", {}).get("GroupName", "")) for one in there), "")

    def _image(self, bought: naming.Purchase) -> Image:
        """Raises AwsError, NoAnswerError."""
        offer, settings, build = bought.offer, self.settings, bought.purpose.build
        wish = build.image(offer.region)
        usual = wanted(offer, prefix(bought.nodes[0][0]), settings.images)
        image = self.images.find(offer.region, filled(wish, offer.arch) if wish else usual)
        if wish or build.disk_gib:
            must_fit(image, build, offer, usual_gib=settings.root_gib)
        return image

    def _make(self, call: Call, bought: naming.Purchase) -> list[Machine]:
        """Raises AwsError where it was refused; NoAnswerError leaves the intent on disk."""
        self.intents.begin(call, bought)
        try:
            instances = list(self.asking.made(call))
        except AwsError:
            self.intents.end(bought)
            raise
        self.book.add(call.region)
        if bought.offer.reservation:
            self.reserved.taken(bought.offer.reservation, len(instances))
        machines = dealt(instances, call, bought, site=self.site, public=self.settings.public)
        self.holdings.add(machines)  # who finds no file any more has to find them there
        self.intents.answered(bought)
        return machines


def _told(error: AwsError, bought: naming.Purchase, zone: str = "") -> ProviderError:
    """The refusal; where nobody knows its code and the job has wishes, these are to blame."""
    told = errors.refused(error, bought.offer, zone=zone, nodes=len(bought.nodes))
    if (told.refusal, told.width) == errors.OURS and bought.purpose.build != USUAL:
        return ProviderError(told.refusal, Width.NOTHING, told.message)
    return told
