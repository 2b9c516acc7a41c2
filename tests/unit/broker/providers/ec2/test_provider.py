"""What the EC2 provider does beyond the common contract: calls, tokens, lost replies, sweeps."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from broker.model.errors import ProviderError, Refusal, Width
from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market, Offer
from broker.model.purpose import Purpose
from broker.providers.ec2 import naming
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.guard import Ceilings, Guard
from broker.providers.ec2.holdings import UNSEEN_SECONDS
from broker.providers.ec2.provider import ANSWERED_SECONDS, ASKED_SECONDS
from broker.providers.ec2.reserved import READ_SECONDS
from broker.providers.ec2.settings import Ec2Settings
from broker.providers.refusals import Rule
from tests.contract.cloud import StubEc2
from tests.contract.made import FOR, ec2_provider
from tests.unit.broker.made import machine

OFFER = Offer(
    provider="ec2",
    region="us-east-1",
    zones=("use1-az1", "use1-az2"),
    instance_type="m7i.large",
    market=Market.ON_DEMAND,
    micro_usd_per_hour=100_800,
    cpus=2,
    mem_mib=8192,
    family="m7i",
)
SPOT = replace(OFFER, market=Market.SPOT, zones=("use1-az2",))
A, B, C = ((NodeName(f"ec2-{n}"), 7) for n in (1, 2, 3))
USUAL, NO_LIMIT = Ec2Settings(), Ceilings()


@dataclass
class Bench:
    folder: Path
    time: int = 1_800_000_000
    settings: Ec2Settings = USUAL
    ceilings: Ceilings = NO_LIMIT
    whose: Purpose = FOR
    recalled: list[Machine] = field(default_factory=list)
    """Machines of live nodes, as the store has them."""
    ec2: StubEc2 = field(init=False)

    def __post_init__(self) -> None:
        self.ec2 = StubEc2(lambda: self.time)
        self.restart()

    def restart(self) -> None:
        self.provider = ec2_provider(
            self.folder,
            self.ec2,
            lambda: self.time,
            [OFFER],
            settings=self.settings,
            ceilings=self.ceilings,
            whose=self.whose,
            recalled=lambda: self.recalled,
        )

    def reserve(self, free: int) -> None:
        """A reservation that EC2 tells of, read."""
        told = {
            "CapacityReservationId": "cr-1",
            "InstanceType": "m7i.large",
            "AvailabilityZoneId": "use1-az1",
            "AvailableInstanceCount": free,
        }
        self.ec2.left["CapacityReservations"] = [("us-east-1", told)]
        self.provider.reserved.read(["us-east-1"])

    def params(self, operation: str) -> dict[str, Any]:
        return [params for name, params in self.ec2.calls if name == operation][-1]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def tags_of(params: dict[str, Any], kind: str = "instance") -> dict[str, str]:
    specs = {one["ResourceType"]: one["Tags"] for one in params["TagSpecifications"]}
    return naming.tags_of({"Tags": specs[kind]})


# --- which call


@pytest.mark.parametrize(
    ("offer", "nodes", "calls"),
    [
        (OFFER, [A], {"create_fleet": 1}),
        (replace(OFFER, zones=("use1-az1",)), [A], {"run_instances": 1}),
        (SPOT, [A], {"create_fleet": 1}),
        (OFFER, [A, B], {"run_instances": 1}),
        (SPOT, [A, B, C], {"run_instances": 1}),
    ],
)
def test_several_pools_or_spot_are_a_fleet_one_pool_or_a_gang_is_not(
    bench: Bench, offer: Offer, nodes: list[tuple[NodeName, int]], calls: dict[str, int]
) -> None:
    machines = bench.provider.launch(offer, nodes, token="4711/1")
    assert [m.identity for m in machines] == nodes
    assert {m.market for m in machines} == {offer.market}
    launches = ("create_fleet", "run_instances")
    assert {name: bench.ec2.count(name) for name in launches if bench.ec2.count(name)} == calls
    assert bench.ec2.templates == {}  # none is left


def test_a_gang_is_in_one_zone_all_or_nothing(bench: Bench) -> None:
    bench.ec2.refuse(Rule(zone="use1-az1"))
    machines = bench.provider.launch(OFFER, [A, B], token="t")
    assert {m.zone for m in machines} == {"use1-az2"}
    params = bench.params("run_instances")
    assert (params["MinCount"], params["MaxCount"]) == (2, 2)
    assert bench.ec2.count("run_instances") == 2


def test_what_is_launched_can_end_itself_and_is_safe(bench: Bench) -> None:
    bench.provider.launch(OFFER, [A, B], token="4711/1")
    params = bench.params("run_instances")
    assert params["InstanceInitiatedShutdownBehavior"] == "terminate"
    assert params["MetadataOptions"]["HttpTokens"] == "required"
    root = params["BlockDeviceMappings"][0]
    assert root["DeviceName"] == "/dev/xvda"
    assert (root["Ebs"]["Encrypted"], root["Ebs"]["DeleteOnTermination"]) == (True, True)
    assert "shutdown -h +70" in params["UserData"]
    assert bench.provider.host_key(bench.provider.machines()[0]) in params["UserData"]


def test_everything_is_tagged_in_the_launch_call(bench: Bench) -> None:
    bench.provider.launch(OFFER, [A, B], token="4711/1")
    params = bench.params("run_instances")
    kinds = {one["ResourceType"] for one in params["TagSpecifications"]}
    assert kinds == {"instance", "volume", "network-interface"}
    tags = tags_of(params)
    assert tags["Name"] == "skypurza-test-node-ec2-1"
    assert (tags["Project"], tags["Stage"], tags["ManagedBy"]) == ("skypurza", "test", "skypurza")
    assert (tags["skypurza:job"], tags["skypurza:user"]) == (FOR.job, "alice")
    assert (tags["skypurza:account"], tags["skypurza:cluster"]) == ("physics", "skypurza")
    assert tags["skypurza:nodes"] == "ec2-1.7,ec2-2.7"
    assert tags["skypurza:deadline"] == "2027-01-15T09:10:00Z"


def test_private_machines_get_no_public_address_and_named_subnets(tmp_path: Path) -> None:
    settings = Ec2Settings(
        public=False,
        security_groups={"us-east-1": ("sg-own",)},
        images={"ec2-": "ami-own"},
        instance_profile="worker",
        kms_key="key",
    )
    bench = Bench(tmp_path, settings=settings)
    bench.provider.launch(OFFER, [A, B], token="t")
    params = bench.params("run_instances")
    card = params["NetworkInterfaces"][0]
    assert (card["AssociatePublicIpAddress"], card["Groups"]) == (False, ["sg-own"])
    assert (params["ImageId"], params["IamInstanceProfile"]) == ("ami-own", {"Name": "worker"})
    assert params["BlockDeviceMappings"][0]["Ebs"]["KmsKeyId"] == "key"
    bench.time += 60
    assert bench.provider.seen(bench.provider.machines()[0]).address == "10.0.0.7"


def test_a_gang_with_efa_gets_a_placement_group(bench: Bench) -> None:
    offer = replace(OFFER, features=("efa",), zones=("use1-az1",))
    bench.provider.launch(offer, [A, B], token="t")
    params = bench.params("run_instances")
    group = params["Placement"]["GroupName"]
    assert group.startswith("skypurza-test-gang-")
    assert params["NetworkInterfaces"][0]["InterfaceType"] == "efa"
    assert bench.params("create_placement_group")["GroupName"] == group


def test_one_in_place_of_another_of_a_gang_joins_its_placement_group(bench: Bench) -> None:
    offer = replace(OFFER, features=("efa",))
    there, *_ = bench.provider.launch(offer, [A, B], token="t")
    group = bench.params("run_instances")["Placement"]["GroupName"]
    bench.whose = replace(FOR, beside=there.id)
    bench.restart()
    bench.provider.launch(replace(offer, zones=(there.zone,)), [C], token="t+1")
    params = bench.params("run_instances")
    assert (params["MaxCount"], params["Placement"]) == (1, {"GroupName": group})
    assert params["NetworkInterfaces"][0]["InterfaceType"] == "efa"
    assert bench.ec2.count("create_placement_group") == 1
    assert bench.ec2.count("create_fleet") == 0


@pytest.mark.parametrize(
    ("features", "market"), [((), None), (("capacity-block",), {"MarketType": "capacity-block"})]
)
def test_a_reservation_is_bought_from_by_its_id(
    bench: Bench, features: tuple[str, ...], market: dict[str, str] | None
) -> None:
    offer = replace(OFFER, reservation="cr-1", features=features, zones=("use1-az1",))
    bench.reserve(free=1)
    bench.provider.launch(offer, [A], token="t")
    params = bench.params("run_instances")
    target = params["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": "cr-1"}
    assert params.get("InstanceMarketOptions") == market


@pytest.mark.parametrize(
    ("offer", "nodes", "wish"),
    [
        (OFFER, [A], {"CapacityReservationPreference": "none"}),
        (OFFER, [A, B], {"CapacityReservationPreference": "none"}),
        (replace(OFFER, zones=("use1-az1",)), [A], {"CapacityReservationPreference": "none"}),
        (SPOT, [A], None),
        (SPOT, [A, B], None),
    ],
)
def test_nothing_falls_into_an_open_reservation_unplanned(
    bench: Bench, offer: Offer, nodes: list[tuple[NodeName, int]], wish: dict[str, str] | None
) -> None:
    bench.provider.launch(offer, nodes, token="t")
    fleet = bench.ec2.count("create_fleet")
    params = bench.params("create_launch_template" if fleet else "run_instances")
    told = params.get("LaunchTemplateData", params).get("CapacityReservationSpecification")
    assert told == wish


def test_a_reservation_that_is_known_to_be_full_is_not_asked(bench: Bench) -> None:
    offer = replace(OFFER, reservation="cr-1", zones=("use1-az1",), free=1)
    bench.reserve(free=1)
    bench.provider.launch(offer, [A], token="t")
    with pytest.raises(ProviderError, match="in cr-1: ReservationCapacityExceeded") as caught:
        bench.provider.launch(offer, [B], token="u")
    assert (caught.value.refusal, caught.value.width) == (Refusal.CAPACITY, Width.NOTHING)
    assert bench.ec2.count("run_instances") == 1


def test_a_reservation_that_is_no_more_says_nothing_of_its_type(bench: Bench) -> None:
    offer = replace(OFFER, reservation="cr-1", zones=("use1-az1",), free=3)
    bench.reserve(free=3)
    bench.ec2.refuse(Rule(times=1), "InvalidCapacityReservationId.NotFound")
    with pytest.raises(ProviderError, match="InvalidCapacityReservationId") as caught:
        bench.provider.launch(offer, [A], token="t")
    assert (caught.value.refusal, caught.value.width) == (Refusal.INVALID, Width.NOTHING)
    assert bench.provider.reserved.free("cr-1") == 0


def test_a_reservation_that_says_no_is_left_alone_until_it_is_read_again(bench: Bench) -> None:
    offer = replace(OFFER, reservation="cr-1", zones=("use1-az1",), free=2)
    bench.reserve(free=2)
    bench.ec2.refuse(Rule(times=1), "InsufficientReservedInstanceCapacity")
    with pytest.raises(ProviderError) as caught:
        bench.provider.launch(offer, [A], token="t")
    assert caught.value.width is Width.NOTHING
    assert bench.provider.reserved.free("cr-1") == 0
    bench.time += int(READ_SECONDS)
    bench.provider.reserved.read(["us-east-1"])
    assert bench.provider.reserved.free("cr-1") == 2


# --- nobody knows


@pytest.mark.parametrize("nodes", [[A], [A, B]])
def test_a_lost_reply_is_asked_again_with_the_same_token(
    bench: Bench, nodes: list[tuple[NodeName, int]]
) -> None:
    bench.ec2.lost_replies = 1
    machines = bench.provider.launch(OFFER, nodes, token="t")
    assert len(machines) == len(nodes) == len(bench.ec2.instances)


def test_a_purchase_nobody_answered_is_found_out_before_anything_else_is_bought(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def works_but_never_answers(region: str, params: dict[str, Any]) -> dict[str, Any]:
        real(region, params)
        raise NoAnswerError("timed out")

    real = bench.ec2._run_instances
    monkeypatch.setattr(bench.ec2, "_run_instances", works_but_never_answers)
    bench.ec2.hidden = 1000  # the describe lags, too
    with pytest.raises(OSError, match="timed out"):
        bench.provider.launch(OFFER, [A, B], token="t")
    monkeypatch.setattr(bench.ec2, "_run_instances", real)
    bench.restart()
    other = replace(OFFER, instance_type="c7i.large", region="eu-west-1", zones=("euw1-az1",))
    machines = bench.provider.launch(other, [A, B], token="t")
    assert {m.instance_type for m in machines} == {"m7i.large"}
    assert len(bench.ec2.instances) == 2


def test_a_purchase_is_not_forgotten_because_the_question_about_it_was_throttled(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def works_but_never_answers(region: str, params: dict[str, Any]) -> dict[str, Any]:
        real(region, params)
        raise NoAnswerError("timed out")

    def throttled(region: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AwsError("RequestLimitExceeded", "no", 503)

    real = bench.ec2._run_instances
    bench.ec2.hidden = 1000
    for answers in (works_but_never_answers, throttled):
        monkeypatch.setattr(bench.ec2, "_run_instances", answers)
        with pytest.raises(OSError, match=r"timed out|not told"):
            bench.provider.launch(OFFER, [A, B], token="t")
    monkeypatch.setattr(bench.ec2, "_run_instances", real)
    assert len(bench.provider.launch(OFFER, [A, B], token="t")) == len(bench.ec2.instances) == 2


@pytest.mark.parametrize("nodes", [[A], [A, B]], ids=["single", "gang"])
def test_what_was_bought_and_not_told_of_is_found_after_a_kill_before_ec2_shows_it(
    bench: Bench, nodes: list[tuple[NodeName, int]]
) -> None:
    bench.ec2.hidden = 60
    (first, *_) = bench.provider.launch(OFFER, nodes, token="t")
    bench.restart()
    bench.time += 5
    assert bench.provider.machines() == []
    again = bench.provider.launch(OFFER, nodes, token="t")
    assert [one.identity for one in again] == nodes
    assert again[0].id == first.id
    assert len(bench.ec2.instances) == len(nodes)


def test_what_was_bought_and_told_of_is_not_written_down_for_ever(bench: Bench) -> None:
    folder = bench.folder / "intents"
    bench.provider.launch(OFFER, [A, B], token="t")
    assert len(list(folder.iterdir())) == 1
    bench.time += ANSWERED_SECONDS + 1
    bench.provider.sweep()
    assert list(folder.iterdir()) == []


def test_a_token_that_ec2_has_for_something_else_is_another_one_within_the_same_second(
    bench: Bench,
) -> None:
    bench.ec2.refuse(Rule(times=1), "IdempotentParameterMismatch")
    assert bench.provider.launch(OFFER, [A, B], token="t")
    tokens = [p["ClientToken"] for name, p in bench.ec2.calls if name == "run_instances"]
    assert len(set(tokens)) == len(tokens) == 2


def test_an_old_purchase_without_an_answer_is_left_to_the_sweep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(region: str, params: dict[str, Any]) -> dict[str, Any]:
        raise NoAnswerError("timed out")

    monkeypatch.setattr(bench.ec2, "_run_instances", never)
    with pytest.raises(OSError, match="timed out"):
        bench.provider.launch(OFFER, [A, B], token="t")
    bench.time += ASKED_SECONDS + 1
    bench.provider.sweep()
    assert bench.provider.regions() == ["us-east-1"]
    assert list((bench.folder / "intents").iterdir()) == []


@pytest.mark.parametrize("code", ["InvalidSubnetID.NotFound", "IdempotentParameterMismatch"])
def test_what_is_stale_is_looked_up_again_once(bench: Bench, code: str) -> None:
    bench.ec2.refuse(Rule(times=1), code)
    assert bench.provider.launch(OFFER, [A, B], token="t")
    assert bench.ec2.count("describe_subnets") == 2
    bench.ec2.refuse(Rule(), code)
    with pytest.raises(ProviderError, match=code):
        bench.provider.launch(OFFER, [C, (NodeName("ec2-4"), 1)], token="u")
    assert bench.ec2.count("run_instances") == 2 + 2


@pytest.mark.parametrize(
    ("code", "looked_up"),
    [
        ("Client.InvalidSnapshot.NotFound", 2),
        ("Client.InternalError", 2),
        ("Client.InvalidKMSKey.InvalidState", 2),
        ("Client.InvalidAMIID.Unavailable", 2),
        ("Server.InsufficientInstanceCapacity", 1),
        ("Client.UserInitiatedShutdown", 1),
    ],
)
def test_a_machine_that_its_image_kept_from_starting_has_it_looked_up_again_once(
    bench: Bench, code: str, looked_up: int
) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    broken = bench.ec2.instances[0]
    broken.ended_at, broken.reason = bench.time + 1, code
    for _ in range(3):
        bench.time += 60
        bench.provider.machines()
    for number in (1, 2):
        bench.provider.launch(OFFER, [(NodeName("ec2-9"), number)], token=f"u{number}")
    assert bench.ec2.count("describe_images") == looked_up


def test_throttled_calls_are_made_again_and_then_refused(bench: Bench) -> None:
    bench.ec2.refuse(Rule(times=2), "RequestLimitExceeded")
    assert bench.provider.launch(OFFER, [A, B], token="t")
    bench.ec2.refuse(Rule(), "RequestLimitExceeded")
    with pytest.raises(ProviderError) as caught:
        bench.provider.launch(OFFER, [C], token="u")
    assert (caught.value.refusal, caught.value.width) == (Refusal.THROTTLED, Width.REGION)


def test_a_machine_that_describes_do_not_show_yet_is_there(bench: Bench) -> None:
    bench.ec2.hidden = 20
    machines = bench.provider.launch(OFFER, [A], token="t")
    assert bench.provider.machines() == machines
    bench.time += 25
    assert bench.provider.machines()[0].id == machines[0].id


def test_a_machine_that_describes_do_not_show_yet_is_there_after_a_restart_too(
    bench: Bench,
) -> None:
    bench.ec2.hidden = 30
    bench.recalled = bench.provider.launch(OFFER, [A], token="t")
    bench.time += 5
    bench.restart()
    assert bench.provider.machines() == bench.recalled
    bench.provider.terminate(bench.recalled)
    assert [one.ended_at for one in bench.ec2.instances] == [bench.time]
    bench.time += UNSEEN_SECONDS
    assert [one.state for one in bench.provider.machines()] == [MachineState.TERMINATED]


def test_one_that_was_bought_lately_and_never_shows_is_gone_in_the_end(bench: Bench) -> None:
    bench.recalled = bench.provider.launch(OFFER, [A], token="t")
    bench.ec2.instances = []
    bench.restart()
    assert bench.provider.machines() == bench.recalled
    bench.time += UNSEEN_SECONDS
    assert bench.provider.machines() == []


@pytest.mark.parametrize("code", ["OptInRequired", "AuthFailure", "UnauthorizedOperation"])
def test_a_region_that_is_shut_to_us_is_as_it_was_written_down_and_holds_nothing_up(
    bench: Bench, code: str
) -> None:
    bench.recalled = bench.provider.launch(OFFER, [A], token="t")
    bench.time += 3600
    bench.ec2.shut["us-east-1"] = code
    bench.restart()
    assert bench.provider.machines() == bench.recalled
    elsewhere = replace(OFFER, region="eu-west-1", zones=("euw1-az1",))
    assert bench.provider.launch(elsewhere, [B], token="u")
    bench.ec2.shut.clear()
    bench.time += 60
    assert {m.node: m.state for m in bench.provider.machines()}["ec2-1"] is MachineState.RUNNING


@pytest.mark.parametrize("code", ["ExpiredToken", "AuthFailure", "RequestLimitExceeded"])
def test_what_a_lost_call_did_is_found_out_though_credentials_expired_meanwhile(
    bench: Bench, code: str
) -> None:
    bench.ec2.lost_replies, bench.ec2.then = 1, code
    with pytest.raises(NoAnswerError, match=code):
        bench.provider.launch(OFFER, [A, B], token="t")
    bench.restart()
    bench.ec2.then = ""
    machines = bench.provider.launch(OFFER, [A, B], token="t")
    assert [m.id for m in machines] == [one.id for one in bench.ec2.instances]


def test_a_machine_that_is_missed_once_is_not_gone(bench: Bench) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    bench.time += 60
    assert bench.provider.machines()[0].state is MachineState.RUNNING
    kept, bench.ec2.instances = bench.ec2.instances, []
    bench.time += 5
    assert len(bench.provider.machines()) == 1
    bench.time += UNSEEN_SECONDS
    assert bench.provider.machines() == []
    bench.ec2.instances = kept
    bench.time += 5
    assert len(bench.provider.machines()) == 1


def test_a_region_that_cannot_be_asked_is_no_empty_region(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    bench.time += 60

    def shut(region: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AwsError("ExpiredToken", "renew it", 401)

    monkeypatch.setattr(bench.ec2, "_describe_instances", shut)
    with pytest.raises(OSError, match="us-east-1"):
        bench.provider.machines()


def test_a_region_that_falls_silent_is_as_it_was_and_holds_nothing_up(bench: Bench) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    bench.time += 60
    (before,) = bench.provider.machines()
    bench.ec2.silent.add("us-east-1")
    bench.time += 3600
    assert bench.provider.machines() == [before]
    elsewhere = replace(OFFER, region="eu-west-1", zones=("euw1-az1",))
    assert bench.provider.launch(elsewhere, [B], token="u")
    bench.ec2.silent.clear()
    bench.ec2.interrupt(before.id)
    bench.time += 60
    gone = {machine.id: machine for machine in bench.provider.machines()}[before.id]
    assert gone.state is MachineState.TERMINATED


# --- ends


def test_a_spot_machine_taken_back_is_ended_by_its_provider(bench: Bench) -> None:
    (machine,) = bench.provider.launch(SPOT, [A], token="t")
    bench.time += 600
    assert bench.provider.machines()[0].running_at == 1_800_000_030
    bench.ec2.interrupt(machine.id)
    bench.time += 5
    (gone,) = bench.provider.machines()
    assert (gone.state, gone.ended_by_provider) == (MachineState.TERMINATED, True)
    assert gone.terminated_at == bench.time


@pytest.mark.parametrize(
    ("looks", "restarted", "running"),
    [
        ([29, 31], False, 29),  # seen pending, then running
        ([10, 50], False, 10),
        ([31, 60], False, 0),  # never seen pending after the purchase
        ([31, 60], True, 0),  # EC2 tells the launch alone
        ([20, 31, 90], False, 20),  # it stays what it was
        ([20, 31, 45, "end", 90], False, 20),
    ],
)
def test_billing_begins_when_a_machine_was_last_seen_pending(
    bench: Bench, looks: list[int | str], restarted: bool, running: int
) -> None:
    bench.ec2.steady = True
    machines, start = bench.provider.launch(OFFER, [A], token="t"), bench.time
    for look in looks:
        if restarted:
            bench.restart()
        if isinstance(look, str):
            bench.provider.terminate(machines)
            continue
        bench.time = start + look
        bench.provider.machines()
    assert bench.provider.machines()[0].running_at == start + running


@pytest.mark.parametrize(("ours", "running"), [(False, 30), (True, None)])
def test_what_was_pending_when_last_seen_ran_if_ec2_took_it_back(
    bench: Bench, ours: bool, running: int | None
) -> None:
    (machine,), start = bench.provider.launch(SPOT, [A], token="t"), bench.time
    bench.time += 10
    assert bench.provider.machines()[0].state is MachineState.PENDING
    bench.time += 25
    if ours:
        bench.ec2.instances[0].ended_at = bench.time
        bench.ec2.instances[0].reason = "Client.UserInitiatedShutdown"
    else:
        bench.ec2.interrupt(machine.id)
    (gone,) = bench.provider.machines()
    assert gone.running_at == (None if running is None else start + running)


@pytest.mark.parametrize(("seconds", "ran"), [(10, False), (60, True)])
def test_what_broke_when_it_ran_is_no_machine_that_could_not_be_started(
    bench: Bench, seconds: int, ran: bool
) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    bench.time += seconds
    bench.provider.machines()
    bench.ec2.instances[0].ended_at = bench.time
    bench.ec2.instances[0].reason = "Server.InternalError"
    bench.time += 5
    (gone,) = bench.provider.machines()
    assert (gone.running_at is not None, gone.unstarted is None) == (ran, ran)


def test_it_is_no_interruption_when_we_end_it(bench: Bench) -> None:
    bench.provider.terminate(bench.provider.launch(SPOT, [A], token="t"))
    (gone,) = bench.provider.machines()
    assert (gone.state, gone.ended_by_provider) == (MachineState.TERMINATED, False)


def test_one_instance_is_not_ended_twice(bench: Bench) -> None:
    machines = bench.provider.launch(OFFER, [A], token="t")
    for _ in range(3):
        bench.provider.terminate(machines)
        bench.time += 10
    assert bench.ec2.count("terminate_instances") == 1


# --- guards


def test_a_quota_that_was_met_is_not_asked_again_for_others_of_its_group(bench: Bench) -> None:
    bench.ec2.refuse(Rule(), "VcpuLimitExceeded")
    with pytest.raises(ProviderError, match=r"L-1216C47A.*allows 32 vCPUs, 4 more wanted"):
        bench.provider.launch(OFFER, [A, B], token="t")
    asked = bench.ec2.count("run_instances")
    other = replace(OFFER, instance_type="c7i.large", family="c7i")
    with pytest.raises(ProviderError, match="L-1216C47A"):
        bench.provider.launch(other, [A, B], token="u")
    assert bench.ec2.count("run_instances") == asked
    for offer in (
        replace(OFFER, instance_type="g6.xlarge", family="g6"),
        replace(OFFER, region="eu-west-1", zones=("euw1-az1",)),
    ):
        with pytest.raises(ProviderError):
            bench.provider.launch(offer, [A, B], token=offer.instance_type + offer.region)
    assert bench.ec2.count("run_instances") == asked + 2


@pytest.mark.parametrize(
    ("ceilings", "whose"),
    [
        (Ceilings(site=250_000), "site"),
        (Ceilings(account=250_000), "account physics"),
        (Ceilings(user=250_000), "user alice"),
    ],
)
def test_a_ceiling_is_kept_before_each_launch(
    tmp_path: Path, ceilings: Ceilings, whose: str
) -> None:
    bench = Bench(tmp_path, ceilings=ceilings)
    machines = bench.provider.launch(OFFER, [A, B], token="t")
    with pytest.raises(ProviderError, match=f"ceiling of (the )?{whose}: 0.20.* of 0.25") as caught:
        bench.provider.launch(OFFER, [C], token="u")
    assert (caught.value.refusal, caught.value.width) == (Refusal.QUOTA, Width.PROVIDER)
    with pytest.raises(ProviderError) as caught:
        bench.provider.launch(replace(OFFER, micro_usd_per_hour=300_000), [C], token="u")
    assert (caught.value.refusal, caught.value.width) == (Refusal.INVALID, Width.TYPE_IN_REGION)
    bench.provider.terminate(machines[:1])
    assert bench.provider.launch(OFFER, [C], token="u")


def kept(bench: Bench) -> Machine:
    """One that is stopped."""
    (machine,) = bench.provider.launch(OFFER, [A], token="t")
    bench.time += 60
    bench.provider.stop([machine])
    bench.time += 60
    (there,) = bench.provider.machines()
    assert there.state is MachineState.STOPPED
    return there


@pytest.mark.parametrize(("beside", "told"), [(0, None), (25_000, None), (26_000, "0.126000")])
def test_what_is_billed_beside_machines_counts_against_ceilings(
    beside: int, told: str | None
) -> None:
    """Volumes and addresses: of what is there, and of what is wanted."""
    there = machine(token="before", micro_usd_per_hour=100_000)
    guard = Guard(
        Ceilings(site=375_000), lambda *_: FOR, lambda: 0.0, beside=lambda _region, _build: beside
    )
    offer = replace(OFFER, micro_usd_per_hour=100_000)
    bought = naming.Purchase(offer=offer, nodes=(A, B), token="t", purpose=FOR, at=0)
    refused = pytest.raises(ProviderError, match=f"the site: {told} of 0.375000 USD an hour in use")
    with refused if told else contextlib.nullcontext(), guard.admitted(bought, lambda: [there]):
        assert told is None


def test_a_stopped_machine_starts_within_the_ceilings_alone(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ceilings=Ceilings(user=150_000))
    machine = kept(bench)
    (other,) = bench.provider.launch(OFFER, [B], token="u")
    with pytest.raises(ProviderError, match=r"ceiling of user alice: 0.10.* of 0.15") as caught:
        bench.provider.start([machine])
    assert caught.value.refusal is Refusal.QUOTA
    assert bench.ec2.count("start_instances") == 0
    bench.provider.terminate([other])
    bench.provider.start([machine])
    assert bench.ec2.count("start_instances") == 1


@pytest.mark.parametrize(
    ("code", "refusal", "width"),
    [
        ("InsufficientInstanceCapacity", Refusal.CAPACITY, Width.TYPE_IN_ZONE),
        ("VcpuLimitExceeded", Refusal.QUOTA, Width.FAMILY_IN_REGION),
    ],
)
def test_why_a_stopped_machine_does_not_start_is_told_with_its_width(
    bench: Bench, code: str, refusal: Refusal, width: Width
) -> None:
    machine = kept(bench)
    bench.ec2.shut["us-east-1"] = code
    with pytest.raises(ProviderError, match=r"m7i.large|L-1216C47A.* 2 more wanted") as caught:
        bench.provider.start([machine])
    assert (caught.value.refusal, caught.value.width) == (refusal, width)


# --- sweeps


def left(bench: Bench, key: str, **thing: Any) -> None:
    bench.ec2.left.setdefault(key, []).append(("us-east-1", thing))


def test_leftovers_of_machines_are_let_go_once_they_have_been_unused_for_a_while(
    bench: Bench,
) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    left(bench, "Volumes", VolumeId="vol-1", State="available")
    left(bench, "Volumes", VolumeId="vol-2", State="in-use")
    left(bench, "Addresses", AllocationId="eip-1")
    left(bench, "Addresses", AllocationId="eip-2", AssociationId="a")
    left(bench, "PlacementGroups", GroupName="g", State="available")
    assert {one.id for one in bench.provider.leftovers()} == {"vol-1", "eip-1", "g"}
    assert bench.provider.sweep() == []
    bench.time += 1000
    assert {one.id for one in bench.provider.sweep()} == {"vol-1", "eip-1"}
    assert {one.id for one in bench.provider.leftovers()} == {"g"}


def test_a_placement_group_is_left_over_once_its_last_machine_is_gone(bench: Bench) -> None:
    offer = replace(OFFER, features=("efa",), zones=("use1-az1",))
    gang = bench.provider.launch(offer, [A, B], token="t")
    name = bench.params("create_placement_group")["GroupName"]
    left(bench, "PlacementGroups", GroupName=name, State="available")
    assert bench.provider.leftovers() == []
    bench.time += 60
    bench.provider.terminate(gang)
    bench.time += 60
    assert [one.id for one in bench.provider.leftovers()] == [name]


def test_a_region_that_does_not_answer_keeps_no_others_leftovers(bench: Bench) -> None:
    for region in ("us-east-1", "eu-west-1"):
        bench.provider._book.add(region)
        bench.ec2.left.setdefault("Volumes", []).append(
            (region, {"VolumeId": f"vol-{region}", "State": "available"})
        )
    bench.ec2.silent.add("eu-west-1")
    assert bench.provider.sweep() == []
    with pytest.raises(NoAnswerError):
        bench.provider.leftovers()
    bench.time += 1000
    assert [one.region for one in bench.provider.sweep()] == ["us-east-1"]


def test_an_operator_lets_go_of_what_is_unused_at_once_unless_something_is_bought_there(
    bench: Bench,
) -> None:
    bench.provider.launch(OFFER, [A], token="t")
    left(bench, "Volumes", VolumeId="vol-1", State="available")
    left(bench, "PlacementGroups", GroupName="g", State="available")
    found = bench.provider.leftovers()
    assert [one.kind for one in found] == ["volume", "placement group"]
    bench.ec2.silent.add("create_fleet")
    with pytest.raises(NoAnswerError):
        bench.provider.launch(OFFER, [B], token="u")
    bench.ec2.silent.clear()
    assert bench.provider.let_go(found) == []
    bench.provider.launch(OFFER, [B], token="u")
    assert bench.provider.let_go(found) == found[:1], "a group that is used is kept by EC2"


def test_a_region_where_only_things_were_left_is_found_too(bench: Bench) -> None:
    thing = {"VolumeId": "vol-1", "State": "available"}
    bench.ec2.left["Volumes"] = [("eu-west-1", thing)]
    assert bench.provider.leftovers() == []
    assert bench.provider.search() == ["eu-west-1"]
    assert [one.id for one in bench.provider.leftovers()] == ["vol-1"]


def test_a_site_that_lost_its_folder_finds_its_machines_in_any_region(bench: Bench) -> None:
    offer = replace(OFFER, region="eu-west-1", zones=("euw1-az1",))
    bench.provider.launch(offer, [A], token="t")
    (bench.folder / "regions").unlink()
    bench.restart()
    assert bench.provider.machines() == []
    assert bench.provider.search() == ["eu-west-1"]
    assert [m.node for m in bench.provider.machines()] == ["ec2-1"]


def test_what_is_secret_is_for_its_owner_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real: Callable[..., dict[str, Any]] = bench.ec2._run_instances

    def look(region: str, params: dict[str, Any]) -> dict[str, Any]:
        files = [p for p in bench.folder.rglob("*") if p.is_file()]
        seen.extend(path.stat().st_mode & 0o077 for path in files)
        return real(region, params)

    monkeypatch.setattr(bench.ec2, "_run_instances", look)
    bench.provider.launch(OFFER, [A, B], token="t")
    assert len(seen) >= 2
    assert set(seen) == {0}
