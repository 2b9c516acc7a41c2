"""What a store finds by a heterogeneous job's leader, and what it keeps of reservations."""

from pathlib import Path

import pytest

from accounting.ids import JobId
from broker.model.ids import NodeName
from broker.model.job import HetPlace, JobState
from broker.model.reservation import Reservation, ReservationGone, ReservationSet
from broker.ports import HistoryQuery
from gateway.store.sql import open_store
from tests.contract.records import START, job
from tests.sim.memory_store import MemoryStore
from tests.unit.gateway.store.conftest import Standing

RECORD = Reservation("one", START, START + 60, (NodeName("ec2-1"),), users=("alice",), purge=5)
FACTS = [
    ReservationSet(at=5, actor=0, record=RECORD),
    ReservationSet(at=6, actor=0, record=Reservation("two", 1, 2, (), flags=("DAILY",))),
    ReservationGone(at=7, actor=0, name="one"),
]


def component(number: int, base: int, *, over: bool = True) -> object:
    place = HetPlace(base=JobId(base), offset=number - base, size=3)
    return job(number, het=place, state=JobState.COMPLETED, started=START, ended=START + 1)


@pytest.mark.parametrize(
    ("asked", "found"),
    [((10,), [10, 11, 12]), ((11,), [11]), ((10, 12), [10, 11, 12]), ((14,), [14]), ((1,), [])],
)
def test_a_leader_finds_all_components_of_its_job(
    tmp_path: Path, asked: tuple[int, ...], found: list[int]
) -> None:
    store = open_store(str(tmp_path / "state.db"), clock=Standing())
    with store.transaction(epoch=0) as tx:
        tx.save_jobs([component(number, 10) for number in (10, 11, 12)])  # type: ignore[misc]
        tx.save_jobs([job(13), job(14, admin_comment='"het":')])
    query = HistoryQuery(jobs=tuple(map(JobId, asked)))
    assert [one.id for one in store.history.jobs(query)] == found
    assert [one.id for one in store.jobs_named(list(query.jobs))] == found
    store.close()


@pytest.mark.parametrize("kind", ["sql", "memory"])
def test_facts_of_reservations_come_back_in_their_order(kind: str, tmp_path: Path) -> None:
    text = str(tmp_path / "state.db")
    store = open_store(text, clock=Standing()) if kind == "sql" else MemoryStore()
    with store.transaction(epoch=1) as tx:
        tx.append(list(enumerate(FACTS, start=1)))
    assert list(store.reservation_facts()) == FACTS
    if not isinstance(store, MemoryStore):
        store.close()
