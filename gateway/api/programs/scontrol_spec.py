"""Keys of `scontrol update job` that change what a job asks for: words to fields of its spec."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.model.job import Job
from broker.model.site import Site
from gateway.translate.gres import Spelling
from sbatch_shim.grammar.hostlist import HostlistError, expand, sorted_names
from sbatch_shim.grammar.resources import GresError, read_gres
from sbatch_shim.grammar.values import read_digits, read_mebibytes, read_time_limit

Fields = tuple[tuple[str, object], ...]
"""Dotted names in the spec, and what they become."""


@dataclass(frozen=True, slots=True)
class Context:
    """The job as it is, and how the site spells what it has."""

    job: Job
    site: Site
    spelling: Spelling


class WrongValue(ValueError):
    """What scontrol says of the value."""


Reader = Callable[[str, Context], Fields]


def _number(text: str, key: str) -> int:
    number = read_digits(text)
    if number is None:
        raise WrongValue(f"scontrol: error: Invalid {key} value: {text}\n")
    return number


def _count(path: str, key: str) -> Reader:
    return lambda text, _: ((path, _number(text, key)),)


def _text(path: str) -> Reader:
    return lambda text, _: ((path, text or None),)


def _cut(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _nodes(text: str, _: Context) -> Fields:
    """`2` or `2-4`."""
    low, dash, high = text.partition("-")
    least = _number(low, "NumNodes")
    most = _number(high, "NumNodes") if dash else least
    if most < least or not least:
        raise WrongValue(f"scontrol: error: Invalid NumNodes value: {text}\n")
    return ("resources.min_nodes", least), ("resources.max_nodes", most)


def _cpus(text: str, ctx: Context) -> Fields:
    """All cpus of the job: shared among its tasks where they can be, else a task for each."""
    cpus = _number(text, "NumCPUs")
    tasks = ctx.job.spec.resources.tasks or max(ctx.job.spec.resources.min_nodes or 1, 1)
    if cpus % tasks:
        return (("resources.tasks", cpus),)
    return (("resources.cpus_per_task", cpus // tasks),)


def _memory(path: str, key: str) -> Reader:
    def read(text: str, _: Context) -> Fields:
        size = read_mebibytes(text)
        if size is None:
            raise WrongValue(f"scontrol: error: Invalid {key} value: {text}\n")
        paths = ("resources.mem_per_node_mib", "resources.mem_per_cpu_mib")
        return tuple((one, size if one == path else None) for one in paths)

    return read


def _gres(text: str, ctx: Context) -> Fields:
    try:
        found = ctx.spelling.gres(read_gres(text))
    except GresError:
        raise WrongValue("Invalid generic resource (gres) specification\n") from None
    if any(gres.name not in ctx.spelling.names for gres in found):
        raise WrongValue("Invalid generic resource (gres) specification\n")
    plain = ",".join(word.removeprefix("gres/") for word in _cut(text))
    return ("resources.gres", found), ("options.gres", plain)


def _hosts(path: str) -> Reader:
    def read(text: str, _: Context) -> Fields:
        try:
            names = sorted_names(set(expand(text))) if text else []
        except HostlistError:
            names = [text]
        return ((path, tuple(names)),)

    return read


def _minutes(path: str) -> Reader:
    def read(text: str, _: Context) -> Fields:
        limit = read_time_limit(text)
        if not isinstance(limit, int):
            raise WrongValue("scontrol: error: Invalid TimeMin value\n")
        return ((path, limit),)

    return read


def _option(long: str) -> Reader:
    return lambda text, _: ((f"options.{long}", text),)


def _mail_types(text: str, _: Context) -> Fields:
    return ("mail_types", tuple(word.upper() for word in _cut(text))), ("options.mail-type", text)


# fmt: off
KEYS: tuple[tuple[str, int, Reader], ...] = (
    ("cpuspertask",     5,  _count("resources.cpus_per_task", "CPUsPerTask")),
    ("delayboot",       5,  _option("delay-boot")),
    ("excnodelist",     3,  _hosts("resources.exclude")),
    ("features",        1,  _text("resources.constraint")),
    ("gres",            2,  _gres),
    ("licenses",        3,  _text("licenses")),
    ("mailtype",        5,  _mail_types),
    ("mailuser",        5,  _text("mail_user")),
    ("mincpusnode",     4,  _count("resources.min_cpus_per_node", "MinCPUsNode")),
    ("minmemorycpu",    10, _memory("resources.mem_per_cpu_mib", "MinMemoryCPU")),
    ("minmemorynode",   10, _memory("resources.mem_per_node_mib", "MinMemoryNode")),
    ("mintmpdisknode",  5,  _count("resources.tmp_mib", "MinTmpDiskNode")),
    ("nodelist",        8,  _hosts("resources.nodelist")),
    ("numcpus",         6,  _cpus),
    ("numnodes",        8,  _nodes),
    ("numtasks",        8,  _count("resources.tasks", "NumTasks")),
    ("prefer",          3,  _text("resources.prefer")),
    ("reqnodelist",     8,  _hosts("resources.nodelist")),
    ("reqnodes",        8,  _nodes),
    ("reservationname", 3,  _text("reservation")),
    ("stderr",          6,  _text("output.stderr")),
    ("stdin",           5,  _text("output.stdin")),
    ("stdout",          6,  _text("output.stdout")),
    ("switches",        5,  _option("switches")),
    ("timemin",         5,  _minutes("time_min")),
    ("trespernode",     8,  _gres),
    ("wckey",           1,  _text("wckey")),
    ("workdir",         2,  _text("cwd")),
)
# fmt: on
"""Keys, the letters that are enough, and what they set (Slurm 25.11)."""


def reader_of(key: str) -> Reader | None:
    """What reads the value of a key, which may be cut short."""
    fits = (read for name, least, read in KEYS if name.startswith(key) and len(key) >= least)
    return next(fits, None)
