"""Paths and objects that jobs bring and fetch beside their directories, by the real program."""

import io
import os
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import pytest

from broker.model.errors import Refused
from broker.model.job import Job
from broker.model.recovery import Artifact, Fetched
from broker.model.spec import Mount
from broker.stage.disk import Disk
from broker.stage.mounts import Mounts, Visit, apart, from_buckets, uses_buckets
from broker.stage.objects import Objects
from broker.stage.plan import PART
from broker.stage.s3 import split
from broker.stage.upkeep import of
from tests.contract import records
from tests.contract.test_stage import Pair

NODE = "n1.1"


@dataclass
class Case:
    """A job's directory here and on a node, and a folder in the place of a bucket."""

    home: Path

    def __post_init__(self) -> None:
        self.pair = Pair(self.home)
        self.store = Disk(self.home / "bucket")
        self.mounts = Mounts(self.pair.sync, self.bucket, of)

    def bucket(self, url: str, job: Job) -> tuple[Objects, str]:
        return self.store, split(url)[1]

    def keep(self, key: str, data: bytes) -> None:
        self.store.put(key, io.BytesIO(data))

    def kept(self) -> dict[str, bytes]:
        return {one.key: self.store.read(one.key) for one in self.store.found()}

    def visit(self, *, files: str = "", results: str = "", shared: bool = False) -> Visit:
        """Of a job with one mount each, as `SOURCE TARGET`; `.` is its directory."""
        spec = records.job(1).spec.model_copy(
            update={
                "cwd": str(self.pair.here),
                "files": self.mount(files),
                "results": self.mount(results),
            }
        )
        me = replace(records.owner(), uid=os.getuid(), gid=os.getgid())
        return Visit(replace(records.job(1), spec=spec, owner=me), NODE, self.pair.far, shared)

    def mount(self, text: str) -> tuple[Mount, ...]:
        if not text:
            return ()
        source, target = (
            one if one.startswith("s3:") else os.path.normpath(f"{self.pair.here}/{one}")
            for one in text.split()
        )
        return (Mount(source=source, target=target),)

    def there(self) -> dict[str, bytes]:
        found = (path for path in self.pair.root.rglob("*") if path.is_file())
        top = self.pair.there.parent
        return {str(path.relative_to(top)): path.read_bytes() for path in found}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def test_a_folder_of_a_bucket_is_brought_once(case: Case) -> None:
    large = os.urandom(PART + 1)
    for key, data in {"set/a": b"1", "set/deep/b": large, "set/": b"", "setting": b"0"}.items():
        if not key.endswith("/"):
            case.keep(key, data)
    visit = case.visit(files="s3://b/set data")
    case.mounts.bring(visit)
    assert case.there() == {"work/data/a": b"1", "work/data/deep/b": large}
    moved = case.pair.calls.count("unpack")
    case.mounts.bring(visit)
    assert case.pair.calls.count("unpack") == moved


def test_one_object_is_brought_under_its_name(case: Case) -> None:
    case.keep("deep/key", b"1")
    case.mounts.bring(case.visit(files="s3://b/deep/key ../other/name"))
    assert case.there() == {"other/name": b"1"}


def test_what_is_not_there_is_refused_by_name(case: Case) -> None:
    with pytest.raises(Refused, match="there is nothing to bring"):
        case.mounts.bring(case.visit(files="s3://b/none data"))
    with pytest.raises(Refused, match="there is nothing to bring"):
        case.mounts.bring(case.visit(files="../none ../none"))


def test_no_key_leads_out_of_the_folder(case: Case) -> None:
    class Hostile(Disk):
        def found(self, prefix: str = ""):  # type: ignore[no-untyped-def]
            return (replace(one, key="set/../../../evil") for one in super().found(prefix))

        def head(self, key: str):  # type: ignore[no-untyped-def]
            return super().head("set/a") if "evil" in key else super().head(key)

        def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
            return b"1"

    case.store = Hostile(case.home / "bucket")
    case.keep("set/a", b"1")
    with pytest.raises(Refused, match="leads out of the folder"):
        case.mounts.bring(case.visit(files="s3://b/set data"))
    assert case.there() == {}


def test_a_path_beside_the_directory_goes_and_comes_back(case: Case) -> None:
    beside = case.pair.here.parent / "beside"
    (beside / "deep").mkdir(parents=True)
    (beside / "deep" / "in").write_text("in")
    (case.pair.here.parent / "not asked for").write_text("stays")
    visit = case.visit(files="../beside ../beside", results="../beside ../beside")
    case.mounts.bring(visit)
    assert case.there() == {"beside/deep/in": b"in"}
    (case.pair.there.parent / "beside" / "out").write_text("out")
    assert case.mounts.fetch(visit) == Fetched()
    assert (beside / "out").read_text() == "out"


def test_nothing_travels_to_nodes_that_share_but_objects(case: Case) -> None:
    case.keep("key", b"1")
    case.mounts.bring(case.visit(files="../none ../none", shared=True))
    case.mounts.bring(case.visit(files="s3://b/key data", shared=True))
    assert case.there() == {"work/data": b"1"}


@pytest.mark.parametrize(
    ("path", "url", "keys"),
    [
        ("out", "s3://b/run", {"run/a", "run/deep/b"}),
        ("out", "s3://b/run/", {"run/a", "run/deep/b"}),
        ("out", "s3://b", {"a", "deep/b"}),
        ("out/a", "s3://b/run/it", {"run/it"}),
        ("out/a", "s3://b/run/", {"run/a"}),
    ],
)
def test_results_are_put_into_a_bucket(case: Case, path: str, url: str, keys: set[str]) -> None:
    large = os.urandom(PART + 1)
    (case.pair.there / "out" / "deep").mkdir(parents=True)
    (case.pair.there / "out" / "a").write_bytes(b"1")
    (case.pair.there / "out" / "deep" / "b").write_bytes(large)
    visit = case.visit(results=f"{path} {url}")
    found = case.mounts.fetch(visit).stored
    assert set(case.kept()) == keys
    assert {one.url for one in found} == {f"s3://b/{key}" for key in keys}
    assert Artifact(f"s3://b/{min(keys)}", 1, sha256(b"1").hexdigest()) in found
    assert case.mounts.fetch(visit) == Fetched()


def test_a_name_that_is_no_text_stays_where_it_is_and_the_others_are_put(case: Case) -> None:
    (case.pair.there / "out").mkdir(parents=True)
    (case.pair.there / "out" / "a").write_bytes(b"1")
    Path(os.fsdecode(os.fsencode(case.pair.there) + b"/out/b\xff")).write_bytes(b"2")
    found = case.mounts.fetch(case.visit(results="out s3://b/run"))
    assert case.kept() == {"run/a": b"1"}
    assert found.failed == (r"s3://b/run: out/b\xff: a key is UTF-8, which this name is not",)


def test_of_the_whole_directory_what_was_brought_is_no_result(case: Case) -> None:
    (case.pair.here / "in").write_text("in")
    (case.pair.here / "both").write_text("in")
    visit = case.visit(results=". s3://b/run")
    case.pair.push()
    case.mounts.bring(visit)
    (case.pair.there / "both").write_text("changed")
    (case.pair.there / "new").write_text("new")
    case.mounts.fetch(visit)
    assert set(case.kept()) == {"run/both", "run/new"}
    with pytest.raises(Refused, match="which the node shares"):
        case.mounts.bring(replace(visit, shared=True))


def test_what_comes_from_buckets_does_not_go_back_into_the_directory(case: Case) -> None:
    job = case.visit(files="s3://b/set data").job
    assert from_buckets(job) == ("data",)
    assert uses_buckets(job)
    case.keep("set/a", b"1")
    case.mounts.bring(case.visit(files="s3://b/set data"))
    (case.pair.there / "result").write_text("1")
    folder = replace(case.pair.folder, apart=from_buckets(job))
    assert case.pair.sync.pull(folder, case.pair.far).moved == 1
    assert not (case.pair.here / "data").exists()
    assert apart(NODE) != NODE
