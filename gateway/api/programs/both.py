"""Answers of ours and the site's own Slurm put together: lists, documents, turns of both."""

from dataclasses import dataclass, replace

from broker.model import octets
from gateway.api.desk import Desk
from gateway.api.programs.iterate import iterated, repeated
from gateway.api.programs.merged import Listing, merged
from gateway.api.programs.reading import read_options, reader
from gateway.api.programs.structured import FORMS, LIST
from gateway.api.text import Program
from gateway.api.wire import Answer, Call, raw
from gateway.passthrough.base import HEADLESS, Border
from gateway.passthrough.lines import by_cluster, shares, without
from gateway.query.moments import headline
from sbatch_shim.grammar.errors import warning_line
from sbatch_shim.grammar.parse import parse_query

DOCUMENT = "json"
"""How the command on the login node is told to put two documents together."""
YAML_ALONE = "--yaml tells of our side alone, --json of the site's own Slurm too"


@dataclass(frozen=True, slots=True)
class Both:
    """One command of both sides; `path` is the site's."""

    name: str
    program: Program
    path: str
    border: Border

    async def answer(self, desk: Desk, call: Call) -> Answer:
        """Both sides' answers, in turns where that is asked for (`-i`)."""
        if self.name not in HEADLESS:
            return await self._once(desk, call)
        given = parse_query(self.name, call.argv, call.environ).given
        form = next((form for form in FORMS if form in given), None)
        if form is not None and given[form].text == LIST:
            return await self.program(desk, call)
        if form is not None:
            return await self._in_one_document(desk, call, yaml=form != DOCUMENT)
        seconds = iterated(call)
        return await (
            repeated(desk, call, self._turn, seconds=seconds) if seconds else self._once(desk, call)
        )

    async def _turn(self, desk: Desk, call: Call) -> Answer:
        argv = without(self.name, call.argv, "iterate")
        return await self._once(desk, replace(call, argv=argv))

    async def _once(self, desk: Desk, call: Call) -> Answer:
        lines = by_cluster(self.name, call.argv, call.environ, border=self.border)
        if lines is not None:
            return await self._by_cluster(desk, call, lines)
        listing = merged(self.name, call.argv, call.environ)
        if listing is not None:
            return await self._in_one(desk, call, listing)
        ours, theirs = self._two(call)
        answer = await self.program(desk, ours)
        if answer.code and self.name in HEADLESS:
            return answer
        return replace(answer, also=(self.path, *theirs))

    async def _by_cluster(self, desk: Desk, call: Call, lines: tuple[list[str], ...]) -> Answer:
        """Each cluster's answer below its name, with a line between; sacct has one list."""
        ours, theirs = lines
        answer = await self.program(desk, replace(call, argv=tuple(ours)))
        if answer.code and self.name in HEADLESS:
            return answer
        headed = self.name in ("squeue", "sinfo") and "--noheader" not in ours
        between = b"\n" if headed else b""
        return replace(answer, out=raw(answer.out) + between, also=(self.path, *theirs))

    async def _in_one(self, desk: Desk, call: Call, listing: Listing) -> Answer:
        """Our lines go along with the site's command, for the login node to sort them in."""
        answer = await self.program(desk, replace(call, argv=listing.ours))
        if answer.code:
            return await self.program(desk, call)
        lines = octets.text(raw(answer.out))
        if listing.dated:
            options = read_options(desk, call)
            date = headline(reader(desk, call, desk.snapshot(), options=options))
            lines = f"{'':{listing.width}}{date}\n{lines}"
        return replace(answer, out="", also=("", listing.spec, lines, self.path, *listing.theirs))

    async def _in_one_document(self, desk: Desk, call: Call, *, yaml: bool) -> Answer:
        """Our document goes along likewise; two of YAML are not put together."""
        answer = await self.program(desk, call)
        if answer.code:
            return answer
        if yaml:
            return replace(answer, err=raw(answer.err) + raw(warning_line(self.name, YAML_ALONE)))
        content = raw(answer.out)
        while answer.rest is not None:
            answer = await answer.rest
            content += raw(answer.out)
        document = octets.text(content)
        return replace(answer, out="", also=("", DOCUMENT, document, self.path, *call.argv))

    def _two(self, call: Call) -> tuple[Call, list[str]]:
        """Our call, and the words of the site's command, which prints no headline."""
        if self.name in HEADLESS:
            return call, [HEADLESS[self.name], *call.argv]
        ours, theirs = shares(call.argv, border=self.border)
        return replace(call, argv=tuple(ours)), list(theirs)
