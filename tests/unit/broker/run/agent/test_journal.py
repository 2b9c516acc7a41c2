"""The journal stands whole or not at all."""

import os
from pathlib import Path

import pytest

from broker.run.agent import journal as journals
from broker.run.agent.journal import Journal
from broker.run.records import records


def test_records_are_numbered_through_restarts(tmp_path: Path) -> None:
    path = str(tmp_path / "journal")
    Journal(path).append(
        [{"kind": "accepted", "key": "1/1/batch"}, {"kind": "gone", "attempt": "2/1"}]
    )
    again = Journal(path)
    again.append([{"kind": "exited", "key": "1/1/batch"}])
    found, size = records(Path(path).read_bytes())
    assert [record["seq"] for record in found] == [1, 2, 3]
    assert size == again.size
    assert again.says("1/1/batch", "accepted")
    assert not again.says("1/1/batch", "started")
    assert again.gone == {"2/1"}


@pytest.mark.parametrize("torn", [b"{", b'{"seq":2,"kind":"gone"}', b"\xff\xff"])
def test_what_was_half_written_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "journal"
    Journal(str(path)).append([{"kind": "accepted", "key": "1/1/batch"}])
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    Journal(str(path)).append([{"kind": "exited", "key": "1/1/batch"}])
    assert path.read_bytes().startswith(whole)
    assert [r["seq"] for r in records(path.read_bytes())[0]] == [1, 2]


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(str(path))
    journal.append([{"kind": "accepted", "key": "1/1/batch"}])
    whole, fd = path.read_bytes(), journal.fd
    journal.fd = os.open(path, os.O_RDONLY)
    with pytest.raises(OSError):
        journal.append([{"kind": "exited", "key": "1/1/batch"}])
    journal.fd = fd
    assert path.read_bytes() == whole
    assert (journal.seq, journal.says("k", "exited")) == (1, False)


def test_a_saved_value_comes_back_and_a_torn_one_counts_as_none(tmp_path: Path) -> None:
    path = str(tmp_path / "value")
    assert journals.load(path) is None
    journals.save(path, {"a": 1}, durable=True)
    assert journals.load(path) == {"a": 1}
    Path(path).write_text('{"a":')
    assert journals.load(path) is None
