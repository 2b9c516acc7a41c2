"""Where checkpoints lie, and which buckets jobs may name."""

from pathlib import Path
from typing import cast

import pytest

from accounting.ids import JobId
from broker.engine import Engine
from broker.model.errors import Refused
from broker.model.events import Released, Waits
from broker.model.ids import Digest
from broker.model.job import Job
from broker.model.site import Site
from broker.providers.ec2.clients import BotoApi
from broker.stage.disk import Disk
from broker.stage.s3 import Bucket
from broker.stage.sides import Side
from broker.stage.through import Through
from broker.world import World
from gateway.config.load import load
from gateway.config.paths import Paths
from gateway.config.site import site
from gateway.staging import buckets, elastic_of, objects, staging, way
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


class Unseen:
    """An engine at whose snapshot nobody may look: to make one copies all jobs."""

    def __init__(self, *jobs: Job) -> None:
        self.world = World(Site())
        self.world.load(jobs, ())
        self.store = self

    def blob(self, digest: Digest) -> bytes:
        raise NotImplementedError


def test_facts_are_heard_without_a_snapshot(tmp_path: Path) -> None:
    """The engine's thread tells each step of them, however many jobs there are."""
    paths = Paths(tmp_path, (), False, tmp_path / "socket", "")
    engine = cast(Engine, Unseen(records.job(1)))
    staged = staging(
        paths, load(""), engine, outputs=lambda job, node: (), report=lambda report: None
    )
    staged.hear([Released(job=JobId(1), at=1), Waits(job=JobId(1), at=1, reason="Priority")])


def test_the_settings_of_a_machine_are_those_of_its_name() -> None:
    config = load("partitions: [{name: p, elastic: {name_prefix: 'big-', fetch_seconds: 7}}]")
    found = elastic_of(config, records.node("big-1"))
    assert found is not None
    assert found.fetch_seconds == 7
    assert elastic_of(config, records.node("ec2-1")) is None
    assert elastic_of(config, records.node("big-1", declared=True)) is None


def test_machines_mount_before_the_partitions_own_lines_and_declared_nodes_do_not() -> None:
    text = """
nodes: [{names: n1, cpus: 4, real_memory: 8000}]
partitions:
  - name: p
    nodes: n1
    setup: echo ready
    elastic:
      provider: ec2
      files: shared
      mounts: ["fs-1.efs:/ /home nfs4 nfsvers=4.1,hard", "fsx:/a;b /scratch lustre"]
"""
    made = site(load(text), service_uid=0, uid_of=lambda _: None, price_of=lambda _: None)
    partition = made.partitions[0]
    assert partition.setup_of(bought=False) == "echo ready"
    assert partition.setup_of(bought=True) == (
        "mkdir -p /home\n"
        "mountpoint -q /home || mount -t nfs4 -o nfsvers=4.1,hard fs-1.efs:/ /home\n"
        "mkdir -p /scratch\n"
        "mountpoint -q /scratch || mount -t lustre 'fsx:/a;b' /scratch\n"
        "echo ready"
    )


@pytest.mark.parametrize("line", ["", "nfs:/", "nfs:/ home nfs", "a /b c d e f g"])
def test_what_is_no_line_of_fstab_is_refused(line: str) -> None:
    with pytest.raises(Refused, match="not a line of fstab"):
        load(f"partitions: [{{name: p, elastic: {{mounts: ['{line}']}}}}]")


def test_files_through_a_bucket_need_one(tmp_path: Path) -> None:
    config = load("partitions: [{name: p, elastic: {name_prefix: 'p-', files: s3}}]")
    with pytest.raises(Refused, match="partition p: files: s3 needs a bucket"):
        way(config, Disk(tmp_path))
    to, far = way(config, Bucket(BotoApi(), "b")), cast(Side, object())
    assert isinstance(to(records.node("p-1"), far), Through)
    assert to(records.node("other-1"), far) is far
