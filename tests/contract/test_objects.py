"""What every home of objects promises, tried on each: a folder, and a bucket of a mocked S3."""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from broker.model.errors import Refused
from broker.providers.ec2.clients import BotoApi, Reply
from broker.stage.disk import Disk
from broker.stage.objects import PART, Objects, digest_of
from broker.stage.s3 import HOME, Bucket, names, split
from tests.lab.running import CREDENTIALS

LONG = bytes(range(256)) * (2 * PART // 256) + b"end"
HOSTILE = (
    "a/b c",
    "a/\"'$(x)",
    "a/line\nbreak",
    "a/caf\u00e9",
    "a/.hidden",
    "a/x.draft",
    "z/y.sha256",
)


@dataclass
class Cut:
    """S3 whose line is cut before the calls that are named by their number."""

    api: BotoApi = field(default_factory=BotoApi)
    fails: dict[str, int] = field(default_factory=dict)
    """Operation to how many calls of it work before one is lost."""
    calls: list[str] = field(default_factory=list)

    def call(self, service: str, region: str, operation: str, **params: Any) -> Reply:
        left = self.fails.get(operation)
        if left == 0:
            del self.fails[operation]
            raise OSError("connection lost")
        if left is not None:
            self.fails[operation] = left - 1
        self.calls.append(operation)
        return self.api.call(service, region, operation, **params)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cut]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield Cut()


@pytest.fixture
def bucket(cut: Cut) -> Bucket:
    made = Bucket(cut, "site", prefix="below/")
    made.make()
    made.make()
    return made


@pytest.fixture(params=["disk", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "disk":
        return Disk(tmp_path / "objects")
    made: Bucket = request.getfixturevalue("bucket")
    return made


def put(objects: Objects, key: str, data: bytes) -> str | None:
    return objects.put(key, io.BytesIO(data)).sha256


def test_what_was_put_is_read_with_its_hash(objects: Objects) -> None:
    for data in (b"", b"short", LONG):
        assert put(objects, "a/key", data) == sha256(data).hexdigest()
        there = objects.head("a/key")
        assert there is not None
        assert (there.size, there.sha256) == (len(data), sha256(data).hexdigest())
        assert objects.read("a/key") == data


def test_a_piece_is_read_by_offset_and_length(objects: Objects) -> None:
    put(objects, "a", b"0123456789")
    assert objects.read("a", offset=2, length=3) == b"234"
    assert objects.read("a", offset=8) == b"89"
    assert objects.read("a", offset=8, length=9) == b"89"
    assert objects.read("a", offset=10, length=5) == b""
    assert objects.read("a", length=0) == b""


def test_what_is_not_there_is_none_or_not_found(objects: Objects) -> None:
    assert objects.head("a/none") is None
    assert list(objects.found("a")) == []
    put(objects, "a/b/c", b"1")
    for key in ("a/none", "a/b"):
        assert objects.head(key) is None
        with pytest.raises(FileNotFoundError):
            objects.read(key)
    objects.drop(["a/none"])


def test_keys_of_any_characters_are_listed_by_prefix(objects: Objects) -> None:
    for key in HOSTILE:
        put(objects, key, key.encode())
    assert [one.key for one in objects.found("a/")] == sorted(HOSTILE[:-1])
    assert [one.key for one in objects.found()] == sorted(HOSTILE)
    assert {one.key: one.size for one in objects.found()} == {k: len(k.encode()) for k in HOSTILE}
    objects.drop(HOSTILE[:2])
    assert [one.key for one in objects.found()] == sorted(HOSTILE[2:])


@pytest.mark.parametrize("key", ["../a", "a/../../b", "/a", "", "a/"])
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="no key"):
        put(Disk(tmp_path), key, b"")


def test_a_content_that_is_not_what_it_should_be_is_not_kept(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with pytest.raises(OSError, match="not what it was said to be"):
        disk.put("a", io.BytesIO(b"one"), digest=sha256(b"other").hexdigest())
    assert disk.head("a") is None
    assert list(disk.found()) == []


def test_the_same_again_is_not_sent(bucket: Bucket, cut: Cut) -> None:
    put(bucket, "a", b"same")
    cut.calls.clear()
    put(bucket, "a", b"same")
    assert cut.calls == ["head_object"]


def test_an_interrupted_upload_goes_on_behind_its_last_part(bucket: Bucket, cut: Cut) -> None:
    cut.fails["upload_part"] = 2
    with pytest.raises(OSError, match="lost"):
        put(bucket, "a", LONG)
    assert bucket.head("a") is None
    cut.calls.clear()
    put(bucket, "a", LONG)
    assert cut.calls.count("upload_part") == 1
    assert bucket.read("a") == LONG


def test_parts_of_other_bytes_are_given_up(bucket: Bucket, cut: Cut) -> None:
    cut.fails["upload_part"] = 1
    with pytest.raises(OSError, match="lost"):
        put(bucket, "a", LONG)
    other = LONG[::-1]
    put(bucket, "a", other)
    assert bucket.read("a") == other
    assert "abort_multipart_upload" in cut.calls


def test_an_upload_that_began_with_the_same_bytes_does_not_lend_its_hash(
    bucket: Bucket, cut: Cut
) -> None:
    cut.fails["upload_part"] = 1
    with pytest.raises(OSError, match="lost"):
        put(bucket, "a", LONG)
    changed = LONG[:-1] + b"!"
    with pytest.raises(OSError, match="not what was put"):
        put(bucket, "a", changed)
    assert put(bucket, "a", changed) == sha256(changed).hexdigest()
    assert bucket.read("a") == changed


def test_a_bucket_is_removed_with_all_that_is_in_it(bucket: Bucket) -> None:
    for key in ("a", "b/c", "b/d"):
        bucket.put(key, io.BytesIO(b"x"))
    whole = replace(bucket, prefix="")
    assert bucket.name in names(bucket.api)
    for _ in range(2):
        whole.remove()
        assert bucket.name not in names(bucket.api)


def test_a_bucket_tells_its_tags(bucket: Bucket) -> None:
    assert bucket.tags() == {}
    tagging = {"TagSet": [{"Key": "ManagedBy", "Value": "skypurza"}]}
    bucket.api.call("s3", HOME, "put_bucket_tagging", Bucket=bucket.name, Tagging=tagging)
    assert bucket.tags() == {"ManagedBy": "skypurza"}
    assert replace(bucket, name="nowhere").tags() == {}


REFUSALS: tuple[tuple[str, Callable[[Bucket], object]], ...] = (
    ("NoSuchBucket", lambda bucket: put(bucket, "a", b"x")),
    ("NoSuchBucket", lambda bucket: list(bucket.found())),
    ("NoSuchBucket", lambda bucket: bucket.drop(["a"])),
)


@pytest.mark.parametrize(("code", "act"), REFUSALS)
def test_a_definite_no_names_the_bucket(
    cut: Cut, code: str, act: Callable[[Bucket], object]
) -> None:
    with pytest.raises(Refused, match=f"s3://nowhere/.*{code}"):
        act(Bucket(cut, "nowhere"))


def test_urls_are_bucket_and_key() -> None:
    assert split("s3://b/k/l") == ("b", "k/l")
    assert split("s3://b") == ("b", "")


def test_a_digest_is_of_all_and_leaves_the_source_at_its_begin() -> None:
    source = io.BytesIO(b"abc")
    source.read()
    assert digest_of(source) == sha256(b"abc").hexdigest()
    assert source.read() == b"abc"
