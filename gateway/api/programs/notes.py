"""Warnings of commands that ask: an option without effect here is named, the answer stays."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.api.desk import Desk
from gateway.api.stream import Interactive
from gateway.api.text import Program
from gateway.api.wire import Answer, Call, raw
from sbatch_shim.grammar.errors import GrammarError, warning_line
from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.options_query import COMMANDS
from sbatch_shim.grammar.parse import parse_query
from sbatch_shim.grammar.table import IGNORED, Opt


def noting(programs: Mapping[str, Program | Interactive]) -> dict[str, Program | Interactive]:
    """The programs; those with options that are ignored say so before their own errors."""
    return {name: _noting(name, program) for name, program in programs.items()}


def notes(program: str, call: Call) -> str:
    """A warning line for each option typed that has no effect here; empty for most calls."""
    ignored = [opt for opt in TABLES[program].by_long.values() if opt.cls == IGNORED]
    if not any(_may_be(word, opt) for word in call.argv for opt in ignored):
        return ""
    try:
        said = parse_query(program, call.argv, call.environ).said
    except GrammarError:
        return ""
    typed = dict.fromkeys(one.opt.long for one in said if one.opt.cls == IGNORED)
    lines = (f"--{long} has no effect here and is ignored" for long in typed)
    return "".join(warning_line(program, line) for line in lines)


def _noting(name: str, program: Program | Interactive) -> Program | Interactive:
    if isinstance(program, Interactive) or name not in COMMANDS:
        return program
    if not any(opt.cls == IGNORED for opt in TABLES[name].by_long.values()):
        return program

    async def run(desk: Desk, call: Call) -> Answer:
        answer = await program(desk, call)
        said = notes(name, call) if desk.warn_ignored else ""
        return replace(answer, err=said.encode() + raw(answer.err)) if said else answer

    return run


def _may_be(word: str, opt: Opt) -> bool:
    """Whether reading the line is worth it; names may be shortened, letters joined."""
    long, short = str(opt.long), str(opt.short)
    if word.startswith("--"):
        return long.startswith(word[2:].partition("=")[0])
    return word.startswith("-") and short != "" and short in word
