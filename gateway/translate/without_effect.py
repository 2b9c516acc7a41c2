"""Which options do nothing here, and the warnings that name them; nothing is dropped silently."""

from collections.abc import Callable, Mapping

from sbatch_shim.grammar.errors import warning_line
from sbatch_shim.grammar.options import lookup
from sbatch_shim.grammar.parse import Given
from sbatch_shim.grammar.table import IGNORED, SPECIALIZE

Judge = Callable[[Given], bool]
NOT_BOUND = ("none", "no", "n", "quiet", "q")


def _is(*words: str) -> Judge:
    return lambda given: (given.text or "").lower() in words


SO_ANYWAY: Mapping[str, Judge] = {
    "gpu-bind": _is("none"),
    "hint": _is("multithread"),
    "mem-bind": _is(*NOT_BOUND),
    "oom-kill-step": lambda given: given.value == 0,
    "profile": _is("none"),
    "wait-all-nodes": lambda given: given.value == 1,
}
"""Values of options that are ignored which ask for nothing else than what happens anyway."""
UNSERVED: Mapping[str, Judge] = {"exclusive": lambda given: given.value != "exclusive"}
"""Values that do nothing, of options that are served."""


def warnings(part: Mapping[str, Given], program: str, *, mails: bool, admin: bool) -> list[str]:
    """A line for each option that has no effect here; Slurm has lines of its own for some.

    `mails`: whether something here sends mail; `admin`: whether who asks may set priorities.
    """
    table = lookup(program, plugins=True).by_long
    told = (long for long in part if table[long].kind != SPECIALIZE)
    return [
        warning_line(program, f"--{_shown(long, part[long])} has no effect here and is ignored")
        for long in told
        if _does_nothing(long, part[long], ignored=table[long].cls == IGNORED)
        or (long == "mail-type" and not mails and bool(part[long].value))
        or (long == "priority" and not admin)
    ]


def _does_nothing(long: str, given: Given, *, ignored: bool) -> bool:
    judge = (SO_ANYWAY if ignored else UNSERVED).get(long)
    if judge is None:
        return ignored
    return judge(given) is not ignored


def _shown(long: str, given: Given) -> str:
    """With its value where others of the option have an effect."""
    return f"{long}={given.text}" if long in UNSERVED else long
