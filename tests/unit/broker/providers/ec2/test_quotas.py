"""What is known of the account's quotas, and what would surely be refused."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.offer import BuyPolicy, Machine, MachineState, Market, Need, Offer
from broker.model.site import Elastic
from broker.optimize.cooldown import Cooldown, Place, places
from broker.optimize.rank import rank
from broker.optimize.shelf import shelve
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.guard import Ceilings, Guard
from broker.providers.ec2.holdings import Clocks
from broker.providers.ec2.naming import SITE, Purchase
from broker.providers.ec2.quotas import LIMITS_SECONDS, SILENT_SECONDS, USE_SECONDS, Quotas
from broker.quotes import PROBE_SECONDS, Quotes
from tests.contract.made import FOR
from tests.unit.broker.made import machine
from tests.unit.broker.providers.ec2.test_provider import OFFER, A, B, C

HERE, STANDARD = "us-east-1", "L-1216C47A"
LARGER = replace(OFFER, instance_type="m7i.xlarge", cpus=4, micro_usd_per_hour=201_600)
ELSEWHERE = replace(OFFER, region="eu-west-1", zones=("euw1-az1",), micro_usd_per_hour=110_000)
SPOT = replace(OFFER, market=Market.SPOT, zones=("use1-az1",), micro_usd_per_hour=90_000)
CATALOG = shelve([OFFER, LARGER, ELSEWHERE, SPOT])
OWN = machine(id="i-own", micro_usd_per_hour=100_800)


def instance(kind: str = "m7i.large", **more: Any) -> dict[str, Any]:
    return {"InstanceType": kind, **more}


@dataclass
class Aws:
    """Tells quotas and instances of every region."""

    limits: dict[str, float] = field(default_factory=dict)
    others: list[dict[str, Any]] = field(default_factory=list)
    says_no: dict[str, Exception] = field(default_factory=dict)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def call(self, service: str, region: str, operation: str, **params: Any) -> dict[str, Any]:
        self.calls.append((region, operation))
        if operation in self.says_no:
            raise self.says_no[operation]
        if operation == "describe_instances":
            (states,) = params["Filters"]
            assert states == {"Name": "instance-state-name", "Values": ["pending", "running"]}
            return {"Reservations": [{"Instances": [one]} for one in self.others]}
        assert (service, params["ServiceCode"]) == ("service-quotas", "ec2")
        listed = [{"QuotaCode": code, "Value": value} for code, value in self.limits.items()]
        page = int(params.get("NextToken", 0))
        more = {"NextToken": str(page + 1)} if page + 1 < len(listed) else {}
        return {"Quotas": listed[page : page + 1], **more}


@dataclass
class Bench:
    aws: Aws = field(default_factory=Aws)
    time: float = 1000.0

    def __post_init__(self) -> None:
        clocks = Clocks(lambda: self.time, lambda: self.time, lambda _: None)
        self.quotas = Quotas(self.aws, "mine", catalog=lambda: CATALOG, clocks=clocks)

    def read(self, after: float = 0.0) -> None:
        self.time += after
        self.quotas.read([HERE])

    def against(self, offer: Offer = OFFER, nodes: int = 1) -> str | None:
        (place, *_) = places(offer)
        found = self.quotas.against(place, nodes=nodes, now=int(self.time))
        return None if found is None else found.message

    def room(self) -> int:
        """How many machines of two cpus may be launched."""
        return next(n for n in range(100) if self.against(nodes=n + 1))


@pytest.fixture
def bench() -> Bench:
    return Bench(Aws({"L-34B43A08": 64, STANDARD: 8}))


OURS: dict[str, Any] = {"Tags": [{"Key": SITE, "Value": "mine"}]}
THEIRS: dict[str, Any] = {"Tags": [{"Key": SITE, "Value": "another"}]}


@pytest.mark.parametrize(
    ("others", "own", "room"),
    [
        ([], [], 4),
        ([instance()], [], 3),
        ([instance("m7i.xlarge"), instance()], [], 1),
        ([instance("m7i.xlarge"), instance("m7i.xlarge")], [], 0),
        ([], [OWN], 3),
        ([instance(**OURS)], [OWN], 3),
        ([instance(**OURS)], [], 4),
        ([instance(**THEIRS)], [OWN], 2),
        ([], [replace(OWN, state=MachineState.STOPPED)], 4),
        ([], [replace(OWN, market=Market.SPOT)], 4),
        ([], [replace(OWN, region="eu-west-1")], 4),
        ([], [replace(OWN, micro_usd_per_hour=0)], 4),
        ([instance(InstanceLifecycle="spot")], [], 4),
        ([instance(CapacityReservationId="cr-1")], [], 4),
        ([instance(Placement={"Tenancy": "host"})], [], 4),
        ([instance("m7i.xlarge", CpuOptions={"CoreCount": 1, "ThreadsPerCore": 2})], [], 3),
        ([instance("of.nocatalogue", CpuOptions={"CoreCount": 2, "ThreadsPerCore": 2})], [], 2),
        ([instance("of.nocatalogue")], [], 4),
        ([instance("g5.xlarge", CpuOptions={"CoreCount": 2, "ThreadsPerCore": 2})], [], 4),
    ],
)
def test_room_is_the_quota_less_what_counts_against_it(
    bench: Bench, others: list[dict[str, Any]], own: list[Machine], room: int
) -> None:
    bench.aws.others = others
    bench.quotas.hold(own)
    bench.read()
    assert bench.room() == room


def test_what_is_told_has_the_code_and_the_numbers(bench: Bench) -> None:
    bench.aws.others = [instance("m7i.xlarge")]
    bench.quotas.hold([OWN])
    bench.read()
    told = (
        "quota L-1216C47A (Standard (A, C, D, H, I, M, R, T, Z), on-demand) in us-east-1 allows 8 "
        "vCPUs, 6 in use, 4 more wanted"
    )
    assert bench.against(LARGER) == told
    (entry,) = bench.quotas.entries(int(bench.time))
    assert (entry.key, entry.refusal) == (("quota", "ec2", HERE, STANDARD), Refusal.QUOTA)
    assert (entry.message, entry.since) == (told, 1000)
    bench.time += 30
    bench.against(LARGER)
    assert [one.since for one in bench.quotas.entries(int(bench.time))] == [1000]
    assert not list(bench.quotas.entries(int(bench.time + USE_SECONDS)))
    assert bench.against(SPOT, nodes=32) is None
    assert "L-34B43A08" in str(bench.against(SPOT, nodes=33))


def silent(bench: Bench) -> None:
    bench.aws.says_no["list_service_quotas"] = NoAnswerError("nobody there")


def denied(bench: Bench) -> None:
    bench.aws.says_no["list_service_quotas"] = AwsError("AccessDeniedException", "no", 403)


def no_such_quota(bench: Bench) -> None:
    bench.aws.limits = {"L-74FC7D96": 0}


@pytest.mark.parametrize("why", [silent, denied, no_such_quota])
def test_a_quota_that_is_not_known_is_tried(bench: Bench, why: Callable[[Bench], None]) -> None:
    why(bench)
    assert bench.against(nodes=1000) is None
    bench.read()
    assert bench.against(nodes=1000) is None


def test_a_region_that_says_no_is_left_alone_for_a_while(bench: Bench) -> None:
    denied(bench)
    for after in (0, USE_SECONDS, SILENT_SECONDS - 2 * USE_SECONDS):
        bench.read(after)
    assert bench.aws.calls == [(HERE, "list_service_quotas")]


def test_asking_what_fits_never_calls_aws(bench: Bench) -> None:
    bench.read()
    before = list(bench.aws.calls)
    bench.against(nodes=1000)
    list(bench.quotas.entries(0))
    bench.quotas.hold([OWN])
    bench.quotas.drop(OWN)
    assert bench.aws.calls == before


def test_what_others_use_is_not_believed_for_long(bench: Bench) -> None:
    bench.aws.others = [instance("m7i.xlarge")] * 2
    bench.read()
    assert bench.room() == 0
    bench.aws.says_no["describe_instances"] = NoAnswerError("nobody there")
    bench.read(USE_SECONDS)
    assert bench.room() == 0
    bench.time += 5 * USE_SECONDS
    assert bench.room() == 4, "the quota itself stays known"


def test_a_quota_in_the_way_is_read_again_soon_and_others_now_and_then(bench: Bench) -> None:
    def limits_read() -> int:
        return bench.aws.calls.count((HERE, "list_service_quotas"))

    bench.read()
    once = limits_read()
    bench.read(USE_SECONDS)
    assert limits_read() == once
    assert bench.against(nodes=5)
    bench.aws.limits[STANDARD] = 80
    bench.read(USE_SECONDS)
    assert bench.against(nodes=5) is None
    again = limits_read()
    bench.read(LIMITS_SECONDS - 1)
    assert limits_read() == again
    bench.read(1)
    assert limits_read() > again


def test_a_machine_of_ours_that_is_gone_makes_room_at_once(bench: Bench) -> None:
    bench.read()
    bench.quotas.hold([OWN, replace(OWN, id="i-2")])
    assert bench.room() == 2
    bench.quotas.drop(OWN)
    assert bench.room() == 3
    bench.quotas.hold([], all_of_them=True)
    assert bench.room() == 4


# --- before a launch


def purchase(*nodes: Any, offer: Offer = OFFER, **more: Any) -> Purchase:
    token = "+".join(name for name, _ in nodes)
    return Purchase(offer=offer, nodes=nodes, token=token, purpose=FOR, at=0, **more)


def test_a_launch_that_would_surely_be_refused_is_not_made(bench: Bench) -> None:
    bench.aws.others = [instance("m7i.xlarge")]
    bench.read()
    guard = Guard(Ceilings(), lambda *_: FOR, lambda: bench.time, bench.quotas.over)
    with guard.admitted(purchase(A), list):
        with (
            pytest.raises(ProviderError, match="6 in use, 4 more wanted") as caught,
            guard.admitted(purchase(B, C), list),
        ):
            pass
        assert (caught.value.refusal, caught.value.width) == (Refusal.QUOTA, Width.NOTHING)
        with guard.admitted(purchase(B, C, partial=True), list):
            pass
        paid = replace(OFFER, reservation="cr-1", free=9)
        with guard.admitted(purchase(B, C, offer=paid), list):
            pass
    with guard.admitted(purchase(B, C), list):
        pass
    full = [OWN, replace(OWN, id="i-2")]
    with (
        pytest.raises(ProviderError, match="8 in use"),
        guard.admitted(purchase(B), lambda: full),
    ):
        pass


def test_what_a_launch_met_is_believed_by_who_plans_until_one_is_given_back(bench: Bench) -> None:
    """The provider holds machines of ours that the broker does not know."""
    bench.read()
    assert bench.room() == 4
    four = [replace(OWN, id=f"i-{n}") for n in range(4)]
    assert bench.quotas.over(purchase(A), four, ())
    assert bench.room() == 0
    bench.time += USE_SECONDS
    assert bench.room() == 4
    assert bench.quotas.over(purchase(A), four, ())
    bench.quotas.drop(four[0])
    assert bench.room() == 4


# --- in a ranking


def ranked(bench: Bench, need: Need) -> list[tuple[str, str]]:
    cool = Cooldown()
    cool.allow("ec2", bench.quotas)
    found = rank(need, CATALOG, cool, target=BuyPolicy(provider="ec2"), now=int(bench.time))
    return [(one.offer.region, one.reason) for one in found]


def test_what_is_over_a_quota_goes_behind_what_is_not_with_the_quota_as_its_reason(
    bench: Bench,
) -> None:
    need = Need(cpus=1, nodes=3)
    assert ranked(bench, need)[0][0] == HERE
    bench.aws.limits[STANDARD] = 4
    bench.read()
    order = ranked(bench, need)
    assert [region for region, _ in order] == ["eu-west-1", HERE, HERE]
    assert order[1][1].startswith("behind the others: quota L-1216C47A")
    assert [region for region, _ in ranked(bench, Need(cpus=1, nodes=2))] == [
        HERE,
        "eu-west-1",
        HERE,
    ]


def test_nothing_is_bought_while_every_offer_is_over_a_quota(bench: Bench) -> None:
    bench.aws.limits[STANDARD] = 1
    bench.read()
    quotes = Quotes({"ec2": [OFFER, LARGER]}, Cooldown())
    quotes.allow("ec2", bench.quotas)
    elastic = Elastic(prefix="ec2-", max_nodes=4, buy=BuyPolicy(provider="ec2"))
    for _ in range(3):
        found = quotes.buying(int(bench.time))(Need(cpus=1), elastic)
        assert (found.first, found.reason) == (None, "AssocGrpCpuLimit")
        assert "quota L-1216C47A" in found.explain
        assert "allows 1 vCPUs, 0 in use, 2 more wanted; looked at again by" in found.explain
        bench.time += 2 * PROBE_SECONDS
    assert quotes.at(int(bench.time))(Need(cpus=1), elastic).first, "submissions are taken"
    assert [one.key[0] for one in quotes.cooling(int(bench.time))] == ["quota"]


def test_a_place_without_a_quota_has_no_limit(bench: Bench) -> None:
    bench.read()
    place = Place("ec2", HERE, "", "hpc7a.96xlarge", "hpc7a", Market.SPOT)
    assert bench.quotas.against(place, nodes=500, now=0) is None
