"""Keys of `scontrol update job` that change what a job asks for: words to fields of its spec."""

# ruff: noqa: E501 - a row of KEYS stays on one line

from collections.abc import Callable
from dataclasses import dataclass

from broker.model.job import Job
from broker.model.site import Site
from gateway.api.programs.scontrol_words import Refusal, is_short_for
from gateway.translate.gres import Spelling, counts_of
from gateway.translate.refusals import BAD_GRES, BAD_TRES, NO_NODES
from sbatch_shim.grammar.check import mail_types
from sbatch_shim.grammar.hostlist import HostlistError, expand, sorted_names
from sbatch_shim.grammar.instants import InstantError
from sbatch_shim.grammar.resources import GresError, read_gres
from sbatch_shim.grammar.values import (
    read_digits,
    read_mebibytes,
    read_seconds,
    read_time_limit,
)

Fields = tuple[tuple[str, object], ...]
"""Dotted names in the spec, and what they become."""


class WrongValue(ValueError):
    """What scontrol says of the value."""


@dataclass(frozen=True, slots=True)
class Context:
    """The job as it is, and how the site spells what it has."""

    job: Job
    site: Site
    spelling: Spelling
    operator: bool = False
    instant: Callable[[str], int] = int
    """Reads a moment as the client means it. Raises InstantError."""


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


def _nodes(text: str, ctx: Context) -> Fields:
    """`2-4`, or `2` for the least alone, where a waiting job's most stays as it is (22.05)."""
    low, dash, high = text.partition("-")
    least = _number(low, "NumNodes")
    before = least if ctx.job.state.holds_nodes else ctx.job.spec.resources.max_nodes
    most = _number(high, "NumNodes") if dash else before
    if not least or (most is not None and most < least):
        raise Refusal(NO_NODES)
    return ("resources.min_nodes", least), ("resources.max_nodes", most)


def _cpus(text: str, ctx: Context) -> Fields:
    """All cpus of the job: shared among its tasks where they can be, else a task for each.

    Of `2-4` it is the least that is asked for.
    """
    low, dash, high = text.partition("-")
    cpus = _number(low, "NumCPUs")
    if not cpus or (dash and _number(high, "NumCPUs") < cpus):
        raise WrongValue(f"scontrol: error: Invalid NumCPUs value: {text}\n")
    tasks = ctx.job.spec.resources.tasks or max(ctx.job.spec.resources.min_nodes or 1, 1)
    if cpus % tasks:
        return (("resources.tasks", cpus),)
    return (("resources.cpus_per_task", cpus // tasks),)


def _tasks(text: str, _: Context) -> Fields:
    tasks = _number(text, "NumTasks")
    if not tasks:
        raise Refusal("Task count specification invalid")
    return (("resources.tasks", tasks),)


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
        raise Refusal(BAD_GRES) from None
    if any(gres.name not in ctx.spelling.names for gres in found):
        raise Refusal(BAD_GRES)
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
    def read(text: str, ctx: Context) -> Fields:
        limit = read_time_limit(text)
        if not isinstance(limit, int):
            raise WrongValue("scontrol: error: Invalid TimeMin value\n")
        most = ctx.job.time_limit
        if isinstance(most, int) and limit > most:
            raise Refusal(TOO_LONG)
        return ((path, limit),)

    return read


def _option(long: str) -> Reader:
    return lambda text, _: ((f"options.{long}", text),)


def _delay(text: str, _: Context) -> Fields:
    if read_seconds(text) is None:
        raise WrongValue("scontrol: error: Invalid DelayBoot value\n")
    return (("options.delay-boot", text),)


def _mail_types(text: str, _: Context) -> Fields:
    found = mail_types(text)
    if found is None:
        raise WrongValue(f"Invalid MailType: {text}\n")
    return ("mail_types", found), ("options.mail-type", text)


def _in_all(text: str, ctx: Context) -> Fields:
    """`gres/gpu:2`: GPUs of the whole job."""
    (_, found), (_, plain) = _gres(text, ctx)
    return ("resources.gpus", found), ("options.gpus", str(plain).removeprefix("gpu:") or None)


def _by_gpu(path: str, option: str) -> Reader:
    """`gres/gpu:2`: cpus or MiB for each GPU, of a job that has GPUs."""

    def read(text: str, ctx: Context) -> Fields:
        asked = ctx.job.spec.resources
        gpus = (*asked.gres, *asked.gpus, *asked.gpus_per_task)
        name, _, count = text.removeprefix("gres/").rpartition(":")
        number = read_digits(count)
        if name != "gpu" or number is None or (gpus == () and path.endswith("mib")):
            raise Refusal(BAD_GRES)
        return (path, number), (f"options.{option}", str(number))

    return read


def _bound(option: str) -> Reader:
    """`gres/gpu:TEXT`, which is kept and shown."""

    def read(text: str, ctx: Context) -> Fields:
        name, colon, rest = text.removeprefix("gres/").partition(":")
        if name != "gpu" or not colon:
            raise Refusal(BAD_TRES)
        return ((f"options.{option}", rest),)

    return read


def _by_task(text: str, ctx: Context) -> Fields:
    """`cpu=2,gres/gpu=1`; what has no count does nothing (25.11)."""
    counts = counts_of(text)
    gpus = ",".join(f"{name}:{count}" for name, count in counts.items() if name != "cpu")
    found: Fields = (("options.tres-per-task", text),)
    if "cpu" in counts:
        found = (*found, ("resources.cpus_per_task", counts["cpu"]))
    return (*found, ("resources.gpus_per_task", _gres(gpus, ctx)[0][1])) if gpus else found


# ---------------------------------------------------------------- what only operators change


YES_NO = {"1": True, "yes": True, "y": True, "true": True, "0": False, "no": False, "n": False}


def _switch(key: str, fields: Callable[[bool], Fields]) -> Reader:
    def read(text: str, _: Context) -> Fields:
        there = YES_NO.get(text.lower())
        if there is None:
            raise WrongValue(f"scontrol: error: Invalid {key} value: {text}\n")
        return fields(there)

    return read


def _shared(there: bool) -> Fields:
    return (("options.oversubscribe", "" if there else None),)


def _deadline(text: str, ctx: Context) -> Fields:
    try:
        return (("deadline", ctx.instant(text)),)
    except InstantError as wrong:
        raise WrongValue(wrong.complaint() + "No changes specified\n") from None


def _operators(read: Reader) -> Reader:
    """The value is judged first (22.05)."""

    def judged(text: str, ctx: Context) -> Fields:
        found = read(text, ctx)
        if not ctx.operator:
            raise Refusal(DENIED)
        return found

    return judged


def _never(said: str) -> Reader:
    """What Slurm says where a site has nothing of the kind."""

    def read(_: str, ctx: Context) -> Fields:
        raise Refusal(said)

    return read


def _not_ours(key: str) -> Reader:
    def read(_: str, ctx: Context) -> Fields:
        if not ctx.operator:
            raise Refusal(DENIED)
        raise WrongValue(f"scontrol: error: {key} of a job is not supported by SkyPurza\n")

    return read


TOO_LONG = "Invalid time-min specification (exceeds job's time or other limits)"
DENIED = "Access/permission denied"
NO_SUCH_THING = "Requested operation not supported on this system"
NO_FEDERATION = "Not a valid federated job"


# fmt: off
KEYS: tuple[tuple[str, int, Reader], ...] = (
    ("burstbuffer",     1,  _never(NO_SUCH_THING)),
    ("clusterfeatures", 8,  _never(NO_FEDERATION)),
    ("clusters",        8,  _never(NO_FEDERATION)),
    ("contiguous",      3,  _operators(_switch("Contiguous", lambda there: (("resources.contiguous", there),)))),
    ("corespec",        4,  _never(DENIED)),
    ("cpuspertask",     9,  _count("resources.cpus_per_task", "CPUsPerTask")),
    ("cpuspertres",     9,  _by_gpu("resources.cpus_per_gpu", "cpus-per-gpu")),
    ("deadline",        3,  _operators(_deadline)),
    ("delayboot",       5,  _delay),
    ("excnodelist",     3,  _hosts("resources.exclude")),
    ("features",        1,  _text("resources.constraint")),
    ("gres",            2,  _gres),
    ("licenses",        3,  _text("licenses")),
    ("mailtype",        5,  _mail_types),
    ("mailuser",        5,  _text("mail_user")),
    ("mempertres",      3,  _by_gpu("resources.mem_per_gpu_mib", "mem-per-gpu")),
    ("mincpusnode",     4,  _count("resources.min_cpus_per_node", "MinCPUsNode")),
    ("minmemorycpu",    10, _memory("resources.mem_per_cpu_mib", "MinMemoryCPU")),
    ("minmemorynode",   10, _memory("resources.mem_per_node_mib", "MinMemoryNode")),
    ("mintmpdisknode",  5,  _count("resources.tmp_mib", "MinTmpDiskNode")),
    ("nodelist",        8,  _hosts("resources.nodelist")),
    ("numcpus",         6,  _cpus),
    ("numnodes",        8,  _nodes),
    ("numtasks",        8,  _tasks),
    ("oversubscribe",   2,  _operators(_switch("OverSubscribe", _shared))),
    ("prefer",          3,  _text("resources.prefer")),
    ("reboot",          3,  _not_ours("Reboot")),
    ("reqcores",        4,  _count("resources.cores_per_socket", "ReqCores")),
    ("reqnodelist",     8,  _hosts("resources.nodelist")),
    ("reqnodes",        8,  _nodes),
    ("reqsockets",      4,  _count("resources.sockets", "ReqSockets")),
    ("reqthreads",      4,  _count("resources.threads_per_core", "ReqThreads")),
    ("reservationname", 3,  _text("reservation")),
    ("shared",          2,  _operators(_switch("OverSubscribe", _shared))),
    ("sitefactor",      3,  _not_ours("SiteFactor")),
    ("stderr",          6,  _text("output.stderr")),
    ("stdin",           5,  _text("output.stdin")),
    ("stdout",          6,  _text("output.stdout")),
    ("switches",        5,  _option("switches")),
    ("threadspec",      4,  _never(DENIED)),
    ("timemin",         5,  _minutes("time_min")),
    ("tresbind",        5,  _bound("gpu-bind")),
    ("tresfreq",        5,  _bound("gpu-freq")),
    ("tresperjob",      8,  _in_all),
    ("trespernode",     8,  _gres),
    ("trespersocket",   8,  _gres),
    ("trespertask",     8,  _by_task),
    ("wckey",           1,  _text("wckey")),
    ("workdir",         2,  _text("cwd")),
)
# fmt: on
"""Keys, the letters that are enough, and what they set (Slurm 25.11)."""


def reader_of(key: str) -> Reader | None:
    """What reads the value of a key, which may be cut short."""
    fits = (read for name, least, read in KEYS if is_short_for(key, name, least))
    return next(fits, None)
