"""srun: tasks in an allocation of its own or in the job that it is called from."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from accounting.ids import JobId
from broker.model.commands import AddStep, TestSubmit
from broker.model.errors import NODES_BUSY, Conflict, SpzError
from broker.model.ids import NodeName, StepId
from broker.model.job import ExitCode, Job, Owner, Share, Step, StepState
from broker.model.spec import GangPart, StepSpec
from broker.schedule.parts import alone
from broker.schedule.ranks import ranks
from gateway.api.desk import Desk
from gateway.api.programs.allocating import (
    Allocation,
    Interrupted,
    Pause,
    Revoked,
    failure,
    nodes_of,
)
from gateway.api.programs.early import early
from gateway.api.programs.gangs import chosen, commands, seen_from, together
from gateway.api.programs.stepping import Left, Manners, Watch, tasks_text
from gateway.api.programs.typed import translated
from gateway.api.relay import Shown
from gateway.api.stream import PLACE, Line
from gateway.api.text import Gone
from gateway.api.wire import Call
from gateway.translate import refusals
from gateway.translate.components import with_shared
from gateway.translate.gangenv import gang_allocation, gang_parts
from gateway.translate.sbatch import Early
from gateway.translate.srun import Request, allocation
from gateway.translate.stepplace import listed
from gateway.translate.stepspec import NO_STEP, only_task, step
from sbatch_shim.grammar.errors import FAILURE, GrammarError, failed, fatal
from sbatch_shim.grammar.instants import show_instant

NO_FOLDER = "getcwd failed: No such file or directory"
NOT_CONFIRMED = (
    "srun: error: Unable to confirm allocation for job {j}: Invalid job id specified\n"
    "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {j}\n"
)
NO_TERMINAL = (
    "srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device\n"
    "srun: error: Not using a pseudo-terminal, disregarding --pty option\n"
)
OVER = "Job/step already completing or completed"
ONE_PROGRAM = "--multi-prog option not supported with multiple het groups"
TWICE = "Duplicate het groups in single srun not supported"
CREATED = "srun: Step created for StepId={s}\n"
LAUNCHING = (
    "srun: Nodes {n} are ready for job\n"
    "srun: jobid {j}: nodes({k}):`{n}', cpu counts: {c}\n"
    "srun: Step created for StepId={s}\n"
    "srun: launch/slurm: launch_p_step_launch: CpuBindType=(null type)\n"
)
ON_HOST = "srun: launching StepId={s} on host {h}, {t} tasks: {r}\n"
STARTED = "srun: Node {h}, {t} tasks started\n"
"""What -v tells."""
LEAVING = (
    "srun: Received task exit notification for {t} task{x} of StepId={s} (status=0x{w:04x}).\n"
)
COMPLETED = "srun: {h}: {t}: Completed\n"


async def run(desk: Desk, call: Call, line: Line) -> int:
    """Raises GrammarError with Slurm's text and exit status, Gone."""
    if not call.cwd:
        raise failed("srun", NO_FOLDER)
    argvs = commands(call.argv, plugins=desk.site.containers)
    calls = [replace(call, argv=argv) for argv in argvs]
    found = await read(desk, calls, line)
    if isinstance(found, Early):
        answer = early("srun", found.name, version=desk.site.version)
        await line.out(found.text or answer.out)
        return answer.code
    said = found[0]
    if not line.hello.place:
        await line.err(said.stderr)
    owner = await desk.owner(call.peer.uid)
    srun = Srun(desk, calls[0], line, said, owner)
    if said.job is not None:
        return await srun.in_job(JobId(said.job), list(zip(calls, found, strict=True)))
    if said.has("test-only"):
        return await srun.test_only()
    if calls[1:]:
        return await srun.beside(calls)
    return await srun.alone()


async def read(desk: Desk, calls: Iterable[Call], line: Line) -> list[Request] | Early:
    """What each component's command says, or what one of them has said instead.

    Raises GrammarError, Gone.
    """
    found: list[Request] = []
    for one in calls:
        said = await translated("srun", desk, call=one, line=line)
        if isinstance(said, Early):
            return said
        found.append(said)
    return found


@dataclass(slots=True)
class Srun:
    """One srun."""

    desk: Desk
    call: Call
    line: Line
    request: Request
    owner: Owner
    part: GangPart | None = None
    """Its place in a step over several components."""

    async def test_only(self) -> int:
        try:
            estimate = await self.desk.ask(
                TestSubmit(spec=allocation(self.request), owner=self.owner)
            )
        except SpzError as error:
            text = refusals.engine_lines(error, test_only=True, typed=None, program="srun")
            raise GrammarError(text, FAILURE) from error
        start = show_instant(estimate.start, self.desk.zone(self.call))
        await self.line.err(
            f"srun: job {estimate.job} to start at {start} using {estimate.cpus} processors "
            f"on nodes {estimate.nodes} in partition {estimate.partition}\n"
        )
        return 0

    async def alone(self) -> int:
        """In an allocation that begins and ends with this command."""
        held = Allocation(self.desk, self.call, self.line, self.request, self.owner)
        return await self._within(held, lambda jobs: self._tasks(jobs[0]))

    async def beside(self, calls: Sequence[Call]) -> int:
        """`a : b` in such an allocation of several components."""
        self.request, *others = await self._requests(calls)
        held = Allocation(self.desk, self.call, self.line, self.request, self.owner, others)

        async def tasks(jobs: Sequence[Job]) -> tuple[int, ExitCode]:
            told = gang_allocation(jobs, self.desk.site, self.desk.host)
            environ = {**self.call.environ, **told}
            parts = [(_in(one, job, environ), job) for one, job in zip(calls, jobs, strict=True)]
            code = await self._side_by_side(parts)
            return code, ExitCode(code)

        return await self._within(held, tasks)

    async def _requests(self, calls: Sequence[Call]) -> list[Request]:
        """What each says, with what it has of the others' options. Raises GrammarError, Gone."""
        found = await read(self.desk, calls, self.line)
        assert not isinstance(found, Early)  # their words were read before
        if found[1:] and any(one.programs for one in found):
            raise fatal("srun", ONE_PROGRAM)
        shared = zip(found, with_shared([one.part for one in found]), strict=True)
        return [replace(one, part=part) for one, part in shared]

    async def _within(
        self,
        held: Allocation,
        tasks: Callable[[Sequence[Job]], Awaitable[tuple[int, ExitCode]]],
    ) -> int:
        try:
            jobs = held.components(await held.get())
            with self.desk.holders.holding(held.job):
                code, end = await tasks(jobs)
        except (Revoked, Interrupted):
            return FAILURE
        except Gone:
            await held.left()
            raise
        except Left:
            await held.cancel()
            raise
        except GrammarError:
            await held.finish(ExitCode(FAILURE))
            raise
        await held.finish(end)
        return code

    async def in_job(self, job_id: JobId, asked: Sequence[tuple[Call, Request]]) -> int:
        """In the allocation of the job that we are in, or that was named.

        With several commands, or groups named, in components of it: each its own step.
        """
        job = self.desk.snapshot().jobs.get(job_id)
        if job is None or not self._ours(job):
            raise GrammarError(NOT_CONFIRMED.format(j=job_id), FAILURE)
        if not asked[1:] and not self.request.has("het-group") and job.het is None:
            code, _ = await self._tasks(await self._standing(job))
            return code
        first = job.het.offset if job.het else 0
        parts: list[tuple[Call, Job]] = []
        for place, (call, said) in enumerate(asked, first):
            own = chosen(job, said.text("het-group") or str(place), self.desk.snapshot())
            parts += [(_in(call, one, call.environ), await self._standing(one)) for one in own]
        if len({one.id for _, one in parts}) < len(parts):
            raise fatal("srun", TWICE)
        return await self._side_by_side(parts)

    async def _side_by_side(self, parts: Sequence[tuple[Call, Job]]) -> int:
        """A step in each component, which are one to their tasks. Raises GrammarError."""
        requests = await self._requests([call for call, _ in parts])
        jobs = [job for _, job in parts]
        places = gang_parts(zip(jobs, map(_expected, requests, jobs), strict=True))
        return await together(
            self.line,
            [
                partial(self._component, call, job, request=one, part=places[job.id])
                for (call, job), one in zip(parts, requests, strict=True)
            ],
        )

    async def _component(
        self, call: Call, job: Job, line: Line, *, request: Request, part: GangPart
    ) -> int:
        own = replace(self, line=line, call=call, request=request, part=part)
        code, _ = await own._tasks(job)
        return code

    def _ours(self, job: Job) -> bool:
        return job.owner.uid == self.owner.uid or self.owner.uid in (0, *self.desk.site.admins)

    async def _standing(self, job: Job) -> Job:
        """The job, once it runs: the batch script may be ahead of the news of it."""
        pause = Pause(self.desk)
        while not job.shares or job.configuring:
            if job.state.final:
                raise GrammarError(NOT_CONFIRMED.format(j=job.id), FAILURE)
            await pause()
            job = self.desk.snapshot().jobs.get(job.id, job)
        return job

    # ---------------------------------------------------------------- the step

    async def _tasks(self, job: Job) -> tuple[int, ExitCode]:
        """Exit status, and the worst end of the tasks."""
        request = await self._with_terminal()
        window = self.line.hello.window
        spec = step(request, job, (window.rows, window.columns) if window else None)
        spec = spec.model_copy(update={"gang": self.part})
        step_id, offsets = place_in(self.line.hello.place)
        began = step_id is not None
        if step_id is None:
            step_id = await self._created(job, spec)
        watch = Watch(
            self.desk, self.line, self.owner, job, step_id, self._manners(spec), offsets=offsets
        )
        try:
            ended = await watch.run(self._started(job, step_id, told=began))
            code, end = await watch.finish(ended)
        except (Gone, Left):
            await watch.kill()
            raise
        await self._tell_end(watch.name, watch.hosts, code=code)
        await watch.relay.forget()
        return code, end

    async def _with_terminal(self) -> Request:
        """Without --pty where there is no terminal, which is told."""
        request = self.request
        if not request.has("pty") or self.line.hello.window is not None:
            return request
        if not self.line.hello.place:
            await self.line.err(NO_TERMINAL)
        return replace(
            request, part={long: given for long, given in request.part.items() if long != "pty"}
        )

    async def _created(self, job: Job, spec: StepSpec) -> StepId:
        """The same request gets the same step, however often it comes."""
        most = self.request.immediate if self.request.job is not None else None
        asked = AddStep(
            job=job.id,
            by=self.owner,
            step=spec,
            request=self.call.request + "step",
            blobs=self.request.blobs,
            immediate=most is not None,
        )
        try:
            return await self._asked(asked, self.desk.monotonic() + (most or 0))
        except SpzError as error:
            raise failure(error, "srun", NO_STEP.format(job.id)) from error

    async def _asked(self, asked: AddStep, until: float) -> StepId:
        """`--immediate` of more than a second asks again until then (22.05)."""
        pause = Pause(self.desk)
        while True:
            try:
                found: StepId = await self.desk.ask(asked)
            except Conflict as error:
                more = (self.request.immediate or 0) > 1 and self.desk.monotonic() < until
                if str(error) != NODES_BUSY or not more:
                    raise
                await pause()
            else:
                return found

    async def _started(self, job: Job, step_id: StepId, *, told: bool) -> None:
        """Waits until the step runs, or has ended. Raises GrammarError if its job ends first."""
        pause, waited = Pause(self.desk), False
        found = self._step(job, step_id)
        while found.state is StepState.PENDING:
            waited = waited or (found.share is None and not job.configuring)
            await pause()
            found = self._step(job, step_id)
        name = f"{job.id}.{step_id}"
        if told:
            return
        if self.request.verbose:
            await self._tell_start(name, job, found)
        elif waited and not self.request.quiet:
            await self.line.err(CREATED.format(s=name))
        await self.line.say(PLACE, f"{name}@0")

    def _step(self, job: Job, step_id: StepId) -> Step:
        now = self.desk.snapshot().jobs.get(job.id)
        found = now.step(step_id) if now is not None and now.attempt == job.attempt else None
        over = now is None or now.state.final or now.completing
        if found is None or (over and found.state is StepState.PENDING):
            raise failure(Conflict(OVER), "srun", NO_STEP.format(job.id))
        return found

    def _manners(self, spec: StepSpec) -> Manners:
        request = self.request
        output = spec.output
        first, tasks = (self.part.first_rank, self.part.tasks) if self.part else (0, spec.tasks)
        return Manners(
            shown=Shown(
                label=len(str(tasks - 1)) if spec.label else 0,
                first=first,
                out=only_task(request, "output"),
                err=only_task(request, "error"),
            ),
            reads=output is None or output.stdin is None,
            raw=spec.pty is not None,
            quits_at_once=request.has("quit-on-interrupt"),
            no_status=request.has("disable-status"),
            kills=spec.kill_on_bad_exit,
            wait=spec.wait or 0,
            quiet=request.quiet,
        )

    # ---------------------------------------------------------------- what -v tells

    async def _tell_start(self, name: str, job: Job, found: Step) -> None:
        rows = [(share.node, own) for share, own in zip(found.shares, ranks(found), strict=True)]
        head = LAUNCHING.format(
            n=nodes_of(job), j=job.id, k=len(job.shares), c=cpu_counts(job), s=name
        )
        await self.line.err(
            head
            + "".join(ON_HOST.format(s=name, h=h, t=len(own), r=listed(own)) for h, own in rows)
            + "".join(STARTED.format(h=h, t=len(own)) for h, own in rows)
        )

    async def _tell_end(self, name: str, hosts: Mapping[int, NodeName], *, code: int) -> None:
        if not self.request.verbose:
            return
        by_node: dict[NodeName, list[int]] = {}
        for rank, node in sorted(hosts.items()):
            by_node.setdefault(node, []).append(rank)
        for node, own in by_node.items():
            plural = "s" if len(own) > 1 else ""
            text = LEAVING.format(t=len(own), x=plural, s=name, w=(code & 0xFF) << 8)
            done = "" if code else COMPLETED.format(h=node, t=tasks_text(own))
            await self.line.err(text + done)


def _expected(request: Request, job: Job) -> Sequence[Share]:
    """Where a component's tasks will be. Raises GrammarError for what has no room there."""
    try:
        return alone(job, step(request, job, None))
    except SpzError as error:
        raise failure(error, "srun", NO_STEP.format(job.id)) from error


def _in(call: Call, job: Job, environ: Mapping[str, str]) -> Call:
    """The call as a component sees it, which asks under a request of its own."""
    request = f"{call.request}+{job.id}"
    return replace(call, request=request, environ=seen_from(job, environ))


def cpu_counts(job: Job) -> str:
    """`3(x1),1(x2)`: cpus of nodes that follow one another."""
    same = groupby(share.tres.cpu for share in job.shares)
    return ",".join(f"{cpus}(x{len(list(times))})" for cpus, times in same)


def place_in(place: str) -> tuple[StepId | None, tuple[int, ...]]:
    """Step and offsets of what was said by PLACE before the connection was lost."""
    name, at, offsets = place.partition("@")
    if not at:
        return None, ()
    return StepId(name.partition(".")[2]), tuple(int(one) for one in offsets.split(","))
