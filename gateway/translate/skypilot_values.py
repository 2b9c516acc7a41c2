"""The short texts of SkyPilot's `resources`: `4+`, `16GB`, `A100:8`, `aws/us-east-1`, to values.

Every reader raises ValueError, which names the text and what may stand there.
"""

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from gateway.config.problems import near

MIB = 1024 * 1024
UNITS = {
    "": 1024**3,
    "kb": 1024,
    "ki": 1024,
    "k": 1024,
    "mb": MIB,
    "mi": MIB,
    "m": MIB,
    "gb": 1024**3,
    "gi": 1024**3,
    "g": 1024**3,
    "tb": 1024**4,
    "ti": 1024**4,
    "t": 1024**4,
    "pb": 1024**5,
    "pi": 1024**5,
    "p": 1024**5,
}
"""Bytes; a number alone is gigabytes, and all are powers of 1024 as in SkyPilot 0.14."""
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
MOST_DIGITS = 15
"""Before or behind the point: a text such as 1e999999999 must not become that many digits."""
ANY = "*"
CLOUDS = (
    *("aws", "azure", "cudo", "do", "fluidstack", "gcp", "hyperbolic", "ibm", "kubernetes"),
    *("lambda", "local", "mithril", "nebius", "oci", "paperspace", "primeintellect", "runpod"),
    *("scp", "seeweb", "shadeform", "slurm", "ssh", "vast", "verda", "vsphere", "yotta"),
)
"""What SkyPilot knows by name; only `aws` can be served here."""
NOT_PLACES = {"k8s": "kubernetes", "kubernetes": "kubernetes", "ssh": "ssh", "slurm": "slurm"}
"""First words of `infra` behind which no region stands."""
CLUSTER_NAME = re.compile(r"[a-zA-Z](?:[-_.a-zA-Z0-9]*[a-zA-Z0-9])?")
ZONE_NAME = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d[a-z]")
"""A zone by name, which means another place in every account; ids (`use1-az4`) do not."""

_NUMBER = r"\d+(?:\.\d*)?|\.\d+"
_PORT = re.compile(r"[0-9]{1,9}")
_SIZE = re.compile(rf"((?:{_NUMBER})(?:[eE]\+?\d+)?)\s*([a-zA-Z]*)(\+?)")
_GPU_MEMORY = re.compile(r"\d+(?:gb|g)\+?", re.I)


@dataclass(frozen=True, slots=True)
class Cpus:
    """vCPUs of a machine."""

    count: int
    exactly: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a machine: MiB, or so many GiB for each vCPU."""

    mib: int = 0
    per_cpu_mib: int = 0
    exactly: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    """A model, or a size of memory such as `80GB+`, and how many of a machine."""

    name: str
    count: int = 1

    @property
    def by_memory(self) -> bool:
        return _GPU_MEMORY.fullmatch(self.name.partition(":")[2] or self.name) is not None


@dataclass(frozen=True, slots=True)
class Gpus:
    """Accelerators that would do: all alike, or in the order of liking."""

    choices: tuple[Gpu, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where to buy; None is anywhere. `cloud` in lower case."""

    cloud: str | None = None
    region: str | None = None
    zone: str | None = None

    def unnamed(self) -> "Place":
        """Only the region of a zone's name, which is another place in each account; ids stay."""
        if self.zone is None or not ZONE_NAME.fullmatch(self.zone):
            return self
        return Place(self.cloud, self.region or self.zone[:-1], None)


@dataclass(frozen=True, slots=True)
class Autostop:
    """When an idle cluster ends; seconds."""

    idle_seconds: int
    down: bool = False
    wait_for: str = "jobs_and_ssh"
    hook: str | None = None
    """Older place of a hook."""
    hook_seconds: int | None = None


IDLE_SECONDS = 300
"""What a bare `autostop: true` means (SkyPilot's manual; its 0.14.1 makes it 0 minutes)."""


def cpus(value: object) -> Cpus:
    """`4` is exactly four, `4+` at least; a part of one counts as one."""
    number, plus = _plus(_text(value, "cpus"), "cpus", "4 or 4+")
    return Cpus(math.ceil(number), exactly=not plus and number == int(number))


def memory(value: object) -> Memory:
    """`32`, `32+`, `64GB`, `1024MB`, `4x`."""
    text = _text(value, "memory")
    if text.rstrip("+").endswith("x"):
        number, _ = _plus(text.rstrip("+")[:-1], "memory", "4x")
        return Memory(per_cpu_mib=math.ceil(number * 1024))
    size, plus = _size(text, "memory", "16, 16+, 64GB or 4x")
    return Memory(mib=max(1, math.ceil(size / MIB)), exactly=not plus)


def disk_gib(value: object) -> int:
    """Whole gigabytes, rounded down."""
    size, _ = _size(_text(value, "size"), "size", "256, 256GB or 1TB")
    return int(size // 1024**3)


def local_disk_mib(value: object) -> int:
    """`nvme`, `ssd`, `nvme:1000+`, `1000+`: gigabytes of all instance-store disks together."""
    text = _text(value, "local_disk").lower()
    kind, _, size = text.rpartition(":") if text[:1].isdigit() or ":" in text else (text, "", "100")
    if kind not in {"", "nvme", "ssd"}:
        raise ValueError(f"{value!r} is no local disk: nvme, ssd, nvme:1000+ or 1000+")
    number, _ = _plus(size, "local_disk", "nvme:1000+")
    return math.ceil(number * 1024)


def gpus(value: object) -> Gpus | None:
    """One `NAME[:COUNT]`; a map or set of them, any of which will do; a list, the first best.

    An empty text or map asks for none.
    """
    if value in ("", {}):
        return None
    if isinstance(value, Mapping):
        return Gpus(tuple(_gpu(name, count) for name, count in value.items()))
    if isinstance(value, set | frozenset):
        return Gpus(tuple(_gpu(name, None) for name in sorted(value)))
    if isinstance(value, list | tuple):
        found = tuple(_gpu(name, count) for one in value for name, count in _pairs(one))
        if not found:
            raise ValueError("an empty list of accelerators")
        return Gpus(found, ordered=len(found) > 1)
    if isinstance(value, str) and value.startswith("{") and value.endswith("}"):
        return Gpus(tuple(_gpu(name, None) for name in value[1:-1].split(",")))
    return Gpus((_gpu(value, None),))


def _pairs(value: object) -> list[tuple[object, object]]:
    """A name and its count, written `A100:8` or `A100: 8`."""
    return list(value.items()) if isinstance(value, Mapping) else [(value, None)]


def _gpu(name: object, count: object) -> Gpu:
    text = _text(name, "accelerator")
    head, _, tail = text.rpartition(":")
    if count is None and head and not _GPU_MEMORY.fullmatch(tail):
        text, count = head, tail
    number = Decimal(1) if count is None else _number(str(count).removesuffix("+"), "accelerator")
    gpu = Gpu(text.strip(), math.ceil(number))
    plain = not isinstance(name, int | float) and (":" not in gpu.name or gpu.by_memory)
    if number <= 0 or not gpu.name or not plain:
        raise ValueError(f"{name!r}: an accelerator is NAME or NAME:COUNT, COUNT more than 0")
    return gpu


def place(value: object) -> Place:
    """`aws`, `aws/us-east-1`, `aws/us-east-1/use1-az4`; `*` is any."""
    text = _text(value, "infra").strip("/")
    cloud, *rest = (None if part == ANY else part for part in text.split("/"))
    cloud = cloud.lower() if cloud else None
    if cloud in NOT_PLACES:
        return Place(NOT_PLACES[cloud])
    must_be_cloud(cloud)
    if len(rest) > 2:
        raise ValueError(f"{value!r}: infra is CLOUD, CLOUD/REGION or CLOUD/REGION/ZONE")
    region, zone = [*rest, None, None][:2]
    return Place(cloud, region, zone)


def cloud(value: object) -> str:
    """In lower case."""
    name = _text(value, "cloud").lower()
    must_be_cloud(name)
    return NOT_PLACES.get(name, name)


def must_be_cloud(name: str | None) -> None:
    """Raises ValueError for one that SkyPilot does not know either."""
    if name is not None and name not in CLOUDS:
        raise ValueError(f"{name!r} is no cloud; {near(name, CLOUDS)}")


def one_of(*known: str) -> Callable[[object], str]:
    """A reader of one of these words, in any case; told as they are written here."""
    words = {word.lower(): word for word in known}

    def read(value: object) -> str:
        text = str(value).lower()
        if text not in words:
            raise ValueError(f"{value!r} is none of {', '.join(known)}")
        return words[text]

    return read


disk_tier = one_of("low", "medium", "high", "ultra", "best", "none")
network_tier = one_of("standard", "best", "none")
storage_mode = one_of("MOUNT", "COPY", "MOUNT_CACHED")
store = one_of(
    *("s3", "gcs", "azure", "r2", "ibm", "oci", "nebius", "coreweave", "vastdata", "hf"),
    *("cos", "volume", "tigris"),
)


def autostop(value: object) -> Autostop | None:
    """`true`, minutes, `10m`, or a map with `idle_minutes`; None and less than 0 is never."""
    if isinstance(value, Mapping):
        known = {"idle_minutes", "down", "wait_for", "hook", "hook_timeout"}
        unknown = sorted(set(map(str, value)) - known)
        if unknown:
            raise ValueError(f"autostop has no key {unknown[0]!r}: {', '.join(sorted(known))}")
        idle = value.get("idle_minutes")
        seconds = IDLE_SECONDS if idle is None else duration(idle)
        waits = WAITS(value.get("wait_for") or "jobs_and_ssh")
        asked = Autostop(seconds, down=bool(value.get("down")), wait_for=waits)
        if value.get("hook") is None:
            return asked
        limit = value.get("hook_timeout")
        longest = duration(limit, bare=1) if limit else None
        return replace(asked, hook=str(value["hook"]), hook_seconds=longest)
    if value is False or value is None or str(value).startswith("-"):
        return None
    return Autostop(IDLE_SECONDS if value is True else duration(value))


def words(value: object) -> tuple[str, ...]:
    """Of a text or a list of texts, as a shell parts them. Raises ValueError."""
    texts = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return tuple(word for text in texts for word in shlex.split(str(text)))


WAITS = one_of("jobs_and_ssh", "jobs", "none")
"""What holds an autostop off."""


def duration(value: object, bare: int = 60) -> int:
    """Seconds of `10m`, `2h`, `1d`, `1w`; of a number alone so many each."""
    text = _text(value, "duration").lower()
    found = re.fullmatch(rf"({_NUMBER})\s*([a-z]?)", text)
    if found is None or found[2] not in {"", *SECONDS}:
        alone = "minutes" if bare == SECONDS["m"] else "seconds"
        raise ValueError(f"{value!r} is no duration: {alone}, or 10m, 2h, 1d, 1w")
    return math.ceil(_number(found[1], "duration") * (SECONDS[found[2]] if found[2] else bare))


def ports(value: object) -> tuple[str, ...]:
    """`8080`, `10022-10040`, `8080, 9090`, or a list of them; an empty text is none."""
    listed = value if isinstance(value, list | tuple) else [value or None]
    texts = (one.split(",") if isinstance(one, str) else [one] for one in listed)
    return tuple(_port(one) for text in texts for one in text if one is not None)


def _port(value: object) -> str:
    text = _text(value, "port")
    ends = text.split("-")
    valid = len(ends) <= 2 and all(_PORT.fullmatch(end) and 0 < int(end) < 65536 for end in ends)
    if not valid or int(ends[0]) > int(ends[-1]):
        raise ValueError(f"{value!r} is no port: 1 to 65535, or a range such as 10022-10040")
    return text


def dollars(value: object) -> int:
    """Micro-dollars, more than 0."""
    number = _number(_text(value, "price").removeprefix("$"), "price")
    if number <= 0:
        raise ValueError(f"{value!r} is no price: dollars an hour, more than 0")
    return int(number * 1_000_000)


def market(value: object) -> bool:
    """Of a flag that may come as text from a command line."""
    known = {True: True, False: False, "true": True, "false": False, "yes": True, "no": False}
    key = value.lower() if isinstance(value, str) else value
    if not isinstance(key, bool | str) or key not in known:
        raise ValueError(f"{value!r} is neither true nor false")
    return known[key]


@dataclass(frozen=True, slots=True)
class Recovery:
    """How a managed job goes on; `strategy` None: as usual."""

    strategy: str | None = None
    max_restarts: int = 0
    exit_codes: tuple[int, ...] = ()


def recovery(value: object) -> Recovery | None:
    """A strategy by name, or a map; None for `none`. Other strategies and keys pass: plug-ins'."""
    if isinstance(value, Mapping):
        strategy = value.get("strategy")
        codes = value.get("recover_on_exit_codes")
        found = codes if isinstance(codes, list | tuple) else [codes]
        return Recovery(
            None if strategy is None else str(strategy).upper(),
            _whole(value.get("max_restarts_on_errors") or 0, "max_restarts_on_errors", 1 << 20),
            tuple(_whole(code, "exit code", 255) for code in found if code is not None),
        )
    text = _text(value, "strategy").upper()
    return None if text == "NONE" else Recovery(text)


def _whole(value: object, what: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is no {what}: a whole number from 0 to {most}")
    return value


def variable(value: object) -> str | None:
    """A variable's value as text, a list or group as SkyPilot has it: as Python writes it."""
    try:
        json.dumps(value, default=str)
    except ValueError:
        raise ValueError("refers to itself") from None
    return None if value is None else str(value)


REPOSITORY = re.compile(r"(?:https?|ssh|git)://.+|[\w.-]+@[\w.-]+:(?!//).+")


def repository(value: object) -> object:
    """A repository's address stands for the group that has it as `url`."""
    if isinstance(value, str) and REPOSITORY.fullmatch(value.strip()):
        return {"url": value.strip()}
    return value


def scalar(value: object) -> str | None:
    """A single value as text; None stays."""
    if isinstance(value, Mapping | list | set):
        raise ValueError("not a single value")  # noqa: TRY004 - told as a bad value
    return None if value is None else str(value)


def _plus(text: str, what: str, example: str) -> tuple[Decimal, bool]:
    try:
        number = _number(text.removesuffix("+"), what)
    except ValueError:
        raise ValueError(f"{text!r} is no {what}: {example}") from None
    if number <= 0:
        raise ValueError(f"{text!r} is no {what}: more than 0")
    return number, text.endswith("+")


def _size(text: str, what: str, example: str) -> tuple[Decimal, bool]:
    """Bytes, and whether more will do."""
    found = _SIZE.fullmatch(text)
    unit = found[2].lower() if found else "?"
    unit = unit.removesuffix("b") if unit.endswith("ib") else unit
    if found is None or unit not in UNITS or _number(found[1], what) <= 0:
        raise ValueError(f"{text!r} is no {what}: {example}")
    return _number(found[1], what) * UNITS[unit], bool(found[3])


def _number(text: str, what: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number ({what})") from None
    if not number.is_finite():
        raise ValueError(f"{text!r} is no number ({what})")
    if number and abs(number.adjusted()) > MOST_DIGITS:
        raise ValueError(f"{text!r} is no number that can be meant ({what})")
    return number


def _text(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is no {what}")  # noqa: TRY004 - told as a bad value
    return str(value).strip()
