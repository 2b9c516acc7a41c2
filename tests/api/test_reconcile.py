"""A provider's bill over HTTP: machines, their volumes and addresses, and named volumes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Meter, Why
from accounting.rates import ON_DEMAND
from accounting.tres import Tres
from broker.model.commands import PostEntries
from broker.model.errors import Refused
from broker.model.ids import NodeName
from broker.model.offer import Machine, MachineState, Market
from broker.model.volume import NamedVolume, VolumeSet
from broker.providers.ec2.errors import AwsError
from gateway.account import explored
from gateway.api.app import build_app
from gateway.api.money import money
from gateway.sdk.verbs.money import reconcile
from gateway.store.sql import open_store
from tests.api.asking import ask
from tests.contract.records import node
from tests.unit.broker.providers.ec2.test_explorer import Explorer, answer
from tests.unit.gateway.api.office import ALICE, SITE, Office
from tests.unit.gateway.api.test_text import Log
from tests.unit.gateway.store.conftest import Standing

HOUR = 3600
BEGAN = 1_699_999_200
MACHINE = Machine(
    id="i-1", node=NodeName("ec2-1"), launch=1, token="t", state=MachineState.RUNNING,
    region="us-east-1", zone="use1-az1", instance_type="m7i.large", market=Market.ON_DEMAND,
    micro_usd_per_hour=100_000, launched_at=BEGAN,
    parts=(("volume", "vol-1"), ("address", "eni-1")),
)  # fmt: skip
METER = Meter(
    node="volume-data", launch=7, part="volume", whole=Tres(1), terms=ON_DEMAND, prices=(),
    running_at=BEGAN,
)  # fmt: skip
VOLUME = NamedVolume(
    name="data", owner=ALICE, account=AccountName("chem"), provider="ec2", asked_at=7, gib=10,
    region="us-east-1", zone="use1-az1", id="vol-2", meter=METER,
)  # fmt: skip


def entry(number: int, machine: str, cost: int) -> Entry:
    return Entry(
        key=f"k{number}", at=BEGAN + 60, since=BEGAN, kind=Kind.CHARGE, why=Why.RUN,
        job=JobId(number), attempt=1, account=AccountName("chem"), user=UserName("alice"),
        machine=machine, cost=MicroUsd(cost),
    )  # fmt: skip


ENTRIES = (
    entry(1, "ec2-1.1", 100_000),
    entry(2, "ec2-1.1/volume", 3_000),
    entry(3, "ec2-1.1/address", 5_000),
    entry(4, "volume-data.7/volume", 1_000),
)
DATA = Entry(
    key="k5", at=BEGAN + 60, since=BEGAN + 60, kind=Kind.CHARGE, why=Why.DATA, job=JobId(1),
    attempt=1, account=AccountName("chem"), user=UserName("alice"), region="us-east-1",
    cost=MicroUsd(200_000),
)  # fmt: skip
HEAD = (
    "identity_line_item_id,line_item_resource_id,line_item_usage_start_date,"
    "line_item_usage_end_date,line_item_unblended_cost,line_item_line_item_type"
)
ARN = "arn:aws:ec2:us-east-1:1:network-interface/eni-1"
COMPUTE, TRAFFIC = ("i-1", "0.1"), ("i-1", "0.02")
DISK, CARD, NAMED = ("vol-1", "0.003"), (ARN, "0.005"), ("vol-2", "0.001")


def bill(*lines: tuple[str, str]) -> str:
    when = "2023-11-14T22:00:00Z,2023-11-14T23:00:00Z"
    rows = [f"{n},{resource},{when},{usd},Usage" for n, (resource, usd) in enumerate(lines)]
    return "\n".join([HEAD, *rows])


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    store = open_store(str(tmp_path / "state.db"), clock=Standing())
    with store.transaction(epoch=1) as tx:
        tx.post((*ENTRIES, DATA))
        tx.save_nodes([node("ec2-1", machine=MACHINE)], [])
        tx.append([(1, VolumeSet(at=BEGAN, record=replace(VOLUME, meter=METER)))])
    made = Office(SITE)
    made.desk.history = store.history
    yield made
    store.close()


def compared(office: Office, text: str, *, post: bool = False) -> list[tuple[str, int]]:
    app = build_app(office.desk, {}, log=Log(), routers=[money()])
    answer = ask(app, "POST", "/v1/reconcile", json={"bill": text, "post": post})
    assert answer.status_code == 200, answer.text
    told: Any = answer.json()
    return [(one["machine"], one["missing"]) for one in told["differences"]]


@pytest.mark.parametrize(
    ("lines", "differs"),
    [
        ((COMPUTE, DISK, CARD, NAMED), []),
        ((COMPUTE,), []),
        ((COMPUTE, TRAFFIC), [("ec2-1.1", 20_000)]),
        ((COMPUTE, DISK), [("volume-data.7/volume", -1_000)]),
        ((COMPUTE, ("vol-1", "0.004"), NAMED), [("ec2-1.1/volume", 1_000)]),
        ((COMPUTE, (ARN, "0")), [("ec2-1.1/address", -5_000)]),
        ((("i-9", "7"), COMPUTE), []),
    ],
)
def test_each_thing_is_compared_by_its_own_id(
    office: Office, lines: tuple[tuple[str, str], ...], differs: list[tuple[str, int]]
) -> None:
    assert compared(office, bill(*lines)) == differs


def test_what_differs_is_posted_to_those_who_paid_for_the_part(office: Office) -> None:
    compared(office, bill(COMPUTE, ("vol-1", "0.004"), CARD, NAMED), post=True)
    (asked,) = [one for one in office.asked if isinstance(one, PostEntries)]
    (made,) = [one for one in asked.entries if one.cost]
    assert (made.machine, made.job, made.cost, made.account) == (
        "ec2-1.1/volume",
        2,
        1_000,
        "chem",
    )
    assert len(asked.entries) == 5  # each of the four hours is noted to be reconciled


MOVED = "EUW1-USE1-AWS-Out-Bytes"
OTHER = "USE1-APS7-AWS-Out-Bytes"
TYPED = f"{HEAD},line_item_usage_type"


def typed(*lines: tuple[str, str, str]) -> str:
    """Lines with a resource, dollars and what was used."""
    when = "2023-11-14T22:00:00Z,2023-11-14T23:00:00Z"
    rows = [f"{n},{one},{when},{usd},Usage,{used}" for n, (one, usd, used) in enumerate(lines)]
    return "\n".join([TYPED, *rows])


@pytest.mark.parametrize(
    ("lines", "differs"),
    [
        ((("i-1", "0.1", "BoxUsage"),), []),
        ((("bucket", "0.2", MOVED),), []),
        ((("bucket", "0.15", MOVED), ("", "0.05", MOVED)), []),
        ((("bucket", "0.25", MOVED),), [("us-east-1", 50_000)]),
        ((("i-1", "9", MOVED), ("bucket", "0.2", MOVED)), []),
        (
            (("bucket", "0.01", OTHER),),
            [("ap-southeast-5", 10_000), ("us-east-1", -200_000)],
        ),
    ],
)
def test_data_between_regions_is_compared_by_where_it_went(
    office: Office, lines: tuple[tuple[str, str, str], ...], differs: list[tuple[str, int]]
) -> None:
    app = build_app(office.desk, {}, log=Log(), routers=[money()])
    told: Any = ask(app, "POST", "/v1/reconcile", json={"bill": typed(*lines)}).json()
    assert [(one["region"], one["missing"]) for one in told["data"]] == differs


class Spz:
    """The counter of a command line whose service is the office's."""

    def __init__(self, office: Office, api: Any) -> None:
        self.app = build_app(office.desk, {}, log=Log(), routers=[money(explored(api))])
        self.shown = ""

    @property
    def service(self) -> "Spz":
        return self

    def post(self, route: str, body: Any) -> Any:
        answer = ask(self.app, "POST", route, json=body)
        if answer.status_code != 200:
            raise Refused(answer.json()["error"]["message"])
        return answer.json()

    def show(self, _told: Any, _given: Any, text: Callable[[], str]) -> None:
        self.shown = text()

    def reconcile(self, *, post: bool = False) -> tuple[int, str]:
        window = {"since": "2023-11-14T22:00+00:00", "until": "2023-11-14T23:00+00:00"}
        status = reconcile({"words": [], "post": post, **window}, self)  # type: ignore[arg-type]
        return status, self.shown


def of_explorer() -> Explorer:
    """It has the machine a fifth dearer, data as posted, and nothing of what is not compute."""
    when = "2023-11-14T22:00:00Z"
    return Explorer(
        answer(when, ("i-1", "0.12"), ("NoResourceId", "3")), answer(when, (MOVED, "0.2"))
    )


def test_what_cost_explorer_says_is_compared_posted_once_and_agrees_from_then_on(
    office: Office, tmp_path: Path
) -> None:
    assert Spz(office, of_explorer()).reconcile() == (
        1,
        "1 hours of machines, $0.120 billed\n"
        "MACHINE  HOUR               BILLED  POSTED  MISSING\n"
        "ec2-1.1  2023-11-14T22:00Z  $0.120  $0.100  $0.020\n"
        "`--post` sets the ledger right",
    )
    assert Spz(office, of_explorer()).reconcile(post=True)[0] == 0
    (asked,) = [one for one in office.asked if isinstance(one, PostEntries)]
    store = open_store(str(tmp_path / "state.db"), clock=Standing())
    for _ in range(2):
        with store.transaction(epoch=1) as tx:
            tx.post(asked.entries)
    posted = [
        one for one in store.history.entries(since=0, until=2**31) if one.machine == "ec2-1.1"
    ]
    store.close()
    assert sum(one.cost for one in posted) == 120_000
    status, said = Spz(office, of_explorer()).reconcile()
    assert (status, said) == (0, "1 hours of machines, $0.120 billed; the ledger agrees")


def test_what_cost_explorer_refuses_is_told_in_its_words(office: Office) -> None:
    class Refusing:
        def call(self, *_: Any, **__: Any) -> Any:
            raise AwsError("DataUnavailableException", "no hourly data by resource")

    with pytest.raises(Refused, match=r"Cost Explorer: .*no hourly data by resource"):
        Spz(office, Refusing()).reconcile()
