"""Counters and gauges in Prometheus' text form."""

from collections.abc import Iterable, Mapping

Labels = Mapping[str, str]


def metric(name: str, kind: str, *, about: str, values: Iterable[tuple[Labels, float]]) -> str:
    """One metric with its lines of help and type; labels are escaped."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in values:
        pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{pairs}}} {value:.17g}" if pairs else f"{name} {value:.17g}")
    return "\n".join([*lines, ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
