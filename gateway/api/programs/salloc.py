"""salloc: an allocation for a command that runs beside it, where it was typed."""

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from accounting.ids import JobId
from broker.model.job import ExitCode, Job, Owner
from gateway.api.desk import Desk
from gateway.api.programs.allocating import (
    REVOKED,
    Allocation,
    Interrupted,
    Pause,
    Revoked,
    nodes_of,
)
from gateway.api.programs.early import early
from gateway.api.programs.typed import translated
from gateway.api.stream import (
    ENDED,
    KILL,
    MISSING,
    MOVE,
    MOVED,
    PLACE,
    RUN,
    SIGNAL,
    Line,
    Word,
    first_of,
)
from gateway.api.text import Gone
from gateway.api.wire import Call, raw
from gateway.translate.allocenv import allocation_variables
from gateway.translate.gangenv import gang_allocation
from gateway.translate.sbatch import Early
from gateway.translate.srun import Request
from sbatch_shim.grammar.errors import FAILURE, error_line, failed
from sbatch_shim.grammar.values import read_signal

NO_FOLDER = "getcwd failed: No such file or directory"
NO_CHDIR = "chdir({}): {}"
NOT_FOUND = '_fork_command: Unable to find command "{}"'
GRANTED = "salloc: Granted job allocation {j}\n"
READY = "salloc: Nodes {n} are ready for job\n"
RELEASED = "salloc: Relinquishing job allocation {j}\n"
RUNS = ":runs"
"""Behind the job's id in the place: its command was started."""
USERS_SIGNALS = (1, 2, 3, 9)
"""SIGHUP, SIGINT, SIGQUIT, SIGKILL: who ended it meant to, which is no failure (25.11)."""
SIGTERM = 15


async def run(desk: Desk, call: Call, line: Line) -> int:
    """Raises GrammarError with Slurm's text and exit status, Gone."""
    if not call.cwd:
        raise failed("salloc", NO_FOLDER)
    said = await translated("salloc", desk, call=call, line=line)
    if isinstance(said, Early):
        answer = early("salloc", said.name, version=desk.site.version)
        await line.out(said.text or answer.out)
        return answer.code
    if not line.hello.place:
        await line.err(said.stderr)
        await _move(line, call.cwd, said.text("chdir"))
    return await Salloc(desk, call, line, said, await desk.owner(call.peer.uid)).run()


async def _move(line: Line, cwd: str, folder: str | None) -> None:
    """`--chdir` moves salloc itself, before it asks for anything. Raises GrammarError, Gone."""
    if folder is None:
        return
    path = posixpath.join(cwd, folder)
    await line.say(MOVE, path)
    aside: list[Word] = []
    while (word := await line.hear()).kind != MOVED:
        aside.append(word)
    line.unhear(aside)
    code = int(word.payload)
    if code:
        raise failed("salloc", NO_CHDIR.format(path, os.strerror(code)))


@dataclass(slots=True)
class Salloc:
    """One salloc."""

    desk: Desk
    call: Call
    line: Line
    request: Request
    owner: Owner

    async def run(self) -> int:
        more = self.request.components()[1:]
        held = Allocation(self.desk, self.call, self.line, self.request, self.owner, more)
        runs = self.line.hello.place.endswith(RUNS)
        try:
            job = await held.get()
            if not runs:
                ready = (READY.format(n=nodes_of(one)) for one in held.components(job))
                await self._tell("".join([GRANTED.format(j=job.id), *ready]))
            if self.request.has("no-shell"):
                return 0
            with self.desk.holders.holding(job.id):
                if not runs:
                    await self._start(held.components(job))
                return await self._attend(held, job)
        except (Revoked, Interrupted):
            return FAILURE
        except Gone:
            if not self.request.has("no-shell"):
                await held.left()
            raise

    async def _tell(self, text: str) -> None:
        if not self.request.quiet:
            await self.line.err(text)

    async def _start(self, jobs: Sequence[Job]) -> None:
        """Lets the command run, the user's shell where none is named."""
        environ, site, host = self.call.environ, self.desk.site, self.desk.host
        shell = environ.get("SHELL") or self.owner.shell
        argv = self.request.argv or (shell,)
        told = gang_allocation(jobs, site, host) if jobs[1:] else None
        variables = {**environ, **(told or allocation_variables(jobs[0], site, host))}
        fields = [*argv, *(f"{name}={text}" for name, text in variables.items())]
        payload = b"%d\0" % len(argv) + b"".join(raw(field) + b"\0" for field in fields)
        await self.line.say(RUN, payload)
        await self.line.say(PLACE, f"{jobs[0].id}{RUNS}")

    # ---------------------------------------------------------------- while it runs

    async def _attend(self, held: Allocation, job: Job) -> int:
        """Waits for the command's end; the allocation may end before it."""
        watched = _Watched(self.desk, self.line, self.request, job.id)
        how: str = await first_of(watched.ended(), watched.until_revoked())
        code = exit_status(how)
        if how == MISSING:
            text = NOT_FOUND.format(self.request.argv[0] if self.request.argv else "")
            await self.line.err(error_line("salloc", text))
        if not watched.revoked:
            await self._tell(RELEASED.format(j=job.id))
            await held.finish(ExitCode(code))
        return code


@dataclass(slots=True)
class _Watched:
    """The command beside us, and its allocation."""

    desk: Desk
    line: Line
    request: Request
    job: JobId
    revoked: bool = False

    async def ended(self) -> str:
        """How it ended: `exit N`, `signal N`, `missing`. Raises Gone."""
        while True:
            word = await self.line.hear()
            if word.kind == ENDED:
                return word.payload.decode("ascii")
            if word.kind == SIGNAL:
                await self.line.say(KILL, word.payload)

    async def until_revoked(self) -> str:
        """Tells that the allocation is gone; the command goes on unless `-K` says otherwise."""
        pause = Pause(self.desk)
        while self._stands():
            await pause()
        self.revoked = True
        if not self.request.quiet:
            await self.line.err(REVOKED["salloc"].format(j=self.job))
        number = self._kill_signal()
        if number:
            await self.line.say(KILL, b"%d" % number)
        while True:
            await pause()

    def _stands(self) -> bool:
        job = self.desk.snapshot().jobs.get(self.job)
        return job is not None and not (job.state.final or job.completing)

    def _kill_signal(self) -> int:
        """Of `--kill-command`, SIGTERM unless it names another; 0 without it."""
        if not self.request.has("kill-command"):
            return 0
        text = self.request.text("kill-command")
        found = read_signal(text) if text else None
        return found.number if found is not None else SIGTERM


def exit_status(how: str) -> int:
    """salloc's own, of how its command ended."""
    word, _, number = how.partition(" ")
    if word == "exit":
        return int(number)
    if word == "signal":
        return 0 if int(number) in USERS_SIGNALS else FAILURE
    return FAILURE
