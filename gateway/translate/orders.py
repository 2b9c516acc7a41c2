"""From a job's record to what the agent is told: programs, files, variables, limits."""

from collections.abc import Callable
from dataclasses import dataclass

from broker.model.errors import Unknown
from broker.model.ids import BATCH, Digest, StepId
from broker.model.job import Job
from broker.model.node import Node
from broker.model.site import Site
from broker.model.spec import UNLIMITED, Phase, StepSpec
from broker.run import launch
from gateway.translate.jobenv import Surroundings, batch_environment
from sbatch_shim.grammar.filenames import FileJob, absolute, default_pattern, fill


@dataclass(frozen=True, slots=True)
class OrderBook:
    """`broker.run.steps.Orders` for a site whose blobs are in a store."""

    site: Site
    blob: Callable[[Digest], bytes]
    submit_host: str

    def order(self, job: Job, step: StepId, node: Node) -> launch.StepOrder:
        """Raises Unknown if a blob is missing."""
        spec = job.spec.batch if step == BATCH else self._step_spec(job, step)
        owner = job.owner
        stdin, stdout, stderr = self._files(job, step, node)
        return launch.StepOrder(
            uid=owner.uid,
            gid=owner.gid,
            user=owner.user,
            groups=owner.groups or None,
            umask=job.spec.umask,
            rlimits={name: (_limit(soft), _limit(hard)) for name, soft, hard in job.spec.rlimits},
            nice=job.spec.nice_process,
            cwd=raw(job.spec.cwd),
            phases=() if spec is None else tuple(self._phase(phase) for phase in spec.phases),
            environment=self._environment(job, step, node),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            append=job.spec.output.open_mode == "append",
            time_limit=None if job.time_limit == UNLIMITED else int(job.time_limit),
            kill_wait=self.site.kill_wait,
            warn=_warn(job),
            hold=spec is None,
            label=f"JOB {job.id}" if step == BATCH else f"STEP {job.id}.{step}",
            cpus=job.shares[0].tres.cpu,
            memory_mib=job.shares[0].tres.mem_mib,
            gpus=job.shares[0].gpu_ids,
        )

    @staticmethod
    def _step_spec(job: Job, step: StepId) -> StepSpec:
        found = job.step(step)
        if found is None or found.spec is None:
            raise Unknown(f"job {job.id} has no step {step}")
        return found.spec

    def _phase(self, phase: Phase) -> launch.Phase:
        script = None if phase.script is None else self.blob(phase.script)
        argv = tuple(None if word is None else raw(word) for word in phase.argv)
        return launch.Phase(phase.name, argv, script)

    def _files(
        self, job: Job, step: StepId, node: Node
    ) -> tuple[bytes | None, bytes | None, bytes | None]:
        """stdin, stdout, stderr as full paths; the kept-open batch step writes nothing."""
        if step == BATCH and job.spec.batch is None:
            return None, None, None
        output = job.spec.output
        of = file_job(job, node.name, step)
        usual = default_pattern(job.array is not None)
        return (
            _path(output.stdin, of, job.spec.cwd),
            _path(output.stdout or usual, of, job.spec.cwd),
            _path(output.stderr, of, job.spec.cwd),
        )

    def _environment(self, job: Job, step: StepId, node: Node) -> bytes:
        given = b"" if job.spec.environment is None else self.blob(job.spec.environment)
        spec = None if step == BATCH else self._step_spec(job, step)
        extra = b"" if spec is None or spec.environment is None else self.blob(spec.environment)
        around = Surroundings(self.site, self.submit_host, node.name, step)
        return batch_environment(job, around, given=given, extra=extra)


def file_job(job: Job, node: str, step: StepId = BATCH) -> FileJob:
    """What the patterns of the job's file names are filled from."""
    array = job.array
    return FileJob(
        id=job.id,
        array_id=array.base if array else None,
        task=array.task if array else None,
        user=job.owner.user,
        name=job.spec.name,
        node=node,
        restarts=job.restarts,
        sluid=job.sluid,
        step=step,
    )


def raw(text: str) -> bytes:
    """Text that was bytes, as those bytes again."""
    return text.encode("utf-8", "surrogateescape")


def _path(pattern: str | None, of: FileJob, cwd: str) -> bytes | None:
    return None if pattern is None else raw(absolute(fill(pattern, of), cwd))


def _limit(value: int) -> int | None:
    return None if value < 0 else value


def _warn(job: Job) -> launch.Warn | None:
    asked = job.spec.signal
    if asked is None or job.time_limit == UNLIMITED:
        return None
    return launch.Warn(asked.number, asked.before, asked.batch)
