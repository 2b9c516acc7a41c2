"""`module`, conda, `~/.local/bin`: for batch scripts on machines of ours and for runs of clusters.

Their shells are no login shells: bash reads instead what BASH_ENV names, once. Scripts that bring a
`module` of their own along, or a BASH_ENV, are left as they are.
"""

import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FILE = "profile.sh"
MODULES = (
    "/etc/profile.d/lmod.sh",
    "/etc/profile.d/modules.sh",
    "/usr/share/lmod/lmod/init/bash",
    "/usr/share/modules/init/bash",
    "/usr/share/Modules/init/bash",
)
CONDA = (
    "/etc/profile.d/conda.sh",
    "/opt/conda/etc/profile.d/conda.sh",
    "/opt/miniconda3/etc/profile.d/conda.sh",
    "/opt/miniforge3/etc/profile.d/conda.sh",
)
OWN = (b"BASH_ENV", b"BASH_FUNC_module%%", b"BASH_FUNC_module()")
HOMES = ("miniconda3", "miniforge3", "mambaforge", "anaconda3")
"""Folders below a home where its user, or a setup, may have put conda."""
LINES = """\
unset BASH_ENV
for spz_one in {found}; do . "$spz_one" || :; done
for spz_one in {homes}; do
    type conda >/dev/null 2>&1 && break
    spz_one=$HOME/$spz_one/etc/profile.d/conda.sh
    [ ! -r "$spz_one" ] || . "$spz_one" || :
done
case ":$PATH:" in
    *":$HOME/.local/bin:"*) ;;
    *) [ ! -d "$HOME/.local/bin" ] || PATH=$PATH:$HOME/.local/bin ;;
esac
unset spz_one
"""


def prepare(kinds: "Sequence[Sequence[str]]" = (MODULES, CONDA)) -> str:
    """The file's full path: with what the image has, and what the user has when it is read."""
    if not os.path.exists(FILE):
        found = [next((path for path in kind if os.access(path, os.R_OK)), "") for kind in kinds]
        there = " ".join(shlex.quote(path) for path in found if path)
        with open(FILE + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(LINES.format(found=there, homes=" ".join(HOMES)))
            os.fchmod(file.fileno(), 0o644)
        os.rename(FILE + ".new", FILE)
    return os.path.abspath(FILE)


def wanted(step: "dict[str, Any]", key: str, *, ours: bool) -> bool:
    """Of runs in clusters everywhere, as in SkyPilot; those of srun have what srun was given."""
    name = key.rpartition("/")[2]
    return ours if name == "batch" else name != "extern" and not step.get("relay")


def add(values: "dict[bytes, bytes]", step: "dict[str, Any]") -> None:
    """For a script, unless its environment has ways of its own."""
    path = step.get("profile")
    if path and not any(name in values for name in OWN):
        values[b"BASH_ENV"] = os.fsencode(path)
