"""What is purged when: by the configuration's ages every hour, or as sacctmgr's archive asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broker.ports import Clock
from gateway.config.settings import Config
from gateway.store.sql import SqlStore


@dataclass(frozen=True, slots=True)
class Aging:
    """Ages in seconds by kind of record; `folder` keeps what goes, None keeps nothing."""

    store: SqlStore
    clock: Clock
    cluster: str
    ages: Mapping[str, int]
    folder: Path | None

    def __call__(self) -> Mapping[str, int]:
        """Purges by the configured ages; rows by kind. Raises OSError, Busy."""
        return self.dump(self.ages, self.folder)

    def dump(self, ages: Mapping[str, int], folder: Path | None) -> Mapping[str, int]:
        """Purges by these ages, into that folder or the configured one. Raises OSError, Busy."""
        where, now = folder or self.folder, self.clock.now()
        return {
            kind: self.store.purge(kind, now - age, archive=where, cluster=self.cluster)
            for kind, age in ages.items()
        }

    def load(self, path: Path) -> int:
        """Puts an archive's rows back. Raises OSError, ValueError, Busy."""
        return self.store.load_archive(path)


def aging(store: SqlStore, clock: Clock, config: Config) -> Aging:
    """As it is configured."""
    settings = config.accounting
    ages = {
        "job": settings.purge_job_after,
        "step": settings.purge_step_after,
        "event": settings.purge_event_after,
        "ledger": settings.purge_ledger_after,
        "usage": settings.purge_usage_after,
        "resv": settings.purge_resv_after,
        "txn": settings.purge_txn_after,
    }
    folder = None if settings.archive_dir is None else Path(settings.archive_dir)
    return Aging(store, clock, config.cluster, {k: age for k, age in ages.items() if age}, folder)
