"""An allocation for srun and salloc: asked for, waited for in Slurm's words, let go."""

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.commands import Cancel, FinishAllocation, Submit, Target
from broker.model.errors import Conflict, Denied, SpzError, Unknown
from broker.model.job import ExitCode, Job, JobState, Owner
from gateway.api.desk import Desk
from gateway.api.stream import PLACE, SIGNAL, Line, Word, first_of
from gateway.api.wire import Call
from gateway.translate import refusals
from gateway.translate.srun import Request, allocation
from sbatch_shim.grammar.errors import GrammarError, error_line, failed
from sbatch_shim.grammar.hostlist import fold

FIRST_PAUSE = 0.002
LONGEST_PAUSE = 0.2
GROWTH = 1.5
BOOTING_TOLD = 3.0
"""Seconds after which a wait for nodes that start is told."""
ENDING = (1, 2, 3, 13, 15)
"""SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM: whoever waits gives up."""
HELD = "{p}: job is in held state, pending scheduler release\n"
WAITING = {
    "srun": "srun: job {j} queued and waiting for resources\n",
    "salloc": "salloc: Pending job allocation {j}\n"
    "salloc: job {j} queued and waiting for resources\n",
}
GIVEN = "{p}: job {j} has been allocated resources\n"
BOOTING = "{p}: Waiting for resource configuration\n"
READY = "{p}: Nodes {n} are ready for job\n"
REVOKED = {
    "srun": "srun: job allocation {j} has been revoked\n",
    "salloc": "salloc: job allocation {j} has been revoked.\n",
}
ABORTED = {
    "srun": "srun: Force Terminated JobId={j}\n",
    "salloc": "salloc: job aborted due to signal\n",
}
NOT_AT_ONCE = "Immediate execution impossible, insufficient priority"
NOT_NOW = "Requested partition configuration not available now"
SHUT = {
    "PartitionDown": "Partition in DOWN state",
    "PartitionConfig": NOT_NOW,
    "PartitionNodeLimit": NOT_NOW,
    "PartitionTimeLimit": NOT_NOW,
    "AccountNotAllowed": NOT_NOW,
}
"""Reasons of jobs that no waiting helps, and what `--immediate` ends with then (22.05)."""


NO_JOB = JobId(0)


class Interrupted(Exception):
    """A signal came that ends the wait."""


class Revoked(Exception):
    """The allocation was taken away."""


@dataclass(slots=True)
class Pause:
    """Growing pauses between looks at the snapshot."""

    desk: Desk
    seconds: float = FIRST_PAUSE

    async def __call__(self) -> None:
        await self.desk.pause(self.seconds)
        self.seconds = min(self.seconds * GROWTH, LONGEST_PAUSE)


@dataclass(slots=True)
class Allocation:
    """A job that srun or salloc holds."""

    desk: Desk
    call: Call
    line: Line
    request: Request
    owner: Owner
    more: Sequence[Request] = ()
    """Further components, which start with the first."""
    job: JobId = NO_JOB

    async def get(self) -> Job:
        """The running job. Raises GrammarError for a refusal, Revoked, Interrupted, Gone."""
        await self._submit()
        with self.desk.holders.holding(self.job):
            aside: list[Word] = []
            try:
                job: Job = await first_of(self._granted(), self._interrupted(aside))
            except (Revoked, Interrupted) as end:
                await self._give_up(interrupted=isinstance(end, Interrupted))
                raise
            self.line.unhear(aside)
        return job

    async def _submit(self) -> None:
        """The same request gets the same job, however often it comes."""
        barred = await self.desk.barred(self.call.peer.uid)
        try:
            if barred is not None:
                raise barred
            spec, *others = map(allocation, (self.request, *self.more))
            blobs = ChainMap(*(one.blobs for one in (self.request, *self.more)))
            self.job = await self.desk.ask(
                Submit(
                    spec=spec,
                    owner=self.owner,
                    request=self.call.request,
                    blobs=dict(blobs),
                    more=tuple(others),
                )
            )
        except SpzError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: SpzError) -> GrammarError:
        request = self.request
        option = getattr(error, "option", "")
        text = refusals.engine_lines(
            error,
            test_only=request.has("test-only"),
            typed=request.text(option) if option else None,
            program=request.program,
        )
        if isinstance(error, Denied) and error.hint:
            text += error_line(request.program, error.hint)
        return GrammarError(text, request.exit_error)

    # ---------------------------------------------------------------- waiting

    async def _granted(self) -> Job:
        """Raises Revoked."""
        came_again = bool(self.line.hello.place)
        job, pause = self._look(), Pause(self.desk)
        since, told, booting = self.desk.monotonic(), came_again, False
        while not all(map(_stands, self.components(job))):
            waited = self.desk.monotonic() - since
            await self._must_not_be_late(job, waited)
            if job.state is JobState.PENDING and not told:
                await self._tell_waiting(job)
                told = True
            elif job.state is JobState.RUNNING and waited > BOOTING_TOLD and not booting:
                await self._tell(BOOTING)
                booting = True
            await pause()
            job = self._look()
        if told and not came_again:
            await self._tell(GIVEN)
        if booting and self.request.program == "srun":
            await self._tell(READY.replace("{n}", nodes_of(job)))
        return job

    async def _tell_waiting(self, job: Job) -> None:
        if job.hold is not None:
            await self._tell(HELD)
        await self._tell(WAITING[self.request.program])
        await self.line.say(PLACE, f"{self.job}")

    async def _must_not_be_late(self, job: Job, waited: float) -> None:
        """`--immediate`: Raises GrammarError."""
        most = self.request.immediate
        if most is None or job.state is not JobState.PENDING:
            return
        if waited > most or job.reason in SHUT:
            await self.cancel()
            raise self._refusal(Conflict(SHUT.get(job.reason, NOT_AT_ONCE)))

    def components(self, job: Job) -> list[Job]:
        """As they are now, the first before the others. Raises Revoked if one is gone."""
        return [job, *(self._look(offset) for offset in range(1, 1 + len(self.more)))]

    def _look(self, offset: int = 0) -> Job:
        """A component, by default the first. Raises Revoked for one that has ended."""
        job = self.desk.snapshot().jobs.get(JobId(self.job + offset))
        if job is None or job.state.final or job.completing:
            raise Revoked
        return job

    async def _interrupted(self, aside: list[Word]) -> None:
        """Raises Interrupted at a signal that ends a wait; other words are put aside."""
        while True:
            word = await self.line.hear()
            if word.kind == SIGNAL and int(word.payload) in ENDING:
                raise Interrupted
            aside.append(word)

    async def _tell(self, text: str) -> None:
        if not self.request.quiet:
            await self.line.err(text.format(p=self.request.program, j=self.job))

    async def _give_up(self, *, interrupted: bool) -> None:
        await self._tell(REVOKED[self.request.program])
        if interrupted:
            await self.cancel()
            await self._tell(ABORTED[self.request.program])

    # ---------------------------------------------------------------- letting go

    async def cancel(self) -> None:
        """Ends the job whatever it does; one that is over already is left so."""
        try:
            await self.desk.ask(Cancel(target=Target(self.job), by=self.owner))
        except (Conflict, Unknown):
            return

    async def left(self) -> None:
        """Its command went away: it ends, unless the site waits for it to come again."""
        if not self.desk.site.inactive_limit:
            await self.cancel()

    async def finish(self, code: ExitCode) -> None:
        """Its command is over, and so is the job."""
        try:
            await self.desk.ask(FinishAllocation(job=self.job, by=self.owner, exit=code))
        except (Conflict, Unknown):
            return


def _stands(job: Job) -> bool:
    return job.state is JobState.RUNNING and not job.configuring


def nodes_of(job: Job) -> str:
    """In brackets: `ec2-[1-2]`."""
    return fold(share.node for share in job.shares)


def failure(error: SpzError, program: str, text: str) -> GrammarError:
    """A refusal in the words that srun has for what it was about."""
    return failed(program, f"{text}: {error.message}")
