"""What a page is made from: who asks, what stands in its address, and the ways to ask for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.web.blocks import Notes, notes
from gateway.web.doors import Doors, Json, Said, names, rows


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that somebody looks at."""

    doors: Doors
    query: Mapping[str, str]
    word: str
    """What the address names: a job, a node, a cluster; else empty."""
    mark: str
    """Parts the cells of what commands print; nobody who writes into them can know it."""

    def given(self, name: str, usual: str = "") -> str:
        return self.query.get(name, "").strip() or usual

    async def get(self, route: str, **query: object) -> Json:
        return await self.doors.get(route, **query)

    async def table(
        self, program: str, columns: tuple[str, ...], *argv: str
    ) -> tuple[list[list[str]], Said]:
        """Lines of squeue or sinfo as cells, the headings first; none where it refused."""
        said = await self.doors.run(program, *argv, "-O", names(columns, self.mark).rstrip(","))
        return list(rows(said.out, len(columns), self.mark)), said

    async def accounted(self, columns: tuple[str, ...], *argv: str) -> tuple[list[list[str]], Said]:
        """The same of sacct."""
        words = ("--parsable", f"--delimiter={self.mark}", f"--format={','.join(columns)}")
        said = await self.doors.run("sacct", *argv, *words)
        return list(rows(said.out, len(columns), self.mark)), said


def complaints(said: Said) -> Sequence[Notes]:
    """What a command said on its standard error."""
    return notes(said.err.strip().splitlines(), "bad" if said.code else "wait")
