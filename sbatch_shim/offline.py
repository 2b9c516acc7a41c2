"""What `scontrol` can say without a service: forms of host lists, for scripts on nodes."""

from sbatch_shim.grammar.hostlist import HostlistError, expand, fold, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SHOW = "show"
OWN = "hostnames"
"""Without a list it is about the job that asks; the others want one."""
LIST = b"SLURM_NODELIST="
EMPTY = b"scontrol: error: host list is empty\n"
FORMS: "dict[str, tuple[int, Callable[[list[str]], str]]]" = {
    "hostnames": (5, lambda names: "".join(f"{name}\n" for name in names)),
    "hostlist": (5, lambda names: join(names) + "\n"),
    "hostlistsorted": (9, lambda names: fold(names) + "\n"),
}
"""Least number of letters, and how the names are written."""


def answer(argv: "list[bytes]", variables: "list[bytes]") -> "tuple[bytes, bytes] | None":
    """Standard output and error of such a command line; None for any other."""
    words = [word.decode("utf-8", "surrogateescape") for word in argv]
    if len(words) not in {2, 3} or not SHOW.startswith(words[0].lower()) or not words[0]:
        return None
    asked = words[1].lower()
    for name, (least, write) in FORMS.items():
        if len(asked) >= least and name.startswith(asked):
            if len(words) == 2 and name != OWN:
                return None
            return _written(words[2] if len(words) > 2 else _own(variables), write)
    return None


def _own(variables: "list[bytes]") -> str:
    found = next((entry[len(LIST) :] for entry in variables if entry.startswith(LIST)), b"")
    return found.decode("utf-8", "surrogateescape")


def _written(text: str, write: "Callable[[list[str]], str]") -> "tuple[bytes, bytes]":
    if not text:
        return b"", EMPTY
    try:
        names = expand(text)
    except HostlistError:
        return b"", b"Invalid hostlist: %b\n" % text.encode("utf-8", "surrogateescape")
    return write(names).encode("utf-8", "surrogateescape"), b""
