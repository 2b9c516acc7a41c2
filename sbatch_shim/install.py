"""Writes the commands below a prefix: launchers that know their socket, the shim byte-compiled."""

import os
import subprocess
from pathlib import Path
from tempfile import mkstemp

from sbatch_shim.login import login_files
from sbatch_shim.parts import MODULES, PROGRAMS

INTERPRETER = "/usr/bin/python3"
LONGEST_SHEBANG = 127
"""Bytes of a first line that every kernel reads."""
LONGEST_SOCKET = 107
OLDEST = (3, 9)

LAUNCHER = """\
#!{interpreter} -IS
# {program} of SkyPurza, written by `spz shims install`; not for editing.
import sys

sys.path.insert(0, {library})
import shim

shim.main({socket}, {presented})
"""
COMPILE = """\
import sys
if sys.version_info < {oldest!r}:
    sys.exit('is Python %d.%d; the commands need %d.%d' % (sys.version_info[:2] + {oldest!r}))
import importlib.util, posix, py_compile
posix.umask(0o022)
source = sys.argv[1]
py_compile.compile(source, importlib.util.cache_from_source(source), doraise=True, optimize=2)
"""
"""Run by the commands' interpreter, whose byte code it must be; without docstrings for speed."""


class InstallError(Exception):
    """The commands cannot be installed like this: what, and the way out."""


def install(
    prefix: Path, socket: Path, version: str, *, interpreter: str = INTERPRETER
) -> list[Path]:
    """Fills PREFIX/bin, lib/skypurza, share and etc/profile.d; returns the commands' paths.

    Each file is replaced at once, so that commands may be in use meanwhile. `version` is what
    `--version` says without a service (`slurm 25.11.7`). Raises InstallError and OSError.
    """
    prefix, socket = Path(os.path.abspath(prefix)), Path(os.path.abspath(socket))
    _check(socket, interpreter)
    library, commands = prefix / "lib" / "skypurza", prefix / "bin"
    _folder(commands)
    for source, name in MODULES.items():
        _folder((library / name).parent / "__pycache__")
        _put(library / name, (Path(__file__).parent / source).read_bytes(), 0o644)
        _compile(library / name, interpreter)
    launched = {
        "interpreter": interpreter,
        "library": repr(str(library)),
        "socket": repr(os.fsencode(socket)),
        "presented": repr(version.encode()),
    }
    for program in PROGRAMS:
        launcher = LAUNCHER.format(program=program, **launched)
        _put(commands / program, launcher.encode(), 0o755)
    for name, text in login_files(str(prefix), version).items():
        _folder((prefix / name).parent)
        _put(prefix / name, os.fsencode(text), 0o644)
    return [commands / program for program in PROGRAMS]


def _folder(path: Path) -> None:
    """It and what is missing above it, open to all users whatever our umask is."""
    if not path.is_dir():
        _folder(path.parent)
        path.mkdir(exist_ok=True)
        path.chmod(0o755)


def _check(socket: Path, interpreter: str) -> None:
    size = len(os.fsencode(socket))
    if size > LONGEST_SOCKET:
        raise InstallError(
            f"socket path {socket} has {size} bytes, Linux takes {LONGEST_SOCKET}: "
            "name a shorter one with --socket"
        )
    line = f"#!{interpreter} -IS"
    if not interpreter.startswith("/") or len(line.split()) != 2 or len(line) > LONGEST_SHEBANG:
        raise InstallError(
            f"{interpreter!r} cannot stand in a script's first line: "
            f"give an absolute path without blanks, such as {INTERPRETER}"
        )


def _compile(shim: Path, interpreter: str) -> None:
    """Byte code for the commands' interpreter; users cannot write `__pycache__` themselves."""
    program = COMPILE.format(oldest=OLDEST)
    argv = [interpreter, "-IS", "-c", program, str(shim)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstallError(f"{interpreter}: {error.strerror}: give another interpreter") from error
    if done.returncode:
        raise InstallError(f"{interpreter} {done.stderr.strip()}")


def _put(path: Path, content: bytes, mode: int) -> None:
    """The file is whole at any moment: written beside, then renamed."""
    handle, beside = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            os.fchmod(handle, mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
