"""Names, tags, errors, images, instances and user data of EC2: tables and pure functions."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from accounting.ids import AccountName
from broker.model.errors import Refusal, Width
from broker.model.ids import NodeName
from broker.model.job import Owner
from broker.model.offer import MachineState, Market, Offer
from broker.model.purpose import Purpose
from broker.model.volume import NamedVolume
from broker.providers.ec2 import errors, naming
from broker.providers.ec2.clients import BotoApi
from broker.providers.ec2.errors import AwsError, NoAnswerError
from broker.providers.ec2.images import wanted
from broker.providers.ec2.instances import machines
from broker.providers.ec2.keys import site_id, site_keys
from broker.providers.ec2.naming import Purchase, Site
from broker.providers.ec2.userdata import MOST_BYTES, user_data

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
SITE = Site("0123456789ab", "skypurza", "prod", (("Team", "hpc"),))


ERRORS = (
    # what EC2 says, why it is, what is left alone for it
    (
        "InsufficientInstanceCapacity InsufficientHostCapacity InsufficientCapacityOnHost "
        "InsufficientCapacity UnfulfillableCapacity",
        Refusal.CAPACITY,
        Width.TYPE_IN_ZONE,
    ),
    ("UnfitImage", Refusal.INVALID, Width.NOTHING),
    (
        "InsufficientReservedInstanceCapacity ReservationCapacityExceeded SpotMaxPriceTooLow",
        Refusal.CAPACITY,
        Width.NOTHING,
    ),
    ("InsufficientFreeAddressesInSubnet InsufficientVolumeCapacity", Refusal.CAPACITY, Width.ZONE),
    (
        "Unsupported UnsupportedOperation InvalidInstanceType InvalidParameterCombination",
        Refusal.INVALID,
        Width.TYPE_IN_ZONE,
    ),
    (
        "VcpuLimitExceeded InstanceLimitExceeded MaxSpotInstanceCountExceeded",
        Refusal.QUOTA,
        Width.FAMILY_IN_REGION,
    ),
    (
        "MaxFleetCountExceeded VolumeLimitExceeded",
        Refusal.QUOTA,
        Width.REGION,
    ),
    (
        "InvalidSnapshot.NotFound InvalidKMSKey Client.InternalError",
        Refusal.TRANSIENT,
        Width.REGION,
    ),
    ("Server.InternalError", Refusal.TRANSIENT, Width.TYPE_IN_ZONE),
    (
        "RequestLimitExceeded Throttling ThrottlingException EC2ThrottledException SlowDown",
        Refusal.THROTTLED,
        Width.REGION,
    ),
    (
        "UnauthorizedOperation AccessDenied AccessDeniedException AuthFailure OptInRequired "
        "PendingVerification",
        Refusal.AUTH,
        Width.REGION,
    ),
    (
        "Blocked InvalidClientTokenId UnrecognizedClientException ExpiredToken "
        "ExpiredTokenException RequestExpired SignatureDoesNotMatch InvalidSignatureException "
        "IncompleteSignature "
        "NoCredentials AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        Refusal.AUTH,
        Width.PROVIDER,
    ),
    (
        "InvalidAMIID.NotFound InvalidAMIID.Unavailable InvalidKeyPair.NotFound "
        "InvalidGroup.NotFound InvalidSecurityGroupID.NotFound InvalidSubnetID.NotFound "
        "InvalidLaunchTemplateName.NotFoundException InvalidLaunchTemplateId.NotFound "
        "InvalidPlacementGroup.Unknown",
        Refusal.TRANSIENT,
        Width.REGION,
    ),
    ("IdempotentParameterMismatch", Refusal.TRANSIENT, Width.NOTHING),
    ("InsufficientSetup", Refusal.INVALID, Width.REGION),
    (
        "InvalidParameterValue InvalidParameter MissingParameter NobodyEverHeardOfThis",
        Refusal.INVALID,
        Width.TYPE_IN_REGION,
    ),
)
EACH = [(code, *meaning) for codes, *meaning in ERRORS for code in codes.split()]


@pytest.mark.parametrize(("code", "refusal", "width"), EACH)
def test_each_error_has_its_kind_and_width(code: str, refusal: Refusal, width: Width) -> None:
    told = errors.refused(AwsError(code, "text"), OFFER)
    assert (told.refusal, told.width) == (refusal, width)
    assert code in told.message or refusal is Refusal.QUOTA


def test_no_error_has_a_meaning_that_is_not_tested() -> None:
    assert {code for code, *_ in EACH} - errors.EC2_REFUSALS.keys() == {"NobodyEverHeardOfThis"}
    assert errors.EC2_REFUSALS.keys() <= {code for code, *_ in EACH}


@pytest.mark.parametrize(
    ("kind", "market", "code", "group"),
    [
        ("m7i.large", Market.ON_DEMAND, "L-1216C47A", errors.STANDARD),
        ("t3.nano", Market.SPOT, "L-34B43A08", errors.STANDARD),
        ("g6.xlarge", Market.ON_DEMAND, "L-DB2E81BA", "G and VT"),
        ("gr6.4xlarge", Market.SPOT, "L-3819A6DF", "G and VT"),
        ("p4d.24xlarge", Market.ON_DEMAND, "L-417A185B", "P"),
        ("p4d.24xlarge", Market.SPOT, "L-7212CCBC", "P"),
        ("p5.48xlarge", Market.ON_DEMAND, "L-417A185B", "P5"),
        ("p5en.48xlarge", Market.SPOT, "L-C4BD4855", "P5"),
        ("p6-b200.48xlarge", Market.ON_DEMAND, "L-417A185B", "P6"),
        ("p6-b200.48xlarge", Market.SPOT, "", "P6"),
        ("inf2.xlarge", Market.ON_DEMAND, "L-1945791B", "Inf"),
        ("trn1.2xlarge", Market.ON_DEMAND, "L-2C3B7624", "Trn"),
        ("x2idn.16xlarge", Market.SPOT, "L-E3A00192", "X"),
        ("hpc7a.96xlarge", Market.SPOT, "", "HPC"),
        ("u-6tb1.56xlarge", Market.ON_DEMAND, "L-43DA4232", "High Memory"),
    ],
)
def test_types_count_against_their_quota(kind: str, market: Market, code: str, group: str) -> None:
    assert errors.quota_of(kind, market) == (code, group)


def test_a_quota_is_told_with_its_code_and_numbers() -> None:
    error = AwsError("VcpuLimitExceeded", "more than your current vCPU limit of 32 allows for")
    told = errors.refused(error, OFFER, nodes=20).message
    assert told == (
        "quota L-1216C47A (Standard (A, C, D, H, I, M, R, T, Z), on-demand) in us-east-1 "
        "allows 32 vCPUs, 40 more wanted"
    )


@pytest.mark.parametrize(
    ("offer", "images", "expected"),
    [
        (OFFER, {}, "al2023-ami-kernel-default-x86_64"),
        (replace(OFFER, arch="arm64"), {}, "al2023-ami-kernel-default-arm64"),
        (OFFER, {"x86_64": "ami-1"}, "ami-1"),
        (OFFER, {"ec2-": "ami-2", "x86_64": "ami-1"}, "ami-2"),
        (
            replace(OFFER, instance_type="g6.xlarge", gres=(("gpu", 1),)),
            {},
            "base-oss-nvidia-driver",
        ),
        (replace(OFFER, instance_type="g6.xlarge", gres=(("gpu", 1),)), {"gpu": "/own"}, "/own"),
        (replace(OFFER, instance_type="g4ad.xlarge", gres=(("gpu", 1),)), {}, "al2023-ami"),
    ],
)
def test_the_image_is_the_partitions_or_by_gpu_or_by_architecture(
    offer: Offer, images: dict[str, str], expected: str
) -> None:
    assert expected in wanted(offer, "ec2-", images)


def test_many_nodes_are_told_over_several_tags() -> None:
    nodes = tuple((NodeName(f"ec2-{n}"), 1000 + n) for n in range(1, 101))
    bought = Purchase(
        offer=OFFER, nodes=nodes, token="4711/1", purpose=Purpose(seconds=60), at=1_800_000_000
    )
    tags = naming.of_machines(SITE, bought)
    assert max(map(len, tags.values())) <= 256
    assert len(tags) <= 50
    assert naming.nodes_of(tags) == nodes
    assert tags["Team"] == "hpc"


def test_a_client_token_is_of_this_purchase_from_this_pool_alone() -> None:
    bought = Purchase(
        offer=OFFER, nodes=((NodeName("ec2-1"), 7),), token="1/1", purpose=Purpose(seconds=1), at=5
    )
    tokens = {
        naming.client_token(SITE, bought, "a"),
        naming.client_token(SITE, bought, "b"),
        naming.client_token(SITE, replace(bought, token="1/2"), "a"),
        naming.client_token(SITE, replace(bought, nodes=((NodeName("ec2-1"), 8),)), "a"),
        naming.client_token(replace(SITE, id="b"), bought, "a"),
    }
    assert len(tokens) == 5
    assert max(map(len, tokens)) <= 64
    assert naming.client_token(SITE, bought, "a") in tokens


def test_volumes_with_long_names_have_tokens_of_their_own() -> None:
    one = NamedVolume(
        name="a" * 80,
        owner=Owner(1000, 1000, "alice", "alice"),
        account=AccountName("lab"),
        provider="ec2",
        asked_at=5,
        gib=1,
        region="us-east-1",
        zone="use1-az1",
    )
    others = replace(one, name=one.name + "b"), replace(one, asked_at=6)
    tokens = {naming.volume_token(SITE, volume) for volume in (one, *others, replace(one))}
    assert (len(tokens), max(map(len, tokens)) <= 64) == (3, True)


# --- instances


def instance(number: int, **changes: Any) -> dict[str, Any]:
    tags = {"skypurza:token": "t", "skypurza:nodes": "ec2-1.7,ec2-2.8,ec2-3.9"}
    usual = {
        "InstanceId": f"i-{number}",
        "InstanceType": "m7i.large",
        "AmiLaunchIndex": 0,
        "State": {"Name": "running"},
        "LaunchTime": datetime(2027, 1, 15, 8, tzinfo=UTC),
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "Tags": naming.tag_list(tags),
    }
    return {**usual, **changes}


def nodes(*instances: dict[str, Any]) -> dict[str, str]:
    return {m.id: m.node for m in machines(instances, "us-east-1", public=True)}


def test_machines_of_one_call_are_their_place_in_it() -> None:
    found = nodes(instance(5, AmiLaunchIndex=2), instance(9, AmiLaunchIndex=0))
    assert found == {"i-9": "ec2-1", "i-5": "ec2-3"}


def test_a_machine_that_somebody_copied_is_its_node_whatever_the_copy_is_called() -> None:
    tags = naming.tag_list({"skypurza:token": "t", "skypurza:nodes": "ec2-1.7"})
    for one, copy in ((5, 9), (9, 5)):
        found = nodes(instance(one, Tags=tags), instance(copy, Tags=tags))
        assert found == {"i-5": "ec2-1", "i-9": "ec2-1"}


def test_one_whose_place_nobody_bought_is_nobodys() -> None:
    assert nodes(instance(5, AmiLaunchIndex=3)) == {"i-5": "?"}


def test_a_later_purchase_under_the_same_token_is_one_of_its_own() -> None:
    tags = naming.tag_list({"skypurza:token": "t", "skypurza:nodes": "ec2-4.20"})
    assert nodes(instance(5), instance(9, Tags=tags)) == {"i-5": "ec2-1", "i-9": "ec2-4"}


def test_the_day_of_its_price_stays_with_a_machine() -> None:
    offer, nodes = replace(OFFER, as_of="2026-11-20"), ((NodeName("ec2-1"), 7),)
    bought = Purchase(offer=offer, nodes=nodes, token="1/1", purpose=Purpose(seconds=1), at=0)
    tags = naming.tag_list(naming.of_machines(SITE, bought))
    (found,) = machines([instance(5, Tags=tags)], "us-east-1", public=True)
    assert (found.price_of, found.micro_usd_per_hour) == ("2026-11-20", 100_800)
    (older,) = machines([instance(5)], "us-east-1", public=True)
    assert older.price_of == ""


def test_what_bears_no_node_is_nobodys() -> None:
    assert nodes(instance(5, Tags=[])) == {"i-5": "?"}


@pytest.mark.parametrize(
    ("reason", "transition", "ended", "by_provider", "ran"),
    [
        (
            "Client.UserInitiatedShutdown",
            "User initiated (2027-01-15 08:05:00 GMT)",
            300,
            False,
            True,
        ),
        ("Server.SpotInstanceTermination", "", None, True, True),
        ("Client.InstanceInitiatedShutdown", "", None, False, True),
        ("Server.InsufficientInstanceCapacity", "", None, True, False),
        (
            "Client.UserInitiatedShutdown",
            "User initiated (2027-01-15 08:00:00 GMT)",
            0,
            False,
            False,
        ),
    ],
)
def test_how_it_ended_is_read_from_its_reasons(
    reason: str, transition: str, ended: int | None, by_provider: bool, ran: bool
) -> None:
    raw = instance(
        1,
        State={"Name": "terminated"},
        StateReason={"Code": reason},
        StateTransitionReason=transition,
    )
    (machine,) = machines([raw], "us-east-1", public=True)
    assert machine.state is MachineState.TERMINATED
    took = None if machine.terminated_at is None else machine.terminated_at - machine.launched_at
    assert (took, machine.ended_by_provider) == (ended, by_provider)
    assert (machine.running_at is not None) is ran


@pytest.mark.parametrize(
    ("code", "refusal", "width"),
    [
        ("Client.VolumeLimitExceeded", Refusal.QUOTA, Width.REGION),
        ("Client.InvalidSnapshot.NotFound", Refusal.TRANSIENT, Width.REGION),
        ("Client.InternalError", Refusal.TRANSIENT, Width.REGION),
        ("Client.InvalidKMSKey.InvalidState", Refusal.TRANSIENT, Width.REGION),
        ("Server.InternalError", Refusal.TRANSIENT, Width.TYPE_IN_ZONE),
        ("Server.InsufficientInstanceCapacity", Refusal.CAPACITY, Width.TYPE_IN_ZONE),
        ("Client.UserInitiatedShutdown", None, None),
        ("Client.InstanceInitiatedShutdown", None, None),
        ("Server.SpotInstanceTermination", None, None),
        ("Server.ScheduledStop", None, None),
        ("InternalError", None, None),
        ("", None, None),
    ],
)
def test_a_machine_that_could_not_be_started_bears_the_refusal(
    code: str, refusal: Refusal | None, width: Width | None
) -> None:
    raw = instance(1, State={"Name": "terminated"}, StateReason={"Code": code, "Message": "so"})
    (machine,) = machines([raw], "us-east-1", public=True)
    late = machine.unstarted
    assert (late and late.refusal, late and late.width) == (refusal, width)
    if late is not None:
        assert machine.running_at is None
        assert f"{machine.instance_type} ({machine.market}) in " in late.message
        assert late.message.count(code) == 1


# --- keys and user data


def test_keys_of_a_site_stay_and_are_for_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / "ec2"
    assert site_id(folder) == ""
    keys = site_keys(folder)
    again = site_keys(folder)
    assert (keys.id, site_id(folder)) == (again.id, again.id)
    assert keys.host("t").public == again.host("t").public != keys.host("u").public
    assert keys.login().public not in {keys.host("t").public, keys.host("login").public}
    assert (folder / "site.key").stat().st_mode & 0o777 == 0o600


def test_user_data_is_cloud_config_with_keys_and_the_timer(tmp_path: Path) -> None:
    keys = site_keys(tmp_path)
    text = user_data(host=keys.host("t"), login=keys.login().public, minutes=90)
    assert text.startswith("#cloud-config\n")
    config = json.loads(text.partition("\n")[2])
    assert config["ssh_keys"]["ed25519_public"] == keys.host("t").public
    assert config["ssh_authorized_keys"] == [keys.login().public]
    assert config["runcmd"] == ["shutdown -h +90"]
    assert keys.login().private not in text


@pytest.mark.parametrize(("size", "told"), [(1000, True), (MOST_BYTES, False)])
def test_user_data_brings_the_agent_where_there_is_room(
    tmp_path: Path, size: int, told: bool
) -> None:
    keys, words = site_keys(tmp_path), ["/bin/sh", "-c", "x" * size]
    login = keys.login().public
    text = user_data(host=keys.host("t"), login=login, minutes=1, arrives=words)
    config = json.loads(text.partition("\n")[2])
    assert config.get("bootcmd") == ([words] if told else None)
    assert len(text) <= MOST_BYTES


def test_user_data_that_ec2_would_not_take_is_refused(tmp_path: Path) -> None:
    keys = site_keys(tmp_path)
    with pytest.raises(ValueError, match=str(MOST_BYTES)):
        user_data(host=keys.host("t"), login="x" * MOST_BYTES, minutes=1)


# --- boto3


def test_calls_that_fail_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    api = BotoApi(endpoint_url="http://127.0.0.1:9")
    with pytest.raises(NoAnswerError, match="run_instances in us-east-1"):
        api.call("ec2", "us-east-1", "run_instances", MinCount=1, MaxCount=1)
    with pytest.raises(AwsError, match="InvalidParameter"):
        api.call("ec2", "us-east-1", "run_instances", MinCount="none")
