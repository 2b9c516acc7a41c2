"""Where checkpoints lie, and which buckets jobs may name."""

from pathlib import Path

import pytest

from broker.model.errors import Refused
from broker.stage.disk import Disk
from broker.stage.s3 import Bucket
from gateway.config.load import load
from gateway.config.paths import Paths
from gateway.staging import buckets, elastic_of, objects
from tests.contract import records

MAY: tuple[tuple[list[str], str, bool], ...] = (
    (["data"], "s3://data", True),
    (["data"], "s3://data/k", True),
    (["data"], "s3://database/k", False),
    (["data/in"], "s3://data/in/k", True),
    (["data/in/"], "s3://data/in", True),
    (["data/in"], "s3://data/input/k", False),
    (["data/in"], "s3://data/k", False),
    (["data/%u"], "s3://data/alice/k", True),
    (["data/%u"], "s3://data/bob/k", False),
    (["data/%u"], "s3://data/alice/../bob/k", False),
    (["other", "data"], "s3://data/k", True),
    ([], "s3://data/k", False),
)


@pytest.mark.parametrize(("configured", "url", "may"), MAY)
def test_jobs_may_name_the_buckets_that_are_configured(
    configured: list[str], url: str, may: bool
) -> None:
    bucket, job = buckets(load(f"buckets: {configured}")), records.job(1)
    if may:
        found, key = bucket(url, job)
        assert isinstance(found, Bucket)
        assert f"s3://{found.name}/{key}".rstrip("/") == url
    else:
        with pytest.raises(Refused, match="not of a bucket that is configured"):
            bucket(url, job)


def test_checkpoints_lie_where_the_site_says(tmp_path: Path) -> None:
    paths = Paths(tmp_path, (), False, tmp_path / "socket", "")
    assert objects(paths, load("")) == Disk(tmp_path / "objects")
    assert objects(paths, load("objects: /data/kept")) == Disk(Path("/data/kept"))
    found = objects(paths, load("objects: s3://site/kept/"))
    assert isinstance(found, Bucket)
    assert (found.name, found.prefix) == ("site", "kept/")


def test_the_settings_of_a_machine_are_those_of_its_name() -> None:
    config = load("partitions: [{name: p, elastic: {name_prefix: 'big-', fetch_seconds: 7}}]")
    found = elastic_of(config, records.node("big-1"))
    assert found is not None
    assert found.fetch_seconds == 7
    assert elastic_of(config, records.node("ec2-1")) is None
    assert elastic_of(config, records.node("big-1", declared=True)) is None
