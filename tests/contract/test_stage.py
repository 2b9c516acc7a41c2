"""Folders brought to a node and back by the real program, the node being another root here."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from broker.run.launch import agent_zipapp
from broker.run.local import LocalChannel
from broker.stage.flow import MUCH
from broker.stage.ignore import OF_JOBS, OF_TASKS
from broker.stage.marks import Marks
from broker.stage.plan import PART
from broker.stage.sides import Far, HereError, Near, Side, Where
from broker.stage.sync import Folder, Limits, Sync, TooMuch

ODD = os.fsdecode(b"caf\xe9\n\"'$(x)")


@dataclass(frozen=True)
class Elsewhere:
    """The same program on the same paths below another root; may lose the connection."""

    side: Side
    root: Path
    calls: list[str]
    fails_at: Callable[[int], bool] = lambda nth: False
    streams: bool = False
    """Whether much data goes from process to process."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        self.calls.append(verb)
        if self.fails_at(len(self.calls)):
            raise OSError("connection lost")
        return self.side.carry(verb, self._there(where), asked)

    def words(self, verb: str, where: Where) -> list[str] | None:
        return self.side.words(verb, self._there(where)) if self.streams else None

    def failure(self, where: Where, said: bytes) -> Exception:
        return self.side.failure(where, said)

    def _there(self, where: Where) -> Where:
        return replace(where, path=f"{self.root}{where.path}")


class Pair:
    """A folder here and its copy there."""

    def __init__(self, home: Path, **limits: int) -> None:
        archive = home / "agent.pyz"
        archive.write_bytes(agent_zipapp())
        self.here, self.root = home / "work", home / "node"
        self.here.mkdir()
        self.root.mkdir()
        self.there = Path(f"{self.root}{self.here}")
        self.near = Near(sys.executable, str(archive))
        self.calls: list[str] = []
        self.far = Elsewhere(self.near, self.root, self.calls)
        self.sync = Sync(self.near, Marks(home / "marks"), Limits(**limits))
        where = Where(str(self.here), os.getuid(), os.getgid())
        self.folder = Folder(where, "n1.1", "42")

    def push(self) -> int:
        return self.sync.push(self.folder, self.far).moved

    def pull(self) -> int:
        return self.sync.pull(self.folder, self.far).moved


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def write(path: Path, text: str, *, at: int | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if at is not None:
        os.utime(path, (at, at))


def tree(root: Path) -> dict[str, object]:
    """Paths with content, link or None for a folder; permissions beside files' content."""
    found: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif path.is_dir():
            found[name] = None
        else:
            found[name] = (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
    return found


def filled(here: Path) -> None:
    write(here / "a.txt", "a")
    write(here / "deep/er/b.txt", "b" * 10_000)
    write(here / ODD, "odd")
    write(here / "empty.txt", "")
    (here / "empty").mkdir()
    (here / "link").symlink_to("deep/er/b.txt")
    (here / "dangling").symlink_to("nowhere")
    write(here / "run.sh", "#!/bin/sh\n")
    (here / "run.sh").chmod(0o750)
    (here / "large").write_bytes(os.urandom(PART + 17))


def test_a_folder_arrives_as_it_is(pair: Pair) -> None:
    filled(pair.here)
    pair.push()
    assert tree(pair.there) == tree(pair.here)


def test_a_file_with_holes_arrives_with_holes(pair: Pair) -> None:
    content = b"begin" + bytes(40 << 20) + b"end"
    with (pair.here / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(40 << 20, os.SEEK_CUR)
        file.write(b"end")
    pair.push()
    there = pair.there / "sparse"
    assert there.read_bytes() == content
    assert there.stat().st_blocks * 512 < 1 << 20


def test_only_what_changed_travels(pair: Pair) -> None:
    filled(pair.here)
    pair.push()
    assert pair.push() == 0
    write(pair.here / "a.txt", "another")
    write(pair.here / "new/c.txt", "c")
    assert pair.push() == 3  # the folder of the new one, too
    assert tree(pair.there) == tree(pair.here)


def test_results_come_back_and_nothing_else_is_touched(pair: Pair) -> None:
    filled(pair.here)
    pair.push()
    write(pair.there / "out/result.txt", "42")
    write(pair.there / "a.txt", "changed by the job")
    (pair.there / "run.sh").unlink()
    before = (pair.here / "deep/er/b.txt").stat().st_ino
    assert pair.pull() == 3
    assert (pair.here / "out/result.txt").read_text() == "42"
    assert (pair.here / "a.txt").read_text() == "changed by the job"
    assert (pair.here / "run.sh").exists()
    assert (pair.here / "deep/er/b.txt").stat().st_ino == before
    assert pair.pull() == 0


def test_what_was_changed_here_meanwhile_is_kept_and_theirs_stands_beside_it(pair: Pair) -> None:
    write(pair.here / "a.txt", "first")
    pair.push()
    write(pair.there / "a.txt", "theirs", at=10)
    write(pair.here / "a.txt", "ours", at=20)
    told = pair.sync.pull(pair.folder, pair.far)
    assert told.beside == ["a.txt"]
    assert (pair.here / "a.txt").read_text() == "ours"
    assert (pair.here / "a.txt.spz-42").read_text() == "theirs"
    assert pair.sync.pull(pair.folder, pair.far).beside == []


def test_what_was_taken_away_here_does_not_come_back(pair: Pair) -> None:
    write(pair.here / "a.txt", "a")
    pair.push()
    (pair.here / "a.txt").unlink()
    assert pair.pull() == 0
    assert not (pair.here / "a.txt").exists()


def test_two_jobs_of_one_folder_do_not_undo_each_others_results(pair: Pair) -> None:
    write(pair.here / "a.txt", "a")
    pair.push()
    write(pair.there / "a.txt", "the first job's")
    pair.push()
    assert (pair.there / "a.txt").read_text() == "the first job's"
    assert pair.pull() == 1


def test_same_content_with_another_time_does_not_travel(pair: Pair, tmp_path: Path) -> None:
    for number in range(9):
        write(pair.here / f"{number}.txt", "same", at=10)
        write(pair.there / f"{number}.txt", "same", at=20)
    assert pair.push() == 0
    assert pair.calls == ["arrive", "digest"]
    assert pair.push() == 0
    assert pair.calls[2:] == ["arrive"]
    write(pair.there / "3.txt", "more", at=30)
    assert pair.pull() == 1


def test_an_interrupted_transfer_goes_on_where_it_stopped(pair: Pair) -> None:
    filled(pair.here)
    (pair.here / "large").write_bytes(os.urandom(5 * PART + 17))
    seen: list[int] = []

    def lost(nth: int) -> bool:
        seen.append(nth)
        return nth == 4

    broken = Elsewhere(pair.near, pair.root, [], lost)
    with pytest.raises(OSError, match="connection lost"):
        pair.sync.push(pair.folder, broken)
    told = pair.sync.push(pair.folder, pair.far)
    assert told.size < 2 * PART + 20_000
    assert tree(pair.there) == tree(pair.here)


def test_what_is_ignored_stays(pair: Pair) -> None:
    filled(pair.here)
    write(pair.here / ".spzignore", "# data\nbig/\n*.tmp\n!keep.tmp\n")
    for name in ("big/x", "sub/big/y", "a.tmp", "keep.tmp"):
        write(pair.here / name, name)
    pair.push()
    assert not (pair.there / "big").exists()
    assert not (pair.there / "sub/big").exists()
    assert not (pair.there / "a.tmp").exists()
    assert (pair.there / "keep.tmp").exists()
    write(pair.there / "job.tmp", "x")
    pair.pull()
    assert not (pair.here / "job.tmp").exists()


TREE = (
    *("build/a", "src/build/a", "keep.log", "x.log", "src/x.log", "src/gen/a", "src/gen/keep"),
    *("docs/gen/a", "secret", "src/deep/only", "only", ".git/HEAD", "od[d]/tmp", "odd/tmp"),
)
GIT = {
    ".gitignore": "build/\n*.log\n!keep.log\n",
    ".git/info/exclude": "secret\n",
    "src/.gitignore": "# made\ngen/*\n!gen/keep\n!x.log\n/deep/only\n",
    "od[d]/.gitignore": "tmp\n",
}


@pytest.mark.parametrize(
    ("rules", "files", "left_out"),
    [
        (OF_JOBS, GIT, set()),
        (
            OF_TASKS,
            GIT,
            {
                "build/a",
                "src/build/a",
                "x.log",
                "src/gen/a",
                "secret",
                "src/deep/only",
                "od[d]/tmp",
            },
        ),
        (OF_TASKS, {**GIT, ".skyignore": ""}, set()),
        (OF_TASKS, {**GIT, ".skyignore": "/only\nsrc/**\n!src/gen\n"}, None),
        (OF_TASKS, {".skyignore": "*.log", ".spzignore": "secret"}, {"secret"}),
    ],
)
def test_tasks_leave_out_what_skypilot_and_git_would(
    pair: Pair, rules: tuple[str, ...], files: dict[str, str], left_out: set[str] | None
) -> None:
    for name in TREE:
        write(pair.here / name, name)
    for name, text in files.items():
        write(pair.here / name, text)
    pair.folder = replace(pair.folder, rules=rules)
    pair.push()
    there = {name for name in TREE if (pair.there / name).exists()}
    if left_out is None:
        assert "only" not in there
        assert {"src/deep/only", "src/x.log"}.isdisjoint(there)
        return
    assert set(TREE) - there == left_out


def test_git_itself_would_leave_out_the_same(pair: Pair) -> None:
    if shutil.which("git") is None:
        pytest.skip("no git here")
    run = partial(subprocess.run, cwd=pair.here, check=True, capture_output=True, text=True)
    run(["git", "init", "-q"])
    names = [name for name in TREE if not name.startswith(".git")]
    for name in names:
        write(pair.here / name, name)
    for name, text in GIT.items():
        write(pair.here / name, text)
    left = run(["git", "-c", "core.quotePath=false", "ls-files", "-o", "-i", "--exclude-standard"])
    pair.folder = replace(pair.folder, rules=OF_TASKS)
    pair.push()
    there = {name for name in names if (pair.there / name).exists()}
    assert set(names) - there == set(left.stdout.splitlines())


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"size": 9}, "0.0 GiB, at most"), ({"files": 1}, "2 files, at most 1")],
)
def test_too_much_is_refused_by_name(tmp_path: Path, limits: dict[str, int], words: str) -> None:
    pair = Pair(tmp_path, **limits)
    write(pair.here / "a", "a" * 10)
    write(pair.here / "b", "b" * 10)
    with pytest.raises(TooMuch, match=words) as refused:
        pair.push()
    assert ".spzignore" in str(refused.value.hint)
    assert list(pair.there.iterdir() if pair.there.exists() else ()) == []


def test_a_folder_that_is_not_there_is_named(pair: Pair) -> None:
    pair.here.rmdir()
    with pytest.raises(FileNotFoundError) as missing:
        pair.push()
    assert missing.value.filename == str(pair.here)


def test_lost_marks_lose_no_file(pair: Pair, tmp_path: Path) -> None:
    filled(pair.here)
    pair.push()
    pair.sync.marks.forget("n1.1")
    write(pair.there / "a.txt", "theirs", at=5)
    told = pair.sync.pull(pair.folder, pair.far)
    assert told.beside == ["a.txt"]
    assert (pair.here / "a.txt").read_text() == "a"


@pytest.mark.root
def test_files_are_read_and_written_as_their_user(short_tmp: Path) -> None:
    pair = Pair(short_tmp)
    os.chown(pair.here, 12345, 12345)
    pair.root.chmod(0o777)
    where = Where(str(pair.here), 12345, 12345)
    pair.folder = replace(pair.folder, where=where)
    write(pair.here / "secret", "root's")
    (pair.here / "secret").chmod(0o600)
    told = pair.sync.push(pair.folder, pair.far)
    assert "secret" in told.failed
    write(pair.there / "result", "x")
    pair.pull()
    assert (pair.here / "result").stat().st_uid == 12345
    pair.here.chmod(0o500)
    os.chown(pair.here, 0, 0)
    with pytest.raises(HereError):
        pair.pull()


def test_a_pipe_or_socket_is_not_replaced_by_what_comes(pair: Pair) -> None:
    pair.push()
    for side in (pair.here, pair.there):
        os.mkfifo(side / "pipe")
    (pair.there / "pipe").unlink()
    write(pair.there / "pipe", "theirs")
    pair.pull()
    assert (pair.here / "pipe").is_fifo()
    assert (pair.here / "pipe.spz-42").read_text() == "theirs"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who makes folders for others")
def test_a_users_link_does_not_lead_root_where_the_user_may_not_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(agent_zipapp())
    (tmp_path / "roots").mkdir(mode=0o755)
    (tmp_path / "users").symlink_to("roots")
    os.chown(tmp_path / "users", 4321, 4321, follow_symlinks=False)
    near = Near(sys.executable, str(archive))
    with pytest.raises(HereError, match="Permission denied"):
        near.carry("make", Where(f"{tmp_path}/users/new", 4321, 4321))
    near.carry("make", Where(f"{tmp_path}/roots/new", 4321, 4321))
    assert [path.stat().st_uid for path in (tmp_path / "roots").iterdir()] == [4321]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who makes folders for others")
def test_where_files_are_shared_root_makes_no_folder_for_anybody(tmp_path: Path) -> None:
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(agent_zipapp())
    far = Far(LocalChannel(lambda: True), sys.executable, str(archive), shared=True)
    with pytest.raises(HereError, match="Permission denied"):
        far.carry("make", Where(f"{tmp_path}/new", 4321, 4321))
    assert list(tmp_path.iterdir()) == [archive]


@pytest.mark.parametrize("size", [5, PART + 1])
def test_a_name_as_long_as_a_name_may_be_arrives_and_stands_beside(pair: Pair, size: int) -> None:
    name = "é" * 127 + "n"
    write(pair.here / name, "x" * size)
    (pair.here / ("l" * 255)).symlink_to("nowhere")
    assert pair.push() == 2
    write(pair.here / name, "mine")
    write(pair.there / name, "theirs")
    pair.pull()
    assert (pair.here / name).read_text() == "mine"
    assert [path.read_text() for path in pair.here.glob("*.spz-42")] == ["theirs"]


def test_a_long_file_of_a_long_name_goes_on_where_it_stopped(pair: Pair) -> None:
    name = "n" * 255
    write(pair.here / name, "x" * (5 * PART))
    fails = replace(pair.far, fails_at=lambda nth: pair.calls.count("unpack") == 2)
    with pytest.raises(OSError, match="connection lost"):
        pair.sync.push(pair.folder, fails)
    assert any(path.stat().st_size for path in pair.there.iterdir())
    assert pair.push() == 1
    assert (pair.there / name).stat().st_size == 5 * PART


@dataclass(frozen=True)
class Cut:
    """A side whose streams end early, as those of a connection that is lost."""

    side: Side
    after: int
    """Bytes."""
    code: int
    """How the command ends then."""

    def carry(self, verb: str, where: Where, asked: bytes = b"") -> bytes:
        return self.side.carry(verb, where, asked)

    def words(self, verb: str, where: Where) -> list[str] | None:
        argv = self.side.words(verb, where)
        script = f'"$@" | head -c {self.after}; exit {self.code}'
        return None if argv is None else ["/bin/sh", "-c", script, "sh", *argv]

    def failure(self, where: Where, said: bytes) -> Exception:
        return self.side.failure(where, said)


@pytest.fixture
def streaming(tmp_path: Path) -> Pair:
    """A pair between which much data goes from process to process."""
    pair = Pair(tmp_path)
    pair.far = replace(pair.far, streams=True)
    (pair.here / "large").write_bytes(os.urandom(MUCH))
    return pair


def test_much_data_goes_from_process_to_process_both_ways(streaming: Pair) -> None:
    (streaming.here / ODD).write_bytes(b"small")
    assert streaming.push() == 2
    assert "unpack" not in streaming.calls
    assert (streaming.there / "large").read_bytes() == (streaming.here / "large").read_bytes()
    (streaming.there / "large").write_bytes(os.urandom(MUCH + 1))
    assert streaming.pull() == 1
    assert (streaming.there / "large").read_bytes() == (streaming.here / "large").read_bytes()
    assert streaming.pull() == streaming.push() == 0


@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_stream_that_ends_early_goes_on_behind_its_last_piece(streaming: Pair, code: int) -> None:
    whole, cut = streaming.sync, Cut(streaming.near, PART + PART // 2, code)
    streaming.sync = replace(whole, near=cut)
    if code:
        with pytest.raises(HereError):
            streaming.push()
    else:
        assert streaming.push() == 0
    assert not (streaming.there / "large").exists()
    streaming.sync = whole
    assert streaming.push() == 1
    told = streaming.sync.push(streaming.folder, streaming.far)
    assert (told.moved, told.failed) == (0, {})
    assert (streaming.there / "large").read_bytes() == (streaming.here / "large").read_bytes()


def test_the_last_words_of_a_side_that_fails_are_told(streaming: Pair) -> None:
    class Full(Near):
        def words(self, verb: str, where: Where) -> list[str]:
            return ["/bin/sh", "-c", "echo the disk is full >&2; exit 3"]

    there = Full(streaming.near.python, streaming.near.archive)
    streaming.far = replace(streaming.far, side=there)
    with pytest.raises(HereError, match="the disk is full"):
        streaming.push()
