"""Every record comes back from its text as it was, and old texts still load."""

import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given

from accounting.ids import JobId
from accounting.ledger import Entry
from accounting.tres import Tres
from broker.model.events import Event, JobEvent, Queued
from broker.model.job import Job, JobFlag, JobState
from broker.model.node import Node
from broker.model.nodeevents import NodeEvent
from broker.model.spec import TaskSpec
from gateway.store import records
from gateway.store.codec import codec
from tests.contract.records import NASTY, START, any_of, job


@given(any_of(Job))
def test_any_job_comes_back(record: Job) -> None:
    text = records.job_text(record)
    assert text.isascii()
    assert records.job(text, records.spec_text(record.spec)) == record


@given(any_of(TaskSpec))
def test_any_spec_comes_back(spec: TaskSpec) -> None:
    assert records.spec(records.spec_text(spec)) == spec


@given(any_of(Node))
def test_any_node_comes_back(record: Node) -> None:
    assert records.node(records.node_text(record)) == record


@given(any_of(Entry))
def test_any_entry_comes_back(record: Entry) -> None:
    assert records.entry(records.entry_text(record)) == record


@pytest.mark.parametrize("kind", [*get_args(JobEvent), *get_args(NodeEvent)])
def test_any_event_comes_back(kind: type[Event]) -> None:
    @given(any_of(kind))
    def comes_back(event: Event) -> None:
        spec = records.event_spec(event)
        text = records.event_text(event)
        again = records.event(
            kind.__name__, text, None if spec is None else records.spec_text(spec)
        )
        assert again == event
        assert type(again) is kind

    comes_back()


def test_jobs_written_in_turn_keep_their_own_owner_and_what_they_ask_for() -> None:
    one = job(1)
    bob = replace(one.owner, user="bob", uid=2002)
    other = replace(one, owner=bob, want=Tres(cpu=7))
    for record in (one, other, other, one):
        text = records.job_text(record)
        assert records.job(text, records.spec_text(record.spec)) == record


def test_what_is_as_usual_is_left_out() -> None:
    doc = json.loads(records.job_text(job(7)))
    assert "state" not in doc
    assert "spec" not in doc
    assert doc["want"] == {"cpu": 1, "mem_mib": 1024, "node": 1}


def test_enums_and_flags_go_by_name() -> None:
    record = job(7, state=JobState.RUNNING, flags=JobFlag.CONFIGURING | JobFlag.REQUEUED)
    doc = json.loads(records.job_text(record))
    assert (doc["state"], doc["flags"]) == ("RUNNING", "CONFIGURING|REQUEUED")


def test_a_record_from_before_a_field_existed_loads_with_its_default() -> None:
    text = records.job_text(job(7, choice="cheapest"))
    assert records.job(text.replace(',"choice":"cheapest"', ""), '{"name":"job7"}') == job(7)


def test_a_job_and_its_first_event_name_the_same_spec_once() -> None:
    spec = TaskSpec(name=NASTY)
    event = Queued(job=JobId(1), at=START, record=job(1, spec=spec))
    assert records.event_spec(event) == spec
    assert "name" not in json.loads(records.event_text(event))["record"]


def test_a_type_without_a_json_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no JSON form"):
        codec(bytes)
    with pytest.raises(TypeError, match="more than one member"):
        codec(Tres | JobFlag)
