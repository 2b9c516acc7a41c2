"""What a job has of its own on a node: the service's commands, and ssh among its nodes.

`kits/JOB.ATTEMPT` belongs to the job's user. The ssh in it knows the job's nodes by their names and
enters them by the job's key; what lets it in there is an sshd that runs as the user, in a step of
the job, and takes that key alone.
"""

import base64
import os
import shutil

from . import commands, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

    Written = tuple[str, str, int]

KITS = "kits"
DOOR = "spz-door"
"""The program of the step that lets the job's other nodes in."""
CLIENTS = ("ssh", "scp", "sftp")
PASSED = (
    "SKYPURZA_TOKEN",
    "SLURM_CLUSTER_NAME",
    "SLURM_JOB_ID",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_START_TIME",
)
"""Of the job's variables those that sessions see too; by some of them strays are found."""
HOST = """\
Host {name} {address}
  HostName {address}
  Port {port}
"""
CLIENT = """\
Host {names}
  User "{user}"
  IdentityFile "{folder}/key"
  IdentitiesOnly yes
  HostKeyAlias skypurza
  UserKnownHostsFile "{folder}/known_hosts"
  StrictHostKeyChecking yes
  LogLevel ERROR
Host *
  Include ~/.ssh/config
  Include /etc/ssh/ssh_config
"""
SERVER = """\
ListenAddress {address}
Port {port}
HostKey "{folder}/key"
AuthorizedKeysFile "{folder}/key.pub"
AllowUsers {user}
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
PrintMotd no
PrintLastLog no
X11Forwarding no
MaxStartups 1000
MaxSessions 1000
LogLevel ERROR
Subsystem sftp internal-sftp
SetEnv {environment}
"""
RUN_CLIENT = '#!/bin/sh\nexec {program} -F "${{0%/bin/*}}/ssh_config" "$@"\n'
RUN_SERVER = '#!/bin/sh\ncd "${{0%/bin/*}}" && exec {program} -D -e -f sshd_config 2>>door.log\n'
NO_SERVER = "#!/bin/sh\necho 'there is no sshd on this node' >&2\nexit 127\n"


def folder_of(attempt: str) -> str:
    return os.path.abspath(os.path.join(KITS, attempt.replace("/", ".")))


def complete(step: "dict[str, Any]", attempt: str, *, ours: bool) -> None:
    """What of a step's order only the node knows: where its commands are, whose the machine is."""
    found = [os.path.join(folder_of(attempt), "bin")] if step.get("kin") else []
    if commands.there():
        found.append(os.path.abspath(commands.BIN))
    step["path"] = found
    step["attempt"] = attempt
    step["ours"] = ours


def lay_out(step: "dict[str, Any]", attempt: str) -> bool:
    """The whole folder, made once for an attempt; True also where there is nothing to be made."""
    folder = folder_of(attempt)
    if not step.get("kin") or os.path.isdir(folder):
        return True
    draft = folder + ".new"
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(KITS, 0o711, exist_ok=True)
    os.makedirs(os.path.join(draft, "bin"))
    for name, text, mode in _files(step, folder):
        _put(os.path.join(draft, name), text, mode)
    _give(draft, step)
    os.rename(draft, folder)
    return True


def discard(attempt: str) -> None:
    shutil.rmtree(folder_of(attempt), ignore_errors=True)


def _files(step: "dict[str, Any]", folder: str) -> "Iterator[Written]":
    kin = step["kin"]
    place = folder.replace("%", "%%")
    yield "key", kin["key"], 0o600
    yield "key.pub", kin["public"] + "\n", 0o644
    yield "known_hosts", "skypurza {}\n".format(kin["public"]), 0o644
    yield "ssh_config", _client(kin, step["user"], place), 0o644
    yield "sshd_config", _server(step, folder), 0o600
    slots = ("{} slots={}\n".format(name, tasks) for name, _address, tasks in kin["nodes"])
    yield "hostfile", "".join(slots), 0o644
    for name in CLIENTS:
        program = programs.found(name)
        if program:
            yield "bin/" + name, RUN_CLIENT.format(program=program), 0o755
    server = programs.found("sshd")
    yield "bin/" + DOOR, RUN_SERVER.format(program=server) if server else NO_SERVER, 0o755


def _client(kin: "dict[str, Any]", user: str, folder: str) -> str:
    hosts = [
        HOST.format(name=name, address=address, port=kin["port"])
        for name, address, _tasks in kin["nodes"]
    ]
    names = " ".join("{} {}".format(name, address) for name, address, _tasks in kin["nodes"])
    return "".join(hosts) + CLIENT.format(names=names, user=user, folder=folder)


def _server(step: "dict[str, Any]", folder: str) -> str:
    kin = step["kin"]
    bins = [os.path.join(folder, "bin"), os.path.abspath(commands.BIN)]
    given = {name: text for name, text in _variables(step) if name in PASSED}
    given["SLURMD_NODENAME"] = kin["here"]
    given["PATH"] = ":".join([*bins, programs.PATH])
    return SERVER.format(
        address=next(address for name, address, _tasks in kin["nodes"] if name == kin["here"]),
        port=kin["port"],
        folder=folder.replace("%", "%%"),
        user=step["user"],
        environment=" ".join('"{}={}"'.format(*pair) for pair in sorted(given.items())),
    )


def _variables(step: "dict[str, Any]") -> "Iterator[tuple[str, str]]":
    """Those of the step that fit a line of a configuration."""
    for entry in base64.b64decode(step.get("env") or "").split(b"\0"):
        name, _, value = entry.decode("utf-8", "surrogateescape").partition("=")
        if value.isprintable() and '"' not in value:
            yield name, value


def _put(path: str, text: str, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)


def _give(folder: str, step: "dict[str, Any]") -> None:
    """All of it to the job's user, who alone may enter."""
    os.chmod(folder, 0o700)
    if os.geteuid() != 0:
        return
    for place, _folders, names in os.walk(folder):
        for path in (place, *(os.path.join(place, name) for name in names)):
            os.chown(path, step["uid"], step["gid"])


def prefixed(values: "dict[bytes, bytes]", step: "dict[str, Any]") -> None:
    """The job's own commands come before all others; where a step has no PATH it gets none."""
    own = [os.fsencode(folder) for folder in step.get("path") or ()]
    if own and b"PATH" in values:
        values[b"PATH"] = b":".join([*own, values[b"PATH"]])
    if step.get("kin"):
        values[b"SKYPURZA_HOSTFILE"] = os.path.join(os.path.dirname(own[0]), b"hostfile")
