"""Records for tests of stores: some made by hand, any made by hypothesis from their annotations."""

from dataclasses import MISSING, fields, is_dataclass
from enum import Enum, Flag
from types import UnionType
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from accounting.ids import AccountName, JobId, MicroUsd, UserName
from accounting.ledger import Entry, Kind, Why
from accounting.tres import Tres
from broker.model.ids import NodeName
from broker.model.job import ArrayPlace, Job, JobState, Owner
from broker.model.node import Node, NodeState
from broker.model.spec import TaskSpec, Value

START = 1_700_000_000
LATIN_1 = b"m\xfcller".decode("utf-8", "surrogateescape")
NASTY = f"{LATIN_1}\0\\ud\\n'\";--%_🚀é\n"

FOREIGN_BYTES = "".join(map(chr, range(0xDC80, 0xDD00)))
"""What bytes become that are not UTF-8."""
ANY_TEXT = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from(FOREIGN_BYTES + "\0\\u'\"")),
    max_size=5,
)
BIGINT = st.integers(-(2**63), 2**63 - 1)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: ANY_TEXT,
    int: BIGINT,
    bool: st.booleans(),
    type(None): st.none(),
    JobId: st.integers(0, 2**31 - 1),
}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value that a field of this type may have."""
    if kind in SCALARS:
        return SCALARS[kind]
    if isinstance(kind, NewType):
        return any_of(kind.__supertype__)
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in {Union, UnionType}:
        return st.one_of(*map(any_of, args))
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(any_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(any_of, args))
    return _any_of_class(kind)


def _any_of_class(kind: type) -> st.SearchStrategy[Any]:
    if issubclass(kind, Flag):
        return st.integers(0, sum(each.value for each in kind)).map(kind)
    if issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    types = get_type_hints(kind)
    filled = {name: any_of(types[name]) for name in _names(kind)}
    bare = {name: each for name, each in filled.items() if name in _names(kind, required=True)}
    return st.one_of(st.builds(kind, **bare), st.builds(kind, **filled))


def _names(kind: type, *, required: bool = False) -> list[str]:
    if issubclass(kind, Value):
        rows = [(name, field.is_required()) for name, field in kind.model_fields.items()]
    else:
        assert is_dataclass(kind)
        rows = [
            (field.name, field.default is MISSING and field.default_factory is MISSING)
            for field in fields(kind)
        ]
    return [name for name, needed in rows if needed or not required]


def owner(user: str = "alice", uid: int = 1000) -> Owner:
    return Owner(uid=uid, gid=uid, user=user, group="users")


def job(number: int, **changed: Any) -> Job:
    """A pending job of alice's in partition ec2 unless told otherwise."""
    filled: dict[str, Any] = {
        "id": JobId(number),
        "spec": TaskSpec(name=f"job{number}"),
        "owner": owner(),
        "account": "physics",
        "qos": "normal",
        "partitions": ("ec2",),
        "submitted": START,
        "time_limit": 3600,
        "want": Tres(cpu=1, mem_mib=1024, node=1),
        **changed,
    }
    return Job(**filled)


def ended(number: int, at: int, **changed: Any) -> Job:
    return job(number, state=JobState.COMPLETED, started=START, ended=at, **changed)


def element(number: int, base: int, task: int | None) -> Job:
    return job(number, array=ArrayPlace(base=JobId(base), task=task))


def node(name: str, launch: int = 1, **changed: Any) -> Node:
    filled: dict[str, Any] = {
        "name": NodeName(name),
        "launch": launch,
        "state": NodeState.UP,
        "whole": Tres(cpu=4, mem_mib=8192, node=1),
        "partitions": ("ec2",),
        **changed,
    }
    return Node(**filled)


def entry(key: str, cost: int = 1, *, number: int | None = 1, at: int = START) -> Entry:
    return Entry(
        key=key,
        at=at,
        since=at - 60,
        kind=Kind.CHARGE,
        why=Why.RUN,
        job=None if number is None else JobId(number),
        attempt=1,
        account=AccountName("physics"),
        user=UserName("alice"),
        machine="ec2-1.1",
        cost=MicroUsd(cost),
    )
