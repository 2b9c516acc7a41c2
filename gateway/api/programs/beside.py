"""Commands where a site has a Slurm of its own: ours answers, the site's, or both in turn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from broker.model import octets
from broker.model.site import Site
from gateway.api.desk import Desk
from gateway.api.programs.both import Both
from gateway.api.stream import Exec, Interactive, Line
from gateway.api.stream import Program as Talking
from gateway.api.text import Program
from gateway.api.wire import STDIN, Answer, Call
from gateway.passthrough.base import (
    Border,
    SiteSlurm,
    Whose,
    depends_on,
    question,
    submission,
)
from gateway.passthrough.learnt import Learnt
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed
from sbatch_shim.grammar.parse import look

NO_COMMAND = "the site's own Slurm has no command {}"
WAITS_FOR_OURS = (
    "the partition is the site's own, whose Slurm knows nothing of job {}: "
    "submit without that dependency once the job is over, or to a partition of the job's side"
)
READ_ALREADY = (
    "the partition is the site's own, and the script was read from standard input: "
    "name the partition with -p, or the script as a file"
)


@dataclass(frozen=True, slots=True)
class Beside:
    """Puts the site's commands beside ours."""

    site: SiteSlurm
    learnt: Learnt

    def around(
        self, programs: Mapping[str, Program | Interactive]
    ) -> dict[str, Program | Interactive]:
        """The programs, each asked only for what is ours."""
        return {name: self._around(name, program) for name, program in programs.items()}

    def _around(self, name: str, program: Program | Interactive) -> Program | Interactive:
        if isinstance(program, Interactive):
            return Interactive(self._talking(name, program.run))
        return self._submitting(program) if name == "sbatch" else self._asking(name, program)

    def border(self, site: Site) -> Border:
        """Where ours ends, as the site is configured now."""
        facts = self.learnt.facts
        return Border(
            ours=frozenset(part.name for part in site.partitions),
            site=self.learnt.partitions,
            first_job=site.first_job_id,
            last_job=site.max_job_id,
            default=site.default_partition is not None,
            cluster=site.cluster,
            theirs=facts.cluster if facts else None,
        )

    def _talking(self, name: str, run: Talking) -> Talking:
        async def talk(desk: Desk, call: Call, line: Line) -> int:
            border = self.border(desk.site)
            theirs = submission(name, call.argv, call.environ, border=border)
            if line.hello.place or theirs is not Whose.SITE:
                return await run(desk, call, line)
            waits_for = depends_on(name, call.argv, call.environ, border=border)
            if waits_for is not None:
                raise failed(name, WAITS_FOR_OURS.format(waits_for))
            path = self.site.command(name)
            if path is None:
                raise failed(name, NO_COMMAND.format(name))
            raise Exec((path, *call.argv))

        return talk

    def _submitting(self, program: Program) -> Program:
        async def submit(desk: Desk, call: Call) -> Answer:
            border = self.border(desk.site)
            batch = batch_text(call)
            found = submission("sbatch", call.argv, call.environ, border=border, batch=batch)
            if found is not Whose.SITE or (batch is None and _may_be_ours(call, border)):
                return await program(desk, call)
            waits_for = depends_on("sbatch", call.argv, call.environ, border=border, batch=batch)
            if waits_for is not None:
                wrong = WAITS_FOR_OURS.format(waits_for)
                return Answer(err=error_line("sbatch", wrong), code=FAILURE)
            if STDIN in call.files:
                return Answer(err=error_line("sbatch", READ_ALREADY), code=FAILURE)
            return self._handed_on("sbatch", call.argv)

        return submit

    def _asking(self, name: str, program: Program) -> Program:
        async def ask(desk: Desk, call: Call) -> Answer:
            border = self.border(desk.site)
            found = question(name, call.argv, call.environ, border=border)
            if found is Whose.SITE:
                return self._handed_on(name, call.argv)
            if found is Whose.OURS:
                return await program(desk, call)
            path = self.site.command(name)
            if path is None:
                return await program(desk, call)
            return await Both(name, program, path, border).answer(desk, call)

        return ask

    def _handed_on(self, name: str, argv: tuple[str, ...]) -> Answer:
        """The command becomes the site's, its words untouched."""
        path = self.site.command(name)
        if path is None:
            return Answer(err=error_line(name, NO_COMMAND.format(name)), code=FAILURE)
        return Answer(exec=(path, *argv))


def batch_text(call: Call) -> str | None:
    """The script that was handed in with the call, empty with --wrap; None while it was not."""
    try:
        seen = look("sbatch", call.argv)
    except GrammarError:
        return None
    if seen.wrap is not None:
        return ""
    name = seen.script or STDIN
    for path, given in call.files.items():
        if not given.error and (path == name or path.endswith("/" + name)):
            return octets.text(given.content)
    return None


def _may_be_ours(call: Call, border: Border) -> bool:
    """Whether the script, which has yet to be asked for, may name a partition of ours."""
    silent = replace(border, default=True)
    return submission("sbatch", call.argv, call.environ, border=silent) is not Whose.SITE
