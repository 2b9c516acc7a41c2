"""What was measured of a step, as sacct tells it: by TRES, by disk, pages and address space.

Slurm tells mean, least and most of tasks; here the tasks of a step are measured together (22.05).
"""

from collections.abc import Callable

from broker.model.job import Job, Step
from gateway.query.context import Context
from gateway.query.kinds import scaled
from gateway.query.past import step_rss, step_rss_node, step_total_cpu
from sbatch_shim.grammar.values import show_long

NO_ENERGY = "energy=0"
"""What is told of every step that has ended, measured or not (25.11)."""
MEBI = 1 << 20
UNITS = "MGTP"
STEP = 1024
Text = Callable[[Job, Step, Context], str]


def known(job: Job, step: Step, ctx: Context) -> bool:
    """Whether somebody looked at its processes while they ran."""
    return step_rss(job, step, ctx) is not None and step.usage.max_size_kib > 0


def _if_known(get: Text) -> Text:
    return lambda job, step, ctx: get(job, step, ctx) if known(job, step, ctx) else ""


def _mebibytes(count: int) -> str:
    """`22.96M`, in the next unit from 1024 on."""
    amount, place = count / MEBI, 0
    while amount >= STEP and place < len(UNITS) - 1:
        amount, place = amount / STEP, place + 1
    return f"{amount:.2f}{UNITS[place]}"


read = _if_known(lambda _job, step, _ctx: _mebibytes(step.usage.read))
written = _if_known(lambda _job, step, _ctx: _mebibytes(step.usage.written))
pages = _if_known(lambda _job, step, _ctx: str(step.usage.pages))
size = _if_known(lambda _job, step, ctx: scaled(step.usage.max_size_kib, ctx, "K"))
task = _if_known(lambda _job, _step, _ctx: "0")
node = _if_known(lambda job, step, ctx: step_rss_node(job, step, ctx) or "")
KINDS = ("cpu", "energy", "fs/disk", "mem", "pages", "vmem")
OUT_KINDS = ("energy", "fs/disk")
usage_nodes = _if_known(lambda job, step, ctx: _of_each(KINDS, node(job, step, ctx)))
usage_tasks = _if_known(lambda _job, _step, _ctx: "cpu=0,fs/disk=0,mem=0,pages=0,vmem=0")
out_nodes = _if_known(lambda job, step, ctx: _of_each(OUT_KINDS, node(job, step, ctx)))
out_tasks = _if_known(lambda _job, _step, _ctx: "fs/disk=0")
out_parts = _if_known(lambda _job, step, _ctx: f"{NO_ENERGY},fs/disk={step.usage.written}")


def _of_each(kinds: tuple[str, ...], value: str) -> str:
    return ",".join(f"{kind}={value}" for kind in kinds)


def energy(_job: Job, step: Step, _: Context) -> str:
    """Of a step of which nothing was measured."""
    return NO_ENERGY if step.ended is not None else ""


def out(job: Job, step: Step, ctx: Context) -> str:
    """What a step wrote."""
    return out_parts(job, step, ctx) or energy(job, step, ctx)


def usage(job: Job, step: Step, ctx: Context) -> str:
    """What was measured of a step, by TRES; the kinds that are not measured are left out."""
    return usage_min(job, step, ctx) or energy(job, step, ctx)


def usage_min(job: Job, step: Step, ctx: Context) -> str:
    """The same; empty where nothing was measured."""
    return _usage(job, step, ctx, gpu_util=step.usage.gpu_util)


def usage_max(job: Job, step: Step, ctx: Context) -> str:
    """The same with the highest of what changes."""
    measured = step.usage.gpu_util is not None
    return _usage(job, step, ctx, gpu_util=step.usage.gpu_util_max if measured else None)


def _usage(job: Job, step: Step, ctx: Context, *, gpu_util: int | None) -> str:
    rss, used = step_rss(job, step, ctx), step.usage
    if rss is None and gpu_util is None:
        return ""
    cpu = show_long(step_total_cpu(job, step, ctx) // 1_000_000)
    told = [f"cpu={cpu}", NO_ENERGY, f"mem={scaled(rss, ctx, 'K') if rss else 0}"]
    if known(job, step, ctx):
        told.insert(2, f"fs/disk={used.read}")
        told += [f"pages={used.pages}", f"vmem={scaled(used.max_size_kib, ctx, 'K')}"]
    return ",".join(told) + gpu_usage(gpu_util, used.gpu_mem_mib, ctx)


def gpu_usage(util: int | None, mem_mib: int, ctx: Context) -> str:
    """Behind the other kinds, as Slurm's gpu plugins tell it; empty where nothing was measured."""
    if util is None:
        return ""
    memory = scaled(mem_mib, ctx, "M") if mem_mib else "0"
    return f",gres/gpumem={memory},gres/gpuutil={util}"
