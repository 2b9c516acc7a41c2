"""The manual's page about what of Slurm is here, made from the tables of options and columns."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from gateway.query import accounts, fields, sinfo
from gateway.query.column import Account, Column
from sbatch_shim.grammar.options import TABLES
from sbatch_shim.grammar.table import ACCEPTED, CORE, IGNORED, OPT, REFUSED, REQ, Opt

CLASSES = (
    (CORE, "Served"),
    (ACCEPTED, "Accepted"),
    (IGNORED, "Ignored, with a warning"),
    (REFUSED, "Refused"),
)
"""In the order in which they are listed."""
HEADS = {"squeue": ("`-o`", "`-O`", "headline"), "sinfo": ("`-o`", "`-O`", "headline")}


def options_page() -> str:
    """Markdown: how many options of each command are of each class, then their names."""
    counted = _table(
        ("command", *(title for _, title in CLASSES)),
        (_counts(command) for command in TABLES),
    )
    return "\n\n".join([counted, *map(_command, TABLES)])


def options_of(command: str, cls: str) -> list[Opt]:
    """The command's options of a class, by long name; other spellings of one are left out."""
    rows = (opt for opt in TABLES[command].by_long.values() if opt.cls == cls and not opt.same)
    return sorted(rows, key=lambda opt: opt.long.lower())


def typed(opt: Opt) -> str:
    """The option as it is typed: `-J, --job-name=`; `[=]` where a value may be left out."""
    value = "=" if opt.arg == REQ else "[=]" if opt.arg == OPT else ""
    return (f"-{opt.short}, " if opt.short else "") + f"--{opt.long}{value}"


def fields_page() -> str:
    """Markdown: the columns of squeue, sinfo and sacct, and keys of `scontrol show job`."""
    shown = [column for column in fields.COLUMNS if column.long and column.help]
    keys = sorted({column.scontrol for column in fields.COLUMNS if column.scontrol})
    parts = [
        ("squeue", _table(HEADS["squeue"], map(_of_job, shown))),
        ("sinfo", _table(HEADS["sinfo"], map(_of_node, sinfo.COLUMNS))),
        ("sacct", _listed(_of_account(column) for column in accounts.COLUMNS)),
        ("scontrol show job", _listed(f"`{key}`" for key in keys)),
    ]
    return "\n\n".join(f"### Columns of {title}\n\n{text}" for title, text in parts)


def known_page(text: str) -> str:
    """Markdown: recorded cases that are known to differ, from lines of `area/name reason`.

    Empty lines and those that begin with `#` say nothing. Raises ValueError for any other line.
    """
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            continue
        case, _, reason = line.partition(" ")
        area, slash, name = case.partition("/")
        if not (slash and name and reason.strip()):
            raise ValueError(f"{line!r} is not `area/name reason`")
        rows.append((reason.strip(), area, name))
    if not rows:
        return "No case is on the list."
    reasons = dict.fromkeys(reason for reason, _, _ in rows)
    return _table(("reason", "cases"), ((why, _cases(rows, why)) for why in reasons))


def _cases(rows: Iterable[tuple[str, str, str]], reason: str) -> str:
    return ", ".join(f"`{area}/{name}`" for why, area, name in rows if why == reason)


def _counts(command: str) -> tuple[str, ...]:
    numbers = (len(options_of(command, cls)) for cls, _ in CLASSES)
    return (f"[{command}](#{command})", *(str(number or "") for number in numbers))


def _command(command: str) -> str:
    lines = [
        f"**{title}:** {_listed(f'`{typed(opt)}`' for opt in options)}"
        for cls, title in CLASSES
        if (options := options_of(command, cls))
    ]
    return "\n\n".join([f"### {command}", *lines])


def _of_job(column: Column) -> tuple[str, ...]:
    letter = f"`%{column.letter}`" if column.letter else ""
    return letter, f"`{column.long}`" + _mark(column.get, fields.always), column.header


def _of_node(column: sinfo.Column) -> tuple[str, ...]:
    letter = f"`%{column.letter}`" if column.letter else ""
    return letter, f"`{column.long}`" + _mark(column.text, sinfo.always), column.header


def _of_account(column: Account) -> str:
    return f"`{column.name}`" + _mark(column.get, fields.always)


def _mark(get: Callable[..., object] | None, always: Callable[[Any], Callable[..., Any]]) -> str:
    """A star where the value is the same for every job: there is nothing of the kind here."""
    made = getattr(get, "__code__", None) is cast(Any, always(None)).__code__
    return " \\*" if made else ""


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    body = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
