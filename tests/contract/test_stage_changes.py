"""What becomes of paths that changed since last time: their kind, mode or time, or both sides."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from broker.stage.marks import Marks
from broker.stage.plan import CONFLICT, Entry, Mark
from broker.stage.sync import WORTH_ASKING, Told
from tests.contract.test_stage import Pair, tree, write

Change = Callable[[Path], None]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def pulled(pair: Pair) -> Told:
    return pair.sync.pull(pair.folder, pair.far)


def pushed(pair: Pair) -> Told:
    return pair.sync.push(pair.folder, pair.far)


def links(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


# ---------------------------------------------------------------- content that is there already


def test_a_mode_alone_travels_without_the_content(pair: Pair) -> None:
    write(pair.here / "tool", "#!/bin/sh\n")
    pair.push()
    (pair.here / "tool").chmod(0o755)
    told = pushed(pair)
    assert (told.moved, told.size, told.failed) == (1, 0, {})
    assert tree(pair.there) == tree(pair.here)
    (pair.there / "tool").chmod(0o700)
    told = pulled(pair)
    assert (told.moved, told.size) == (1, 0)
    assert tree(pair.there) == tree(pair.here)
    assert pair.push() == pair.pull() == 0


def test_of_a_large_file_that_was_only_touched_the_time_travels(pair: Pair) -> None:
    (pair.here / "large").write_bytes(os.urandom(WORTH_ASKING))
    pair.push()
    os.utime(pair.here / "large", (1, 1))
    told = pushed(pair)
    assert (told.moved, told.size) == (1, 0)
    assert tree(pair.there) == tree(pair.here)


def test_a_large_file_of_the_same_size_and_another_content_travels(pair: Pair) -> None:
    (pair.here / "large").write_bytes(os.urandom(WORTH_ASKING))
    pair.push()
    (pair.there / "large").write_bytes(os.urandom(WORTH_ASKING))
    assert pulled(pair).size == WORTH_ASKING
    assert tree(pair.there) == tree(pair.here)


def test_what_changed_since_it_was_compared_gets_no_others_time(pair: Pair) -> None:
    (pair.here / "large").write_bytes(os.urandom(WORTH_ASKING))
    pair.push()
    os.utime(pair.here / "large", (1, 1))

    def changed(nth: int) -> bool:
        if pair.calls[-1] == "unpack":
            write(pair.there / "large", "the job's, just now")
        return False

    told = pair.sync.push(pair.folder, replace(pair.far, fails_at=changed))
    assert told.failed == {"large": "it changed meanwhile"}
    assert (pair.there / "large").read_text() == "the job's, just now"


# ---------------------------------------------------------------- other kinds


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("file", "folder"),
        ("file", "link"),
        ("link", "file"),
        ("link", "folder"),
        ("folder", "link"),
        ("folder", "file"),
        ("link", "other link"),
    ],
)
def test_a_path_may_become_of_another_kind(pair: Pair, before: str, after: str) -> None:
    made: dict[str, Change] = {
        "file": lambda path: write(path, "text"),
        "folder": Path.mkdir,
        "link": lambda path: path.symlink_to("nowhere"),
        "other link": lambda path: path.symlink_to("elsewhere"),
    }
    made[before](pair.here / "x")
    pair.push()
    if before == "folder":
        (pair.here / "x").rmdir()
    else:
        (pair.here / "x").unlink()
    made[after](pair.here / "x")
    if after == "folder":
        write(pair.here / "x/inner", "text")
    assert pushed(pair).failed == {}
    assert tree(pair.there) == tree(pair.here)
    assert pair.push() == pair.pull() == 0


def test_a_folder_with_something_in_it_gives_way_to_nothing(pair: Pair) -> None:
    write(pair.here / "x/kept", "text")
    pair.push()
    shutil.rmtree(pair.here / "x")
    write(pair.here / "x", "a file now")
    assert pushed(pair).failed == {"x": "Directory not empty"}
    assert list(tree(pair.there)) == ["x", "x/kept"], "and no draft is left"


# ---------------------------------------------------------------- changed on both sides


@pytest.mark.parametrize("lost", [False, True])
def test_what_was_kept_once_is_kept_whatever_the_job_still_writes(pair: Pair, lost: bool) -> None:
    write(pair.here / "a", "first")
    pair.push()
    write(pair.here / "a", "ours", at=5)
    for number, text in enumerate(("theirs", "theirs again"), 10):
        write(pair.there / "a", text, at=number)
        if lost:
            pair.sync.marks.forget("n1.1")
        assert pulled(pair).beside == ["a"]
        assert pair.push() == 0, "nor is the job's own replaced"
        assert pulled(pair).beside == []
        assert (pair.here / "a").read_text() == "ours"
        assert (pair.here / "a.spz-42").read_text() == text
    write(pair.here / "a", "ours, after a look at theirs", at=20)
    assert pair.push() == 1


def test_a_link_that_was_changed_here_is_kept_too(pair: Pair) -> None:
    (pair.here / "latest").symlink_to("run-1")
    pair.push()
    links(pair.here / "latest", "ours")
    links(pair.there / "latest", "theirs")
    assert pulled(pair).beside == ["latest"]
    assert (pair.here / "latest").readlink() == Path("ours")
    assert (pair.here / "latest.spz-42").readlink() == Path("theirs")


def test_what_could_not_be_put_beside_is_tried_again(pair: Pair) -> None:
    write(pair.here / "a", "first")
    pair.push()
    write(pair.here / "a", "ours", at=5)
    write(pair.there / "a", "theirs", at=10)
    (pair.here / "a.spz-42").mkdir()
    assert pulled(pair).failed == {"a": "Is a directory"}
    (pair.here / "a.spz-42").rmdir()
    assert pulled(pair).beside == ["a"]
    assert list(tree(pair.here)) == ["a", "a.spz-42"]


def test_marks_of_what_was_kept_come_back(tmp_path: Path) -> None:
    one, other = Entry("f", 1, 2, 3, None), Entry("f", 4, 5, 6, None)
    kept = {"a": Mark(one, other, kept=True), "b": Mark(one, other)}
    Marks(tmp_path).save("n.1", "/w", kept)
    assert Marks(tmp_path).load("n.1", "/w") == kept
    assert kept["a"].turned() == Mark(other, CONFLICT)
    assert kept["b"].turned() == Mark(other, one)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "travels"),
    [
        ("data.spz-set", True),
        ("a.spz-1.txt", True),
        ("a.spz-", True),
        ("a.spz-17", False),
        (".a.spz--5", False),
    ],
)
def test_only_names_of_our_own_stay_at_home(pair: Pair, name: str, travels: bool) -> None:
    write(pair.here / name, "text")
    pair.push()
    assert (pair.there / name).exists() is travels
