"""The commands of users on a node that does not share the login node's: unpacked from our archive.

They find the service by a socket in the agent's folder, behind which `back` is.
"""

import importlib.util
import os
import py_compile
import sys
import zipfile

from . import spool

BIN = os.path.join("commands", "bin")
LIBRARY = os.path.join("commands", "lib")
PACKED = "commands/"
"""In the archive: the modules of the commands, and how the commands are called."""
NAMES = PACKED + "names"
OLDEST = (3, 9)
SOCKET = "gateway.sock"
LAUNCHER = """\
#!{python} -IS
import sys

sys.path.insert(0, {library!r})
import shim

shim.main({socket!r}, {version!r})
"""


def there() -> bool:
    return os.path.isdir(BIN)


def lay_out(archive: str, version: str) -> None:
    """Writes all of them anew; `version` is what they say of themselves without a service."""
    if sys.version_info < OLDEST:
        print("no commands for jobs: they need Python {}.{}".format(*OLDEST), flush=True)
        return
    for folder in (BIN, LIBRARY):
        os.makedirs(folder, 0o755, exist_ok=True)
    with zipfile.ZipFile(archive) as packed:
        modules = [name for name in packed.namelist() if name.startswith(PACKED)]
        for name in modules:
            if name.endswith(".py"):
                _module(name[len(PACKED) :], packed.read(name))
        for program in packed.read(NAMES).decode("ascii").split():
            _launcher(program, version)


def _module(name: str, source: bytes) -> None:
    path = os.path.abspath(os.path.join(LIBRARY, name))
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    _replace(path, source, 0o644)
    py_compile.compile(path, importlib.util.cache_from_source(path), doraise=True, optimize=2)


def _launcher(program: str, version: str) -> None:
    text = LAUNCHER.format(
        python=sys.executable,
        library=os.path.abspath(LIBRARY),
        socket=os.fsencode(os.path.abspath(SOCKET)),
        version=version.encode("utf-8"),
    )
    _replace(os.path.join(BIN, program), text.encode("utf-8", "surrogateescape"), 0o755)


def _replace(path: str, content: bytes, mode: int) -> None:
    """Whole at any moment: jobs may be running them."""
    draft = path + ".new"
    spool.discard(draft)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "wb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.rename(draft, path)
