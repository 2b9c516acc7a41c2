"""What every command can say without doing anything: its version and its options."""

from collections.abc import Sequence

from gateway.api.programs import pages
from gateway.api.wire import Answer
from sbatch_shim.grammar.parse import AUTOCOMPLETE

TOO_MANY = "too many arguments for keyword:{}\n"


def early(program: str, asked: str, *, version: str, usage: str = "") -> Answer:
    """The answer to `--version`, `--usage` (made from the tables unless given) or `--help`.

    Nothing for an `--autocomplete` that no option begins with.
    """
    if asked == AUTOCOMPLETE:
        return Answer()
    if asked == "version":
        return Answer(out=f"slurm {version}\n")
    if asked == "usage":
        return Answer(out=usage or pages.usage(program))
    return Answer(out=pages.page(program))


def help_of(program: str, words: Sequence[str]) -> Answer:
    """The answer to the command `help` of sacctmgr and sreport, which takes no words (22.05)."""
    said = TOO_MANY.format(words[0]) if words[1:] else ""
    return Answer(out=pages.page(program), err=said, code=int(bool(said)))
