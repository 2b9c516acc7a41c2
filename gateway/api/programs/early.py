"""What every command can say without doing anything: its version and its options."""

from gateway.api.programs import pages
from gateway.api.wire import Answer
from sbatch_shim.grammar.parse import AUTOCOMPLETE


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
