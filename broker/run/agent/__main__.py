"""The agent's command: each verb loads no more than it needs, for a step has several of them."""

import sys
from importlib import import_module

USAGE = """usage: agent serve --dir DIR --node NAME [--wake SOCKET] [--slots DIR --slot-count N]
                   [--idle-exit SECONDS] [--lease SECONDS] [--deadline EPOCH]
                   [--notices ec2] [--commands VERSION] [--ours yes] [--foreground]
       agent ask --dir DIR [--timeout SECONDS] < one line of JSON
       agent back --dir DIR
       agent push DIR
       agent call UID GID GROUPS SECONDS FOLDER LOG < script and variables
       agent disk VERB PATH UID GID DEVICE...
       agent carry VERB UID GID GROUPS UMASK FOLDER < what is asked
"""
MODULES = {
    "ask": "serving",
    "back": "serving",
    "call": "call",
    "carry": "carry",
    "disk": "disk",
    "keep": "keeper",
    "push": "push",
    "serve": "serving",
}
"""Where the `main` of a verb is."""


def main(argv: "list[str]") -> int:
    name = MODULES.get(argv[0]) if argv else None
    if name is None:
        sys.stderr.write(USAGE)
        return 2
    words = argv if name == "serving" else argv[1:]
    return import_module("." + name, __package__).main(words)  # type: ignore[no-any-return]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
