"""Options that a plugin of a site's adds to sbatch and srun: those of containers, as pyxis has them."""

# ruff: noqa: E501 - a row stays on one line
from __future__ import annotations

from sbatch_shim.grammar.table import BATCH_RUN, CORE, FLAG, IGNORED, NO, REQ, TEXT, Opt

# fmt: off
PLUGIN_OPTIONS: tuple[Opt, ...] = (
    Opt("container-image",         "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "image to run in: [USER@][REGISTRY#]IMAGE[:TAG], or a path", ""),
    Opt("container-mounts",        "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "SRC:DST[:FLAGS] that are seen in it, between commas",        ""),
    Opt("container-workdir",       "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "working directory in it",                                    ""),
    Opt("container-mount-home",    "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "the user's home is seen in it",                              ""),
    Opt("no-container-mount-home", "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "the user's home is not seen in it",                          ""),
    Opt("container-name",          "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "name under which it is kept",                                ""),
    Opt("container-save",          "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "file that it is saved to",                                   ""),
    Opt("container-remap-root",    "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "be root in it",                                              ""),
    Opt("no-container-remap-root", "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "do not be root in it",                                       ""),
    Opt("container-entrypoint",    "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "run the image's entry point",                                ""),
    Opt("no-container-entrypoint", "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "do not run the image's entry point",                         ""),
    Opt("container-writable",      "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "its files can be written",                                   ""),
    Opt("container-readonly",      "", NO,  FLAG, CORE,    BATCH_RUN, "", "", "container", "", "", "its files cannot be written",                                ""),
    Opt("container-entrypoint-log", "", NO, FLAG, IGNORED, BATCH_RUN, "", "", "",         "", "", "print what the image's entry point says",                    ""),
    Opt("container-env",           "", REQ, TEXT, CORE,    BATCH_RUN, "", "", "container", "", "", "variables that win over the image's",                        ""),
)
# fmt: on
