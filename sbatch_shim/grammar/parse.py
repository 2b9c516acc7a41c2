"""The words of a command to its options: argv, directives and environment, in Slurm's order.

Script is weakest, then environment, then command line; within each the last of a repeated option
wins. A value is read where it stands, so that a bad one is refused even if a good one follows.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence

from sbatch_shim.grammar import pbs, script
from sbatch_shim.grammar.check import MAIL_NAMES, Rules, read
from sbatch_shim.grammar.errors import (
    FAILURE,
    OPTION_ERROR,
    GrammarError,
    error_line,
    failed,
    fatal,
    invalid,
    warning_line,
)
from sbatch_shim.grammar.getopt import Reader, Said, scan, scan_all
from sbatch_shim.grammar.hostlist import HostlistError, expand
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.table import GEOMETRY, MAIL, NO, OLD, REPEAT, REQ, SIGNAL
from sbatch_shim.grammar.values import NodeCount, Signal

Given = namedtuple("Given", "text value source")
"""An option given: its text (None for none), the value read from it, and where it stood."""

Look = namedtuple("Look", "parts script args early wrap")
"""The command line at first sight: options of each component, the script (or program), its
arguments, the option that ends the command at once (`help`, `usage`, `version`), and --wrap."""

Script = namedtuple("Script", "name text")
"""A batch script: its base name for messages, its text decoded with surrogateescape."""

Request = namedtuple("Request", "parts notes")
"""For each job component the options given by long name, in the order they were settled; and
lines for standard error."""

Query = namedtuple("Query", "given said operands")
"""Options by long name with those of the environment, options said in order, other words."""

SCRIPT, ENVIRONMENT, COMMAND_LINE = "script", "environment", "command line"

EARLY = frozenset(("help", "usage", "version"))
AUTOCOMPLETE = "autocomplete"
EARLY_SUBMIT = EARLY | {AUTOCOMPLETE}
NOT_IN_SCRIPTS = EARLY_SUBMIT | {"wrap", "quiet", "verbose"}
"""Taken in a directive without any effect."""
MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
MEMORY_CLASH = "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."
MEMORY_ENV_CLASH = (
    "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive."
)
CPUS_CLASH = "--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive"
TASKS_CLASH = "--{} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU"
OTHER_TASKS = ("gpus-per-task", "gpus-per-socket", "ntasks-per-node")
"""What does not go with tasks by GPU, in the order that Slurm looks (22.05)."""
TRES_CLASH = "Inconsistent values set to --ntasks-per-gpu={} and --ntasks-per-tres={} "
SHARING_CLASH = "--exclusive and --oversubscribe options are mutually exclusive"

Part = dict[str, Given]


def parse_query(command: str, argv: Sequence[str], environ: Mapping[str, str]) -> Query:
    """The options of squeue and the like. Raises GrammarError (status 1)."""
    table = lookup(command)
    said, operands = scan_all(table, argv, code=FAILURE, stop=EARLY)
    given = {opt.long: Given(text, text, ENVIRONMENT) for opt, text in _said_in(environ, command)}
    given.update({opt.long: Given(text, text, COMMAND_LINE) for opt, text in said})
    return Query(given, said, operands)


def _said_in(environ: Mapping[str, str], command: str) -> list[Said]:
    return [
        Said(opt, None if opt.arg in (NO, OLD) and opt.kind != REPEAT else environ[name])
        for name, opt in lookup(command).variables
        if name in environ
    ]


def look(command: str, argv: Sequence[str], *, plugins: bool = False) -> Look:
    """A submit command's line before any script is read. Raises GrammarError.

    A lone colon between options begins the next component of a heterogeneous job.
    """
    table, words = lookup(command, plugins=plugins), list(argv)
    parts: list[list[Said]] = []
    while True:
        said, words = scan(table, words, code=OPTION_ERROR, stop=EARLY_SUBMIT)
        parts.append(said)
        early = next((one.opt.long for one in said if one.opt.long in EARLY_SUBMIT), None)
        if early or words[:1] != [":"]:
            break
        words = words[1:]
    wrap = next(
        (one.text for part in parts for one in reversed(part) if one.opt.long == "wrap"), None
    )
    if wrap is not None and words and not early:
        raise failed(command, WRAP_AND_SCRIPT)
    return Look(parts, words[0] if words else None, words[1:], early, wrap)


def completions(seen: Look, command: str) -> str:
    """What `--autocomplete=--ti` prints: the options that begin so, a line each (25.11)."""
    asked = [one.text for part in seen.parts for one in part if one.opt.long == AUTOCOMPLETE]
    word = (asked[-1] if asked else "") or ""
    rows = sorted(lookup(command).by_long.values(), key=lambda opt: opt.long)
    names = (f"--{opt.long}" + ("=" if opt.arg == REQ else "") for opt in rows)
    return "".join(f"{name}\n" for name in names if name.startswith(word))


def check_line(seen: Look, rules: Rules) -> None:
    """Reads the values of the command line, as Slurm does before it opens the script.

    Raises GrammarError.
    """
    for part in seen.parts:
        for said in part:
            read(said.opt, said.text, rules)


WRAP_AND_SCRIPT = "Script arguments not permitted with --wrap option"


def settle(
    seen: Look, batch: Script | None, *, environ: Mapping[str, str], rules: Rules
) -> Request:
    """Every option given, of the strongest source. Raises GrammarError."""
    head = script.Head([[]], [])
    if batch is not None:
        head = script.read_head(batch.text, batch.name, rules.program)
    notes: list[str] = list(head.notes)
    parts: list[Part] = []
    try:
        for number in range(max(len(seen.parts), len(head.parts))):
            desk = Desk(notes, rules)
            if number < len(head.parts):
                desk.put_directives(head.parts[number])
            if batch is not None and not number and not _ignores_pbs(desk.given, seen, environ):
                desk.put_foreign(batch)
            desk.put_all(_said_in(environ, rules.program), ENVIRONMENT)
            desk.put_all(seen.parts[min(number, len(seen.parts) - 1)], COMMAND_LINE)
            parts.append(judged(desk.given, notes, rules.program))
    except GrammarError as error:
        raise behind(notes, error) from None
    return Request(parts, notes)


def behind(notes: Sequence[str], error: GrammarError, *, warnings: bool = False) -> GrammarError:
    """The refusal with the errors, and warnings, that were told before it came to that."""
    told = "".join(note for note in notes if warnings or ": error: " in note)
    return GrammarError(told + error.stderr, error.code)


def _ignores_pbs(given: Part, seen: Look, environ: Mapping[str, str]) -> bool:
    said = any(one.opt.long == "ignore-pbs" for part in seen.parts for one in part)
    return said or "ignore-pbs" in given or "SBATCH_IGNORE_PBS" in environ


class Desk:
    """Where the options of one component are put, one after the other."""

    def __init__(self, notes: list[str], rules: Rules) -> None:
        self.given: Part = {}
        self.notes = notes
        self.rules = rules
        self.table = lookup(rules.program, plugins=rules.plugins)

    def put_directives(self, words: Sequence[str]) -> None:
        """Options of a script's head, each read in its turn. Raises GrammarError."""
        reader = Reader(self.table, words, OPTION_ERROR, old=True)
        for said in reader.leading():
            if said.opt.long not in NOT_IN_SCRIPTS:
                self._put(said, SCRIPT)
        for word in reader.rest()[:1]:
            raise invalid(self.rules.program, f"Invalid directive found in batch script: {word}")

    def put_foreign(self, batch: Script) -> None:
        """Options of #PBS and #BSUB lines, which win over the directives."""
        for mark in pbs.TABLES:
            words = script.read_foreign(
                batch.text, mark, name=batch.name, program=self.rules.program
            )
            for long, text in pbs.translate(mark, words):
                self._put(Said(self.table.by_long[long], text), SCRIPT)

    def put_all(self, said: Sequence[Said], source: str) -> None:
        """Options of a source that was scanned already."""
        for one in said:
            self._put(one, source)

    def _put(self, said: Said, source: str) -> None:
        opt = said.opt
        value = read(opt, said.text, self.rules)
        before = self.given.pop(opt.long, None)
        if before is not None and opt.kind in SUMS:
            value = SUMS[opt.kind](before.value, value)
        self.given[opt.long] = Given(said.text, value, source)
        for long in SHAPE if opt.kind == GEOMETRY else ():
            self.given.pop(long, None)
        if opt.arg == OLD and said.text is not None:
            told = DROPPED_VALUE.format(opt.long, said.text)
            self.notes.append(warning_line(self.rules.program, told))


SHAPE = ("sockets-per-node", "cores-per-socket", "threads-per-core")
"""What was said by these of a node's shape before -B counts no more (22.05)."""
SPECIALIZING = {"core-spec": "-S", "thread-spec": "--thread-spec"}
SPECIALIZING_CLASH = "-S/--core-spec and --thred-spec options are mutually exclusive"
NO_SPECIALIZING = (
    "Ignoring {} since it's not allowed by configuration (AllowSpecResourcesUsage = No)"
)
DROPPED_VALUE = "--{} takes no value since Slurm 25.05: {!r} is ignored"


def _both_signals(before: Signal, after: Signal) -> Signal:
    return after._replace(
        batch=before.batch or after.batch, reservation=before.reservation or after.reservation
    )


def _both_mails(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in MAIL_NAMES if name in (*before, *after))


SUMS: dict[str, Callable[..., object]] = {
    SIGNAL: _both_signals,
    MAIL: _both_mails,
    REPEAT: lambda before, after: before + after,
}
"""Kinds whose repetitions add up."""


def judged(given: Part, notes: list[str], program: str) -> Part:
    """The options after Slurm's looks across them. Raises GrammarError for those that clash."""
    if "exclusive" in given and "oversubscribe" in given:
        raise fatal(program, SHARING_CLASH)
    _must_share_gpus_one_way(given, program)
    _not_specialized(given, notes, program)
    given = _one_memory(given, program)
    clash = {"cpus-per-task", "cpus-per-gpu"}
    if clash <= given.keys() and len({given[long].source == ENVIRONMENT for long in clash}) == 1:
        raise fatal(program, CPUS_CLASH)
    return _no_idle_nodes(given, notes, program=program)


def _must_share_gpus_one_way(given: Part, program: str) -> None:
    per_gpu, per_tres = given.get("ntasks-per-gpu"), given.get("ntasks-per-tres")
    if per_gpu and per_tres and per_gpu.value != per_tres.value:
        raise fatal(program, TRES_CLASH.format(per_gpu.value, per_tres.value))
    clash = next((long for long in OTHER_TASKS if long in given), None)
    if clash and (per_gpu or per_tres):
        raise fatal(program, TASKS_CLASH.format(clash))


def _not_specialized(given: Part, notes: list[str], program: str) -> None:
    """Cores set aside are passed over; both ways to ask for them at once are refused (22.05)."""
    asked = [word for long, word in SPECIALIZING.items() if long in given]
    if len(asked) > 1:
        raise fatal(program, SPECIALIZING_CLASH)
    notes += [error_line(program, NO_SPECIALIZING.format(word)) for word in asked]


def _one_memory(given: Part, program: str) -> Part:
    """One memory option: those of the environment give way to a typed one."""
    asked = [long for long in MEMORY if long in given]
    typed = [long for long in asked if given[long].source != ENVIRONMENT]
    if len(typed) > 1:
        raise fatal(program, MEMORY_CLASH)
    if not typed and len(asked) > 1:
        raise fatal(program, MEMORY_ENV_CLASH)
    return {k: v for k, v in given.items() if k not in asked or k in (typed or asked)}


def _no_idle_nodes(given: Part, notes: list[str], *, program: str) -> Part:
    """No more nodes than tasks, with a warning, whether counted or named."""
    if "ntasks" not in given:
        return given
    nodes, tasks = given.get("nodes"), given["ntasks"].value
    low = nodes.value.low if nodes is not None else _named(given.get("nodelist"))
    if low <= tasks:
        return given
    notes.append(
        warning_line(
            program, f"can't run {tasks} processes on {low} nodes, setting nnodes to {tasks}"
        )
    )
    if nodes is None:
        return given
    return {**given, "nodes": nodes._replace(value=NodeCount(tasks, tasks, ()))}


def _named(nodelist: Given | None) -> int:
    """How many nodes are named; those of a file are not looked at here."""
    text = (nodelist.text or "") if nodelist is not None else ""
    try:
        return 0 if "/" in text or not text else len(set(expand(text)))
    except HostlistError:
        return 0
