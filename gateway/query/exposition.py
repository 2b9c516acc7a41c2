"""Counters, gauges and histograms in Prometheus' text form (0.0.4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]


def metric(name: str, kind: str, *, about: str, values: Iterable[tuple[Labels, float]]) -> str:
    """One metric with its lines of help and type; labels are escaped."""
    lines = [*_head(name, kind, about), *(_line(name, labels, value) for labels, value in values)]
    return "\n".join([*lines, ""])


def histogram(
    name: str,
    *,
    about: str,
    bounds: Sequence[float],
    values: Iterable[tuple[Labels, Sequence[int], float]],
) -> str:
    """One histogram; of each row how many were in each bucket and beyond, and the sum of all."""
    lines = list(_head(name, "histogram", about))
    edges = [*map(_number, bounds), "+Inf"]
    for labels, counts, total in values:
        upto = list(accumulate(counts))
        for edge, count in zip(edges, upto, strict=True):
            lines.append(_line(f"{name}_bucket", {**labels, "le": edge}, count))
        lines.append(_line(f"{name}_sum", labels, total))
        lines.append(_line(f"{name}_count", labels, upto[-1]))
    return "\n".join([*lines, ""])


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    told = about.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {name} {told}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _escaped(text: str) -> str:
    """What is no text (a byte that was not UTF-8) shows as a question mark."""
    plain = text.encode("utf-8", "replace").decode("utf-8")
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
