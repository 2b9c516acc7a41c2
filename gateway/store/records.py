"""The text in which each kind of record is kept: JSON in ASCII, so that any string survives.

Lone surrogates (bytes that were not UTF-8) and U+0000 are escapes in it, which both databases take.
"""

import json
from functools import lru_cache
from typing import Any, get_args

from pydantic_core import PydanticSerializationError, from_json, to_json

from accounting.ledger import Entry
from broker.model.events import Event, Queued
from broker.model.job import Job
from broker.model.node import Node
from broker.model.spec import TaskSpec
from broker.model.tally import Charge
from gateway.store.codec import Codec, Turn, record

SPECS_AT_HAND = 128
"""How many specs that were read are shared by the jobs that have them."""

SURROGATE = r"\ud"
"""Begins what pydantic's readers refuse where it stands alone."""

_slow_text = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_slow_value = json.JSONDecoder().decode


def _text(doc: dict[str, Any]) -> str:
    """By pydantic's writer, at a third of the time, where it takes all of the strings."""
    try:
        return to_json(doc, ensure_ascii=True).decode("ascii")
    except PydanticSerializationError:
        return _slow_text(doc)


def _value(text: str) -> Any:
    return _slow_value(text) if SURROGATE in text else from_json(text)


def _both(codec: Codec) -> tuple[Turn, Turn]:
    assert codec.dump is not None
    assert codec.load is not None
    return codec.dump, codec.load


_dump_job, _load_job = _both(record(Job))
_dump_node, _load_node = _both(record(Node))
_dump_entry, _load_entry = _both(record(Entry))
_dump_charge, _load_charge = _both(record(Charge))
EVENTS: dict[str, type[Event]] = {kind.__name__: kind for kind in get_args(Event)}
_DUMP_EVENT = {kind: _both(record(kind))[0] for kind in EVENTS.values()}
_LOAD_EVENT = {name: _both(record(kind))[1] for name, kind in EVENTS.items()}


def spec_text(spec: TaskSpec) -> str:
    return _text(spec.model_dump(exclude_defaults=True))


@lru_cache(SPECS_AT_HAND)
def spec(text: str) -> TaskSpec:
    """The spec; lately read ones are the same object."""
    if SURROGATE in text:
        return TaskSpec.model_validate(_value(text))
    return TaskSpec.model_validate_json(text)


def job_text(job: Job) -> str:
    """The record without its spec, which is kept apart."""
    return _text(_dump_job(job))


def job(text: str, spec_text: str) -> Job:
    loaded: Job = _load_job(_with_spec(_value(text), spec_text))
    return loaded


def node_text(node: Node) -> str:
    return _text(_dump_node(node))


def node(text: str) -> Node:
    loaded: Node = _load_node(_value(text))
    return loaded


def charge_text(charge: Charge) -> str:
    return _text(_dump_charge(charge))


def charge(text: str) -> Charge:
    loaded: Charge = _load_charge(_value(text))
    return loaded


def entry_text(entry: Entry) -> str:
    return _text(_dump_entry(entry))


def entry(text: str) -> Entry:
    loaded: Entry = _load_entry(_value(text))
    return loaded


def event_text(event: Event) -> str:
    """The fact without its kind and, if it brings a job's record, without that one's spec."""
    return _text(_DUMP_EVENT[type(event)](event))


def event_spec(event: Event) -> TaskSpec | None:
    """What `event_text` leaves out."""
    return event.record.spec if isinstance(event, Queued) else None


def event(kind: str, text: str, spec_text: str | None) -> Event:
    doc = _value(text)
    if spec_text is not None:
        _with_spec(doc["record"], spec_text)
    loaded: Event = _LOAD_EVENT[kind](doc)
    return loaded


def _with_spec(doc: dict[str, Any], text: str) -> dict[str, Any]:
    doc["spec"] = spec(text)
    return doc
