"""The resource vector: cpus, memory, nodes and generic resources, added, compared and weighed."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from sbatch_shim.grammar.values import show_scaled

GresCounts = tuple[tuple[str, int], ...]
"""Sorted pairs such as `(("gpu", 2), ("gpu:a10g", 2))`: the untyped sum stands beside each type."""

UNIT_STEP = 1024
UNITS = ("", "K", "M", "G", "T", "P")
GRES = "gres/"
KNOWN = "cpu, mem, node, gres/NAME[:TYPE], license/NAME"
WEIGHT = re.compile(
    r"(cpu|mem|energy|node|billing|fs/disk|vmem|pages|(?:gres|license|bb)/[\w.:+-]+)"
    r"=(\d+(?:\.\d*)?|\.\d+)([KMGTP]?)",
    re.IGNORECASE | re.ASCII,
)


def gres_counts(counts: Mapping[str, int] | Iterable[tuple[str, int]]) -> GresCounts:
    """Counts per gres name, sorted, without zeros, an untyped sum beside each typed name."""
    pairs = dict(counts)
    sums: dict[str, int] = {}
    for name, count in pairs.items():
        base, typed, _ = name.partition(":")
        if typed:
            sums[base] = sums.get(base, 0) + count
    for base, count in sums.items():
        pairs[base] = max(pairs.get(base, 0), count)
    return tuple(sorted((name, count) for name, count in pairs.items() if count))


def _joined(one: GresCounts, other: GresCounts, sign: int) -> GresCounts:
    counts = dict(one)
    for name, count in other:
        counts[name] = counts.get(name, 0) + sign * count
    return tuple(sorted((name, count) for name, count in counts.items() if count))


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
        return Tres(
            cpu=self.cpu + sign * other.cpu,
            mem_mib=self.mem_mib + sign * other.mem_mib,
            node=self.node + sign * other.node,
            gres=_joined(self.gres, other.gres, sign) if other.gres else self.gres,
        )

    def times(self, factor: int) -> "Tres":
        """Each count `factor` times, such as TRES-seconds of a number of seconds."""
        return Tres(
            cpu=self.cpu * factor,
            mem_mib=self.mem_mib * factor,
            node=self.node * factor,
            gres=tuple((name, count * factor) for name, count in self.gres if factor),
        )

    def fits(self, free: "Tres") -> bool:
        """Whether cpus, memory and every gres asked for are within what is free (nodes aside)."""
        have = dict(free.gres)
        return (
            self.cpu <= free.cpu
            and self.mem_mib <= free.mem_mib
            and all(count <= have.get(name, 0) for name, count in self.gres)
        )

    def dominant_share(self, whole: "Tres") -> Fraction:
        """The largest fraction that this takes of any resource of `whole`, exactly."""
        have = dict(whole.gres)
        parts = [(self.cpu, whole.cpu), (self.mem_mib, whole.mem_mib)]
        parts += [(count, have.get(name, 0)) for name, count in self.gres]
        most, of_all = 0, 1
        for count, of in parts:
            if of and count * of_all > most * of:
                most, of_all = count, of
        return Fraction(most, of_all)


NO_TRES = Tres()


def sum_of(parts: Iterable[Tres]) -> Tres:
    """All of them together."""
    return sum(parts, NO_TRES)


def most_of(parts: Iterable[Tres]) -> Tres:
    """Of each resource as much as any of them has."""
    most = NO_TRES
    for one in parts:
        names = dict.fromkeys(name for name, _ in (*most.gres, *one.gres))
        counts = [(n, max(dict(most.gres).get(n, 0), dict(one.gres).get(n, 0))) for n in names]
        most = Tres(
            cpu=max(most.cpu, one.cpu),
            mem_mib=max(most.mem_mib, one.mem_mib),
            node=max(most.node, one.node),
            gres=tuple(sorted(counts)),
        )
    return most


def memory_text(mib: int) -> str:
    """Memory as Slurm shows it in TRES: in the largest unit that is exact to a half (`62.50G`)."""
    return show_scaled(mib, "M")


def by_id(
    tres: Tres, billing: int | None = None, *, memory: Callable[[int], str] = memory_text
) -> str:
    """scontrol's form (25.11), in order of Slurm's ids: `cpu=1,mem=1G,node=1,billing=1,gres/gpu=1`.

    Zero counts are left out; nothing at all is the empty text, for which scontrol prints `(null)`.
    `memory` writes MiB where a command was asked for another unit.
    """
    return ",".join(_shown(tres, billing, memory))


def by_name(
    tres: Tres, billing: int | None = None, *, memory: Callable[[int], str] = memory_text
) -> str:
    """sacct's form (25.11), sorted as text: `billing=5,cpu=1,gres/gpu:a10g=1,gres/gpu=1,mem=1G`."""
    return ",".join(sorted(_shown(tres, billing, memory)))


def _shown(tres: Tres, billing: int | None, memory: Callable[[int], str]) -> list[str]:
    shown = [
        ("cpu", str(tres.cpu) if tres.cpu else ""),
        ("mem", memory(tres.mem_mib) if tres.mem_mib else ""),
        ("node", str(tres.node) if tres.node else ""),
        ("billing", str(billing) if billing else ""),
        *((GRES + name, str(count)) for name, count in tres.gres),
    ]
    return [f"{name}={text}" for name, text in shown if text]


class BillingMode(StrEnum):
    """How weighed counts become one number (Slurm's PriorityFlags MAX_TRES and MAX_TRES_GRES)."""

    SUM = "SUM"
    MAX_TRES = "MAX_TRES"
    MAX_TRES_GRES = "MAX_TRES_GRES"


@dataclass(frozen=True, slots=True)
class Weights:
    """A partition's TRESBillingWeights; memory per MiB, gres by name without `gres/`."""

    cpu: float = 0.0
    mem_mib: float = 0.0
    node: float = 0.0
    gres: tuple[tuple[str, float], ...] = ()


def parse_weights(text: str) -> Weights | None:
    """`CPU=1.0,Mem=0.25G,GRES/gpu=4.0`; names ignore case, None for the empty text.

    A unit says per how much; memory without one is per MiB. What this vector does not count
    (licenses, energy) may be weighed and adds nothing. Raises ValueError naming the part.
    """
    weights = dict(_weight(part.strip()) for part in text.split(",") if part.strip())
    if not weights:
        return None
    return Weights(
        cpu=weights.get("cpu", 0.0),
        mem_mib=weights.get("mem", 0.0),
        node=weights.get("node", 0.0),
        gres=tuple(
            (name.removeprefix(GRES), weight)
            for name, weight in weights.items()
            if name.startswith(GRES)
        ),
    )


def _weight(part: str) -> tuple[str, float]:
    match = WEIGHT.fullmatch(part)
    if match is None:
        raise ValueError(f"TRES weight {part!r}: write NAME=NUMBER with names such as {KNOWN}")
    name, number, unit = match[1].lower(), match[2], match[3].upper()
    if not unit:
        return name, float(number)
    own = UNITS.index("M" if name == "mem" else "")
    return name, float(number) / float(UNIT_STEP) ** (UNITS.index(unit) - own)


def billing(tres: Tres, weights: Weights | None, mode: BillingMode = BillingMode.SUM) -> int:
    """Billing units, cut to a whole number as Slurm does; without weights the number of cpus.

    Floating point on purpose: the cut falls where Slurm's doubles let it fall.
    """
    if weights is None:
        return tres.cpu
    plain = [tres.cpu * weights.cpu, tres.mem_mib * weights.mem_mib, tres.node * weights.node]
    have = dict(tres.gres)
    gres = [have.get(name, 0) * weight for name, weight in weights.gres]
    units = {
        BillingMode.SUM: sum([*plain, *gres]),
        BillingMode.MAX_TRES: max([*plain, *gres]),
        BillingMode.MAX_TRES_GRES: max(plain) + sum(gres),
    }
    return int(units[mode])
