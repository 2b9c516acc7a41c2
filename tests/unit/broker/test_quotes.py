"""What may be bought from now: refusals, quotas, machines taken back and given back."""

from dataclasses import replace

from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import BuyPolicy, MachineState, Market, Need, Offer, Unstarted
from broker.model.reports import Launched, NotLaunched, Terminated, Tried, Vanished
from broker.model.site import Elastic
from broker.model.stopping import MachineNotStarted
from broker.optimize.cooldown import Cooldown
from broker.quotes import PROBE_SECONDS, Quotes
from tests.unit.broker.made import machine

NOW = 1_800_000_000
OFFER = Offer(
    provider="ec2",
    region="us-east-1",
    zones=("use1-az1",),
    instance_type="m7i.large",
    market=Market.ON_DEMAND,
    micro_usd_per_hour=100_800,
    cpus=2,
    mem_mib=8192,
    family="m7i",
)
DEARER = replace(OFFER, instance_type="m7i.xlarge", micro_usd_per_hour=201_600, cpus=4)
POLICY = BuyPolicy(provider="ec2", spot=True)
ELASTIC = Elastic(prefix="ec2-", max_nodes=4, buy=POLICY)
NEED = Need(cpus=1)
MACHINE = machine(state=MachineState.TERMINATED, launched_at=NOW)


class Bench:
    def __init__(self, *offers: Offer) -> None:
        self.quotes = Quotes({"ec2": offers}, Cooldown())
        self.now = NOW

    def refuse(self, *offers: Offer, refusal: Refusal = Refusal.CAPACITY, text: str = "") -> None:
        tried = tuple(Tried(o, refusal, Width.TYPE_IN_ZONE, text or refusal) for o in offers)
        self.quotes.heard(NotLaunched(group="1/1", tried=tried), self.now)

    def buys(self) -> list[str]:
        found = self.quotes.buying(self.now)(NEED, ELASTIC)
        return [rung.offer.instance_type for rung in found.rungs]


def test_what_was_refused_goes_last_while_there_is_something_else() -> None:
    bench = Bench(OFFER, DEARER)
    assert bench.buys() == ["m7i.large", "m7i.xlarge"]
    bench.refuse(OFFER)
    assert bench.buys() == ["m7i.xlarge", "m7i.large"]


def test_where_all_was_refused_only_the_best_is_tried_and_that_now_and_then() -> None:
    bench = Bench(OFFER, DEARER)
    bench.refuse(OFFER, DEARER)
    assert bench.buys() == []
    bench.now += PROBE_SECONDS
    assert bench.buys() == ["m7i.large"]
    bench.refuse(OFFER)
    assert bench.buys() == []
    found = bench.quotes.buying(bench.now)(NEED, ELASTIC)
    assert (found.reason, "refused lately: capacity" in found.explain) == ("Resources", True)


def test_what_is_reserved_goes_before_everything_that_is_bought() -> None:
    bench = Bench(OFFER)
    free = [1]
    offer = replace(DEARER, reservation="cr-1", micro_usd_per_hour=0)
    bench.quotes.reserve("ec2", lambda: [replace(offer, free=free[0])])
    assert bench.buys() == ["m7i.xlarge", "m7i.large"]
    free[0] = 0
    bench.quotes.heard(Launched(group="1/1", machines=(), offer=offer), NOW)
    assert bench.buys() == ["m7i.large"]


def test_a_pool_whose_machine_could_not_be_started_rests_as_one_without_capacity() -> None:
    bench = Bench(OFFER, DEARER)
    failed = replace(MACHINE, ended_by_provider=True)
    bench.quotes.heard(Vanished(node=MACHINE.node, launch=1, machine=failed), NOW)
    assert bench.buys() == ["m7i.xlarge", "m7i.large"]
    broken = replace(failed, running_at=NOW, instance_type="m7i.xlarge")
    bench.quotes.heard(Vanished(node=MACHINE.node, launch=1, machine=broken), NOW)
    assert bench.buys() == ["m7i.xlarge", "m7i.large"]


def test_what_a_machine_that_could_not_be_started_tells_is_a_refusal_like_any() -> None:
    bench = Bench(OFFER, DEARER)
    late = Unstarted(Refusal.QUOTA, Width.REGION, "VolumeLimitExceeded (so many)")
    failed = replace(MACHINE, unstarted=late)
    bench.quotes.heard(Vanished(node=MACHINE.node, launch=1, machine=failed), NOW)
    assert bench.buys() == []
    (entry,) = bench.quotes.cooling(bench.now)
    assert (entry.refusal, entry.key[0]) == (Refusal.QUOTA, Width.REGION)
    assert entry.message == late.message


def test_what_may_be_asked_for_stays_whatever_was_refused() -> None:
    bench = Bench(OFFER)
    bench.refuse(OFFER)
    found = bench.quotes.at(bench.now)(NEED, ELASTIC)
    assert [rung.offer.instance_type for rung in found.rungs] == ["m7i.large"]


def test_quotas_and_ceilings_have_reasons_of_their_own() -> None:
    for text, reason in (
        ("quota L-1216C47A is reached", "AssocGrpCpuLimit"),
        ("ceiling of the site: 9 of 10 USD an hour in use", "AssocGrpBilling"),
    ):
        bench = Bench(OFFER)
        bench.refuse(OFFER, refusal=Refusal.QUOTA, text=text)
        found = bench.quotes.buying(bench.now)(NEED, ELASTIC)
        assert (found.rungs, found.reason) == ((), reason)
        assert text in found.explain


def test_a_machine_given_back_makes_room() -> None:
    bench = Bench(OFFER)
    bench.refuse(OFFER)
    bench.quotes.heard(Terminated(node=NodeName("ec2-1"), launch=1, machine=MACHINE), bench.now)
    assert bench.buys() == ["m7i.large"]


def test_a_machine_says_nothing_of_providers_that_have_none_of_its_type() -> None:
    here = replace(OFFER, provider="local", instance_type="local")
    quotes = Quotes({"ec2": [OFFER], "local": [here]}, Cooldown())
    quotes.taken_back(replace(MACHINE, instance_type=OFFER.instance_type), NOW)
    assert {entry.key[1] for entry in quotes.cooling(NOW)} == {"ec2"}


def test_the_pool_of_a_machine_taken_back_is_left_alone() -> None:
    spot = replace(OFFER, market=Market.SPOT, micro_usd_per_hour=30_000)
    bench = Bench(spot, OFFER)
    assert bench.buys()[0] == "m7i.large"
    taken = replace(MACHINE, market=Market.SPOT, ended_by_provider=True)
    bench.quotes.heard(Vanished(node=NodeName("ec2-1"), launch=1, machine=taken), bench.now)
    found = bench.quotes.buying(bench.now)(NEED, ELASTIC)
    assert [rung.offer.market for rung in found.rungs] == [Market.ON_DEMAND, Market.SPOT]
    assert len(bench.quotes.cooling(bench.now)) == 1


def test_a_stopped_machine_for_which_there_is_no_room_tells_of_its_pool_to_all() -> None:
    bench = Bench(OFFER, DEARER)
    kept = replace(MACHINE, state=MachineState.STOPPED)
    told = MachineNotStarted(
        node=kept.node,
        launch=kept.launch,
        machine=kept,
        refusal=Refusal.CAPACITY,
        width=Width.TYPE_IN_ZONE,
        message="m7i.large (on-demand) in use1-az1: InsufficientInstanceCapacity",
    )
    bench.quotes.heard(told, bench.now)
    assert bench.buys() == ["m7i.xlarge", "m7i.large"]
    (cooling,) = bench.quotes.cooling(bench.now)
    assert (cooling.message, cooling.until) == (told.message, bench.now + 60)
