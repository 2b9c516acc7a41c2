"""The resource vector: cpus, memory, nodes and generic resources, added, compared and weighed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

GresCounts = tuple[tuple[str, int], ...]
"""Sorted pairs such as `(("gpu", 2), ("gpu:a10g", 2))`: the untyped sum stands beside each type."""

UNIT_STEP = 1024
MEMORY_UNITS = "MGTP"


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
        return max(Fraction(count, of) if of else Fraction(0) for count, of in parts)


NO_TRES = Tres()


def memory_text(mib: int) -> str:
    """Memory as Slurm shows it in TRES: in the largest unit that is exact to a half (`62.50G`)."""
    halves, unit = 2 * mib, 0
    while halves >= 2 * UNIT_STEP and halves % UNIT_STEP == 0 and unit < len(MEMORY_UNITS) - 1:
        halves, unit = halves // UNIT_STEP, unit + 1
    whole, half = divmod(halves, 2)
    return f"{whole}{'.50' if half else ''}{MEMORY_UNITS[unit]}"


def by_id(tres: Tres, billing: int | None = None) -> str:
    """scontrol's form (25.11), in order of Slurm's ids: `cpu=1,mem=1G,node=1,billing=1,gres/gpu=1`.

    Zero counts are left out; nothing at all is the empty text, for which scontrol prints `(null)`.
    """
    return ",".join(f"{name}={text}" for name, text in _shown(tres, billing))


def by_name(tres: Tres, billing: int | None = None) -> str:
    """sacct's form (25.11), sorted as text: `billing=5,cpu=1,gres/gpu:a10g=1,gres/gpu=1,mem=1G`."""
    return ",".join(sorted(f"{name}={text}" for name, text in _shown(tres, billing)))


def _shown(tres: Tres, billing: int | None) -> list[tuple[str, str]]:
    shown = [
        ("cpu", str(tres.cpu) if tres.cpu else ""),
        ("mem", memory_text(tres.mem_mib) if tres.mem_mib else ""),
        ("node", str(tres.node) if tres.node else ""),
        ("billing", str(billing) if billing else ""),
        *((f"gres/{name}", str(count)) for name, count in tres.gres),
    ]
    return [(name, text) for name, text in shown if text]


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

    Memory without a unit is per MiB, with one per that unit. Raises ValueError naming the part.
    """
    pairs = [_weight(part) for part in text.split(",") if part.strip()]
    if not pairs:
        return None
    plain = {name: weight for name, weight in pairs if "/" not in name}
    gres = ((name.removeprefix("gres/"), weight) for name, weight in pairs if "/" in name)
    return Weights(
        cpu=plain.get("cpu", 0.0),
        mem_mib=plain.get("mem", 0.0),
        node=plain.get("node", 0.0),
        gres=tuple(gres),
    )


def _weight(part: str) -> tuple[str, float]:
    name, _, text = (piece.strip() for piece in part.partition("="))
    kind, slash, of = name.partition("/")
    name = f"{kind.lower()}{slash}{of}"
    if name not in {"cpu", "mem", "node"} and not (kind.lower() == "gres" and of):
        raise ValueError(
            f"TRES weight {part!r}: only cpu, mem, node and gres/NAME[:TYPE] can be weighed"
        )
    unit = text[-1:].upper() if name == "mem" else ""
    power = MEMORY_UNITS.find(unit) if unit else -1
    try:
        weight = float(text[:-1] if power >= 0 else text)
    except ValueError:
        raise ValueError(f"TRES weight {part!r}: {text!r} is not a number") from None
    if not 0 <= weight < float("inf"):
        raise ValueError(f"TRES weight {part!r}: must be zero or more, and finite")
    return name, weight / UNIT_STEP ** max(power, 0)


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
