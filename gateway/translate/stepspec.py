"""The words of srun to a step of a job that stands (Slurm 25.11)."""

import posixpath
from typing import Literal

from broker.model.job import Job
from broker.model.spec import CpuBind, Gres, Output, Phase, StepSpec
from gateway.translate import environment, gres
from gateway.translate.container import container
from gateway.translate.jobenv import distribution
from gateway.translate.sbatch_spec import signal_of
from gateway.translate.srun import Request
from gateway.translate.stepplace import cpus_per_task, even_share, gpus_per_task, placement
from sbatch_shim.grammar.errors import GrammarError, failed
from sbatch_shim.grammar.values import read_digits

NO_STEP = "Unable to create step for job {}"
MEMORY_VARIABLES = {
    "mem": "SLURM_MEM_PER_NODE",
    "mem-per-cpu": "SLURM_MEM_PER_CPU",
    "mem-per-gpu": "SLURM_MEM_PER_GPU",
}


def step(request: Request, job: Job, window: tuple[int, int] | None) -> StepSpec:
    """What runs in the job's allocation; `window` is None where nothing is a terminal.

    Raises GrammarError.
    """

    def refuse(text: str) -> GrammarError:
        return failed(request.program, f"{NO_STEP.format(job.id)}: {text}")

    with gres.told_by(request.program, refuse):
        return _step(request, job, window)


def _step(request: Request, job: Job, window: tuple[int, int] | None) -> StepSpec:
    inside, site = request.job is not None, request.setting.site
    at = placement(request.part, job, request.named, spelling=request.spelling)
    boxed = container(
        request.part, request.program, site=site, partition=job.partition or job.partitions[0]
    )
    cwd = posixpath.join(request.typed.cwd, request.text("chdir") or request.typed.cwd)
    argv = request.argv if boxed else _found_from(cwd, request.argv)
    return StepSpec(
        name=_step_name(request),
        phases=(Phase(argv=argv),),
        programs=request.programs,
        environment=request.keep(environment.pack(_environment(request, at.tasks))),
        tasks=at.tasks,
        nodes=at.nodes,
        tasks_per_node=at.tasks_per_node,
        nodelist=at.nodelist,
        exclude=at.exclude,
        relative=at.relative,
        distribution=at.distribution,
        hosts=at.hosts,
        cpus_per_task=cpus_per_task(request.part),
        cpu_bind=_cpu_bind(request),
        gres=_gres(request, at.nodes) if inside else None,
        gpus_per_task=gpus_per_task(request.part, request.spelling),
        gres_per_task=_gres_per_task(request) if inside else (),
        mem_per_node_mib=_memory(request, "mem") if inside else None,
        mem_per_cpu_mib=_memory(request, "mem-per-cpu") if inside else None,
        overlap=request.has("overlap"),
        exact=inside and _is_exact(request),
        overcommit=request.has("overcommit"),
        whole=request.has("whole"),
        interactive=True,
        output=output(request),
        input_rank=only_task(request, "input"),
        cwd=cwd,
        time_limit=request.number("time") if inside else None,
        signal=signal_of(request.part) if inside else None,
        pty=window if request.has("pty") else None,
        label=request.has("label"),
        unbuffered=request.has("unbuffered") or request.has("pty"),
        kill_on_bad_exit=_kills(request),
        keep_counts=request.has("preserve-env"),
        wait=request.number("wait") if request.has("wait") else site.wait_time or None,
        submit_line=" ".join(("srun", *request.typed.argv)),
        container=boxed,
    )


def _found_from(cwd: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """`./a` and `../a` are told to tasks with their folder before them (22.05)."""
    program, *rest = argv
    return (f"{cwd}/{program}", *rest) if program.startswith(".") else argv


def _step_name(request: Request) -> str:
    """The variable with the job's own name does not name a step."""
    if request.said("job-name"):
        return request.part["job-name"].text or ""
    return posixpath.basename(request.argv[0])


def _gres(request: Request, nodes: int) -> tuple[Gres, ...] | None:
    """Per node, beside what tasks ask for; None: all that the allocation has."""
    part, spelling = request.part, request.spelling
    whole = (
        one.model_copy(update={"count": even_share(one.count, nodes)})
        for one in gres.per_job(part, spelling)
    )
    asked = (*gres.per_node(part, spelling), *whole)
    return asked if _says_gres(request) or gres.per_task(part, spelling) else None


def _says_gres(request: Request) -> bool:
    return any(request.has(long) for long in ("gres", "gpus", "gpus-per-node"))


def _gres_per_task(request: Request) -> tuple[Gres, ...]:
    """A figure for all outweighs those of tasks, which share it out."""
    return () if _says_gres(request) else gres.per_task(request.part, request.spelling)


def _cpu_bind(request: Request) -> CpuBind | None:
    """`quiet` alone asks for nothing."""
    asked = request.part["cpu-bind"].value if request.has("cpu-bind") else None
    return CpuBind(**asked._asdict()) if asked and (asked.kind or asked.verbose) else None


def _memory(request: Request, long: str) -> int | Literal["ALL"] | None:
    found = request.part[long].value if request.has(long) else None
    return found if isinstance(found, int) or found == "ALL" else None


def _is_exact(request: Request) -> bool:
    """`--exclusive` and `-c` ask for no more than what is needed, as `--exact` does."""
    return any(request.has(long) for long in ("exact", "exclusive", "cpus-per-task"))


def _kills(request: Request) -> bool:
    if not request.has("kill-on-bad-exit"):
        return request.setting.site.kill_on_bad_exit
    return bool(request.part["kill-on-bad-exit"].text != "0")


def output(request: Request) -> Output:
    """Files that tasks read and write; None where that passes through srun."""
    stdout, stderr = _file(request, "output"), _file(request, "error")
    if stdout is not None and not request.has("error"):
        stderr = stdout
    mode = request.part["open-mode"].value if request.has("open-mode") else None
    return Output(
        stdin=_file(request, "input"),
        stdout=stdout,
        stderr=stderr,
        open_mode=mode,
        shared_from=request.typed.cwd,
    )


def _file(request: Request, long: str) -> str | None:
    text = request.text(long)
    if text is None or text.lower() == "all" or text.isdecimal():
        return None
    return "/dev/null" if text.lower() == "none" else text


def only_task(request: Request, long: str) -> int | None:
    """`-o 2`, `-e 2`, `-i 2`: the one task that srun writes or reads for; None for all."""
    text = request.text(long)
    return read_digits(text) if text is not None else None


# ---------------------------------------------------------------- what tasks see


def _environment(request: Request, tasks: int) -> dict[str, str]:
    """The caller's variables that go along, and those that options turn into."""
    export = request.text("export") if request.has("export") else None
    found = dict(environment.exported(request.typed.environ, export).variables)
    for long, name in MEMORY_VARIABLES.items():
        if request.said(long):
            found[name] = str(request.part[long].value).replace("ALL", "0")
    cpus = cpus_per_task(request.part)
    if cpus is not None:
        found |= {"SLURM_CPUS_PER_TASK": str(cpus), "SLURM_TRES_PER_TASK": f"cpu={cpus}"}
    return found | distribution(_distribution(request, tasks))


def _distribution(request: Request, tasks: int) -> str:
    """As asked; else told where both counts were given, of whatever source."""
    text = request.text("distribution")
    if text is not None:
        return text
    if not (request.has("ntasks") and request.has("nodes")):
        return ""
    return "cyclic" if tasks <= max(1, request.part["nodes"].value.low) else "block"
