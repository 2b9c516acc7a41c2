"""sbatch's words to a TaskSpec, or to Slurm's refusal. Files are handed in, never opened here."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from errno import EACCES, EISDIR, ENOENT
from functools import partial
from typing import Protocol

from broker.model import octets
from broker.model.errors import SpzError
from broker.model.ids import Digest, digest_of
from broker.model.site import Site
from broker.model.spec import Phase, StepSpec, TaskSpec
from gateway.translate import environment, gres, refusals
from gateway.translate.components import with_shared
from gateway.translate.container import container
from gateway.translate.sbatch_resources import Asking
from gateway.translate.sbatch_spec import Submitter, task_spec
from gateway.translate.staging import Staging, read_staging
from gateway.translate.without_effect import warnings
from sbatch_shim.grammar.check import Rules
from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed
from sbatch_shim.grammar.instants import Zone
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import (
    AUTOCOMPLETE,
    Given,
    Look,
    Script,
    behind,
    check_line,
    completions,
    look,
    settle,
)
from sbatch_shim.grammar.script import MOST_BYTES, check_script
from sbatch_shim.grammar.show import listing, show_given
from sbatch_shim.grammar.table import REFUSED

PROGRAM = "sbatch"
STDIN = "-"
NO_HOSTFILE = "slurm_allocate_resources error opening file {}, {}"
WHY = {ENOENT: "No such file or directory", EACCES: "Permission denied", EISDIR: "Is a directory"}
MOST_FOLDERS = 12
"""Of PATH in which a script is sought: a command answers 16 questions for files."""
WRAP_HEAD = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n"
WAYS_OUT = {
    "bbf": "there are no burst buffers; stage files with the script",
    "external": "only jobs that run here can be submitted",
}
NO_CLUSTER = (
    "No cluster '{0}' known by database.",
    "'{0}' can't be reached now, or it is an invalid entry for --cluster."
    "  Use 'sacctmgr list clusters' to see available clusters.",
)


class File(Protocol):
    """A file as the submitter's own process saw it; `error` is the errno that stopped it, or 0."""

    @property
    def content(self) -> bytes: ...
    @property
    def error(self) -> int: ...


class Typed(Protocol):
    """A command as it was typed; text keeps undecodable bytes as surrogates."""

    @property
    def argv(self) -> Sequence[str]: ...
    @property
    def environ(self) -> Mapping[str, str]: ...
    @property
    def cwd(self) -> str: ...
    @property
    def umask(self) -> int: ...
    @property
    def limits(self) -> tuple[tuple[str, int, int], ...]: ...
    @property
    def files(self) -> Mapping[str, File]: ...


class NeedFile(Exception):
    """Ask the command for this file (`-` is its standard input) and come again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What submitting depends on beside the words: the site, the moment, who asks."""

    site: Site
    now: int
    zone: Zone
    uid: int
    submit_host: str = ""
    gpu_types: tuple[str, ...] = ()
    """Types of GPUs that can be bought, as nodes' gres spell them."""
    warn_ignored: bool = True
    """Whether an option that has no effect here is told in a warning."""
    mails: bool = True
    """Whether there is a program that sends mail."""


@dataclass(frozen=True, slots=True)
class Early:
    """The command only says something: `help`, `usage` and `version`, or `text` on stdout."""

    name: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What to submit and how to answer."""

    spec: TaskSpec
    more: tuple[TaskSpec, ...] = ()
    """Further components of a heterogeneous job."""
    blobs: Mapping[Digest, bytes]
    stderr: str = ""
    """Warnings and listings, whole lines, to be written first."""
    parsable: bool = False
    test_only: bool = False
    wait: bool = False
    quiet: bool = False
    cluster: str | None = None
    """Named with -M."""
    uid: str | None = None
    gid: str | None = None
    """`--uid` and `--gid`, of root only."""
    exit_error: int = FAILURE
    """Status for what the controller refuses."""

    def said(self, job: int) -> str:
        """What stdout says once the job is on disk."""
        if self.quiet:
            return ""
        if self.parsable:
            return f"{job};{self.cluster}\n" if self.cluster else f"{job}\n"
        where = f" on cluster {self.cluster}" if self.cluster else ""
        return f"Submitted batch job {job}{where}\n"

    def refused(self, error: SpzError) -> tuple[str, int]:
        """Standard error and exit status for what the engine refused."""
        option = getattr(error, "option", "")
        typed = self.spec.option(option) if option else None
        text = refusals.engine_lines(error, test_only=self.test_only, typed=typed)
        return text, self.exit_error


def translate(typed: Typed, setting: Setting) -> Submission | Early:
    """Raises GrammarError with Slurm's text and status, NeedFile for a file not handed in."""
    plugins = setting.site.containers
    seen = look(PROGRAM, typed.argv, plugins=plugins)
    if seen.early == AUTOCOMPLETE:
        return Early(AUTOCOMPLETE, completions(seen, PROGRAM))
    if seen.early:
        return Early(seen.early)
    rules = Rules(PROGRAM, setting.now, setting.zone, setting.uid == 0, plugins)
    check_line(seen, rules)
    text, found = _batch_text(seen, typed)
    batch = (
        None if seen.wrap is not None else Script(posixpath.basename(seen.script or STDIN), text)
    )
    request = settle(seen, batch, environ=typed.environ, rules=rules)
    parts = with_shared(request.parts)
    part = parts[0]
    for one in parts:
        must_be_ours(one, setting.site)
    spelling = gres.Spelling(setting.site, setting.gpu_types)
    if part.get("gres") and part["gres"].text == "help":
        return Early("gres", gres.help_text(spelling))
    desk = _Desk(seen, typed, setting, part=part, spelling=spelling)
    try:
        submission = desk.submission(text, found, [*request.notes, *ignored(part, setting)])
        others = [replace(desk, part=one) for one in parts[1:]]
        return replace(submission, more=tuple(other.spec(text, found) for other in others))
    except GrammarError as error:
        raise behind(request.notes, error, warnings="quiet" not in part) from None


# ---------------------------------------------------------------- the script


def _batch_text(seen: Look, typed: Typed) -> tuple[str, str | None]:
    """The script's text, and its path where it has one."""
    if seen.wrap is not None:
        return f"{WRAP_HEAD}{seen.wrap}\n", None
    name = seen.script or STDIN
    file, path = _found(name, typed)
    if file.error == EISDIR:
        file = _Empty()
    if file.error:
        where = name if file.error == ENOENT else path
        raise failed(PROGRAM, f"Unable to open file {where}")
    text = octets.text(file.content)
    check_script(text, PROGRAM)
    return text, None if name == STDIN else path


@dataclass(frozen=True, slots=True)
class _Empty:
    content: bytes = b""
    error: int = 0


def _found(name: str, typed: Typed) -> tuple[File, str]:
    """The file and its full path: in the working directory, else along PATH."""
    file = handed(name, typed.files)
    if file.error == ENOENT and name != STDIN and "/" not in name:
        for folder in _folders(typed.environ.get("PATH", "")):
            path = posixpath.join(folder, name)
            other = handed(path, typed.files)
            if not other.error:
                return other, posixpath.join(typed.cwd, path)
    return file, posixpath.normpath(posixpath.join(typed.cwd, name))


def _folders(path: str) -> list[str]:
    """Those of PATH, each once; an empty one is the working directory, already looked at."""
    return list(dict.fromkeys(folder for folder in path.split(":") if folder))[:MOST_FOLDERS]


def host_lines(program: str, path: str, typed: Typed) -> str:
    """The text of a file of nodes. Raises GrammarError, NeedFile."""
    found = handed(path, typed.files)
    if found.error:
        raise failed(program, NO_HOSTFILE.format(path, WHY.get(found.error, found.error)))
    return octets.text(found.content)


def handed(path: str, files: Mapping[str, File]) -> File:
    """The file. Raises NeedFile if the command has not sent it yet."""
    if path not in files:
        raise NeedFile(path)
    return files[path]


def _staging(text: str, path: str | None, cwd: str) -> Staging:
    name = posixpath.basename(path or STDIN)
    return read_staging(text, name=name, program=PROGRAM, cwd=cwd)


# ---------------------------------------------------------------- judging options


def must_be_ours(part: Mapping[str, Given], site: Site, program: str = PROGRAM) -> None:
    """Refuses other clusters, and by name what is not supported."""
    clusters = part["clusters"].text if "clusters" in part else None
    for name in (site.cluster if clusters is None else clusters).split(","):
        if name not in (site.cluster, "all"):
            lines = [error_line(program, line.format(name)) for line in NO_CLUSTER]
            raise GrammarError("".join(lines), FAILURE)
    table = lookup(program, plugins=True).by_long
    for long in part:
        if table[long].cls == REFUSED and long != "resources":
            way_out = f": {WAYS_OUT[long]}" if long in WAYS_OUT else ""
            text = f"--{long} is not supported here{way_out}"
            raise failed(program, text)


def ignored(part: Mapping[str, Given], setting: Setting, program: str = PROGRAM) -> list[str]:
    """Warnings that name what has no effect here, unless the site wants none."""
    if not setting.warn_ignored:
        return []
    admin = setting.uid in setting.site.admins
    return warnings(part, program, mails=setting.mails, admin=admin)


# ---------------------------------------------------------------- putting together


@dataclass(slots=True)
class _Desk:
    """Makes the submission of one component."""

    seen: Look
    typed: Typed
    setting: Setting
    part: Mapping[str, Given]
    spelling: gres.Spelling
    blobs: dict[Digest, bytes] = field(default_factory=dict)

    def submission(self, text: str, path: str | None, notes: Sequence[str]) -> Submission:
        """Raises GrammarError, NeedFile."""
        spec = self.spec(text, path)
        quiet, part = self._has("quiet"), self.part
        return Submission(
            spec=spec,
            blobs=self.blobs,
            stderr=self._said(notes, quiet=quiet),
            parsable=self._has("parsable"),
            test_only=self._has("test-only"),
            wait=self._has("wait"),
            quiet=quiet,
            cluster=self.setting.site.cluster if "clusters" in part else None,
            uid=part["uid"].text if "uid" in part else None,
            gid=part["gid"].text if "gid" in part else None,
            exit_error=self._exit_error(),
        )

    def spec(self, text: str, path: str | None) -> TaskSpec:
        """Raises GrammarError, NeedFile."""
        return task_spec(self._asking(), self._submitter(text, path))

    def _has(self, long: str) -> bool:
        return long in self.part

    def _exit_error(self) -> int:
        return refusals.exit_status(self.typed.environ.get("SLURM_EXIT_ERROR"))

    def _asking(self) -> Asking:
        return Asking(
            self.part,
            self.setting.site,
            self.spelling,
            refuse=lambda text: refusals.controller(
                text, test_only=self._has("test-only"), code=self._exit_error()
            ),
            read_nodefile=lambda path: host_lines(PROGRAM, path, self.typed),
        )

    def _submitter(self, text: str, path: str | None) -> Submitter:
        exported = self._exported()
        return Submitter(
            cwd=self.typed.cwd,
            umask=self.typed.umask,
            limits=self.typed.limits,
            admin=self.setting.uid in self.setting.site.admins,
            name=self._name(path),
            command=path,
            submit_line=" ".join((PROGRAM, *self.typed.argv)),
            submit_host=self.setting.submit_host,
            batch=self._batch(text),
            staging=Staging if self.seen.wrap is not None else partial(_staging, text, path),
            environment=self._keep(environment.pack(exported.variables)),
            login=exported.login or self._has("get-user-env"),
        )

    def _name(self, path: str | None) -> str:
        if self.seen.wrap is not None:
            return "wrap"
        return PROGRAM if path is None else posixpath.basename(path)

    def _batch(self, text: str) -> StepSpec:
        content = octets.raw(text)
        if len(content) > MOST_BYTES:
            raise self._asking().refuse(refusals.TOO_LONG)
        phase = Phase(script=self._keep(content), argv=(None, *self.seen.args))
        box = container(self.part, PROGRAM, site=self.setting.site)
        return StepSpec(name="batch", phases=(phase,), container=box)

    def _keep(self, content: bytes) -> Digest:
        digest = digest_of(content)
        self.blobs[digest] = content
        return digest

    def _exported(self) -> environment.Exported:
        file = self.part["export-file"].text if "export-file" in self.part else None
        below = None
        if file:
            found = handed(file, self.typed.files)
            if found.error:
                text = f"Could not open user environment file {file}"
                raise failed(PROGRAM, text)
            below = environment.unpack(found.content)
        export = self.part["export"].text if "export" in self.part else None
        return environment.exported(self.typed.environ, export, below)

    def _said(self, notes: Sequence[str], *, quiet: bool) -> str:
        """Warnings, unless -Q; the list of options for -v."""
        kept = [note for note in notes if not (quiet and ": warning: " in note)]
        verbose = self.part.get("verbose")
        if verbose is None or not verbose.value or quiet:
            return "".join(kept)
        table = lookup(PROGRAM, plugins=True).by_long
        shown = [(long, show_given(table[long], given)) for long, given in self.part.items()]
        return "".join(kept) + listing(PROGRAM, shown)
