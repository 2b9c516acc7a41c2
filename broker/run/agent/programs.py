"""Programs of the node's own, which the agent finds whatever its environment says."""

import os
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def found(name: str) -> "Optional[str]":
    return shutil.which(name, path=PATH)


def located(name: bytes, environment: "dict[bytes, bytes]") -> bytes:
    """By those variables, else where the system has its programs; empty if nowhere."""
    for folder in (environment.get(b"PATH", b"") + b":" + os.fsencode(PATH)).split(b":"):
        program = os.path.join(folder, name)
        if folder and os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    return b""


def done(argv: "list[str]") -> bool:
    """Whether it went well; what it says goes where the agent's own words go."""
    program = found(argv[0])
    if program is None:
        print(argv[0], "is not here", flush=True)
        return False
    return subprocess.call([program, *argv[1:]], stdin=subprocess.DEVNULL, cwd="/") == 0
