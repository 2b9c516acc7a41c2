"""A step and the command that watches it: text, input, signals, Slurm's last words (25.11)."""

import asyncio
import signal as signals
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from broker.model.commands import CancelStep, Signal, Target
from broker.model.errors import Conflict, Unknown
from broker.model.ids import NodeName, StepId, step_key
from broker.model.job import ExitCode, Job, Owner, Step, StepState
from broker.model.node import NodeState
from broker.schedule.ranks import ranks
from gateway.api.desk import Desk
from gateway.api.programs.allocating import Pause
from gateway.api.programs.unopened import first_unopened, told
from gateway.api.relay import ENDED, NOBODY, Gathered, Piece, Shown
from gateway.api.stream import (
    END,
    INPUT,
    PLACE,
    RAW,
    SIGNAL,
    TAKEN,
    WANT,
    WINDOW,
    Line,
    Word,
    first_of,
    read_window,
)
from sbatch_shim.grammar.errors import FAILURE, error_line
from sbatch_shim.grammar.hostlist import fold

AGAIN = 1.0
"""Seconds within which a second interrupt ends the step."""
GATHERED = 0.15
"""Seconds for which ends of tasks are gathered, so that equal ones are told in one line."""
INTERRUPTED = "{p}: interrupt (one more within {n} sec to abort)\n"
RUNNING = "{p}: StepId={s} {t}: running\n"
SENDING = "{p}: sending Ctrl-C to StepId={s}\n"
ABORTED = "{p}: Job step aborted: Waiting up to {n} seconds for job step to finish.\n"
FORCING = "{p}: forcing job termination\n"
FORCED = "{p}: Force Terminated StepId={s}\n"
TERMINATING = "{p}: Terminating StepId={s}\n"
CONTINUED = "{p}: got SIGCONT\n"
ENDED_BY = "{p}: error: {n}: {t}: {how}\n"
LOST = "{p}: error: Node failure on {n}\n"
FIRST_EXITED = "{p}: First task exited {w}s ago\n"
STANDS = "{p}: StepId={s} {t}: {how}\n"
EXITED = "Exited with exit code {}"
OUT_OF_MEMORY = "Out Of Memory"
OOM_SIGNAL = 125
"""Slurm's made-up signal of an end for want of memory."""
FORCES = (signals.SIGKILL, signals.SIGTERM)
"""Ends by these are told as forced (22.05)."""
ALL_SHOWN = Shown()


@dataclass(frozen=True, slots=True)
class Manners:
    """How srun was told to behave towards its step."""

    program: str = "srun"
    shown: Shown = ALL_SHOWN
    reads: bool = True
    """Whether tasks get what srun reads."""
    raw: bool = False
    """Whether srun's terminal becomes the task's."""
    quits_at_once: bool = False
    """`--quit-on-interrupt`: one interrupt does what else takes two."""
    no_status: bool = False
    """`--disable-status`: an interrupt goes to the tasks without a word."""
    kills: bool = False
    """`--kill-on-bad-exit`."""
    wait: int = 0
    """`--wait`: seconds after the first task's end when the others are killed; 0 for never."""
    quiet: bool = False
    verbose: bool = False
    owns: bool = True
    """Whether the step ends with its command; sattach only looks on."""


@dataclass(slots=True)
class Watch:
    """One step from here to its end."""

    desk: Desk
    line: Line
    owner: Owner
    job: Job
    step: StepId
    manners: Manners
    offsets: Sequence[int] = ()
    """How far the io file of each node was passed on before."""
    relay: Gathered = field(init=False)
    hosts: dict[int, NodeName] = field(default_factory=dict)
    """The node of each task, once that is known."""
    first_end: float | None = None
    given: int = 0
    """Bytes of input that the tasks have been given."""
    ended: dict[int, ExitCode] = field(default_factory=dict)
    """How tasks ended, by rank, that were not told of yet."""
    told: set[int] = field(default_factory=set)
    since: float = 0.0
    unopened: Piece | None = None
    """What the first task said that lacks one of its files: none begins then."""
    interrupted: float = -AGAIN
    aborting: bool = False
    terminating: bool = False
    asked_to_end: bool = False
    insisting: "asyncio.Task[None] | None" = None
    typed: "asyncio.Queue[Word]" = field(default_factory=asyncio.Queue)
    """Input for the tasks, which may be slower than signals may be."""

    def __post_init__(self) -> None:
        key = step_key(self.job.id, self.job.attempt, self.step)
        self.relay = Gathered(self.desk, key)
        self.given = self.line.hello.taken

    @property
    def name(self) -> str:
        return f"{self.job.id}.{self.step}"

    # ---------------------------------------------------------------- following

    async def run(self, begun: Awaitable[None]) -> Step | None:
        """The step when it is over; None if its job's record is gone. Raises Gone, Left.

        Signals are heard from now on, the rest follows what is `begun`, whose errors are raised.
        """
        try:
            await first_of(self._follow(begun), self._hear(), self._feed())
        finally:
            if self.manners.owns:
                for relay in self.relay.each:
                    self.desk.relayed.pop(passed_on(self.relay.key, relay.node), None)
            if self.insisting is not None:
                self.insisting.cancel()
        return self._look()

    async def _follow(self, begun: Awaitable[None]) -> None:
        await begun
        self._join()
        if self.manners.raw:
            await self.line.say(RAW)
        if self.manners.reads:
            await self.line.say(WANT, b"1")
        async for found in self.relay.follow(self._over):
            await self._pass_on(found)
            self.unopened = self.unopened or first_unopened(found)
            self._note_ends(found)
            await self._tell_ends(late=True)
            await self._notice_abort()
            await self._notice_wait()
            if found:
                await self.line.say(PLACE, f"{self.name}@{self.relay.offsets()}")
                await self._note_read()

    def _join(self) -> None:
        """The nodes are known now. Raises Unknown if one is gone."""
        step = self._look()
        shares = (step.shares if step is not None else ()) or self.job.shares[:1]
        self.relay.join([share.node for share in shares], self.offsets)
        if step is not None:
            rows = zip(shares, ranks(step), strict=False)
            self.hosts = {rank: share.node for share, own in rows for rank in own}

    async def _note_read(self) -> None:
        """Only the step's own command says what need not be kept."""
        if self.manners.owns:
            for relay in self.relay.each:
                self.desk.relayed[passed_on(self.relay.key, relay.node)] = relay.offset
            await self.relay.note_read()

    async def _pass_on(self, found: Sequence[Piece]) -> None:
        for stream, data in self.manners.shown.runs(found):
            await (self.line.err(data) if stream == b"e" else self.line.out(data))

    def _look(self) -> Step | None:
        job = self.desk.snapshot().jobs.get(self.job.id)
        return None if job is None or job.attempt != self.job.attempt else job.step(self.step)

    def _over(self) -> bool:
        step = self._look()
        return step is None or step.state.final

    async def _notice_abort(self) -> None:
        """The whole job, or the step by another's hand, is being ended."""
        job = self.desk.snapshot().jobs.get(self.job.id)
        if job is not None and job.completing and job.kill_cause != "finished":
            await self._tell_aborted()

    async def _tell_aborted(self) -> None:
        if not self.aborting:
            self.aborting = True
            await self._tell(ABORTED, n=self.desk.site.kill_wait + 2)

    async def _tell(self, text: str, **words: object) -> None:
        if not self.manners.quiet or ": error: " in text:
            await self.line.err(text.format(p=self.manners.program, **words))

    # ---------------------------------------------------------------- ends of tasks

    def _note_ends(self, found: Iterable[Piece]) -> None:
        if not self.ended:
            self.since = self.desk.monotonic()
        for piece in found:
            if piece.stream == ENDED and piece.rank != NOBODY:
                self.ended[piece.rank] = piece.exit()
                self.first_end = self.first_end or self.desk.monotonic()

    async def _notice_wait(self) -> None:
        """The first task ended so long ago that the others are not waited for any more."""
        late = self.first_end is not None and self.manners.wait and not self.asked_to_end
        if not late or self.desk.monotonic() - (self.first_end or 0.0) < self.manners.wait:
            return
        over = {*self.told, *self.ended}
        left = sorted(set(range(self._tasks())) - over)
        if not left or self._over():
            return
        self.asked_to_end = True
        await self._tell(FIRST_EXITED, w=self.manners.wait)
        await self._tell(STANDS, s=self.name, t=tasks_text(left), how="running")
        await self._tell(STANDS, s=self.name, t=tasks_text(sorted(over)), how="exited")
        await self._tell(TERMINATING, s=self.name)
        await self._tell_aborted()
        await self.kill()

    async def _tell_ends(self, *, late: bool = False, memory: bool = False) -> None:
        """Equal ends in one line; with `late` only what has been gathered for a while."""
        if not self.ended or (late and self.desk.monotonic() - self.since < GATHERED):
            return
        ends, self.ended = self.ended, {}
        self.told.update(ends)
        for node, own in self._by_node(ends).items():
            for how, tasks in grouped(own, memory=memory):
                await self._tell(ENDED_BY, n=node, t=tasks_text(tasks), how=how)
                if self.manners.kills and not (self.aborting or self.terminating):
                    self.terminating = True
                    await self._tell(TERMINATING, s=self.name)

    def _by_node(self, ends: Mapping[int, ExitCode]) -> dict[NodeName, dict[int, ExitCode]]:
        found: dict[NodeName, dict[int, ExitCode]] = {}
        for rank, end in ends.items():
            node = self.hosts.get(rank, self.job.shares[0].node)
            found.setdefault(node, {})[rank] = end
        return found

    async def finish(self, step: Step | None) -> tuple[int, ExitCode]:
        """Srun's last words; its exit status, and the worst of the tasks' ends."""
        if step is None or step.state is StepState.NODE_FAIL:
            await self._tell(LOST, n=self._lost())
            return FAILURE, ExitCode(FAILURE)
        if self.unopened is not None:
            for text in told(self.unopened, step.spec):
                await self.line.err(error_line(self.manners.program, text))
            return FAILURE, ExitCode(FAILURE)
        every = ends_of(step)
        self.ended |= {rank: end for rank, end in every.items() if rank not in self.told}
        memory = step.state is StepState.OUT_OF_MEMORY
        await self._notice_abort()
        await self._tell_ends(memory=memory)
        if memory:
            return FAILURE, step.exit
        worst = max(every.values(), key=lambda end: end.status)
        forced = any(end.signal in FORCES for end in every.values())
        if forced and not self.aborting and self.manners.owns:
            await self._tell(FORCED, s=self.name)
        return worst.status, worst

    def _lost(self) -> str:
        """The nodes of the step that are gone; its first where none is known to be."""
        nodes = self.desk.snapshot().nodes
        gone = [
            relay.node
            for relay in self.relay.each
            if (found := nodes.get(relay.node)) is None or found.state is not NodeState.UP
        ]
        return fold(gone) or self.job.shares[0].node

    # ---------------------------------------------------------------- what comes from the command

    async def _hear(self) -> None:
        while True:
            word = await self.line.hear()
            if word.kind in (INPUT, END):
                self.typed.put_nowait(word)  # the command waits for TAKEN before it sends much
            elif word.kind == WINDOW:
                await self._window(word)
            elif word.kind == SIGNAL and self.manners.owns:
                await self._signal(int(word.payload))

    async def _feed(self) -> None:
        while True:
            words = [await self.typed.get()]
            while not self.typed.empty():
                words.append(self.typed.get_nowait())
            await self._input(b"".join(word.payload for word in words))
            if words[-1].kind == END:
                await self._input_end()

    async def _input(self, rest: bytes) -> None:
        """All of it, however long the tasks take."""
        end, pause = self.given + len(rest), Pause(self.desk)
        while rest and not self._over():
            size = await self.relay.give(rest, self.given)
            if size is None or size <= self.given:
                await pause()
                continue
            pause = Pause(self.desk)
            rest = rest[size - self.given :]
            self.given = min(size, end)
            await self.line.say(TAKEN, b"%d" % self.given)
            if self.relay.shut():
                await self.line.say(WANT, b"0")
                return

    async def _input_end(self) -> None:
        pause = Pause(self.desk)
        while not self._over() and await self.relay.give(b"", self.given, eof=True) is None:
            await pause()

    async def _window(self, word: Word) -> None:
        window = read_window(word.payload)
        if window is not None:
            await self.relay.resize(window.rows, window.columns)

    async def _signal(self, number: int) -> None:
        if number == signals.SIGINT:
            await self._interrupt()
        elif number == signals.SIGCONT:
            await self._tell(CONTINUED)
        elif number in (signals.SIGTERM, signals.SIGHUP, signals.SIGQUIT):
            await self._tell(FORCING)
            await self.end(signals.SIGTERM)
        else:
            await self.send(number)

    async def _interrupt(self) -> None:
        """Once: how the tasks are. Twice within a second: an end."""
        now = self.desk.monotonic()
        second = now - self.interrupted <= AGAIN or self.manners.quits_at_once
        self.interrupted = now
        if self.asked_to_end:
            raise Left
        if self.manners.no_status and not second:
            await self.send(signals.SIGINT)
        elif second:
            await self._tell(SENDING, s=self.name)
            await self._tell_aborted()
            await self.end(signals.SIGINT)
        else:
            await self._tell(INTERRUPTED, n=1)
            await self._tell(RUNNING, s=self.name, t=tasks_text(range(self._tasks())))

    def _tasks(self) -> int:
        step = self._look()
        return step.spec.tasks if step is not None and step.spec is not None else 1

    # ---------------------------------------------------------------- signals to tasks

    async def send(self, number: int) -> None:
        """To all processes of the step; one that is over needs none."""
        try:
            await self.desk.ask(
                Signal(target=Target(self.job.id), by=self.owner, number=number, step=self.step)
            )
        except (Conflict, Unknown):
            return

    async def end(self, number: int) -> None:
        """This signal now; SIGTERM and SIGKILL follow if the tasks do not mind it."""
        if self.asked_to_end:
            return
        self.asked_to_end = True
        await self.send(number)
        self.insisting = asyncio.create_task(self._insist(number))

    async def _insist(self, number: int) -> None:
        wait = self.desk.site.kill_wait
        if number != signals.SIGTERM:
            await self.desk.pause(min(1.0, wait))
            await self.send(signals.SIGTERM)
        pause = Pause(self.desk)
        until = self.desk.monotonic() + wait
        while not self._over() and self.desk.monotonic() < until:
            await pause()
        await self.kill()

    async def kill(self) -> None:
        """Ends the step by SIGKILL; one that is over already is left so."""
        try:
            await self.desk.ask(CancelStep(job=self.job.id, step=self.step, by=self.owner))
        except (Conflict, Unknown):
            return


def passed_on(key: str, node: NodeName) -> str:
    """The name under which it is kept how far a node's part of a step's text was passed on."""
    return f"{key}@{node}"


class Left(Exception):
    """A third interrupt: the command goes without waiting."""


def ends_of(step: Step) -> dict[int, ExitCode]:
    """How each task ended, by rank."""
    count = step.spec.tasks if step.spec is not None else 1
    return dict(enumerate(step.tasks or (step.exit,) * count))


def grouped(ends: dict[int, ExitCode], *, memory: bool) -> Iterator[tuple[str, list[int]]]:
    """What is told of ends that were not good, each with its ranks; exit codes before signals."""
    by_end: dict[ExitCode, list[int]] = {}
    for rank, end in sorted(ends.items()):
        by_end.setdefault(end, []).append(rank)
    for end, own in sorted(by_end.items(), key=lambda item: item[0].signal > 0):
        if memory or end.signal == OOM_SIGNAL:
            yield OUT_OF_MEMORY, own
        elif end.signal:
            yield signals.strsignal(end.signal) or f"Signal {end.signal}", own
        elif end.code:
            yield EXITED.format(end.code), own


def tasks_text(ranks: Iterable[int]) -> str:
    """`task 0`, `tasks 0-1,4`."""
    numbers = list(ranks)
    if len(numbers) == 1:
        return f"task {numbers[0]}"
    folded = fold(f"t{number}" for number in numbers)
    return "tasks " + folded.removeprefix("t[").removesuffix("]")
