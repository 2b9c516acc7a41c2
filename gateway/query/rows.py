"""sacct's layout: `jobid%-14,state` compiled once, cut with a plus, or between delimiters."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile

from broker.model.job import Job, Step
from gateway.query.accounts import COLUMNS
from gateway.query.column import Account
from gateway.query.context import Context
from gateway.query.width import must_fit, width_of

DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot"
)
ALL = "all"
REMOVED = {"reqgres": ("ReqGRES", "ReqTRES"), "allocgres": ("AllocGRES", "AllocTRES")}

AccountRow = tuple[Job, Step | None]


class UnknownFieldError(ValueError):
    """A column that does not exist."""


class RemovedFieldError(ValueError):
    """A column that an older Slurm had; arguments: its name, and what to use."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column at its width; to the left where negative."""

    account: Account
    width: int
    job: Callable[[Job, Context], str]
    step: Callable[[Job, Step, Context], str]

    def text(self, row: AccountRow, ctx: Context) -> str:
        job, step = row
        return self.job(job, ctx) if step is None else self.step(job, step, ctx)

    def padded(self, text: str, mark: str = "+") -> str:
        """As wide as the column; what is too long ends in the mark."""
        size = abs(self.width)
        if len(text) > size:
            text = text[: max(size - len(mark), 0)] + mark if size else ""
        return text.ljust(size) if self.width < 0 else text.rjust(size)


def read_fields(text: str) -> list[Field]:
    """The columns of a format; names in any case, cut short as one likes.

    A width holds for every mention of its column (25.11). What stands behind an empty name is not
    looked at (22.05). Raises UnknownFieldError, RemovedFieldError.
    """
    found: list[Account] = []
    widths: dict[str, int] = {}
    for word in takewhile(bool, text.split(",")):
        name, percent, size = word.partition("%")
        named = [a for a in COLUMNS if a.help] if name.lower() == ALL else [find(name)]
        found += named
        if percent:
            widths |= {account.name: _width(size) for account in named}
    return [_field(account, widths.get(account.name, account.width)) for account in found]


def find(name: str) -> Account:
    """The first column whose name begins so. Raises UnknownFieldError, RemovedFieldError."""
    short = name.strip().lower()
    if short in REMOVED:
        raise RemovedFieldError(*REMOVED[short])
    for account in COLUMNS:
        whole = not account.help
        if account.name.lower() == short or (not whole and account.name.lower().startswith(short)):
            return account
    raise UnknownFieldError(name)


def _field(account: Account, width: int) -> Field:
    return Field(account, width, account.of_job(), account.of_step())


def _width(size: str) -> int:
    """As C's atoi: digits behind blanks and a sign; 0 where there are none."""
    size = size.lstrip()
    sign = size[:1] if size[:1] in ("+", "-") else ""
    digits = size.removeprefix(sign)
    number = width_of(digits[: len(digits) - len(digits.lstrip("0123456789"))])
    return -number if sign == "-" else number


@dataclass(frozen=True, slots=True)
class Style:
    """How rows are written: in columns, or with delimiters (`ended`: one behind the last too)."""

    delimiter: str | None = None
    ended: bool = False
    header: bool = True

    @property
    def tail(self) -> str:
        """What ends a line."""
        return self.delimiter or "" if self.ended else ""


def table(fields: list[Field], rows: Iterable[AccountRow], ctx: Context, *, style: Style) -> str:
    """All of sacct's output. Raises Refused where that is too much."""
    rows = list(rows)
    check_size(fields, len(rows), style)
    return head(fields, style) + body(fields, rows, ctx, style=style)


def check_size(fields: list[Field], rows: int, style: Style) -> None:
    """Raises Refused where so many rows are too much."""
    mark = style.delimiter
    must_fit([field.width if mark is None else len(mark) for field in fields], rows)


def head(fields: list[Field], style: Style) -> str:
    """The lines above the rows."""
    if not style.header:
        return ""
    if style.delimiter is not None:
        return f"{style.delimiter.join(field.account.name for field in fields)}{style.tail}\n"
    names = "".join(f"{field.padded(field.account.name, '')} " for field in fields)
    rules = "".join(f"{'-' * abs(field.width)} " for field in fields)
    return f"{names}\n{rules}\n"


def body(fields: list[Field], rows: Iterable[AccountRow], ctx: Context, *, style: Style) -> str:
    """A line for each row."""
    mark = style.delimiter
    if mark is None:
        return "".join(
            ["".join([f"{f.padded(f.text(row, ctx))} " for f in fields]) + "\n" for row in rows]
        )
    end = f"{style.tail}\n"
    return "".join([mark.join([field.text(row, ctx) for field in fields]) + end for row in rows])


def help_fields() -> str:
    """`sacct --helpformat`: four names to a line."""
    return help_grid([account.name for account in COLUMNS if account.help])


def help_grid(words: list[str]) -> str:
    """Four words to a line, each 19 wide."""
    lines = [words[i : i + 4] for i in range(0, len(words), 4)]
    return "".join(" ".join(f"{word:<19}" for word in line) + "\n" for line in lines)
