"""The words of srun and salloc to an allocation, or to Slurm's refusal (25.11)."""

import errno
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from broker.model import octets
from broker.model.ids import Digest, digest_of
from broker.model.site import Site
from broker.model.spec import Program, TaskSpec
from broker.schedule.ranks import ARBITRARY
from gateway.translate import environment, gres, refusals
from gateway.translate.components import with_shared
from gateway.translate.container import container
from gateway.translate.jobenv import DISTRIBUTION, PLANE_SIZE
from gateway.translate.multiprog import read_programs
from gateway.translate.sbatch import (
    Early,
    Setting,
    Typed,
    handed,
    host_lines,
    ignored,
    must_be_ours,
)
from gateway.translate.sbatch_resources import Asking
from gateway.translate.sbatch_spec import Submitter, task_spec
from gateway.translate.stepplace import Named, is_arbitrary, named, uneven
from sbatch_shim.grammar import binding
from sbatch_shim.grammar.check import Rules
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed, fatal
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import (
    AUTOCOMPLETE,
    COMMAND_LINE,
    Given,
    Look,
    Part,
    completions,
    look,
    settle,
)
from sbatch_shim.grammar.show import listing, show_given
from sbatch_shim.grammar.values import read_digits

Allocator = Literal["srun", "salloc"]
INTERACTIVE_NAME = "interactive"
"""Name of an allocation of salloc's that was given none."""
NO_COMMAND = "No command given to execute."
MPI_TYPES = "MPI plugin types are...\n\tnone\n"
MPI_UNKNOWN = "Invalid MPI type '{}', --mpi=list for acceptable types"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was typed, read: options, command, and what is to be told first."""

    program: Allocator
    part: Mapping[str, Given]
    argv: tuple[str, ...]
    """The command; empty where salloc is to start a shell."""
    programs: tuple[Program, ...] = ()
    typed: Typed
    setting: Setting
    spelling: gres.Spelling
    named: Named = field(default_factory=Named)
    """Nodes for a step in a job that stands."""
    stderr: str = ""
    blobs: dict[Digest, bytes] = field(default_factory=dict)
    more: tuple[Mapping[str, Given], ...] = ()
    """Options of further components; with srun each has a command, and a request, of its own."""

    def components(self) -> list["Request"]:
        """A request for each component, this one the first."""
        others = (replace(self, part=part, more=()) for part in self.more)
        return [self, *others]

    def has(self, long: str) -> bool:
        return long in self.part

    def text(self, long: str) -> str | None:
        """None if it was not given, or given empty."""
        return (self.part[long].text or None) if long in self.part else None

    def number(self, long: str) -> int | None:
        found = self.part[long].value if long in self.part else None
        return found if isinstance(found, int) else None

    def said(self, long: str) -> bool:
        """Whether it stood on the command line."""
        return long in self.part and self.part[long].source == COMMAND_LINE

    @property
    def job(self) -> int | None:
        """The allocation to run in: `--jobid`, or the one we are in."""
        return self.number("jobid")

    @property
    def quiet(self) -> bool:
        return self.has("quiet")

    @property
    def verbose(self) -> int:
        return self.number("verbose") or 0

    @property
    def immediate(self) -> int | None:
        """Seconds within which it has to start; None where it may wait."""
        if not self.has("immediate"):
            return None
        text = self.part["immediate"].text or ""
        return max(1, read_digits(text) or 1)

    @property
    def exit_error(self) -> int:
        return refusals.exit_status(self.typed.environ.get("SLURM_EXIT_ERROR"))

    def keep(self, content: bytes) -> Digest:
        digest = digest_of(content)
        self.blobs[digest] = content
        return digest


def translate(program: Allocator, typed: Typed, setting: Setting) -> Request | Early:
    """Raises GrammarError with Slurm's text and status, NeedFile for a file not handed in."""
    seen = look(program, typed.argv, plugins=setting.site.containers)
    if seen.early == AUTOCOMPLETE:
        return Early(AUTOCOMPLETE, completions(seen, program))
    if seen.early:
        return Early(seen.early)
    (part, *others), notes = _settled(program, seen, typed=typed, setting=setting)
    only = _only_says(program, part)
    if only is not None:
        return only
    argv = () if seen.script is None else (seen.script, *seen.args)
    if program == "srun":
        if not argv:
            raise fatal(program, NO_COMMAND)
        part |= _of_hostfile(part, typed)
    _must_be_had((part, *others), setting.site, program)
    programs = _programs(part, argv, typed) if "multi-prog" in part else ()
    if programs and "ntasks" not in part:
        tasks = 1 + max(rank for one in programs for rank in one.ranks)
        part["ntasks"] = Given(str(tasks), tasks, COMMAND_LINE)
    names = _named(program, part, typed)
    spelling = gres.Spelling(setting.site, setting.gpu_types)
    if part.get("gres") and part["gres"].text == "help":
        return Early("gres", gres.help_text(spelling))
    return Request(
        program=program,
        part=part,
        argv=argv,
        programs=programs,
        typed=typed,
        setting=setting,
        spelling=spelling,
        named=names,
        more=tuple(others),
        stderr=_said(
            program,
            part,
            [*notes, *_uneven(program, part), *ignored(_typed(part), setting, program)],
        ),
    )


def _must_be_had(parts: Iterable[Part], site: Site, program: Allocator) -> None:
    """A refusal comes before anything is allocated. Raises GrammarError."""
    for part in parts:
        must_be_ours(part, site, program)
        container(part, program, site=site)


def _of_hostfile(part: Part, typed: Typed) -> Part:
    """A node for each task, by the file of SLURM_HOSTFILE, where none are named (22.05).

    Raises GrammarError, NeedFile.
    """
    path = typed.environ.get(HOSTFILE, "")
    if not path or "nodelist" in part or "nodefile" in part:
        return {}
    hosts = host_lines("srun", path if "/" in path else f"./{path}", typed).split()
    tasks = part["ntasks"].value if "ntasks" in part else len(hosts)
    if tasks > len(hosts):
        said = (error_line("srun", text) for text in (TOO_FEW_HOSTS, NO_HOSTS))
        raise GrammarError("".join(said), FAILURE)
    named = ",".join(hosts[:tasks])
    return {
        "distribution": Given(ARBITRARY, ARBITRARY, COMMAND_LINE),
        "nodelist": Given(named, named, COMMAND_LINE),
        "ntasks": Given(str(tasks), tasks, COMMAND_LINE),
    }


def _typed(part: Part) -> Part:
    """What stood on the command line; a step's own variables say much that was not asked for."""
    return {long: given for long, given in part.items() if given.source == COMMAND_LINE}


def _settled(
    program: Allocator, seen: Look, *, typed: Typed, setting: Setting
) -> tuple[list[Part], list[str]]:
    root, plugins = setting.uid == 0, setting.site.containers
    rules = Rules(program, setting.now, setting.zone, root, plugins)
    found = settle(seen, None, environ=_with_plane(typed.environ), rules=rules)
    return [dict(part) for part in with_shared(found.parts)], found.notes


def _with_plane(environ: Mapping[str, str]) -> Mapping[str, str]:
    """A plane's size has a variable of its own (22.05)."""
    size = environ.get(PLANE_SIZE)
    if not size or environ.get(DISTRIBUTION) != "plane":
        return environ
    return {**environ, DISTRIBUTION: f"plane={size}"}


def _only_says(program: str, part: Part) -> Early | None:
    """`--cpu-bind=help`, `--mpi=list`. Raises GrammarError for another way of starting."""
    bind = part["cpu-bind"].value if "cpu-bind" in part else None
    if bind is not None and bind.kind == "help":
        return Early("cpu-bind", binding.HELP)
    return _mpi(program, part["mpi"].text or "") if part.get("mpi") is not None else None


def _mpi(program: str, text: str) -> Early | None:
    """`--mpi=list` only says something; nothing is started in any special way."""
    if text == "list":
        return Early("mpi", MPI_TYPES)
    if text not in ("none", ""):
        raise failed(program, MPI_UNKNOWN.format(text))
    return None


def _programs(part: Part, argv: tuple[str, ...], typed: Typed) -> tuple[Program, ...]:
    path, *more = argv
    found = handed(path, typed.files)
    if found.error:
        raise failed("srun", NO_PROGRAMS.get(found.error, NOT_OPENED).format(path))
    tasks = part["ntasks"].value if "ntasks" in part else None
    return read_programs(octets.text(found.content), tasks, name=path, more=more)


def _named(program: Allocator, part: Part, typed: Typed) -> Named:
    """Nodes of a step in a job that stands, or of each task of an arbitrary layout.

    Those of an allocation are read with its rest.
    """
    if program != "srun" or "jobid" not in part:
        if "relative" in part:
            raise fatal(program, NO_RELATIVE)
        for path in _host_files(part):
            handed(path, typed.files)
        if program != "srun" or not is_arbitrary(part):
            return Named()
    return named(part, lambda path: host_lines(program, path, typed))


def _host_files(part: Part) -> list[str]:
    """Files of nodes that the rest will read."""
    texts = {long: given.text or "" for long in HOST_FILES if (given := part.get(long))}
    return [text for long, text in texts.items() if "/" in text or (text and long == "nodefile")]


NOT_OPENED = "Could not open multi_prog config file {}"
NO_PROGRAMS = {errno.EISDIR: "Error reading multi_prog config file {}"}
HOSTFILE = "SLURM_HOSTFILE"
TOO_FEW_HOSTS = "Too few NodeNames in Slurm Hostfile"
NO_HOSTS = "Failure getting NodeNames from hostfile"
NO_RELATIVE = "--relative option invalid for job allocation request"
HOST_FILES = ("nodefile", "nodelist", "exclude")


def _uneven(program: Allocator, part: Part) -> list[str]:
    """The warning about `--ntasks-per-node` of a step."""
    note = uneven(part) if program == "srun" and "jobid" in part else None
    return [note] if note else []


def _said(program: str, part: Part, notes: list[str]) -> str:
    """Warnings, unless -Q; the list of options for -v."""
    quiet = "quiet" in part
    kept = [note for note in notes if not (quiet and ": warning: " in note)]
    verbose = part.get("verbose")
    if verbose is None or not verbose.value or quiet:
        return "".join(kept)
    table = lookup(program, plugins=True).by_long
    shown = [(long, show_given(table[long], given)) for long, given in part.items()]
    return "".join(kept) + listing(program, shown)


# ---------------------------------------------------------------- the allocation


def allocation(request: Request) -> TaskSpec:
    """The job that srun or salloc asks for. Raises GrammarError, NeedFile."""
    asking = Asking(
        _of_allocation(request),
        request.setting.site,
        request.spelling,
        refuse=lambda text: refusals.controller(
            text,
            test_only=request.has("test-only"),
            code=request.exit_error,
            program=request.program,
        ),
        read_nodefile=lambda path: host_lines(request.program, path, request.typed),
        program=request.program,
    )
    return task_spec(asking, _submitter(request))


def _of_allocation(request: Request) -> Part:
    """salloc goes elsewhere itself; its job is one of where it was typed (22.05)."""
    left_out = () if request.program == "srun" else ("chdir",)
    return {long: given for long, given in request.part.items() if long not in left_out}


def _submitter(request: Request) -> Submitter:
    typed, setting = request.typed, request.setting
    held = not (request.has("no-shell"))
    return Submitter(
        cwd=typed.cwd,
        umask=typed.umask,
        limits=typed.limits,
        admin=setting.uid in setting.site.admins,
        name=_job_name(request),
        command=request.argv[0] if request.argv else None,
        submit_line=" ".join((request.program, *typed.argv)),
        submit_host=setting.submit_host,
        batch=None,
        environment=request.keep(environment.pack(typed.environ)),
        login=False,
        allocator=request.program if held else None,
    )


def _job_name(request: Request) -> str:
    if request.program == "salloc":
        return INTERACTIVE_NAME
    return posixpath.basename(request.argv[0])
