"""The resource vector: cpus, memory, nodes and generic resources, added, compared and weighed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GresCounts = tuple[tuple[str, int], ...]
"""Sorted pairs such as `(("gpu", 2), ("gpu:a10g", 2))`: the untyped sum stands beside each type."""


def gres_counts(counts: Mapping[str, int] | Iterable[tuple[str, int]]) -> GresCounts:
    """Counts per gres name, sorted, zero counts dropped, an untyped sum added for each typed name."""
    pairs = dict(counts)
    sums: dict[str, int] = {}
    for name, count in pairs.items():
        base, typed, _ = name.partition(":")
        if typed:
            sums[base] = sums.get(base, 0) + count
    for base, count in sums.items():
        pairs[base] = max(pairs.get(base, 0), count)
    return tuple(sorted((name, count) for name, count in pairs.items() if count))


@dataclass(frozen=True, slots=True)
class Tres:
    """What a job asks for, holds or a node has; memory in MiB."""

    cpu: int = 0
    mem_mib: int = 0
    node: int = 0
    gres: GresCounts = ()

    def __add__(self, other: "Tres") -> "Tres":
        return self._with(other, 1)

    def __sub__(self, other: "Tres") -> "Tres":
        return self._with(other, -1)

    def _with(self, other: "Tres", sign: int) -> "Tres":
        gres = dict(self.gres)
        for name, count in other.gres:
            gres[name] = gres.get(name, 0) + sign * count
        return Tres(
            cpu=self.cpu + sign * other.cpu,
            mem_mib=self.mem_mib + sign * other.mem_mib,
            node=self.node + sign * other.node,
            gres=tuple(sorted((name, count) for name, count in gres.items() if count)),
        )

    def fits(self, free: "Tres") -> bool:
        """Whether cpus, memory and every gres asked for are within what is free (nodes aside)."""
        have = dict(free.gres)
        return (
            self.cpu <= free.cpu
            and self.mem_mib <= free.mem_mib
            and all(count <= have.get(name, 0) for name, count in self.gres)
        )

    def dominant_share(self, whole: "Tres") -> float:
        """The largest fraction that this takes of any resource of `whole`, between 0 and 1."""
        have = dict(whole.gres)
        parts = [self.cpu / whole.cpu if whole.cpu else 0.0]
        parts.append(self.mem_mib / whole.mem_mib if whole.mem_mib else 0.0)
        parts += [count / have[name] for name, count in self.gres if have.get(name)]
        return max(parts)
