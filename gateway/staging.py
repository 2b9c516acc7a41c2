"""Files of jobs joined: the ways between login node and machines, and where checkpoints lie."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import structlog

from accounting.ids import JobId
from broker.engine import Engine
from broker.model.errors import Refused
from broker.model.events import Event, Released
from broker.model.job import Job, JobState
from broker.model.node import Node
from broker.model.nodeevents import NodeGone
from broker.model.recovery import ArtifactsDone, CheckpointDone
from broker.model.reports import Report
from broker.providers.ec2.clients import BotoApi
from broker.run.launch import agent_zipapp
from broker.stage.checkpoints import Checkpoints, News, Owned
from broker.stage.courier import Courier, Outputs
from broker.stage.disk import Disk
from broker.stage.marks import Marks
from broker.stage.mounts import Mounts
from broker.stage.objects import Objects
from broker.stage.s3 import SCHEME, Bucket, names, split
from broker.stage.sides import Near, Side
from broker.stage.sync import Limits, Sync
from broker.stage.through import Through
from broker.stage.upkeep import Upkeep, of
from gateway.config.paths import Paths
from gateway.config.settings import Config, Elastic
from gateway.observe.callbacks import Callbacks, caller
from gateway.translate.environment import unpack

DAY = 86_400
THROUGH = "s3"
"""The way of a partition's files."""
NEAR_PYTHON = "/usr/bin/python3"
"""Every user of the login node can run it, which the service's own need not be."""


@dataclass(slots=True)
class Staging:
    """Files of jobs, and what is kept of them as long as somebody may need it."""

    files: Courier
    checkpoints: Checkpoints
    jobs: Callable[[], Mapping[JobId, Job]]
    """As committed facts left them; asked in the engine's thread alone."""
    days: int
    callbacks: Callbacks
    _done: "SimpleQueue[Callable[[], None]]" = field(default_factory=SimpleQueue)
    _next: float = 0.0

    def hear(self, facts: Sequence[Event]) -> None:
        """Hears of jobs that need their checkpoints no more, of machines that are gone, and of what
        scripts of users are told."""
        self.callbacks.tell(facts, self.jobs())
        for fact in facts:
            if isinstance(fact, NodeGone):
                self._done.put(partial(self.files.forget, fact.node, fact.launch))
            elif isinstance(fact, Released):
                job = self.jobs().get(fact.job)
                if job and job.spec.checkpoint and job.state is JobState.COMPLETED:
                    self._done.put(partial(self.checkpoints.forget, job.sluid))

    def tidy(self) -> None:
        """Called now and then: drops what was heard of, once a day what nobody came back for."""
        while not self._done.empty():
            self._done.get()()
        now = time.time()
        if now >= self._next:
            self._next = now + DAY
            self.checkpoints.tidy(int(now) - self.days * DAY)


def staging(
    paths: Paths,
    config: Config,
    engine: Engine,
    *,
    outputs: Outputs,
    report: Callable[[Report], None],
) -> Staging:
    """Files to and from nodes, each with its user's rights. Raises OSError."""
    archive = paths.home / "carry.pyz"
    archive.write_bytes(agent_zipapp())
    archive.chmod(0o644)
    log = structlog.get_logger()

    def tell(owned: Owned, news: News) -> None:
        report(
            CheckpointDone(
                job=owned.id,
                attempt=owned.attempt,
                what=news.what,
                number=news.number,
                detail=news.text,
            )
        )

    limits = Limits(config.aws.sync_gb << 30, config.aws.sync_files)
    sync = Sync(Near(NEAR_PYTHON, str(archive)), Marks(paths.home / "stage"), limits)
    store = objects(paths, config)
    kept = Checkpoints(store, tell=tell)
    upkeep = Upkeep(
        kept,
        fetch_every=lambda node: _fetch_every(config, node),
        mounts=Mounts(sync, buckets(config), of),
        fetched=lambda job, found: report(
            ArtifactsDone(job=job.id, attempt=job.attempt, results=found)
        ),
        log=log,
    )
    files = Courier(sync, lambda: engine.snapshot.jobs, outputs, log, upkeep, way(config, store))
    callbacks = Callbacks(engine.store.blob, unpack, run=caller(NEAR_PYTHON, str(archive)), log=log)
    # A snapshot for each step would copy the tables that `Seen` does not.
    return Staging(files, kept, lambda: engine.world.jobs, config.checkpoint_days, callbacks)


def way(config: Config, store: Objects) -> Callable[[Node, Side], Side]:
    """How files go to a node, by its partition. Raises Refused for a bucket that is not named."""
    named = [part for part in config.partitions if part.elastic and part.elastic.files == THROUGH]
    if named and not isinstance(store, Bucket):
        raise Refused(
            f"partition {named[0].name}: files: s3 needs a bucket",
            hint="objects: s3://BUCKET/PREFIX",
        )

    def to(node: Node, far: Side) -> Side:
        elastic = elastic_of(config, node)
        if elastic is None or elastic.files != THROUGH or not isinstance(store, Bucket):
            return far
        return Through(far, store)

    return to


def _fetch_every(config: Config, node: Node) -> int:
    elastic = elastic_of(config, node)
    return 0 if elastic is None else elastic.fetch_seconds


def objects(paths: Paths, config: Config) -> Objects:
    """Where checkpoints lie: a bucket, or a folder, by default one of the service's own."""
    where = config.objects
    if where is None:
        return Disk(paths.home / "objects")
    if not where.startswith(SCHEME):
        return Disk(Path(where))
    name, key = split(where)
    return Bucket(api_of(config), name, f"{key.rstrip('/')}/" if key else "")


def api_of(config: Config) -> BotoApi:
    """AWS as the configuration says how it is reached."""
    return BotoApi(endpoint_url=config.aws.endpoint_url, profile=config.aws.profile)


def users_buckets() -> set[str]:
    """Names of those that the credentials of the environment see. Raises Refused, OSError."""
    return names(BotoApi())


def made_for_a_task(name: str) -> bool:
    """Whether a task made the bucket: it says so itself. Raises Refused, OSError."""
    return Bucket(BotoApi(), name).tags().get("ManagedBy") == "skypurza"


def remove_bucket(name: str) -> None:
    """With all that is in it, by those credentials. Raises Refused, OSError."""
    Bucket(BotoApi(), name).remove()


def buckets(config: Config) -> Callable[[str, Job], tuple[Objects, str]]:
    """From a URL of a job to what it is of; buckets that are not configured are refused."""
    api = api_of(config)

    def bucket(url: str, job: Job) -> tuple[Objects, str]:
        name, key = split(url)
        may = [one.replace("%u", job.owner.user).rstrip("/") for one in config.buckets]
        led = {".", ".."} & set(key.split("/"))  # what a library on the way may take for a path
        if led or not any(f"{name}/{key}/".startswith(f"{one}/") for one in may):
            listed = ", ".join(SCHEME + one for one in may) or "none is"
            raise Refused(f"{url}: not of a bucket that is configured", hint=f"buckets: {listed}")
        return Bucket(api, name), key

    return bucket


def elastic_of(config: Config, node: Node) -> Elastic | None:
    """The settings of a machine that was bought."""
    parts = (part.elastic for part in config.partitions if part.elastic is not None)
    found = (one for one in parts if node.name.startswith(one.name_prefix))
    return None if node.declared else next(found, None)
