"""What a login node has beside the commands: completion, manual, module file, profile snippet."""

from __future__ import annotations

import shlex

from sbatch_shim.completion import completion
from sbatch_shim.manpages import ABOUT, manual

PLAIN = "/._-+,:@"
"""Beside letters and digits, what means nothing to Tcl."""
MODULE = """\
#%Module1.0
# Written by `spz shims install`; not for editing.
proc ModulesHelp {{ }} {{
    puts stderr "The Slurm commands of SkyPurza"
}}
module-whatis "The Slurm commands of SkyPurza"
conflict slurm
prepend-path PATH {commands}
append-path XDG_DATA_DIRS /usr/local/share:/usr/share
prepend-path XDG_DATA_DIRS {share}
if {{[info exists ::env(MANPATH)]}} {{
    prepend-path MANPATH {share}/man
}}
"""
"""Where data is looked for when nothing says so stands behind ours, or other programs lost it."""
PROFILE = """\
# The Slurm commands of SkyPurza, written by `spz shims install`; not for editing.
# For /etc/profile.d, or to be read by a shell: works in any, and may be read twice.
case ":$PATH:" in
    *:{commands}:*) ;;
    *) PATH={commands}:"$PATH"; export PATH ;;
esac
if [ -n "${{BASH_VERSION-}}" ]; then
    case ":${{XDG_DATA_DIRS-}}:" in
        *:{share}:*) ;;
        *) XDG_DATA_DIRS={share}:"${{XDG_DATA_DIRS:-/usr/local/share:/usr/share}}"
           export XDG_DATA_DIRS ;;
    esac
fi
case ":${{MANPATH-}}:" in
    ::|*:{share}/man:*) ;;
    *) MANPATH={share}/man:"$MANPATH"; export MANPATH ;;
esac
"""
"""bash-completion looks below XDG_DATA_DIRS; man finds its pages from PATH, or by MANPATH alone."""


def login_files(prefix: str, version: str) -> dict[str, str]:
    """Paths below the prefix and what is in them; `version` is what `--version` says."""
    commands, share = f"{prefix}/bin", f"{prefix}/share"
    shell = {"commands": shlex.quote(commands), "share": shlex.quote(share)}
    files = {
        "share/modulefiles/skypurza": MODULE.format(commands=tcl(commands), share=tcl(share)),
        "etc/profile.d/skypurza.sh": PROFILE.format(**shell),
    }
    for program in ABOUT:
        files[f"share/man/man1/{program}.1"] = manual(program, version)
        files[f"share/bash-completion/completions/{program}"] = completion(program, commands)
    return files


def tcl(word: str) -> str:
    """The word as Tcl reads it back, whatever is in it."""
    kept = (c if c in PLAIN or (c.isascii() and c.isalnum()) else _tcl_escape(c) for c in word)
    return "".join(kept)


def _tcl_escape(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else letter
