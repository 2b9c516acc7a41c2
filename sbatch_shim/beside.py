"""Runs the site's own command behind ours, whose answers belong together; loaded for that alone."""

import posix

KILLED = 128
"""What a shell adds to the signal that ended a command."""


def run(words: "list[bytes]", variables: "list[bytes]") -> int:
    """Its exit status, once it has ended. Raises OSError where it cannot be started."""
    pairs = (entry.partition(b"=") for entry in variables)
    child = posix.posix_spawn(words[0], words, {name: value for name, _, value in pairs})
    code: int = posix.waitstatus_to_exitcode(posix.waitpid(child, 0)[1])
    return code if code >= 0 else KILLED - code
