"""The commands' manual pages, made from the tables of options."""

from __future__ import annotations

from collections.abc import Iterable

from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.table import ACCEPTED, IGNORED, NO, OLD, OPT, REFUSED, Opt, env_names

# fmt: off
ABOUT = {
    "sbatch": ("submit a batch script", "[script [args...]]"),
    "squeue": ("list jobs that wait or run", ""),
    "sacct": ("list jobs and steps, finished ones too", ""),
    "scancel": ("end jobs or send them a signal", "[job[_task][.step]...]"),
    "sinfo": ("list partitions and nodes", ""),
    "scontrol": ("show and change jobs, nodes and the configuration", "[command]"),
    "srun": ("run tasks, in an allocation of their own or as a step of a job", "program [args...]"),
    "salloc": ("get an allocation and run a command beside it", "[command [args...]]"),
    "sattach": ("connect to a step that runs", "job.step"),
    "sbcast": ("copy a file to the nodes of a job", "source destination"),
    "sacctmgr": ("show accounts, users, associations and QOS", "[command]"),
    "sdiag": ("say how the service is doing", ""),
    "seff": ("say what a job made of its allocation", "job"),
    "sprio": ("show the parts of jobs' priorities", ""),
    "sreport": ("report on use", "[report]"),
    "sshare": ("show shares and use of accounts", ""),
    "sstat": ("show what running steps use", ""),
}
"""What each command is for, and what follows its options."""
NOTES = {
    ACCEPTED: "Accepted; changes nothing here beyond what is shown of a job.",
    IGNORED: "Has no effect here; a warning says so.",
    REFUSED: "Refused here.",
}
# fmt: on
SUBMITTING = ("sbatch", "salloc", "srun")
"""Their tables tell what was kept only to be shown."""


def manual(program: str, version: str) -> str:
    """The page in roff's man macros; `version` is what `--version` says (`slurm 25.11.7`)."""
    what, operands = ABOUT[program]
    rows = sorted(TABLES[program].by_long.values(), key=lambda opt: opt.long.lower())
    parts = [
        f'.TH {program.upper()} 1 "" "SkyPurza" {_quoted(version)}',
        ".SH NAME",
        f"{program} \\- {_text(what)}",
        ".SH SYNOPSIS",
        f".B {program}",
        f"[options] {_text(operands)}".rstrip(),
        ".SH OPTIONS",
        *(_option(opt, rows) for opt in rows if not opt.same),
        *_environment(program, rows),
        ".SH SEE ALSO",
        ", ".join(f"\\fB{other}\\fR(1)" for other in sorted(ABOUT) if other != program),
    ]
    return "\n".join(parts) + "\n"


def _option(opt: Opt, rows: Iterable[Opt]) -> str:
    names = [f"-{opt.short}"] if opt.short else []
    names += [f"--{row.long}" for row in rows if row is opt or row.same == opt.long]
    shown = ", ".join(f"\\fB{_text(name)}\\fR" for name in names) + _value(opt)
    note = NOTES.get(opt.cls, "") if opt.cmds[0] in SUBMITTING or opt.cls != ACCEPTED else ""
    said = f"{_text(opt.help[:1].upper() + opt.help[1:])}. {_text(note)}".rstrip()
    return f".TP\n{shown}\n{said}"


def _value(opt: Opt) -> str:
    if opt.arg in (NO, OLD):
        return ""
    return "[=\\fIvalue\\fR]" if opt.arg == OPT else "=\\fIvalue\\fR"


def _environment(program: str, rows: Iterable[Opt]) -> list[str]:
    """The section of variables; none for a command that reads none."""
    pairs = sorted((name, opt.long) for opt in rows for name in env_names(opt, program))
    told = [f".TP\n\\fB{_text(name)}\\fR\nAs \\fB{_text('--' + long)}\\fR." for name, long in pairs]
    return [".SH ENVIRONMENT", *told] if told else []


def _quoted(text: str) -> str:
    return '"' + _text(text).replace('"', "\\(dq") + '"'


def _text(text: str) -> str:
    """Safe from roff: no escapes, dashes that can be copied, no request at the start of a line."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + safe if safe[:1] in (".", "'") else safe
