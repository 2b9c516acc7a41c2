"""Buckets for programs, under the names and with the parameters that `sky` has (0.14)."""

import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from broker.model.errors import Refused
from gateway.sdk import buckets
from gateway.sdk.asked import RequestId
from gateway.sdk.client import Json
from gateway.sdk.sky import service


class StorageMode(StrEnum):
    """How a bucket is at a node."""

    MOUNT = "MOUNT"
    COPY = "COPY"
    MOUNT_CACHED = "MOUNT_CACHED"


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
    ) -> None:
        """Raises Refused where neither a name nor a source is given, or a store is not S3."""
        if name is None and source is None:
            raise Refused("a storage needs a name or a source")
        if others := {str(one).upper() for one in stores or ()} - {"S3"}:
            raise Refused(f"stores: {', '.join(sorted(others))}: buckets are in S3 only")
        sources = source if isinstance(source, str | None) else list(source)
        told = {"name": name, "source": sources}
        super().__init__({key: value for key, value in told.items() if value is not None})
        self |= {"persistent": persistent, "mode": str(StorageMode(str(mode).upper()))}

    @classmethod
    def from_yaml_config(cls, config: Mapping[str, Any]) -> "Storage":
        """As a task file has it. Raises Refused, TypeError for a key that is none."""
        given = {key: value for key, value in config.items() if key != "store"}
        store = config.get("store")
        return cls(**given, stores=[store] if store else None)


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
