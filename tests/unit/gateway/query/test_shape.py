"""Records as JSON and YAML: compiled text says what the plain values say."""

import json

import pytest

from gateway.query import yaml
from gateway.query.context import Context
from gateway.query.documents import NEWEST, Asker, Kind, document
from gateway.query.restjob import JOB_KIND
from gateway.query.restnode import NODE_KIND, PARTITION_KIND
from gateway.query.restpast import PAST_KIND
from gateway.query.shape import (
    ANY,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    ZERO,
    Leaf,
    Shape,
    compiled,
    dump,
    plain,
)
from gateway.query.tresnames import FIXED, numbers
from tests.unit.gateway.query.history import history
from tests.unit.gateway.query.records import NOON, SITE
from tests.unit.gateway.query.scene import queue

CTX = Context(now=NOON, site=SITE, tres_ids=numbers(FIXED))
BY = Asker(("squeue", "--json"), "alice", "alice")


def test_json_of_a_record_says_what_its_plain_values_say() -> None:
    for kind, records in ((JOB_KIND, queue()), (PAST_KIND, history())):
        tree = kind.of(NEWEST)
        for record in records:
            text = compiled(tree).json(record, CTX)
            assert json.loads(text) == plain(tree, record, CTX), record.spec.name


def test_json_is_written_as_a_plain_dump_would_be() -> None:
    tree = JOB_KIND.of(NEWEST)
    for job in queue():
        assert compiled(tree, 2).json(job, CTX) == dump(plain(tree, job, CTX), 2)


VALUES: tuple[tuple[Shape, object, object], ...] = (
    (TEXT, None, ""),
    (TEXT, 'a "b"\n', 'a "b"\n'),
    (TEXT, "50%/x", "50%/x"),
    (TEXT, "caf\udce9", "caf?"),
    (COUNT, None, 0),
    (FLAG, 1, True),
    (NUMBER, None, {"set": False, "infinite": False, "number": 0}),
    (NUMBER, "UNLIMITED", {"set": False, "infinite": True, "number": 0}),
    (NUMBER, 0, {"set": True, "infinite": False, "number": 0}),
    (ZERO, None, {"set": True, "infinite": False, "number": 0}),
    (ANY, [], []),
    (ANY, {"a": [1.5, None]}, {"a": [1.5, None]}),
)


@pytest.mark.parametrize(("shape", "value", "shown"), VALUES)
def test_a_value_stands_in_its_shape(shape: Shape, value: object, shown: object) -> None:
    tree = {"100%": {"key": Leaf(lambda one, _: one, shape)}}
    assert plain(tree, value, CTX) == {"100%": {"key": shown}}
    assert json.loads(compiled(tree).json(value, CTX)) == {"100%": {"key": shown}}


def test_empty_lists_take_two_lines() -> None:
    assert dump({"a": [], "b": {}}) == '{\n  "a": [\n  ],\n  "b": {\n  }\n}'


def test_older_versions_lack_what_came_later() -> None:
    old, new = JOB_KIND.of("v0.0.41"), JOB_KIND.of(NEWEST)
    assert {"step_id", "submit_line", "stdout_expanded"} <= new.keys() - old.keys()
    assert {"oversubscribe", "exclusive", "minimum_switches"} <= old.keys() - new.keys()


def test_an_answer_tells_who_asked_what() -> None:
    told = json.loads(document(JOB_KIND, queue()[:1], CTX, asker=BY, more={"last_update": 1}))
    assert list(told) == ["jobs", "last_update", "meta", "errors", "warnings"]
    assert told["meta"]["command"] == ["squeue", "--json"]
    assert told["meta"]["slurm"]["version"] == {"major": "25", "micro": "7", "minor": "11"}
    assert told["meta"]["plugin"]["data_parser"] == "data_parser/v0.0.44"


@pytest.mark.parametrize("kind", [PARTITION_KIND])
def test_partitions_are_whole_json(kind: Kind) -> None:
    told = json.loads(document(kind, SITE.partitions, CTX, asker=BY))
    assert [part["name"] for part in told["partitions"]] == [part.name for part in SITE.partitions]
    assert "flags" not in told["partitions"][0]
    assert NODE_KIND.name == "nodes"


YAML = {
    "jobs": [{"name": "a: b", "n": 1, "f": 0.5, "ok": True, "none": None, "empty": "", "list": []}],
    "tail": ["x", "it's"],
}


def test_yaml_has_a_tag_before_every_value() -> None:
    assert yaml.document(YAML) == (
        "%YAML 1.1\n--- !!map\n"
        "!!str jobs: !!seq\n"
        "- !!map\n"
        "  !!str name: !!str 'a: b'\n"
        "  !!str n: !!int 1\n"
        "  !!str f: !!float 0.500000\n"
        "  !!str ok: !!bool true\n"
        "  !!str none: !!null null\n"
        "  !!str empty: !!str\n"
        "  !!str list: !!seq []\n"
        "!!str tail: !!seq\n"
        "- !!str x\n"
        "- !!str it's\n"
        "...\n"
    )
