"""A node may send anything: nothing outside the folder changes, and nobody's memory is filled."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from broker.run.agent.packed import LONGEST_LINE, MOST_TAKEN
from broker.stage.sides import HereError, Where
from tests.contract.test_stage import Elsewhere, Pair, tree, write

SENT = {"kind": "f", "size": 1, "mtime": 1, "mode": 0o644, "target": None}
SENT |= {"offset": 0, "length": 1, "expect": None, "tag": "1"}


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def sent(pair: Pair, path: str, **header: object) -> str:
    """What becomes of a piece of one byte."""
    line = json.dumps({**SENT, "path": path, **header}).encode()
    said = pair.near.carry("unpack", pair.folder.where, b"-" + line + b"\nx")
    return str(json.loads(said)[path])


def test_links_do_not_lead_out_of_the_folder(pair: Pair, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (pair.here / "out").symlink_to(outside)
    pair.there.mkdir(parents=True)
    write(pair.there / "out/stolen.txt", "x")
    told = pair.sync.pull(pair.folder, pair.far)
    assert "out/stolen.txt" in told.failed
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", ".", "a/\0b"])
def test_names_that_lead_out_are_refused(pair: Pair, path: str, tmp_path: Path) -> None:
    assert "leads out of the folder" in sent(pair, path)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("folder", "header"),
    [
        (".a.spz-1", {"mtime": "1/../../x"}),
        (".a.spz-1", {"mtime": "1/../../x", "size": 9}),
        ("a.spz-1", {"tag": "1/../../x", "expect": ["l", 0, 0]}),
    ],
)
def test_nor_do_the_names_that_are_made_for_what_comes(
    pair: Pair, folder: str, header: dict[str, object], tmp_path: Path
) -> None:
    (pair.here / folder).mkdir()
    (pair.here / "a").symlink_to("there")
    assert "leads out of the folder" in sent(pair, "a", **header)
    assert not (tmp_path / "x").exists()


def test_what_a_link_leads_to_keeps_its_mode_and_time(pair: Pair, tmp_path: Path) -> None:
    outside = tmp_path / "private"
    write(outside, "", at=7)
    outside.chmod(0o600)
    (pair.here / "a").symlink_to(outside)
    looks = {"expect": ["l", 0, 0], "expect_target": str(outside)}
    assert sent(pair, "a", same=True, **looks, mode=0o666, mtime=9).startswith("error: ")
    found = outside.stat()
    assert (found.st_mode & 0o7777, found.st_mtime) == (0o600, 7)


def test_no_program_comes_that_runs_with_its_owners_rights(pair: Pair) -> None:
    assert sent(pair, "new", mode=0o6755) == "done"
    write(pair.here / "old", "x", at=5)
    looks = ["f", 1, 5 * 10**9]
    assert sent(pair, "old", same=True, expect=looks, mode=0o6755, mtime=6 * 10**9) == "done"
    assert sent(pair, "folder", kind="d", mode=0o7777) == "done"
    modes = [(pair.here / name).stat().st_mode & 0o7777 for name in ("new", "old", "folder")]
    assert modes == [0o755, 0o755, 0o777]
    assert (pair.here / "old").stat().st_mtime == 6


def test_a_file_that_nobody_may_read_gets_its_mode_too(pair: Pair) -> None:
    write(pair.here / "shut", "x", at=5)
    (pair.here / "shut").chmod(0)
    looks = ["f", 1, 5 * 10**9]
    assert sent(pair, "shut", same=True, expect=looks, mode=0o640) == "done"
    assert (pair.here / "shut").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    "stream",
    [
        json.dumps({**SENT, "path": "a", "length": MOST_TAKEN + 1}).encode() + b"\nx",
        json.dumps({**SENT, "path": "a", "length": -1}).encode() + b"\nx",
        bytes(2 * LONGEST_LINE),
    ],
)
def test_what_would_fill_the_memory_is_not_taken(pair: Pair, stream: bytes, packed: bool) -> None:
    whole = b"z" + zlib.compress(stream) if packed else b"-" + stream
    with pytest.raises(HereError):
        pair.near.carry("unpack", pair.folder.where, whole)
    assert not any(pair.here.iterdir())


@dataclass(frozen=True)
class Telling(Elsewhere):
    """A node that lists what it was told to leave out."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        every = json.dumps({"lines": []}).encode()
        return super().carry(verb, where, every if verb == "list" else asked)


def test_what_stays_at_home_is_not_taken_from_a_node_that_tells_of_it(pair: Pair) -> None:
    write(pair.here / ".spzignore", "*.key\n/data/\n")
    for name in ("a.key", "data/b", "c"):
        write(pair.here / name, "ours")
        write(pair.there / name, "theirs", at=9)
    write(pair.there / "data/deep/new", "theirs")
    told = pair.sync.pull(pair.folder, Telling(pair.near, pair.root, []))
    assert (told.moved, told.beside, told.failed) == (0, ["c"], {})
    assert sorted(tree(pair.here)) == [".spzignore", "a.key", "c", "c.spz-42", "data", "data/b"]
