"""Much data to or from a node: the `ssh` command, whose ciphers cost a fraction of ours.

Its key and the host's are files in memory that only this process and its children can open.
"""

import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from broker.run.ssh import CIPHERS, Login, Target

ALIAS = "node"
MOST_FILES = 256
OPTIONS = (
    *("BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none"),
    *("StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null", f"HostKeyAlias={ALIAS}"),
    *("ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=4"),
    *("ControlMaster=no", "ControlPath=none", "RequestTTY=no", "LogLevel=ERROR"),
    f"Ciphers={','.join(CIPHERS)}",
)


@dataclass(slots=True)
class OpenSsh:
    """Commands of this host that run others on a node; may be asked from any thread."""

    program: str | None = field(default_factory=lambda: shutil.which("ssh"))
    """None: there is none on this host."""
    _files: OrderedDict[str, int] = field(default_factory=OrderedDict)
    """Files in memory by what they hold, the one used last at the end."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def command(self, target: Target, home: str, argv: Sequence[str]) -> list[str] | None:
        """None where the node cannot be entered so: behind a bastion, or without its host's key.

        `home` is the login's, for paths that begin with `~/`.
        """
        login = target.login
        blind = target.bastion is not None or login.host_key is None
        if self.program is None or blind or not home:
            return None
        options = (*OPTIONS, f"UserKnownHostsFile={self._known(login)}")
        return [
            self.program,
            *("-F", "/dev/null", "-i", self._file(login.private_key)),
            *(word for option in options for word in ("-o", option)),
            *("-p", str(login.port), "-l", login.user, login.host),
            target.line(argv, home),
        ]

    def _known(self, login: Login) -> str:
        return self._file(f"{ALIAS} {login.host_key}\n")

    def _file(self, text: str) -> str:
        """A path that this process and its children can open, for their own user alone."""
        with self._lock:
            if text not in self._files:
                self._files[text] = _in_memory(text)
            self._files.move_to_end(text)
            handle = self._files[text]
            while len(self._files) > MOST_FILES:
                os.close(self._files.popitem(last=False)[1])
        return f"/proc/{os.getpid()}/fd/{handle}"


def _in_memory(text: str) -> int:
    handle = os.memfd_create("skypurza-ssh")
    os.fchmod(handle, 0o600)
    os.write(handle, text.encode("ascii"))
    return handle
