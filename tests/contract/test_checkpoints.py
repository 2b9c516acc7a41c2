"""Folders of jobs copied away and put in place again, by the real program on the node's side."""

import io
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from accounting.ids import JobId
from broker.stage.checkpoints import INNER, KEPT, Checkpoints, News, Owned
from broker.stage.disk import Disk
from broker.stage.plan import PART
from broker.stage.saved import Saved
from broker.stage.sides import Side, Where
from tests.contract.test_stage import Elsewhere, Pair

ODD = os.fsdecode(b"caf\xe9\n\"'$(x)")


@dataclass
class Case:
    """A job's folder on a node, and where its checkpoints lie."""

    home: Path
    told: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pair = Pair(self.home)
        self.folder = self.pair.there / "ckpt"
        self.folder.mkdir(parents=True)
        self.store = Disk(self.home / "store")
        self.begin()

    def begin(self) -> None:
        """As after a restart of the service: nothing but the store is known."""
        self.checkpoints = Checkpoints(self.store, lambda: 1_800_000_000, self._tell)

    def _tell(self, owned: Owned, news: News) -> None:
        self.told.append((news.what, news.number))

    @property
    def far(self) -> Elsewhere:
        return self.pair.far

    def owned(self, attempt: int = 1) -> Owned:
        where = Where(f"{self.pair.here}/ckpt", os.getuid(), os.getgid())
        return Owned(JobId(1), "s1", 0, attempt, where)

    def write(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def save(self, *, seconds: float | None = None) -> Saved | None:
        return self.checkpoints.save(self.owned(), self.far, seconds=seconds)

    def restore(self, attempt: int) -> Saved | None:
        return self.checkpoints.restore(self.owned(attempt), self.far)

    def content(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}

    def moved(self) -> int:
        """Streams that were asked for."""
        return self.pair.calls.count("pack")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_the_next_attempt_finds_exactly_what_was_saved(case: Case) -> None:
    case.write("model", os.urandom(2 * PART + 5))
    case.write(f"deep/{ODD}", b"odd")
    case.write("empty", b"")
    (case.folder / "latest").symlink_to("model")
    (case.folder / "script").write_bytes(b"x")
    (case.folder / "script").chmod(0o751)
    before = case.content()
    assert case.save() is not None
    case.write("model", b"half written")
    case.write("torn/later", b"by an attempt that died")
    found = case.restore(2)
    assert found is not None
    assert (found.number, found.attempt) == (1, 1)
    assert case.content() == before
    assert (case.folder / "latest").readlink() == Path("model")
    assert (case.folder / "script").stat().st_mode & 0o777 == 0o751
    assert case.told == [("saved", 1), ("restored", 1)]


def test_an_attempt_restores_once(case: Case) -> None:
    case.write("a", b"1")
    case.save()
    case.restore(2)
    case.write("a", b"2")
    case.begin()
    assert case.restore(2) is None
    assert case.content() == {"a": b"2"}


def test_a_first_attempt_keeps_what_it_has(case: Case) -> None:
    case.write("a", b"of an earlier job")
    assert case.restore(1) is None
    assert case.content() == {"a": b"of an earlier job"}


def test_a_folder_that_is_gone_with_its_machine_is_made_again(case: Case) -> None:
    case.write("a", b"1")
    case.save()
    (case.folder / "a").unlink()
    case.folder.rmdir()
    case.restore(2)
    assert case.content() == {"a": b"1"}


def test_nothing_new_is_no_new_checkpoint(case: Case) -> None:
    assert case.save() is None
    case.write("a", b"1")
    assert case.save() is not None
    moved = case.moved()
    assert case.save() is None
    case.begin()
    assert case.save() is None
    assert case.moved() == moved


def test_only_what_changed_travels(case: Case) -> None:
    case.write("large", os.urandom(PART))
    case.write("small", b"1")
    case.save()
    case.write("small", b"2")
    asked = len(list(case.store.found("s1/0/parts/")))
    case.save()
    assert len(list(case.store.found("s1/0/parts/"))) == asked + 1


def test_a_copy_without_time_goes_on_where_it_stopped(case: Case) -> None:
    for number in range(5):
        case.write(str(number), bytes([number]) * PART)
    rounds = 0
    while case.save(seconds=0.0 if rounds == 0 else 30.0) is None:
        rounds += 1
        assert case.told == []
    assert rounds == 1


def test_a_cut_line_costs_no_part_that_was_brought(case: Case) -> None:
    for number in range(9):
        case.write(str(number), bytes([number]) * PART)
    case.pair.far = replace(case.far, fails_at=lambda nth: nth == 3)
    with pytest.raises(OSError, match="lost"):
        case.save()
    brought = {one.key for one in case.store.found("s1/0/parts/")}
    assert brought
    assert case.restore(2) is None
    case.pair.far = replace(case.far, fails_at=lambda nth: False)
    case.pair.calls.clear()
    assert case.save() is not None
    assert brought < {one.key for one in case.store.found("s1/0/parts/")}
    assert case.moved() == 2


@dataclass(frozen=True, slots=True)
class Busy:
    """A side on which a file is written just before files are asked for."""

    case: Case
    real: Side
    content: bytes

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        if verb == "pack":
            self.case.write("b", self.content)
        return self.real.carry(verb, where, asked)


def test_a_file_that_changes_meanwhile_makes_no_checkpoint(case: Case) -> None:
    case.write("a", b"1")
    case.write("b", b"1")
    real = case.far.side
    case.pair.far = replace(case.far, side=Busy(case, case.far.side, b"2"))
    assert case.save() is None
    assert case.told == []
    case.pair.far = replace(case.far, side=real)
    assert case.save() is not None


def test_what_comes_meanwhile_is_not_of_the_moment_that_is_saved(case: Case) -> None:
    case.write("a", b"1")
    case.pair.far = replace(case.far, side=Busy(case, case.far.side, b"later"))
    found = case.save()
    assert found is not None
    assert list(found.files) == ["a"]


def corrupt_part(case: Case, number: int) -> None:
    record = case.checkpoints._record(case.owned(), number)
    part = sorted(record.parts)[0]
    path = case.store.home / f"s1/0/parts/{part}"
    path.write_bytes(bytes(path.stat().st_size))


def missing_part(case: Case, number: int) -> None:
    record = case.checkpoints._record(case.owned(), number)
    case.store.drop([case.owned().part(sorted(record.parts)[0])])


def torn_record(case: Case, number: int) -> None:
    text = case.store.read(case.owned().record(number))
    case.store.put(case.owned().record(number), io.BytesIO(text[: len(text) // 2]))


def changed_record(case: Case, number: int) -> None:
    text = case.store.read(case.owned().record(number)).replace(b'"a"', b'"../../a"')
    case.store.put(case.owned().record(number), io.BytesIO(text))


@pytest.mark.parametrize("harm", [corrupt_part, missing_part, torn_record, changed_record])
def test_a_corrupt_one_is_put_aside_and_the_one_before_it_used(
    case: Case, harm: Callable[[Case, int], None]
) -> None:
    case.write("a", b"first")
    case.save()
    case.write("a", b"second")
    case.write("b", b"second too")
    case.save()
    harm(case, 2)
    case.begin()
    found = case.restore(2)
    assert found is not None
    assert found.number == 1
    assert case.content() == {"a": b"first"}
    assert case.told[2:] == [("quarantined", 2), ("restored", 1)]
    assert [one.key for one in case.store.found("s1/0/quarantine")] == [
        "s1/0/quarantine/00000002.json"
    ]
    case.write("a", b"third")
    third = case.save()
    assert third is not None
    assert third.number == 3


def test_without_any_whole_one_the_folder_stays(case: Case) -> None:
    case.write("a", b"1")
    case.save()
    torn_record(case, 1)
    case.begin()
    case.write("a", b"2")
    assert case.restore(2) is None
    assert case.content() == {"a": b"2"}


def test_a_part_that_was_corrupt_is_brought_again(case: Case) -> None:
    case.write("a", b"same")
    case.save()
    corrupt_part(case, 1)
    case.begin()
    assert case.restore(2) is None
    assert case.save() is not None
    case.begin()
    assert case.restore(3) is not None


def test_an_interrupted_restore_goes_on(case: Case) -> None:
    for number in range(5):
        case.write(str(number), bytes([number]) * PART)
    before = case.content()
    case.save()
    case.write("0", b"torn")
    case.pair.calls.clear()
    case.pair.far = replace(case.far, fails_at=lambda nth: nth == 5)
    with pytest.raises(OSError, match="lost"):
        case.restore(2)
    assert (case.folder / INNER.format(1)).is_dir()
    case.pair.far = replace(case.far, fails_at=lambda nth: False)
    assert case.restore(2) is not None
    assert case.content() == before


def test_old_ones_and_their_parts_are_dropped(case: Case) -> None:
    for number in range(4):
        case.write("a", b"%d" % number)
        case.save()
    keys = [one.key for one in case.store.found("s1/0/")]
    assert len([key for key in keys if key.endswith(".json")]) == KEPT
    assert len([key for key in keys if "/parts/" in key]) == KEPT
    case.checkpoints.forget("s1")
    assert list(case.store.found("s1")) == []


def test_those_of_jobs_that_are_long_over_are_dropped(case: Case) -> None:
    case.write("a", b"1")
    case.save()
    [written] = {one.at for one in case.store.found("s1/0/parts/")}
    case.checkpoints.tidy(written)
    assert list(case.store.found("s1"))
    case.checkpoints.tidy(written + 5)
    assert list(case.store.found("s1")) == []
