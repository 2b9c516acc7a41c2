"""`module` and conda for batch scripts on a machine of ours whose image has them.

A batch script's shell is no login shell: bash reads instead what BASH_ENV names, once. Scripts that
bring a `module` of their own along, or a BASH_ENV, are left as they are.
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
LINES = 'unset BASH_ENV\nfor spz_one in {}; do\n    . "$spz_one" || :\ndone\nunset spz_one\n'


def prepare(kinds: "Sequence[Sequence[str]]" = (MODULES, CONDA)) -> str:
    """The file's full path; empty where the image has neither."""
    found = [next((path for path in kind if os.access(path, os.R_OK)), "") for kind in kinds]
    there = [shlex.quote(path) for path in found if path]
    if not there:
        return ""
    if not os.path.exists(FILE):
        with open(FILE + ".new", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(LINES.format(" ".join(there)))
            os.fchmod(file.fileno(), 0o644)
        os.rename(FILE + ".new", FILE)
    return os.path.abspath(FILE)


def add(values: "dict[bytes, bytes]", step: "dict[str, Any]") -> None:
    """For a batch script, unless its environment has ways of its own."""
    path = step.get("profile")
    if path and not any(name in values for name in OWN):
        values[b"BASH_ENV"] = os.fsencode(path)
