"""sstat: steps that run, with what they hold and what was measured of them."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.model.ids import BATCH
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs.hostprocs import Use
from gateway.api.programs.nodeuse import used
from gateway.api.programs.reading import Options, fail, finishing, read_options, reader, style_of
from gateway.api.programs.scontrol_show import jobs_of
from gateway.api.wire import Answer, Call
from gateway.query.context import Context
from gateway.query.kinds import COUNT, KIBIBYTES, TRES
from gateway.query.refs import read_refs
from gateway.query.reports import Field, UnknownFieldError, fields_of, nothing, table
from gateway.query.rows import help_grid
from gateway.query.sampled import gpu_usage
from gateway.query.select import JobRef
from gateway.query.steps import JobStep, live_steps, step_id, step_nodes, step_tasks, step_tres
from sbatch_shim.grammar.hostlist import fold
from sbatch_shim.grammar.values import show_long

BAD_FIELD = 'sstat: error: Invalid field requested: "{}"\n'
BAD_JOB = "sstat: fatal: Bad job/step specified: {}\n"
NO_JOBS = "sstat: error: You didn't give me any jobs to stat.\n"
NO_STEPS = "sstat: error: couldn't get steps for JobId={}\n"
NOBODY_RUNS = "sstat: error: no steps running for JobId={}\n"
USUAL = (
    "JobID,AllocTRES,MaxVMSize,MaxVMSizeNode,MaxVMSizeTask,AveVMSize,MaxRSS,MaxRSSNode,MaxRSSTask,"
    "AveRSS,MaxPages,MaxPagesNode,MaxPagesTask,AvePages,MinCPU,MinCPUNode,MinCPUTask,AveCPU,NTasks,"
    "AveCPUFreq,ReqCPUFreqMin,ReqCPUFreqMax,ReqCPUFreqGov,ConsumedEnergy,MaxDiskRead,"
    "MaxDiskReadNode,MaxDiskReadTask,AveDiskRead,MaxDiskWrite,MaxDiskWriteNode,MaxDiskWriteTask,"
    "AveDiskWrite,TRESUsageInAve,TRESUsageInMax,TRESUsageInMaxNode,TRESUsageInMaxTask,"
    "TRESUsageInMin,TRESUsageInMinNode,TRESUsageInMinTask,TRESUsageInTot,TRESUsageOutAve,"
    "TRESUsageOutMax,TRESUsageOutMaxNode,TRESUsageOutMaxTask,TRESUsageOutMin,TRESUsageOutMinNode,"
    "TRESUsageOutMinTask,TRESUsageOutTot"
)
PIDS = "JobID,Nodelist,Pids"


@dataclass(frozen=True, slots=True)
class Line:
    """A step, what its processes use, and how to write of it."""

    pair: JobStep
    ctx: Context
    used: Use | None

    @property
    def node(self) -> str:
        names = step_nodes(*self.pair, self.ctx) or ("",)
        return names[0]

    @property
    def batch(self) -> bool:
        return self.pair[1].id == BATCH


Value = Callable[[Line], str]


def _id(line: Line) -> str:
    return step_id(*line.pair, line.ctx)


def _tres(line: Line) -> str:
    held = step_tres(*line.pair, line.ctx)
    return "" if line.batch else TRES.sacct(held, line.ctx)


def _nodes(line: Line) -> str:
    return fold(step_nodes(*line.pair, line.ctx) or ())


def _tasks(line: Line) -> str:
    return str(step_tasks(*line.pair, line.ctx))


def _frequency(line: Line) -> str:
    return "0" if line.batch else "Unknown"


def _zero(_: Line) -> str:
    return "0"


def known(get: Callable[[Line, Use], str]) -> Value:
    """A value of what was measured; empty for a step of which nothing is heard."""
    return lambda line: "" if line.used is None else get(line, line.used)


def _kib(name: str) -> Value:
    return known(lambda line, used: KIBIBYTES.sacct(getattr(used, name), line.ctx))


def _bytes(name: str) -> Value:
    return known(lambda line, used: COUNT.sacct(getattr(used, name), line.ctx))


def _cpu(used: Use) -> str:
    return show_long(used.cpu_us // 1_000_000)


NODE, TASK = known(lambda line, _: line.node), known(lambda _line, _used: "0")
PIDS_OF = known(lambda _, used: ",".join(map(str, used.pids)))
CPU_KHZ = known(lambda _, used: frequency(used.khz) if used.khz else "0")


def frequency(khz: int) -> str:
    """`2.60G`: steps of a thousand, as frequencies have."""
    value, place = float(khz), 0
    while value >= THOUSAND and place < len(FREQUENCIES) - 1:
        value, place = value / THOUSAND, place + 1
    return f"{value:.2f}{FREQUENCIES[place]}"


FREQUENCIES = "KMGT"
THOUSAND = 1000


def _usage(line: Line, used: Use) -> str:
    """Sums by TRES; energy and page faults are not counted."""
    return _told(line, used, used.gpu_util)


def _usage_max(line: Line, used: Use) -> str:
    return _told(line, used, None if used.gpu_util is None else used.gpu_util_max)


def _told(line: Line, used: Use, gpu_util: int | None) -> str:
    rss, size = KIBIBYTES.sacct(used.rss_kib, line.ctx), KIBIBYTES.sacct(used.size_kib, line.ctx)
    told = f"cpu={_cpu(used)},energy=0,fs/disk={used.read},mem={rss},pages=0,vmem={size}"
    return told + gpu_usage(gpu_util, used.gpu_mem_mib, line.ctx)


def _usage_node(line: Line, _: Use) -> str:
    kinds = ("cpu", "energy", "fs/disk", "mem", "pages", "vmem")
    return ",".join(f"{kind}={line.node}" for kind in kinds)


def _usage_task(_line: Line, _used: Use) -> str:
    """Ranks; that of cpu looks like a time (25.11)."""
    return "cpu=00:00:00,fs/disk=0,mem=0,pages=0,vmem=0"


def _written(_: Line, used: Use) -> str:
    return f"energy=0,fs/disk={used.written}"


WIDTHS = {
    "AllocTRES": 10, "AveCPU": 10, "AveCPUFreq": 10, "AveDiskRead": 12, "AveDiskWrite": 12,
    "AvePages": 10, "AveRSS": 10, "AveVMSize": 10, "ConsumedEnergy": 14, "ConsumedEnergyRaw": 17,
    "JobID": -12, "MaxDiskRead": 12, "MaxDiskReadNode": 15, "MaxDiskReadTask": 15,
    "MaxDiskWrite": 12, "MaxDiskWriteNode": 16, "MaxDiskWriteTask": 16, "MaxPages": 8,
    "MaxPagesNode": 12, "MaxPagesTask": 14, "MaxRSS": 10, "MaxRSSNode": 10, "MaxRSSTask": 10,
    "MaxVMSize": 10, "MaxVMSizeNode": 14, "MaxVMSizeTask": 14, "MinCPU": 10, "MinCPUNode": 10,
    "MinCPUTask": 10, "Nodelist": 20, "NTasks": 8, "Pids": 20, "ReqCPUFreq": 10,
    "ReqCPUFreqMin": 13, "ReqCPUFreqMax": 13, "ReqCPUFreqGov": 13, "TRESUsageInAve": 14,
    "TRESUsageInMax": 14, "TRESUsageInMaxNode": 18, "TRESUsageInMaxTask": 18, "TRESUsageInMin": 14,
    "TRESUsageInMinNode": 18, "TRESUsageInMinTask": 18, "TRESUsageInTot": 14,
    "TRESUsageOutAve": 15, "TRESUsageOutMax": 15, "TRESUsageOutMaxNode": 19,
    "TRESUsageOutMaxTask": 19, "TRESUsageOutMin": 15, "TRESUsageOutMinNode": 19,
    "TRESUsageOutMinTask": 19, "TRESUsageOutTot": 15,
}  # fmt: skip
"""Every column with its width, in the order of `sstat -e`."""
USAGE, OUT = known(_usage), known(_written)
USAGE_NODE, USAGE_TASK = known(_usage_node), known(_usage_task)
OUT_NODE = known(lambda line, _: f"energy={line.node},fs/disk={line.node}")
OUT_TASK = known(lambda _line, _used: "fs/disk=0")
VALUES: dict[str, Value] = {
    "AllocTRES": _tres,
    "AveCPU": known(lambda _, used: _cpu(used)),
    "AveCPUFreq": CPU_KHZ,
    "AveDiskRead": _bytes("read"),
    "AveDiskWrite": _bytes("written"),
    "AvePages": TASK,
    "AveRSS": _kib("rss_kib"),
    "AveVMSize": _kib("size_kib"),
    "ConsumedEnergy": _zero,
    "ConsumedEnergyRaw": _zero,
    "JobID": _id,
    "MaxDiskRead": _bytes("read"),
    "MaxDiskWrite": _bytes("written"),
    "MaxPages": TASK,
    "MaxRSS": _kib("rss_kib"),
    "MaxVMSize": _kib("size_kib"),
    "MinCPU": known(lambda _, used: _cpu(used)),
    "Nodelist": _nodes,
    "NTasks": _tasks,
    "Pids": PIDS_OF,
    "ReqCPUFreq": _frequency,
    "ReqCPUFreqMin": _frequency,
    "ReqCPUFreqMax": _frequency,
    "ReqCPUFreqGov": _frequency,
    **dict.fromkeys(("TRESUsageInAve", "TRESUsageInMin", "TRESUsageInTot"), USAGE),
    "TRESUsageInMax": known(_usage_max),
    **dict.fromkeys(("TRESUsageInMaxNode", "TRESUsageInMinNode"), USAGE_NODE),
    **dict.fromkeys(("TRESUsageInMaxTask", "TRESUsageInMinTask"), USAGE_TASK),
    **dict.fromkeys(
        ("TRESUsageOutAve", "TRESUsageOutMax", "TRESUsageOutMin", "TRESUsageOutTot"), OUT
    ),
    **dict.fromkeys(("TRESUsageOutMaxNode", "TRESUsageOutMinNode"), OUT_NODE),
    **dict.fromkeys(("TRESUsageOutMaxTask", "TRESUsageOutMinTask"), OUT_TASK),
    **{f"{name}Node": NODE for name in ("MaxDiskRead", "MaxDiskWrite", "MaxPages", "MaxRSS")},
    **{f"{name}Task": TASK for name in ("MaxDiskRead", "MaxDiskWrite", "MaxPages", "MaxRSS")},
    **{f"{name}Node": NODE for name in ("MaxVMSize", "MinCPU")},
    **{f"{name}Task": TASK for name in ("MaxVMSize", "MinCPU")},
}
FIELDS: tuple[Field[Line], ...] = tuple(
    Field(name, name, width, VALUES.get(name, nothing)) for name, width in WIDTHS.items()
)


@finishing
async def sstat(desk: Desk, call: Call) -> Answer:
    """The command."""
    options = read_options(desk, call)
    if options.has("helpformat"):
        return Answer(out=help_grid(list(WIDTHS)))
    snap = await desk.seen(call.peer.uid)
    ctx = reader(desk, call, snap, options=options)
    try:
        shape = PIDS if options.has("pidformat") else USUAL
        fields = fields_of(options.text("format") or shape, FIELDS)
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    pairs, errors = _pairs(options, snap)
    use = await used(desk, (job for job, _ in pairs))
    lines = [Line(pair, ctx, use.get((pair[0].id, pair[1].id))) for pair in pairs]
    return Answer(out=table(fields, lines, style_of(options)), err=errors)


def _pairs(options: Options, snap: Snapshot) -> tuple[list[JobStep], str]:
    texts = [text for text in (options.text("jobs"), *options.words) if text]
    if not texts:
        raise fail(NO_JOBS)
    pairs: list[JobStep] = []
    errors = ""
    for word, refs in read_refs(texts):
        if refs is None:
            raise fail(BAD_JOB.format(word))
        for ref in refs:
            found = _steps(ref, options, snap)
            pairs += found
            errors += "" if found else _complaint(ref, snap)
    return pairs, errors


def _complaint(ref: JobRef, snap: Snapshot) -> str:
    known = jobs_of(JobRef(ref.job), snap)
    return (NOBODY_RUNS if known else NO_STEPS).format(ref.job)


def _steps(ref: JobRef, options: Options, snap: Snapshot) -> list[JobStep]:
    """The step named; else all, or the newest numbered one, else the batch step."""
    pairs = live_steps(jobs_of(JobRef(ref.job, ref.task), snap))
    if ref.step is not None:
        return [pair for pair in pairs if pair[1].id == ref.step]
    if options.has("allsteps"):
        return sorted(pairs, key=lambda pair: (pair[0].id, pair[1].id != BATCH))
    numbered = [pair for pair in pairs if pair[1].numbered]
    return numbered[-1:] or pairs[:1]
