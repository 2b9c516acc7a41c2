"""`config.slurm` of a task: options of sbatch, and its quota, as fields of the spec."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broker.model.errors import BadSpec
from gateway.translate.skypilot import Slurm
from sbatch_shim.grammar.values import UNLIMITED, read_time_limit

Reader = Callable[[str], Any]


def _time(text: str) -> Any:
    """Seconds. Raises ValueError."""
    found = read_time_limit(text)
    if found is None:
        raise ValueError(f"{text!r} is no time limit: minutes, HH:MM:SS or DAYS-HH")
    return UNLIMITED if isinstance(found, str) else found


OPTIONS: Mapping[str, tuple[str, Reader]] = {
    "account": ("account", str),
    "qos": ("qos", str),
    "partition": ("partitions", lambda text: tuple(text.split(","))),
    "time": ("time_limit", _time),
    "comment": ("comment", str),
    "reservation": ("reservation", str),
    "wckey": ("wckey", str),
    "licenses": ("licenses", str),
    "nice": ("nice", int),
    "mail-user": ("mail_user", str),
}
"""Options that a task may carry: field of the spec, and how its text is read."""
QUOTA = {"account": "account", "queue": "qos"}


def slurm_fields(slurm: Slurm) -> dict[str, Any]:
    """Fields of the spec. Raises BadSpec."""
    found: dict[str, Any] = {}
    for name, value in (slurm.quota or {}).items():
        if name in QUOTA and value is not None:
            found[QUOTA[name]] = str(value)
    for name, text in options(slurm):
        if name not in OPTIONS:
            continue
        field, read = OPTIONS[name]
        try:
            found[field] = read(text)
        except ValueError as error:
            path = f"config.slurm.sbatch_options.{name}"
            raise BadSpec(path, text, f"{path}: {error}") from None
    return found


def unread(slurm: Slurm) -> Iterator[str]:
    """Options that are not acted on."""
    yield from (name for name, _ in options(slurm) if name not in {*OPTIONS, "constraint"})


def options(slurm: Slurm) -> Iterator[tuple[str, str]]:
    """Those given, by long name; null and false are not given."""
    for name, value in (slurm.sbatch_options or {}).items():
        if value is not None and value is not False:
            yield str(name).lstrip("-").replace("_", "-"), "" if value is True else str(value)
