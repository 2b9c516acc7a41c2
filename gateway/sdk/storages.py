"""Buckets for programs, under the names and with the parameters that `sky` has (0.14)."""

import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from broker.model.errors import Refused
from gateway.sdk import buckets
from gateway.sdk.asked import RequestId
from gateway.sdk.client import Json
from gateway.sdk.sky import ignored, service


class StorageMode(StrEnum):
    """How a bucket is at a node."""

    MOUNT = "MOUNT"
    COPY = "COPY"
    MOUNT_CACHED = "MOUNT_CACHED"


class FileMountType(StrEnum):
    """Settings of a cached mount under a name."""

    MODEL_CHECKPOINT_RO = "MODEL_CHECKPOINT_RO"
    MODEL_CHECKPOINT_RW = "MODEL_CHECKPOINT_RW"
    DATASET_RO = "DATASET_RO"
    DATASET_RW = "DATASET_RW"


class StoreType(StrEnum):
    """Where a bucket is."""

    S3 = "S3"


class Storage(dict[str, Any]):
    """A bucket as `file_mounts` has it: `Task(storage_mounts={"/data": Storage("mine")})`."""

    def __init__(
        self,
        name: str | None = None,
        source: str | Sequence[str] | None = None,
        stores: Sequence[StoreType | str] | None = None,
        persistent: bool = True,
        mode: StorageMode | str = StorageMode.MOUNT,
        sync_on_reconstruction: bool = True,
        mount_cached_config: Mapping[str, Any] | None = None,
        file_mount_type: FileMountType | str | None = None,
        mount_config: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises Refused where neither a name nor a source is given, or a store is not S3."""
        if name is None and source is None:
            raise Refused("a storage needs a name or a source")
        if others := {str(one).upper() for one in stores or ()} - {"S3"}:
            raise Refused(f"stores: {', '.join(sorted(others))}: buckets are in S3 only")
        sources = source if isinstance(source, str | None) else list(source)
        ignored(sync_on_reconstruction=not sync_on_reconstruction)
        config = {"mount_cached": mount_cached_config, "mount": mount_config}
        settings = {key: dict(value) for key, value in config.items() if value is not None}
        kind = None if file_mount_type is None else str(file_mount_type)
        told = {"name": name, "source": sources, "type": kind, "config": settings or None}
        super().__init__({key: value for key, value in told.items() if value is not None})
        self |= {"persistent": persistent, "mode": str(StorageMode(str(mode).upper()))}

    @classmethod
    def from_yaml_config(cls, config: Mapping[str, Any]) -> "Storage":
        """As a task file has it. Raises Refused, TypeError for a key that is none."""
        given = {key: value for key, value in config.items() if key not in WRITTEN}
        store, settings = config.get("store"), config.get("config") or {}
        return cls(
            **given,
            stores=[store] if store else None,
            file_mount_type=config.get("type"),
            mount_cached_config=settings.get("mount_cached"),
            mount_config=settings.get("mount"),
        )


WRITTEN = frozenset({"store", "type", "config"})
"""Keys of a task file that are spelled otherwise by programs."""


def storage_ls() -> RequestId[list[Json]]:
    """The caller's buckets that are there; where that cannot be asked, all that tasks named."""
    told = service().get("/v1/storage")["storages"]
    found = buckets.there(told, warnings.warn)
    return RequestId.done([_record(one) for one in found])


def _record(one: Json) -> Json:
    return {**one, "launched_at": one["updated"], "last_use": one["command"]}


def storage_delete(name: str) -> RequestId[None]:
    """With all that is in it, by the credentials of this process. Raises Unknown, Refused."""
    found = buckets.named(service(), [name])
    buckets.remove((one["name"] for one in found), lambda _: None)
    return RequestId.done(None)
