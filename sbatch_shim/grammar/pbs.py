"""#PBS and #BSUB lines as sbatch obeys them: their options in its own words."""

from __future__ import annotations

from collections.abc import Sequence

from sbatch_shim.grammar.errors import FAILURE, GrammarError, error_line, failed
from sbatch_shim.grammar.getopt import Said, scan
from sbatch_shim.grammar.options import Table
from sbatch_shim.grammar.table import ACCEPTED, FLAG, NO, REQ, SBATCH, TEXT, Opt
from sbatch_shim.grammar.values import read_digits

# fmt: off
PBS = (
    # long              letter arg  what it is for sbatch
    ("start_time",        "a", REQ, "begin"),
    ("account",           "A", REQ, "account"),
    ("checkpoint",        "c", REQ, ""),
    ("working_dir",       "d", REQ, "chdir"),
    ("error",             "e", REQ, "error"),
    ("hold",              "h", NO,  "hold"),
    ("interactive",       "I", NO,  ""),
    ("join",              "j", REQ, ""),
    ("job_array",         "J", REQ, "array"),
    ("keep",              "k", REQ, ""),
    ("resource_list",     "l", REQ, "resources"),
    ("mail_options",      "m", REQ, "mail"),
    ("mail_user_list",    "M", REQ, "mail-user"),
    ("job_name",          "N", REQ, "job-name"),
    ("out",               "o", REQ, "output"),
    ("priority",          "p", REQ, "nice"),
    ("destination",       "q", REQ, "partition"),
    ("rerunable",         "r", REQ, ""),
    ("script_path",       "S", REQ, ""),
    ("array",             "t", REQ, "array"),
    ("running_user",      "u", REQ, ""),
    ("variable_list",     "v", REQ, "export"),
    ("all_env",           "V", NO,  ""),
    ("working_directory", "w", REQ, "chdir"),
    ("attributes",        "W", REQ, "attributes"),
    ("no_std",            "z", NO,  ""),
)
BSUB = (
    ("cwd",               "c", REQ, "chdir"),
    ("error_file",        "e", REQ, "error"),
    ("job_name",          "J", REQ, "job-name"),
    ("hostname",          "m", REQ, "hosts"),
    ("memory_limit",      "M", REQ, "mem-per-cpu"),
    ("tasks",             "n", REQ, "tasks"),
    ("output_file",       "o", REQ, "output"),
    ("queue_name",        "q", REQ, "partition"),
    ("time",              "W", REQ, "time"),
    ("exclusive",         "x", NO,  "exclusive"),
)
# fmt: on

RESOURCES = {
    "cput": "time",
    "walltime": "time",
    "mem": "mem",
    "pmem": "mem-per-cpu",
    "file": "tmp",
    "mppmem": "mem",
    "mppwidth": "ntasks",
    "mppdepth": "cpus-per-task",
    "mppnppn": "ntasks-per-node",
    "nice": "nice",
    "ncpus": "mincpus",
    "procs": "ntasks",
    "proc": "constraint",
}
"""Names in a list of `-l` that have one word for sbatch; `nodes` and GPUs are put together."""

MAIL = {"a": "FAIL", "b": "BEGIN", "e": "END", "n": "NONE"}


def _table(rows: Sequence[tuple[str, str, str, str]]) -> Table:
    opts = [
        Opt(
            long,
            letter,
            arg,
            FLAG if arg == NO else TEXT,
            ACCEPTED,
            SBATCH,
            "",
            "",
            into,
            "",
            "",
            "",
            "",
        )
        for long, letter, arg, into in rows
    ]
    return Table("sbatch", {opt.long: opt for opt in opts}, {opt.short: opt for opt in opts}, ())


TABLES = {"#PBS": _table(PBS), "#BSUB": _table(BSUB)}


def translate(mark: str, words: Sequence[str]) -> list[tuple[str, str | None]]:
    """The options of the lines with that mark, as sbatch's long names and texts, in order.

    Raises GrammarError for an option that PBS or LSF have and sbatch does not know.
    """
    try:
        said, operands = scan(TABLES[mark], words, code=FAILURE)
    except GrammarError as wrong:
        complaint = wrong.stderr.partition("\n")[0]
        unknown = error_line("sbatch", "Unrecognized command line parameter ?")
        raise GrammarError(f"{complaint}\n{unknown}", FAILURE) from None
    if operands:
        raise failed("sbatch", f"Invalid argument: {operands[0]}")
    return [pair for one in said for pair in _translated(one)]


def _translated(said: Said) -> list[tuple[str, str | None]]:
    into, text = said.opt.spec, said.text or ""
    if into in COMPOSED:
        return COMPOSED[into](text)
    if into in ("error", "output") and text.lower() == "none":
        text = "/dev/null"
    return [(into, text or None)] if into else []


def _resources(text: str) -> list[tuple[str, str | None]]:
    pairs: list[tuple[str, str | None]] = []
    gpus = 0
    for token in text.split(","):
        name, _, value = token.partition("=")
        if name in ("nodes", "select"):
            pairs += _nodes(value)
        elif name in ("naccelerators", "ngpus"):
            gpus = read_digits(value) or 0
        elif name == "accelerator":
            gpus = max(gpus, int(value.lower() == "true"))
        elif name in RESOURCES:
            pairs.append((RESOURCES[name], value))
    return [*pairs, ("gres", f"gpu:{gpus}")] if gpus else pairs


def _nodes(text: str) -> list[tuple[str, str | None]]:
    """`2:ppn=4`, `node1+node2:ppn=2`: how many nodes, which ones, how many tasks in all."""
    count, per_node, names = 0, 0, []
    for part in text.replace("+", ":").split(":"):
        if part.startswith("ppn="):
            per_node += read_digits(part[4:]) or 0
        elif part[:1].isdigit():
            count += read_digits(part) or 0
        elif part[:1].isalpha() and "=" not in part:
            names.append(part)
    pairs: list[tuple[str, str | None]] = [("nodes", str(count))] if count else []
    if per_node:
        pairs.append(("ntasks", str(per_node * (count or 1))))
    return [*pairs, ("nodelist", ",".join(names))] if names else pairs


def _mail(text: str) -> list[tuple[str, str | None]]:
    return [("mail-type", ",".join(MAIL.get(letter, letter) for letter in text))]


def _attributes(text: str) -> list[tuple[str, str | None]]:
    name, _, value = text.partition("=")
    return [("dependency", value)] if name.lower() == "depend" else []


def _hosts(text: str) -> list[tuple[str, str | None]]:
    return [("nodelist", text.replace(" ", ","))]


def _tasks(text: str) -> list[tuple[str, str | None]]:
    return [("ntasks", text.rpartition(",")[2])]


COMPOSED = {
    "resources": _resources,
    "mail": _mail,
    "attributes": _attributes,
    "hosts": _hosts,
    "tasks": _tasks,
}
