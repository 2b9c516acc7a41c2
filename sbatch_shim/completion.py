"""Bash completion of the commands, made from the tables of options: a file for each command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sbatch_shim.grammar.check import MAIL_NAMES
from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.states import JOB_STATES
from sbatch_shim.grammar.table import OPT, REQ, Opt

SCRIPT = """\
# Completion of {program}, written by `spz shims install`; not for editing.
_skypurza_{program}() {{
    local IFS=$' \\t\\n' cur=${{COMP_WORDS[COMP_CWORD]}} option='' list='' word
    COMPREPLY=()
    if [[ $cur == = ]]; then
        option=${{COMP_WORDS[COMP_CWORD-1]}}= cur=''
    elif (( COMP_CWORD > 1 )); then
        option=${{COMP_WORDS[COMP_CWORD-1]}}
        [[ $option == = ]] && option=${{COMP_WORDS[COMP_CWORD-2]}}=
    fi
    case $option in
{values}
    *) case $cur in
        -*) _skypurza_{program}_names {names} ;;
        *) {operands} ;;
        esac
        return ;;
    esac
}}
_skypurza_{program}_names() {{
    for word; do
        [[ $word == "$cur"* ]] && COMPREPLY+=("$word")
    done
    [[ ${{#COMPREPLY[@]}} == 1 && $COMPREPLY == *= ]] && compopt -o nospace
}}
# Adds the lines of standard input that fit behind the last comma of what was typed.
_skypurza_{program}_lines() {{
    local head=${{cur%"${{cur##*,}}"}} line
    while IFS= read -r line; do
        [[ $line == "${{cur##*,}}"* ]] && COMPREPLY+=("$head$(printf %q "$line")")
    done
}}
complete -F _skypurza_{program} {program}
"""
FILES = "compopt -o default"
"""The shell's own: names of files."""
# fmt: off
LISTS = {
    "partitions": "sinfo -h -o %R",
    "nodes": "sinfo -h -N -o %N",
    "features": "sinfo -h -o %b",
    "jobs": "squeue -h --me -r -o %i",
    "accounts": "sacctmgr -n -P show account format=account",
    "qos": "sacctmgr -n -P show qos format=name",
}
"""What is asked for names of a kind: a line each."""
NAMED = {
    "partition": "partitions", "partitions": "partitions",
    "nodelist": "nodes", "exclude": "nodes",
    "constraint": "features",
    "job": "jobs", "jobs": "jobs", "jobid": "jobs",
    "account": "accounts", "accounts": "accounts",
    "qos": "qos",
}
WORDS = {
    "mail-type": ("NONE", "ALL", *MAIL_NAMES),
    "open-mode": ("append", "truncate"),
    "export": ("ALL", "NONE", "NIL"),
    "state": tuple(name for name, _ in JOB_STATES),
    "units": ("K", "M", "G", "T", "P"),
    "dependency": (
        "after:", "afterany:", "afterburstbuffer:", "aftercorr:", "afternotok:", "afterok:",
        "singleton",
    ),
}
VERBS = {
    "scontrol": (
        "hold", "notify", "ping", "reconfigure", "release", "requeue", "requeuehold", "resume",
        "show", "suspend", "top", "update", "uhold", "version", "wait_job", "write",
    ),
    "sacctmgr": ("list", "show"),
}
"""The first words of commands that are not followed by files or jobs."""
# fmt: on
OF_JOBS = ("scancel", "sattach", "seff")
OF_SCRIPTS = ("sbatch", "salloc", "srun")


def completion(program: str, commands: str) -> str:
    """The file for one command; `commands` is the folder that other commands are run from."""
    rows = TABLES[program].by_long.values()
    return SCRIPT.format(
        program=program,
        values="\n".join(_case(opt, program, commands) for opt in rows if opt.arg in (REQ, OPT)),
        names=" ".join(_names(rows)),
        operands=_operands(program, commands),
    )


def _names(rows: Iterable[Opt]) -> list[str]:
    named = [f"--{opt.long}" + ("=" if opt.arg == REQ else "") for opt in rows if not opt.same]
    letters = [f"-{opt.short}" for opt in rows if opt.short and not opt.same]
    return sorted(named) + sorted(letters)


def _case(opt: Opt, program: str, commands: str) -> str:
    """Where the value stands behind a blank or behind `=`; an optional one only behind `=`."""
    patterns = [f"--{opt.long}="]
    if opt.arg == REQ:
        patterns += [f"--{opt.long}"] + ([f"-{opt.short}"] if opt.short else [])
    return f"    {'|'.join(patterns)}) {_value(opt, program, commands)} ;;"


def _value(opt: Opt, program: str, commands: str) -> str:
    long = opt.same or opt.long
    kind = "nodes" if (program, long) in (("sinfo", "nodes"), ("squeue", "nodelist")) else None
    kind = kind or NAMED.get(long)
    if kind is not None and not (program == "srun" and long == "jobs"):
        return _asked(program, kind, commands)
    if long == "states" and program != "sinfo":
        long = "state"
    if long in WORDS:
        return _fixed(program, WORDS[long])
    return FILES


def _operands(program: str, commands: str) -> str:
    if program in OF_JOBS:
        return _asked(program, "jobs", commands)
    if program in VERBS:
        return f"(( COMP_CWORD == 1 )) && {_fixed(program, VERBS[program])}"
    return FILES if program in OF_SCRIPTS else ":"


def _fixed(program: str, words: Iterable[str]) -> str:
    lines = " ".join(shlex.quote(word) for word in words)
    return f"_skypurza_{program}_lines < <(printf '%s\\n' {lines})"


def _asked(program: str, kind: str, commands: str) -> str:
    command, _, rest = LISTS[kind].partition(" ")
    path = shlex.quote(f"{commands}/{command}")
    return f"_skypurza_{program}_lines < <({path} {rest} 2>/dev/null)"
