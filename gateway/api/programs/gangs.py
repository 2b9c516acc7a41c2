"""srun --het-group: one command in several components of a heterogeneous job at once."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.model.job import Job
from broker.world import Snapshot
from gateway.api.stream import END, SIGNAL, Hello, Line, Word
from gateway.api.text import Gone
from gateway.api.wire import Given
from sbatch_shim.grammar.arrays import read_array
from sbatch_shim.grammar.errors import GrammarError, failed, fatal
from sbatch_shim.grammar.parse import look

MOST_COMPONENTS = 128
BAD_GROUPS = "Invalid --het-group specification: {}"
NO_GROUP = "Requested het-group offset exceeds highest hetjob index ({} > {})"
GROUP = "_HET_GROUP_"
Tasks = Callable[[Line], Awaitable[int]]
"""Runs a component's step, which has a line of its own."""


def chosen(job: Job, text: str, snap: Snapshot) -> list[Job]:
    """The components that `0,2-3` names; of another job there is number 0 alone.

    Raises GrammarError.
    """
    groups = read_array(text, MOST_COMPONENTS)
    if groups is None or groups.limit is not None:
        raise fatal("srun", BAD_GROUPS.format(text))
    members = [job]
    if job.het is not None:
        base = job.het.base
        alike = (one for one in snap.jobs.values() if one.het is not None and one.het.base == base)
        members = sorted(alike, key=lambda one: one.id)
    last = groups.tasks[-1]
    if last >= len(members):
        raise failed("srun", NO_GROUP.format(last, len(members) - 1))
    return [members[number] for number in groups.tasks]


def commands(argv: Sequence[str], *, plugins: bool) -> list[tuple[str, ...]]:
    """`a : b`: the words of each component; one without a command has that of the next (22.05).

    Raises GrammarError.
    """
    found: list[list[str]] = [[]]
    for word in argv:
        if word == ":":
            found.append([])
        else:
            found[-1].append(word)
    return [tuple(found[0])] if len(found) == 1 else _completed(found, plugins=plugins)


def _completed(parts: Sequence[Sequence[str]], *, plugins: bool) -> list[tuple[str, ...]]:
    looks = [look("srun", words, plugins=plugins) for words in parts]
    found: list[tuple[str, ...]] = []
    after: tuple[str, ...] = ()
    for words, seen in zip(reversed(parts), reversed(looks), strict=True):
        if seen.script is None:
            found.append((*words, *after))
        else:
            found.append(tuple(words))
            after = (seen.script, *seen.args)
    return found[::-1]


def seen_from(job: Job, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The variables of the batch step, the counts being those of this component (22.05)."""
    if job.het is None:
        return environ
    told = [name.partition(GROUP) for name in environ if GROUP in name]
    others = {base for base, _, _ in told}
    number = str(job.het.offset)
    own = {base: environ[base + GROUP + number] for base, _, which in told if which == number}
    return {name: text for name, text in environ.items() if name not in others} | own


async def together(line: Line, tasks: Sequence[Tasks]) -> int:
    """The worst exit status; signals go to all, input to the first, its end again to all.

    When the first goes early, because its command is gone, the others are ended.
    """
    asides = [Aside(line) for _ in tasks[1:]]
    others = [
        asyncio.ensure_future(one(aside)) for aside, one in zip(asides, tasks[1:], strict=True)
    ]
    try:
        first = await tasks[0](Shared(line, asides))
    except (Gone, GrammarError):
        for aside in asides:
            aside.words.put_nowait(None)
        await asyncio.gather(*others, return_exceptions=True)
        raise
    return max([first, *await asyncio.gather(*others)])


@dataclass(slots=True)
class Shared:
    """The command's line; signals and the end of input are for the others too."""

    line: Line
    asides: Sequence["Aside"]

    @property
    def hello(self) -> Hello:
        return self.line.hello

    @hello.setter
    def hello(self, value: Hello) -> None:
        self.line.hello = value

    async def out(self, data: bytes | str) -> None:
        await self.line.out(data)

    async def err(self, data: bytes | str) -> None:
        await self.line.err(data)

    async def say(self, kind: bytes, payload: bytes | str = b"") -> None:
        await self.line.say(kind, payload)

    async def hear(self) -> Word:
        word = await self.line.hear()
        if word.kind in (SIGNAL, END):
            for aside in self.asides:
                aside.words.put_nowait(word)
        return word

    def unhear(self, words: Sequence[Word]) -> None:
        self.line.unhear(words)

    async def file(self, path: str) -> Given:
        return await self.line.file(path)


@dataclass(slots=True)
class Aside:
    """What a further component says goes to the same command; it hears of signals and of
    the end of input."""

    line: Line
    hello: Hello = field(default_factory=Hello)
    words: "asyncio.Queue[Word | None]" = field(default_factory=asyncio.Queue)
    """None: the command went away."""

    async def out(self, data: bytes | str) -> None:
        await self.line.out(data)

    async def err(self, data: bytes | str) -> None:
        await self.line.err(data)

    async def say(self, kind: bytes, payload: bytes | str = b"") -> None:
        """The command follows the first component."""

    async def hear(self) -> Word:
        word = await self.words.get()
        if word is None:
            raise Gone
        return word

    def unhear(self, words: Sequence[Word]) -> None:
        for word in words:
            self.words.put_nowait(word)

    async def file(self, path: str) -> Given:
        return await self.line.file(path)
