"""From a job's record to what the agent is told: programs, files, variables, limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from broker.model import octets
from broker.model.errors import Unknown
from broker.model.ids import BATCH, EXTERN, Digest, NodeName, StepId
from broker.model.job import Job, Share, Step
from broker.model.kin import elsewhere, kindred
from broker.model.naming import file_job
from broker.model.node import Node
from broker.model.site import Site
from broker.model.spec import UNLIMITED, Output, Phase, StepSpec
from broker.run import launch
from broker.schedule.ranks import is_of_one, shares_files
from broker.world import Snapshot
from gateway.translate import token
from gateway.translate.environment import pack
from gateway.translate.jobenv import Surroundings, tasks_on, tmpdir
from gateway.translate.multiprog import filled
from gateway.translate.stepenv import (
    batch_environment,
    login_names,
    rank_variables,
    ranks_here,
    share_here,
)
from sbatch_shim.grammar.filenames import FileJob, absolute, default_pattern, fill

HERE = "127.0.0.1"
SETTLE = 0.1
"""Seconds in which the tasks of an array that are started together open their files."""
NO_FILE = ("none", "/dev/null")
LOWEST_PORT, PORTS = 10_240, 20_480
"""Where a job's own sshd may listen: below what the kernel gives to connections."""
DOOR = b"spz-door"
"""The program of a job's sshd, as the agent has it."""
Keys = Callable[[str], tuple[str, str]]
"""Private and public ed25519 key of an attempt (`4711/1`), as OpenSSH writes them."""


@dataclass(slots=True)
class OrderBook:
    """`broker.run.steps.Orders` for a site whose blobs are in a store."""

    site: Site
    """Another one after `scontrol reconfigure`."""
    blob: Callable[[Digest], bytes]
    submit_host: str
    seen: Callable[[], Snapshot] | None = None
    """What is known now: steps are told the addresses of their job's nodes."""
    keys: Keys | None = None
    """By which nodes of a job enter each other, where any are machines of their own."""
    seal: bytes | None = None
    """What tokens are signed with, for commands on such machines."""

    def order(
        self, job: Job, step: StepId, node: Node, *, gang: Sequence[Job] = ()
    ) -> launch.StepOrder:
        """Raises Unknown if a blob is missing."""
        around = Surroundings(
            self.site,
            self.submit_host,
            node.name,
            step,
            addresses=self._addresses(job),
            gang=tuple(gang),
            zone=node.machine.zone if node.machine else "",
            region=node.machine.region if node.machine else "",
        )
        if step == BATCH:
            return self._batch(job, around)
        spec = _spec(job, step)
        if spec.interactive:
            return self._tasks(job, around, spec)
        plain = self._common(job, around, spec)
        return replace(plain, time_limit=spec.time_limit, job_ends=_ends(job))

    def door(self, job: Job, node: Node) -> launch.StepOrder:
        """The step by which the job's other nodes come in there."""
        around = Surroundings(
            self.site, self.submit_host, node.name, EXTERN, addresses=self._addresses(job)
        )
        plain = self._common(job, around, None)
        return replace(plain, phases=(launch.Phase("run", (DOOR,)),), cwd=b"/", in_batch=True)

    def _nodes(self, job: Job) -> list[Node]:
        """The job's, so far as they are known."""
        known = self.seen().nodes if self.seen is not None else {}
        return [known[share.node] for share in job.shares if share.node in known]

    def _addresses(self, job: Job) -> dict[NodeName, str]:
        """Of the job's nodes; machines that are folders of this host have its own."""
        told = {node.name: node.machine for node in self._nodes(job) if node.machine is not None}
        return {
            name: HERE if machine.address.startswith("/") else machine.inside or machine.address
            for name, machine in told.items()
            if machine.address
        }

    def _kin(self, job: Job, around: Surroundings) -> launch.Kin | None:
        if self.keys is None or not kindred(self._nodes(job)):
            return None
        key, public = self.keys(job.key)
        nodes = tuple(
            (share.node, around.addresses.get(share.node, share.node), tasks_on(job.spec, share))
            for share in job.shares
        )
        port = LOWEST_PORT + int.from_bytes(sha256(public.encode()).digest()[:4], "big") % PORTS
        return launch.Kin(key, public, port, around.node, nodes)

    def outputs(self, job: Job, node: Node) -> list[str]:
        """Full paths of what a job's batch step writes there, or the runs of a cluster."""
        kept = [] if job.spec.keeper is None else [BATCH]
        steps = [BATCH] if job.runs_batch else [*kept, *(s.id for s in job.steps if s.run)]
        written: list[bytes | None] = []
        for step in steps:
            if not _writes(job, step, node.name):
                continue
            around = Surroundings(self.site, self.submit_host, node.name, step)
            written += self._files(job, around)[1:]
        return [octets.text(path) for path in written if path is not None]

    def _batch(self, job: Job, around: Surroundings) -> launch.StepOrder:
        spec = job.spec.batch if job.runs_batch else job.spec.keeper
        plain = self._common(job, around, spec)
        limit = None if job.time_limit == UNLIMITED else int(job.time_limit)
        return replace(
            plain,
            time_limit=limit,
            over_time=self.site.over_time_of(job.partition),
            settle=SETTLE if _shares_output(job, around) else 0.0,
            hold=spec is None,
            hears_why=job.spec.keeper is not None,
            label=f"JOB {job.id}",
        )

    def _tasks(self, job: Job, around: Surroundings, spec: StepSpec) -> launch.StepOrder:
        """One of srun's: its files are its own, or its text passes through srun."""
        mode = (spec.output or job.spec.output).open_mode
        common = self._common(job, around, spec)
        variables = rank_variables(job, around)
        step = job.step(around.step)
        ranks = () if step is None else ranks_here(step, around.node)
        share = None if step is None else share_here(step, around.node)
        return replace(
            common,
            cwd=octets.raw(spec.cwd or job.spec.cwd),
            append=mode == "append" or bool(_further(job, step, around.node)),
            time_limit=spec.time_limit,
            job_ends=_ends(job),
            warn=_own_warn(spec) or common.warn,
            tasks=tuple(
                _Task(job, around, spec, rank).order(own)
                for rank, own in zip(ranks, variables, strict=True)
            ),
            relay=True,
            unbuffered=spec.unbuffered,
            numbered=len(str(spec.tasks - 1)) if spec.label else 0,
            pty=spec.pty,
            kill_on_bad_exit=spec.kill_on_bad_exit,
            bind=_bind(spec, share),
        )

    def _common(self, job: Job, around: Surroundings, spec: StepSpec | None) -> launch.StepOrder:
        step = around.step
        owner, found = job.owner, job.step(step)
        whole = next((one for one in job.shares if one.node == around.node), job.shares[0])
        share = (share_here(found, around.node) if found else None) or whole
        stdin, stdout, stderr = self._files(job, around)
        further = _further(job, found, around.node)
        partition = self.site.partition(job.partition)
        return launch.StepOrder(
            uid=owner.uid,
            gid=owner.gid,
            user=owner.user,
            group=owner.group,
            home=owner.home,
            shell=owner.shell,
            groups=owner.groups or None,
            umask=job.spec.umask,
            rlimits=self._limits(job),
            nice=job.spec.nice_process,
            cwd=octets.raw(job.spec.cwd),
            phases=() if spec is None else tuple(self._phase(phase) for phase in spec.phases),
            environment=self._environment(job, around),
            login=login_names(job, around, self._given(job)),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            append=bool(further) or job.spec.output.open_mode == "append",
            kill_wait=self.site.kill_wait,
            unkillable_timeout=self.site.unkillable_timeout,
            warn=_warn(job),
            label=f"STEP {job.id}.{step}",
            in_batch=step != BATCH and job.spec.batch is not None,
            further=further is not None,
            setup=partition.setup_of(bought=whole.launch > 0) if partition else None,
            prolog=self.site.prolog,
            epilog=self.site.epilog,
            tmpdir=tmpdir(job, self.site),
            cpus=share.tres.cpu,
            cpu_ids=share.cpu_ids if self.site.constrain_cores else (),
            memory_mib=share.tres.mem_mib,
            memory_limit_mib=share.tres.mem_mib if self.site.constrain_memory else None,
            job_memory_mib=whole.tres.mem_mib,
            oom_kill_step=job.spec.option("oom-kill-step") == "1",
            gpus=share.gpu_ids,
            container=spec.container.model_dump() if spec and spec.container else None,
            kin=self._kin(job, around),
        )

    def _phase(self, phase: Phase) -> launch.Phase:
        script = None if phase.script is None else self.blob(phase.script)
        argv = tuple(None if word is None else octets.raw(word) for word in phase.argv)
        return launch.Phase(phase.name, argv, script, phase.inside)

    @staticmethod
    def _files(job: Job, around: Surroundings) -> tuple[bytes | None, bytes | None, bytes | None]:
        """stdin, stdout, stderr as full paths; the kept-open batch step writes nothing."""
        silent = not job.runs_batch and job.spec.keeper is None
        if around.step == EXTERN or (around.step == BATCH and silent):
            return None, None, None
        output = job.spec.output
        of = file_job(job, around.node, around.step)
        usual = default_pattern(job.array is not None)
        return (
            _path(output.stdin, of, job.spec.cwd),
            _path(output.stdout or usual, of, job.spec.cwd),
            _path(output.stderr, of, job.spec.cwd),
        )

    def _limits(self, job: Job) -> dict[str, tuple[int | None, int | None]]:
        """The submitter's, where the site passes them on (PropagateResourceLimits)."""
        told = job.spec.rlimits if self.site.propagates_limits else ()
        return {name: (_limit(soft), _limit(hard)) for name, soft, hard in told}

    def _environment(self, job: Job, around: Surroundings) -> bytes:
        """Of an entry that stands there twice the first holds."""
        whole = self._variables(job, around)
        if self.seal is None or not any(elsewhere(node) for node in self._nodes(job)):
            return whole
        shown = f"{token.VARIABLE}={token.sign(self.seal, job.key)}\0"
        return shown.encode("ascii") + whole

    def _variables(self, job: Job, around: Surroundings) -> bytes:
        own = _spec(job, around.step) if around.step not in (BATCH, EXTERN) else None
        spec = job.spec.keeper if around.step == BATCH else own
        extra = b"" if spec is None or spec.environment is None else self.blob(spec.environment)
        return batch_environment(job, around, given=self._given(job), extra=extra)

    def _given(self, job: Job) -> bytes:
        return b"" if job.spec.environment is None else self.blob(job.spec.environment)


def _writes(job: Job, step: StepId, node: str) -> bool:
    """Whether what a step writes is that node's: the first one's, or a file of each."""
    found = job.step(step)
    shares = (found.shares if found is not None else ()) or job.shares
    if not shares or shares[0].node == node:
        return True
    placed = found is not None and bool(found.shares)
    there = placed and any(share.node == node for share in shares)
    return there and is_of_one(job.spec.output.stdout or "")


def _further(job: Job, step: Step | None, node: str) -> bool | None:
    """None on the first node of a step; else whether files were begun anew there for all."""
    if step is None or not step.more or step.shares[0].node == node:
        return None
    return shares_files(step, job.spec.output)


def _spec(job: Job, step: StepId) -> StepSpec:
    found = job.step(step)
    if found is None or found.spec is None:
        raise Unknown(f"job {job.id} has no step {step}")
    return found.spec


@dataclass(frozen=True, slots=True)
class _Task:
    """One task of srun's."""

    job: Job
    around: Surroundings
    spec: StepSpec
    rank: int

    def order(self, variables: Mapping[str, str]) -> launch.Task:
        """Of a terminal step only the first task is seen and heard."""
        spec, output = self.spec, self._output()
        seen = spec.pty is None or self.rank == 0
        reads = seen and spec.input_rank in (None, self.rank)
        return launch.Task(
            rank=self.rank,
            variables=pack(variables),
            argv=_program(spec, self.rank),
            stdin=self._stream(output.stdin, relayed=reads),
            stdout=self._stream(output.stdout, relayed=seen),
            stderr=self._stream(output.stderr, relayed=seen),
        )

    def _stream(self, pattern: str | None, *, relayed: bool) -> launch.Stream:
        if pattern is None:
            return launch.RELAYED if relayed else None
        of = file_job(self.job, self.around.node, self.around.step)
        of = of._replace(rank=self.rank, place=self._place())
        shared = None if is_of_one(pattern) else self._output().shared_from
        return _path(pattern, of, shared or self.spec.cwd or self.job.spec.cwd)

    def _output(self) -> Output:
        return self.spec.output or Output()

    def _place(self) -> int:
        """Of the node among those of the step."""
        step = self.job.step(self.around.step)
        names = [share.node for share in step.shares] if step is not None else []
        return names.index(NodeName(self.around.node)) if self.around.node in names else 0


def _bind(spec: StepSpec, share: Share | None) -> launch.Bind | None:
    asked = spec.cpu_bind
    if asked is None or share is None:
        return None
    each = spec.cpus_per_task or 1
    return launch.Bind(asked.kind, asked.items, asked.verbose, each, share.cpu_ids)


def _program(spec: StepSpec, rank: int) -> tuple[bytes, ...] | None:
    """Its line of `--multi-prog`."""
    for one in spec.programs:
        if rank in one.ranks:
            place = rank if one.rest else one.ranks.index(rank)
            return tuple(octets.raw(filled(word, rank, place)) for word in one.argv)
    return None


def _ends(job: Job) -> int | None:
    """When its time is over."""
    if job.time_limit == UNLIMITED or job.started is None:
        return None
    return job.started + job.suspended_for + int(job.time_limit)


def _path(pattern: str | None, of: FileJob, cwd: str) -> bytes | None:
    return None if pattern is None else octets.raw(absolute(fill(pattern, of), cwd))


def _limit(value: int) -> int | None:
    return None if value < 0 else value


def _shares_output(job: Job, around: Surroundings) -> bool:
    """Whether the tasks of an array empty and write one file.

    In Slurm they begin together, and each has opened it before any writes: both lines stay.
    """
    output = job.spec.output
    if job.array is None or output.open_mode == "append":
        return False
    one = file_job(job, around.node, around.step)
    other = one._replace(id=one.id + 1, task=(one.task or 0) + 1, sluid="")
    names = (output.stdout or default_pattern(True), output.stderr)
    files = [name for name in names if name and name.lower() not in NO_FILE]
    return any(fill(name, one) == fill(name, other) for name in files)


def _own_warn(spec: StepSpec) -> launch.Warn | None:
    asked = spec.signal
    return None if asked is None else launch.Warn(asked.number, asked.before, own=True)


def _warn(job: Job) -> launch.Warn | None:
    asked = job.spec.signal
    if asked is None or job.time_limit == UNLIMITED:
        return None
    return launch.Warn(asked.number, asked.before, asked.batch)
