"""`ssh NAME` and `ssh NAME-worker1`: what OpenSSH's client has to know of a user's clusters.

The way goes through the service: ssh's proxy is a step of the cluster's job, and in it an sshd that
runs as the job's user and takes one key alone. So no port is open for it, the site's own key is in
nobody's hands, and a session holds an autostop off like any run.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]
FOLDER = ".skypurza/ssh"
"""Below the user's home."""
STEP = "ssh"
"""Name of the step of a session."""
PROXY = f"""\
#!/bin/sh
# Written by spz. Stands between ssh and a node of a cluster: JOB NODE.
here=${{0%/*}}
{{ told=$("$here/commands/bin/srun" -u -Q --jobid="$1" --overlap -N1 -n1 -w "$2" -J {STEP} \\
  sh -c "$(cat "$here/door")" door "$(cat "$here/key.pub")" 2>&1 >&3); }} 3>&1
code=$?
printf '%s\\n' "$told" | grep -v -e '^$' -e 'task 0:' -e '\\*\\*\\* STEP' >&2
exit $code
"""
DOOR = """\
PATH=$PATH:/usr/sbin:/usr/local/sbin
sshd=$(command -v sshd) || { echo 'there is no sshd on this node' >&2; exit 127; }
umask 077
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
ssh-keygen -q -t ed25519 -N '' -f "$folder/host" </dev/null
printf '%s\\n' "$1" > "$folder/keys"
cat > "$folder/config" <<END
HostKey $folder/host
AuthorizedKeysFile $folder/keys
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
PrintMotd no
PrintLastLog no
Subsystem sftp internal-sftp
END
"$sshd" -i -e -f "$folder/config" 2>"$folder/log"
"""
"""Lets in who has the key; run on the node by `sh -c`, as the user. Ends with the session."""
HOST = """\
Host {name}
  HostName {node}
  User {user}
  ProxyCommand {proxy} {job} {node}
  IdentityFile {key}
  IdentitiesOnly yes
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  GlobalKnownHostsFile /dev/null
  LogLevel ERROR

"""
"""Nobody else can answer there: who speaks is known to the service."""


def tell_ssh(home: Path, found: Iterable[Json], *, commands: Callable[[Path], object]) -> None:
    """Hosts of the clusters that are up, in place of those of before.

    Nothing is made for who has no cluster, nor where OpenSSH's client is missing. `commands` puts
    the service's commands below a folder. Raises OSError, Refused.
    """
    folder = home / FOLDER
    if not str(folder).isprintable() or set(str(folder)) & {'"', "\\"}:
        return  # no line of ssh's configuration holds such a path
    hosts = list(_hosts(folder, found))
    known = folder / "hosts"
    if not (hosts or known.exists()) or shutil.which("ssh-keygen") is None:
        return
    text = "# Written by spz, at each status, launch, start, stop and down.\n\n" + "".join(hosts)
    if not (folder / "key.pub").exists():
        _equip(folder, commands)
    if not known.exists() or known.read_text(encoding="utf-8") != text:
        _put(known, text, 0o600)
    if hosts:
        _include(home, known)


def _hosts(folder: Path, found: Iterable[Json]) -> Iterator[str]:
    """The head node by the cluster's name, the others as its workers."""
    for one in found:
        for rank, node in enumerate(one["nodes"] if one["status"] == "UP" else ()):
            yield HOST.format(
                name=one["name"] if rank == 0 else f"{one['name']}-worker{rank}",
                node=node,
                user=_word(one["user"]),
                job=one["job"],
                proxy=_command(folder / "proxy"),
                key=_word(str(folder / "key")),
            )


def _word(text: str) -> str:
    """As ssh's configuration takes it, `%` being a sign of its own."""
    return '"' + text.replace("%", "%%") + '"'


def _command(path: Path) -> str:
    """For the shell that ssh starts."""
    quoted = str(path).replace("'", "'\\''")
    return f"'{quoted}'".replace("%", "%%")


def _equip(folder: Path, commands: Callable[[Path], object]) -> None:
    """A key of its own, and what its proxy needs; the key last, for it says that all is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    commands(folder / "commands")
    _put(folder / "door", DOOR, 0o600)
    _put(folder / "proxy", PROXY, 0o700)
    (folder / "key").unlink(missing_ok=True)
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "spz", "-f", str(folder / "key")]
    if os.spawnvp(os.P_WAIT, argv[0], argv):  # subprocess takes longer to load than all of this
        raise OSError(f"{folder}: ssh-keygen made no key")


def _include(home: Path, hosts: Path) -> None:
    """First in ~/.ssh/config: an Include below a Host would belong to that. What is there stays."""
    config = Path(os.path.realpath(home / ".ssh" / "config"))
    line = f"Include {_word(str(hosts))}"
    text = config.read_text(encoding="utf-8", errors="surrogateescape") if config.exists() else ""
    if line in text.splitlines():
        return
    config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = config.stat().st_mode & 0o777 if config.exists() else 0o600
    _put(config, f"{line}\n\n{text}" if text else f"{line}\n", mode)


def _put(path: Path, text: str, mode: int) -> None:
    """The file is whole at any moment."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8", errors="surrogateescape")
    draft.chmod(mode)
    draft.replace(path)
