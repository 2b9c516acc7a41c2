"""What every command can say without doing anything: its version and its options."""

from gateway.api.wire import Answer
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.table import NO, OLD, REQ, Opt

WIDTH = 30


def early(program: str, asked: str, *, version: str, operands: str = "", usage: str = "") -> Answer:
    """The answer to `--version`, `--usage` (made from the name unless given) or `--help`."""
    if asked == "version":
        return Answer(out=f"slurm {version}\n")
    if asked == "usage" and usage:
        return Answer(out=usage)
    usage = f"Usage: {program} [OPTIONS] {operands}".rstrip() + "\n"
    if asked == "usage":
        return Answer(out=usage)
    shown = (opt for opt in lookup(program).by_long.values() if not opt.same)
    return Answer(out=usage + "".join(map(_line, shown)))


def _line(opt: Opt) -> str:
    letter = f"-{opt.short}, " if opt.short else "    "
    value = "" if opt.arg in (NO, OLD) else "=VALUE" if opt.arg == REQ else "[=VALUE]"
    words = f"  {letter}--{opt.long}{value}"
    gap = "  " if len(words) >= WIDTH else " " * (WIDTH - len(words))
    return f"{words}{gap}{opt.help}\n"
