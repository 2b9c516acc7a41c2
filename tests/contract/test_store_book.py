"""What every store keeps of the changes of accounts."""

from pathlib import Path

import pytest

from accounting.assoc import Account, Association, Person, Qos
from accounting.change import Change
from accounting.ids import AccountName, UserName
from accounting.limits import Limits
from broker.model.boots import BootsGone, BootsSet, FailedBoots
from broker.model.events import BookChanged, Event
from broker.model.partition import PartitionGone, PartitionPatch, PartitionSet
from gateway.store.sql import open_store
from tests.sim.memory_store import MemoryStore
from tests.unit.gateway.store.conftest import Standing

CHANGE = Change(
    accounts=(
        Account(
            name=AccountName("lab"),
            coordinators=(UserName("alice"),),
            limits=Limits(grp_tres={"cpu": 4, "gres/gpu": 1}, max_wall=3600),
        ),
    ),
    associations=(Association(user=UserName("alice"), account=AccountName("lab"), qos=()),),
    qos=(Qos(name="q", flags=frozenset({"DenyOnLimit"}), usage_factor=0.5, preempt=("normal",)),),
    people=(Person(name=UserName("alice"), admin="Operator", uid=2001),),
    no_associations=((UserName("bob"), AccountName("lab"), None),),
    no_qos=("old",),
)
PARTITIONS: list[Event] = [
    PartitionSet(at=5, record=PartitionPatch("a").with_changes({"state": "DOWN", "qos": None})),
    PartitionSet(at=6, record=PartitionPatch("b").with_changes({"allow_groups": ("x", "y")})),
    PartitionGone(at=7, name="a"),
]
BOOTS: list[Event] = [
    BootsSet(at=5, record=FailedBoots(name="ec2:us-east-1,m7i.large", failed=3, since=4, until=9)),
    BootsGone(at=6, actor=0, name="ec2:us-east-1,m7i.large"),
]
FACTS: list[Event] = [
    BookChanged(at=5, actor=0, by="root", action="Add Accounts", change=CHANGE, where="lab"),
    BookChanged(at=6, actor=0, by="root", action="Remove QOS", change=Change(no_qos=("q",))),
]


@pytest.mark.parametrize("kind", ["sql", "memory"])
def test_changes_of_the_book_partitions_and_boots_come_back_in_order(
    kind: str, tmp_path: Path
) -> None:
    text = str(tmp_path / "state.db")
    store = open_store(text, clock=Standing()) if kind == "sql" else MemoryStore()
    with store.transaction(epoch=1) as tx:
        tx.append(list(enumerate([*FACTS, *PARTITIONS, *BOOTS], start=1)))
    assert list(store.book_changes()) == FACTS
    assert list(store.partition_facts()) == PARTITIONS
    assert list(store.boots_facts()) == BOOTS
    if not isinstance(store, MemoryStore):
        store.close()
