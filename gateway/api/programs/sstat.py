"""sstat: steps that run, with what they hold and what was measured of them."""

from dataclasses import dataclass

from broker.model.ids import BATCH
from broker.world import Snapshot
from gateway.api.desk import Desk
from gateway.api.programs.reading import Finished, Options, fail, read_options, reader
from gateway.api.programs.scontrol_show import jobs_of
from gateway.api.wire import Answer, Call
from gateway.query import past
from gateway.query.context import Context
from gateway.query.kinds import KIBIBYTES, TRES
from gateway.query.refs import cut_list, read_ref
from gateway.query.reports import Field, Style, UnknownFieldError, fields_of, nothing, table
from gateway.query.rows import help_grid
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
    """A step, and how to write of it."""

    pair: JobStep
    ctx: Context


def _id(line: Line) -> str:
    return step_id(*line.pair, line.ctx)


def _tres(line: Line) -> str:
    held = step_tres(*line.pair, line.ctx)
    return "" if line.pair[1].id == BATCH else TRES.sacct(held, line.ctx)


def _node(line: Line) -> str:
    names = step_nodes(*line.pair, line.ctx) or ("",)
    return names[0]


def _nodes(line: Line) -> str:
    return fold(step_nodes(*line.pair, line.ctx) or ())


def _tasks(line: Line) -> str:
    return str(step_tasks(*line.pair, line.ctx))


def _task(_: Line) -> str:
    return "0"


def _rss(line: Line) -> str:
    return KIBIBYTES.sacct(line.pair[1].usage.max_rss_kib, line.ctx)


def _cpu(line: Line) -> str:
    return show_long(past.step_total_cpu(*line.pair, line.ctx) // 1_000_000)


def _frequency(line: Line) -> str:
    return "0" if line.pair[1].id == BATCH else "Unknown"


def _usage(line: Line) -> str:
    return past.step_usage(*line.pair, line.ctx)


def _zero(_: Line) -> str:
    return "0"


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
VALUES = {
    "AllocTRES": _tres,
    "AveCPU": _cpu,
    "AveRSS": _rss,
    "ConsumedEnergy": _zero,
    "ConsumedEnergyRaw": _zero,
    "JobID": _id,
    "MaxRSS": _rss,
    "MaxRSSNode": _node,
    "MaxRSSTask": _task,
    "MinCPU": _cpu,
    "MinCPUNode": _node,
    "MinCPUTask": _task,
    "Nodelist": _nodes,
    "NTasks": _tasks,
    "ReqCPUFreq": _frequency,
    "ReqCPUFreqMin": _frequency,
    "ReqCPUFreqMax": _frequency,
    "ReqCPUFreqGov": _frequency,
    "TRESUsageInAve": _usage,
    "TRESUsageInMax": _usage,
    "TRESUsageInMin": _usage,
    "TRESUsageInTot": _usage,
}
"""What is known; the rest (pages, disk, virtual memory, process ids) is not measured."""
FIELDS: tuple[Field[Line], ...] = tuple(
    Field(name, name, width, VALUES.get(name, nothing)) for name, width in WIDTHS.items()
)


async def sstat(desk: Desk, call: Call) -> Answer:
    """The command."""
    try:
        return _answer(desk, call)
    except Finished as end:
        return end.answer


def _answer(desk: Desk, call: Call) -> Answer:
    options = read_options(desk, call)
    if options.has("helpformat"):
        return Answer(out=help_grid(list(WIDTHS)))
    snap = desk.snapshot()
    ctx = reader(desk, call, snap, options=options)
    try:
        shape = PIDS if options.has("pidformat") else USUAL
        fields = fields_of(options.text("format") or shape, FIELDS)
    except UnknownFieldError as error:
        raise fail(BAD_FIELD.format(error)) from None
    lines, errors = _lines(options, snap, ctx)
    return Answer(out=table(fields, lines, _style(options)), err=errors)


def _style(options: Options) -> Style:
    header = not options.has("noheader")
    if options.has("parsable2") or options.has("parsable"):
        return Style("|", ended=not options.has("parsable2"), header=header)
    return Style(header=header)


def _lines(options: Options, snap: Snapshot, ctx: Context) -> tuple[list[Line], str]:
    texts = [text for text in (options.text("jobs"), *options.words) if text]
    if not texts:
        raise fail(NO_JOBS)
    lines: list[Line] = []
    errors = ""
    for word in [word for text in texts for word in cut_list(text)]:
        refs = read_ref(word)
        if refs is None:
            raise fail(BAD_JOB.format(word))
        for ref in refs:
            found = _steps(ref, options, snap)
            lines += [Line(pair, ctx) for pair in found]
            errors += "" if found else _complaint(ref, snap)
    return lines, errors


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
