"""What the box decides, with none of its processes: room, quotas, tokens, fleets, states, bill."""

from dataclasses import replace

import pytest

from broker.optimize.catalog import Shape
from tests.lab.bill import beside, bill, cost
from tests.lab.faults import Fault
from tests.lab.fleet import Asked, Choice, allocate, ordered
from tests.lab.machines import ITSELF, SPOT_LOSS, USER, Delays, Machine, Machines, NoHosts
from tests.lab.stock import Limit, Pool, Stock
from tests.lab.tokens import Tokens, fingerprint
from tests.lab.wares import ON_DEMAND, SPOT, Wares, quota_code
from tests.lab.weather import Rule, Weather

ZONES = ("use1-az1", "use1-az2")
POOL = Pool("m7i.large", "us-east-1", "use1-az1", ON_DEMAND)
SPOT_POOL = replace(POOL, market=SPOT)
OTHER = replace(POOL, zone="use1-az2")


def stock() -> Stock:
    shapes = {
        name: Shape(name=name, family=name.split(".")[0], arch="x86_64", cpus=cpus, mem_mib=8192)
        for name, cpus in (("m7i.large", 2), ("p5.48xlarge", 192))
    }
    return Stock(Wares(shapes, {("m7i.large", "us-east-1"): ZONES}))


@pytest.mark.parametrize(
    ("limit", "pool", "taken", "free"),
    [
        (Limit(2), POOL, [], 2),
        (Limit(2), POOL, [POOL, OTHER], 0),
        (Limit(2, zone="use1-az1"), OTHER, [POOL], 100_000),
        (Limit(2, zone="use1-az1"), POOL, [POOL, OTHER], 1),
        (Limit(1, market=SPOT), POOL, [], 100_000),
        (Limit(1, market=SPOT), SPOT_POOL, [POOL], 1),
    ],
)
def test_room_is_what_every_limit_that_names_a_pool_leaves(
    limit: Limit, pool: Pool, taken: list[Pool], free: int
) -> None:
    found = stock()
    found.limit(limit)
    assert found.free(pool, taken) == free


def test_a_newer_limit_of_the_same_machines_stands_in_place_of_the_older() -> None:
    found = stock()
    found.limit(Limit(0, "m7i.large"))
    found.limit(Limit(3, "m7i.large"))
    assert found.free(POOL, []) == 3


@pytest.mark.parametrize(
    ("least", "most", "room", "count"),
    [(1, 5, 3, 3), (3, 3, 3, 3), (4, 5, 3, None), (1, 1, 0, None)],
)
def test_a_launch_gives_what_there_is_between_its_bounds(
    least: int, most: int, room: int, count: int | None
) -> None:
    found = stock()
    found.limit(Limit(room))
    if count is not None:
        assert found.grant(POOL, least, most, []) == count
        return
    with pytest.raises(Fault, match="InsufficientInstanceCapacity") as caught:
        found.grant(POOL, least, most, [])
    assert caught.value.status == 500


def test_a_zone_without_the_type_does_not_support_it() -> None:
    with pytest.raises(Fault, match="Unsupported"):
        stock().grant(replace(POOL, zone="use1-az3"), 1, 1, [])


@pytest.mark.parametrize(
    ("kind", "market", "code"),
    [
        ("m7i.large", ON_DEMAND, "L-1216C47A"),
        ("m7i.large", SPOT, "L-34B43A08"),
        ("p5.48xlarge", ON_DEMAND, "L-417A185B"),
        ("g5.xlarge", SPOT, "L-3819A6DF"),
        ("trn1.2xlarge", ON_DEMAND, "L-2C3B7624"),
        ("hpc7a.96xlarge", ON_DEMAND, "L-F7808C92"),
        ("u-6tb1.112xlarge", ON_DEMAND, "L-43DA4232"),
    ],
)
def test_each_family_counts_against_its_quota(kind: str, market: str, code: str) -> None:
    assert quota_code(kind, market) == code


@pytest.mark.parametrize(
    ("pool", "taken", "code"),
    [
        (POOL, [], None),
        (POOL, [POOL], "VcpuLimitExceeded"),
        (POOL, [SPOT_POOL], None),
        (POOL, [replace(POOL, region="eu-west-1")], None),
        (SPOT_POOL, [SPOT_POOL], "MaxSpotInstanceCountExceeded"),
    ],
)
def test_a_quota_is_of_a_group_of_families_in_a_region(
    pool: Pool, taken: list[Pool], code: str | None
) -> None:
    found = stock()
    found.quotas |= {("L-1216C47A", "us-east-1"): 3, ("L-34B43A08", "*"): 3}
    if code is None:
        found.check_quota(pool, 1, taken)
        return
    with pytest.raises(Fault, match=code):
        found.check_quota(pool, 1, taken)


def test_a_token_gives_the_same_answer_and_takes_no_other_arguments() -> None:
    tokens, key = Tokens(), ("us-east-1", "RunInstances", "t")
    asked = fingerprint({"ClientToken": "t", "InstanceType": "m7i.large"})
    assert tokens.recall(key, asked) is None
    tokens.remember(key, asked, "first")
    assert tokens.recall(key, asked) == "first"
    with pytest.raises(Fault, match="IdempotentParameterMismatch"):
        tokens.recall(key, fingerprint({"InstanceType": "c7i.large"}))
    tokens.remember(("us-east-1", "RunInstances", ""), asked, "nobody's")
    assert tokens.recall(("us-east-1", "RunInstances", ""), asked) is None


def test_a_rule_refuses_as_often_as_it_says() -> None:
    weather = Weather(rules=[Rule(region="us-east-1", times=2, at_least=2)])
    weather.launch(POOL, 1)
    weather.launch(replace(POOL, region="eu-west-1"), 2)
    for _ in range(2):
        with pytest.raises(Fault):
            weather.launch(POOL, 2)
    weather.launch(POOL, 2)


def test_luck_is_the_same_for_the_same_seed() -> None:
    def faults(seed: int) -> list[bool]:
        weather = Weather(seed=seed, lose=0.3)
        return [weather.loses() for _ in range(200)]

    assert faults(1) == faults(1) != faults(2)
    assert 30 < sum(faults(1)) < 90


# -------------------------------------------------------------------- fleets

CHEAP = Choice(POOL, {}, {}, 100, free=1, priority=2)
ROOMY = Choice(replace(POOL, instance_type="c7i.large"), {}, {}, 120, free=9, priority=3)
LIKED = Choice(OTHER, {}, {}, 300, free=5, priority=1)


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("lowest-price", [CHEAP, ROOMY, LIKED]),
        ("prioritized", [LIKED, CHEAP, ROOMY]),
        ("capacity-optimized", [ROOMY, LIKED, CHEAP]),
        ("price-capacity-optimized", [ROOMY, LIKED, CHEAP]),
    ],
)
def test_a_strategy_is_an_order_of_pools(strategy: str, order: list[Choice]) -> None:
    assert ordered([CHEAP, ROOMY, LIKED], Asked(count=4, strategy=strategy)) == order


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(Fault, match="InvalidParameterValue"):
        ordered([CHEAP], Asked(count=1, strategy="best"))


def grant(choice: Choice, least: int, most: int) -> int:
    if choice.free < least:
        raise Fault("InsufficientInstanceCapacity", instance_type="x")
    return min(most, choice.free)


@pytest.mark.parametrize(
    ("asked", "counts", "refused"),
    [
        (Asked(count=3, strategy="lowest-price"), [1, 2], 0),
        (Asked(count=20, strategy="lowest-price"), [1, 9, 5], 0),
        (Asked(count=20, strategy="lowest-price", least=16), [], 0),
        (Asked(count=3, strategy="lowest-price", least=3, one_type=True, one_zone=True), [3], 1),
        (Asked(count=6, strategy="lowest-price", one_type=True), [1, 5], 0),
        (Asked(count=6, strategy="lowest-price", one_zone=True), [1, 5], 0),
    ],
)
def test_a_fleet_takes_what_its_pools_have(asked: Asked, counts: list[int], refused: int) -> None:
    given = allocate([CHEAP, ROOMY, LIKED], asked, grant)
    assert [count for _choice, count in given.granted] == counts
    assert len(given.refused) == refused


# -------------------------------------------------------------------- states and money


def machines(**delays: float) -> tuple[Machines, Machine]:
    found = Machines(NoHosts(), Delays(boot=20, ssh=3, stop=30, visible=2, listed=100, **delays))
    machine = Machine(
        id="i-1",
        number=found.number(),
        region="us-east-1",
        zone="use1-az1",
        instance_type="m7i.large",
        market=SPOT,
        micro_usd_per_hour=36_000,
        address="127.0.0.9",
        launched_at=1000.0,
        boots_at=1000.0 + found.delays.of("boot"),
        visible_at=1000.0 + found.delays.of("visible"),
    )
    found.add(machine)
    return found, machine


def test_a_machine_is_pending_running_shutting_down_terminated_and_forgotten() -> None:
    all_of_them, machine = machines()
    seen = []
    for now in (1000, 1019, 1020, 1100, 1115, 1130, 1131):
        if now == 1100:
            all_of_them.end(machine, USER, now)
        all_of_them.advance(now)
        seen.append(machine.state)
    assert seen == ["pending"] * 2 + ["running"] + ["shutting-down"] * 2 + ["terminated"] * 2
    assert (machine.running_at, machine.stopped_at) == (1020, 1100)
    assert machine.transition_reason() == "User initiated (1970-01-01 00:18:20 GMT)"
    assert all_of_them.advance(1229) == []
    assert all_of_them.advance(1231) == [machine]
    assert list(all_of_them.billed()) == [machine]


def test_a_speed_shortens_all_delays() -> None:
    all_of_them, machine = machines(speed=10)
    all_of_them.advance(1002)
    assert (machine.state, machine.running_at) == ("running", 1002)


def test_a_machine_ended_before_it_ran_costs_nothing() -> None:
    all_of_them, machine = machines()
    all_of_them.end(machine, USER, 1010)
    all_of_them.advance(1100)
    assert (machine.state, machine.running_at, cost(machine, 2000)) == ("terminated", None, 0)


def test_a_spot_machine_is_taken_back_after_its_notice_whatever_is_asked_later() -> None:
    all_of_them, machine = machines()
    all_of_them.advance(1020)
    all_of_them.interrupt(machine, 1050, notice=120)
    all_of_them.advance(1169)
    assert machine.state == "running"
    all_of_them.advance(1170)
    all_of_them.end(machine, USER, 1171)
    assert (machine.state, machine.reason) == ("shutting-down", SPOT_LOSS)


def test_a_machine_whose_processes_end_has_shut_itself_down() -> None:
    class Hosts(NoHosts):
        def halted(self) -> list[int]:
            return [1]

    all_of_them, machine = machines()
    all_of_them.advance(1020)
    all_of_them.hosts = Hosts()
    all_of_them.advance(1030)
    assert (machine.state, machine.reason) == ("shutting-down", ITSELF)


def test_a_machine_is_gone_only_when_its_processes_are() -> None:
    class Hosts(NoHosts):
        def alive(self, number: int) -> bool:
            return True

    all_of_them, machine = machines()
    all_of_them.hosts = Hosts()
    all_of_them.end(machine, USER, 1010)
    all_of_them.advance(5000)
    assert machine.state == "shutting-down"


@pytest.mark.parametrize(
    ("seconds", "reason", "market", "micro_usd"),
    [
        (10, USER, ON_DEMAND, 600),
        (60, USER, ON_DEMAND, 600),
        (61, USER, ON_DEMAND, 610),
        (3599, SPOT_LOSS, SPOT, 0),
        (3600, SPOT_LOSS, SPOT, 36_000),
        (3599, USER, SPOT, 35_990),
    ],
)
def test_the_bill_is_by_the_second_with_a_minute_at_least(
    seconds: int, reason: str, market: str, micro_usd: int
) -> None:
    all_of_them, machine = machines()
    machine.market = market
    all_of_them.advance(1020)
    all_of_them.end(machine, reason, 1020 + seconds)
    assert bill([machine], 9999)["micro_usd"] == micro_usd


def test_volumes_and_addresses_are_billed_even_where_the_machine_is_free() -> None:
    disk, card = {"Ebs": {"VolumeSize": 73}}, {"AssociatePublicIpAddress": "true"}
    all_of_them, machine = machines()
    machine.market = SPOT
    machine.beside = beside({"BlockDeviceMappings": [disk], "NetworkInterfaces": [card]})
    all_of_them.advance(1020)
    all_of_them.end(machine, SPOT_LOSS, 1020 + 1800)
    assert bill([machine], 9999)["micro_usd"] == 4_000 + 2_500
