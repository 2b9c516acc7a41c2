"""`scontrol show job`: the lines of a record, key by key in 25.11.7's order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.model.job import Job, Share
from gateway.query.column import JobGetter
from gateway.query.context import Context
from gateway.query.fields import BY_KEY
from sbatch_shim.grammar.arrays import show_indexes
from sbatch_shim.grammar.hostlist import fold

INDENT = "\n   "
DEEPER = "\n     "

# fmt: off
JOB_LINES = (
    ("job_id", "?array_parent", "?array_task_id", "?array_throttle",
     "?het_job_id", "?het_job_offset", "name"),
    ("?het_job_id_set",),
    ("+sluid",),
    ("user_and_uid", "group_and_gid", "mcs_label"),
    ("priority", "nice", "account", "qos"),
    ("state", "reason", "dependency"),
    ("requeue", "restart_cnt", "batch_flag", "reboot", "exit_code"),
    ("+derived_exit_code",),
    ("time_used", "time_limit", "time_minimum"),
    ("submit_time", "eligible_time"),
    ("accrue_time",),
    ("start_time", "limited_end", "deadline"),
    ("suspend_time", "pre_sus_time", "last_sched_evaluation", "scheduler"),
    ("partition", "submitter"),
    ("required_nodes", "excluded_nodes"),
    ("nodes",),
    ("?batch_host_alone",),
    ("node_range", "cpus", "task_text", "cpus_per_task", "request_geometry"),
    ("tres_requested",),
    ("tres_allocated",),
    ("sockets_per_node", "task_layout", "core_spec"),
    ("+allocation",),
    ("minimum_cpus_per_node", "?memory_per_gpu", "?memory_per_cpu", "?memory_per_node",
     "minimum_tmp_disk_per_node"),
    ("features", "delay_boot"),
    ("?resv_name",),
    ("?cluster_features",),
    ("?prefer",),
    ("oversubscribe", "contiguous", "licenses", "licenses_alloc", "network"),
    ("command",),
    ("submit_line",),
    ("work_dir",),
    ("?admin_comment",),
    ("?system_comment",),
    ("?comment",),
    ("?extra",),
    ("?stderr_path",),
    ("?stdin_path",),
    ("?stdout_path",),
    ("?switches",),
    ("?burst_buffer",),
    ("?least_frequency", "?most_frequency", "?governor"),
    ("?gres_binding",),
    ("?kill_on_invalid_dep",),
    ("?cpus_per_tres",),
    ("?memory_per_tres",),
    ("?tres_bind",),
    ("?tres_freq",),
    ("?tres_per_job",),
    ("?tres_per_node",),
    ("?tres_per_socket",),
    ("?tres_per_task",),
    ("?mail_user", "mail_type"),
    ("?tasks_per_tres",),
    ("|container", "|container_id"),
    ("?oom_kill_step",),
    ("?segment",),
)
"""Keys of columns, line by line: `?` shown only where set, `|` where one of the line is set,
`+` only with --details."""
# fmt: on


@dataclass(frozen=True, slots=True)
class _Part:
    """One `Key=value` of a line."""

    key: str
    text: Callable[[Job, Context], str | None]
    optional: bool

    def shown(self, job: Job, ctx: Context) -> str | None:
        text = self.text(job, ctx)
        return None if text is None else f"{self.key}={text}"


def _part(word: str) -> _Part:
    optional = word.startswith("?")
    column = BY_KEY[word.lstrip("?|+")]
    if not optional:
        return _Part(column.scontrol, column.shown(), optional)
    get, write = column.get, column.kind.scontrol

    def text(job: Job, ctx: Context) -> str | None:
        value = get(job, ctx)
        return None if value is None else write(value, ctx)

    return _Part(column.scontrol, text, optional)


@dataclass(frozen=True, slots=True)
class _Line:
    parts: tuple[_Part, ...]
    detail: bool
    one_of: tuple[JobGetter, ...] = ()
    """Not shown unless one of these is set."""

    def shown(self, job: Job, ctx: Context) -> str | None:
        """The line; None if what it begins with is not set, or nothing of what may be left out."""
        if self.one_of and all(get(job, ctx) is None for get in self.one_of):
            return None
        texts = [part.shown(job, ctx) for part in self.parts]
        if texts[0] is None and not all(part.optional for part in self.parts):
            return None
        return " ".join(text for text in texts if text is not None) or None


ALLOCATION = "+allocation"


def _line(words: tuple[str, ...]) -> _Line | None:
    if words == (ALLOCATION,):
        return None
    one_of = tuple(BY_KEY[word[1:]].get for word in words if word.startswith("|"))
    return _Line(tuple(map(_part, words)), words[0].startswith("+"), one_of)


LINES = tuple(map(_line, JOB_LINES))


def show_job(job: Job, ctx: Context, *, details: bool = False, oneliner: bool = False) -> str:
    """The record as scontrol prints it, with the empty line behind it."""
    text = INDENT.join(_lines(job, ctx, details))
    if oneliner:
        return " ".join(text.split(DEEPER)).replace(INDENT, " ") + "\n"
    return text + "\n\n"


def _lines(job: Job, ctx: Context, details: bool) -> Iterator[str]:
    for line in LINES:
        if line is None:
            if details and job.shares:
                yield from _allocation(job)
        elif details or not line.detail:
            text = line.shown(job, ctx)
            if text is not None:
                yield text


# ---------------------------------------------------------------- --details


def _allocation(job: Job) -> Iterator[str]:
    """JOB_GRES, and below it what each group of nodes gives."""
    yield f"JOB_GRES={gres_text(job.alloc.gres) or '(null)'}" + "".join(
        f"{DEEPER}Nodes={fold(names)} {text}" for names, text in _groups(job.shares)
    )


def _groups(shares: tuple[Share, ...]) -> list[tuple[list[str], str]]:
    """Neighbours that give the same stand in one line."""
    groups: list[tuple[list[str], str]] = []
    for share in shares:
        text = (
            f"CPU_IDs={show_indexes(share.cpu_ids)} Mem={share.tres.mem_mib} "
            f"GRES={gres_text(share.tres.gres, share.gpu_ids)}"
        )
        if groups and groups[-1][1] == text:
            groups[-1][0].append(share.node)
        else:
            groups.append(([share.node], text))
    return groups


def gres_text(counts: tuple[tuple[str, int], ...], ids: tuple[int, ...] = ()) -> str:
    """`gpu:a10g:2(IDX:0-1)`; untyped sums are left out where there are types."""
    typed = {name.partition(":")[0] for name, _ in counts if ":" in name}
    index = f"(IDX:{show_indexes(ids)})" if ids else ""
    shown = [(name, count) for name, count in counts if ":" in name or name not in typed]
    return ",".join(f"{name}:{count}{index}" for name, count in shown)
