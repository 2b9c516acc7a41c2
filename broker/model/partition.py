"""Changes of partitions that are laid over the configuration until it is read anew."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from broker.model.facts import RecordGone, RecordSet
from broker.model.job import Owner
from broker.model.site import Partition, Site

Value = str | int | bool | None | tuple[str, ...] | frozenset[int]
"""What a field of a partition can have."""
SETS = ("allowed_gids",)
"""Fields that are sets; other lists are tuples."""


@dataclass(frozen=True, slots=True)
class PartitionPatch:
    """What differs from the configuration, field by field."""

    name: str
    fields: str = "{}"
    """As JSON, which is a form that events can keep."""

    def with_changes(self, changes: Mapping[str, Value]) -> "PartitionPatch":
        """The same with later changes over it."""
        fields = json.loads(self.fields) | changes
        return PartitionPatch(self.name, json.dumps(fields, default=sorted))

    def over(self, partition: Partition) -> Partition:
        """The partition as it is with them."""
        return replace(partition, **dict(_read(json.loads(self.fields))))


def _read(fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in fields.items():
        whole = frozenset if name in SETS else tuple
        yield name, whole(value) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPartition:
    """`scontrol update partition`: fields of one. Raises Denied, Unknown; repeatable."""

    name: str
    by: Owner
    changes: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSet(RecordSet):
    """A partition differs from the configuration."""

    record: PartitionPatch


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionGone(RecordGone):
    """A partition is as the configuration says again."""


PartitionEvent = PartitionSet | PartitionGone


def laid_over(site: Site, patches: Iterable[PartitionPatch]) -> Site:
    """The site with changed partitions; there is one default, the last that became it."""
    for patch in patches:
        site = _with(site, patch)
    return site


def _with(site: Site, patch: PartitionPatch) -> Site:
    partitions = [patch.over(one) if one.name == patch.name else one for one in site.partitions]
    if json.loads(patch.fields).get("default"):
        partitions = [replace(one, default=one.name == patch.name) for one in partitions]
    return replace(site, partitions=tuple(partitions))
