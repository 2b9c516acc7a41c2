"""The machines of the box as processes of this host: a folder, an address and an sshd for each."""

import contextlib
import os
import pwd
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
NO_SSHD = "there is no sshd on this host: apt-get install openssh-server"
SUPERVISOR = Path(__file__).with_name("supervisor.py")
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-")
LONGEST_ROOT = 60
"""With more, the socket of an agent below it has too long a path."""
MARK = "SKYPURZA_LAB"
"""In the environment of everything that runs here: whose it is."""
SHUTDOWN = """\
#!/bin/sh
# `shutdown [-h|-P|--poweroff] [now|+MINUTES|-c]` of a machine of the box.
when=60
for word in "$@"; do
  case $word in
    now|+0) when=0 ;;
    +*) when=$((${word#+} * 60)) ;;
    -c) echo on > POWER; exit 0 ;;
  esac
done
echo "off $when" > POWER
"""
SSHD_CONFIG = """\
ListenAddress {address}:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
AllowUsers {login}
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PidFile none
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 200
MaxSessions 200
LogLevel ERROR
Subsystem sftp internal-sftp -d {home}
SetEnv {environment}
"""


ALONE = (
    *("/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c"),
    'mount --bind "$1" "$2" && shift 2 && exec "$@"',
    "sh",
)
"""A mount namespace in which one folder lies over another; takes root."""


def login() -> str:
    """Whose machines these are: the user who runs the box."""
    return pwd.getpwuid(os.getuid()).pw_name


def cloud_config(user_data: bytes) -> Mapping[str, Any]:
    """What the user data says; empty where it is not cloud-config."""
    if not user_data.startswith(b"#cloud-config"):
        return {}
    found = yaml.safe_load(user_data)
    return found if isinstance(found, dict) else {}


@dataclass(slots=True)
class Hosts:
    """Starts and ends machines; none outlives this process, and none a former one."""

    root: Path
    ssh_port: int
    endpoint: str = ""
    private: Path | None = None
    """A folder that every machine has for itself, empty at first: what is in it is not shared."""
    _octet: int = 0
    _claim: socket.socket | None = None
    _running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = str(self.root)
        if not set(text) <= PLAIN or len(text) > LONGEST_ROOT:
            raise ValueError(f"{text!r}: a plain path of at most {LONGEST_ROOT} letters is needed")
        self.root.mkdir(parents=True, exist_ok=True)
        self.root.chmod(0o711)
        self.sweep()
        self._claim_addresses()
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)

    def _claim_addresses(self) -> None:
        """Takes 127.N.0.0/16 for itself, so that several boxes do not meet."""
        for octet in range(64, 255):
            claim = socket.socket()
            try:
                claim.bind((f"127.{octet}.255.254", self.ssh_port))
            except OSError:
                claim.close()
                continue
            self._octet, self._claim = octet, claim
            return
        raise OSError(f"no free addresses at port {self.ssh_port}")

    def address(self, number: int) -> str:
        return f"127.{self._octet}.{number // 250 % 250}.{number % 250 + 1}"

    def folder(self, number: int) -> Path:
        return self.root / "m" / str(number)

    def start(self, number: int, *, id: str, user_data: bytes) -> None:
        """Boots it: what its user data asks for, and an sshd that answers in a moment."""
        folder = self.folder(number)
        environment = self._environment(folder, id)
        if folder.exists():  # it was stopped: user data counts at the first boot alone
            (folder / "boot.sh").unlink(missing_ok=True)
        else:
            self._write(folder, number, cloud_config(user_data), environment)
        argv = [SSHD, "-D", "-e", "-f", f"{folder}/sshd_config"] if SSHD else ["/no/sshd"]
        argv = [*self._alone(folder), *argv]
        with (folder / "console").open("wb") as console:
            self._running[number] = subprocess.Popen(
                [sys.executable, "-ISs", str(SUPERVISOR), str(folder), "--", *argv],
                stdin=subprocess.PIPE,
                stdout=console,
                stderr=console,
                cwd=folder / "home",
                env=environment,
                start_new_session=True,
            )

    def _alone(self, folder: Path) -> list[str]:
        """Before what runs on a machine: where it has a folder for itself, it sees that."""
        if self.private is None:
            return []
        (folder / "private").mkdir(mode=0o755, exist_ok=True)
        return [*ALONE, f"{folder}/private", str(self.private)]

    def _environment(self, folder: Path, id: str) -> dict[str, str]:
        return {
            "HOME": f"{folder}/home",
            "PATH": f"{folder}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{self.endpoint}/lab/imds/{id}",
            MARK: str(self.root),
        }

    def _write(
        self, folder: Path, number: int, asked: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        for path in (folder / "home", folder / "bin"):
            path.mkdir(parents=True)
            path.chmod(0o755)
        folder.chmod(0o755)
        os.mkfifo(folder / "power", 0o600)
        shutdown = SHUTDOWN.replace("POWER", f"{folder}/power")
        _put(folder / "bin" / "shutdown", shutdown, 0o755)
        _put(folder / "bin" / "poweroff", f'#!/bin/sh\nexec "{folder}/bin/shutdown" now\n', 0o755)
        lines = [*(asked.get("bootcmd") or ()), *(asked.get("runcmd") or ())]
        commands = [c if isinstance(c, str) else shlex.join(c) for c in lines]
        boot = [*self._alone(folder), "/bin/sh", "-c", "\n".join(commands)]
        _put(folder / "boot.sh", f"#!/bin/sh\nexec {shlex.join(boot)}\n", 0o700)
        keys = asked.get("ssh_authorized_keys") or ()
        _put(folder / "authorized_keys", "".join(f"{key.strip()}\n" for key in keys), 0o644)
        self._host_key(folder, asked.get("ssh_keys") or {})
        config = SSHD_CONFIG.format(
            address=self.address(number),
            port=self.ssh_port,
            folder=folder,
            home=folder / "home",
            login=login(),
            environment=" ".join(f"{name}={value}" for name, value in environment.items()),
        )
        _put(folder / "sshd_config", config, 0o600)

    @staticmethod
    def _host_key(folder: Path, keys: Mapping[str, str]) -> None:
        if private := keys.get("ed25519_private"):
            _put(folder / "host_key", private.rstrip("\n") + "\n", 0o600)
        elif SSHD:
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/host_key"]
            subprocess.run(made, check=True, stdin=subprocess.DEVNULL)

    def halted(self) -> list[int]:
        """Machines whose processes have ended, or which ended themselves, since last asked."""
        gone = [number for number, process in self._running.items() if process.poll() is not None]
        for number in gone:
            self._forget(number)
        return gone

    def cut(self, number: int) -> None:
        """Takes its power away; `alive` says when the last of its processes is gone."""
        process = self._running.get(number)
        if process is not None and process.stdin is not None and not process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()

    def alive(self, number: int) -> bool:
        process = self._running.get(number)
        if process is not None and process.poll() is not None:
            self._forget(number)
        return number in self._running

    def _forget(self, number: int) -> None:
        process = self._running.pop(number)
        if process.stdin is not None:
            process.stdin.close()
        if process.returncode < 0:  # the supervisor itself was killed
            self.sweep(str(self.folder(number)))

    def remove(self, number: int) -> None:
        shutil.rmtree(self.folder(number), ignore_errors=True)

    def close(self) -> None:
        """Ends all machines, and waits for it."""
        for number in list(self._running):
            self.cut(number)
        for process in self._running.values():
            process.wait(timeout=20)
        self._running.clear()
        self.sweep()
        if self._claim is not None:
            self._claim.close()

    def sweep(self, below: str = "") -> None:
        """Ends what a former box left, or what is left of one machine; removes the folders."""
        mark = f"{below or self.root / 'm'}/".encode()
        for process in Path("/proc").glob("[0-9]*"):
            if int(process.name) != os.getpid() and _mentions(process, mark):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(process.name), signal.SIGKILL)
        if not below:
            shutil.rmtree(self.root / "m", ignore_errors=True)


def _mentions(process: Path, mark: bytes) -> bool:
    """Whether the words, the environment or the folder of a process lie in the box."""
    with contextlib.suppress(OSError):
        if mark in (process / "cmdline").read_bytes() or mark in os.fsencode(
            (process / "cwd").readlink()
        ):
            return True
        return mark in (process / "environ").read_bytes()
    return False


def _put(path: Path, text: str, mode: int) -> None:
    path.touch(mode=stat.S_IRUSR | stat.S_IWUSR)
    path.write_text(text)
    path.chmod(mode)
