"""Serves site.yaml from a temporary state directory and compares with recorded answers of Slurm.

run.py [--shared DIR] [--keep] [--memory] -- [arguments of replay.py]

As root only: the recorded site has two users, who are made when missing. Without recorded answers
one line says so. Cases of known.txt, and those that vary on Slurm itself, may differ. The exit
status is replay.py's: 0 all others agree, 1 some differ, 2 it could not run. `--memory` serves the
site of one node on which the area of that name was recorded, and asks that area alone.
"""

import argparse
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPZ = Path(sys.executable).parent / "spz"
USERS = {"alice": 2001, "bob": 2002}
KNOWN = HERE / "known.txt"
MEMORY = "memory"
"""An area recorded on another site: one node, memory enforced."""
OTHER_NODES = tuple(f"- {{names: ec2-{number}," for number in (2, 3, 4))
START_SECONDS, STOP_SECONDS = 30, 20


def main(argv: Sequence[str]) -> int:
    """The exit status."""
    options = arguments(argv)
    conformance = options.shared / "conformance"
    if not (conformance / "replay.py").exists():
        print(f"conformance: skipped, no recorded answers at {conformance}")
        return 0
    if os.geteuid() != 0:
        print("conformance: the recorded site has two users beside root; run it as root")
        return 2
    for name, uid in USERS.items():
        make_user(name, uid)
    Path("/tmp/rootwork").mkdir(exist_ok=True)
    with state_directory(keep=options.keep) as home:
        (home / "site.yaml").write_text(site(memory=options.memory))
        return asked(options, home)


def asked(options: argparse.Namespace, home: Path) -> int:
    """The exit status of a replay against the site that is described in `home`."""
    conformance = options.shared / "conformance"
    with service(home) as environ:
        commands = home / "commands"
        spz("shims", "install", "--prefix", str(commands), environ=environ)
        allowed = home / "allowed.txt"
        allowed.write_text(may_differ((conformance / "unstable.txt").read_text()))
        areas = [
            str(path)
            for path in sorted((conformance / "golden").glob("*.json"))
            if (path.stem == MEMORY) is options.memory
        ]
        given = [word for word in options.replay if word.endswith(".json")]
        words = [word for word in options.replay if word not in given]
        return replay(conformance, commands / "bin", [*words, *(given or areas)], allowed=allowed)


def site(*, memory: bool) -> str:
    """The recorded site; with `memory` the one of that area."""
    text = (HERE / "site.yaml").read_text()
    if not memory:
        return text
    kept = (line for line in text.splitlines() if not line.lstrip().startswith(OTHER_NODES))
    alone = "\n".join(kept).replace("ec2-[1-4]", "ec2-1").replace("nodes: ec2-2", "nodes: ec2-1")
    return f"{alone}\nconstrain_memory: true\n"


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Compare with recorded answers of Slurm.")
    parser.add_argument("--shared", type=Path, default=HERE.parents[2] / "shared")
    parser.add_argument("--keep", action="store_true", help="leave the state directory behind")
    parser.add_argument("--memory", action="store_true", help="the area of held memory alone")
    parser.add_argument("replay", nargs="*", help="arguments of replay.py")
    return parser.parse_args(argv)


def make_user(name: str, uid: int) -> None:
    """The recorded user with a home and the folder that the cases work in."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        command = ["useradd", "--uid", str(uid), "--user-group", "--create-home"]
        # Not checked: somebody else may have made the user meanwhile, and its absence says itself.
        subprocess.run([*command, "--shell", "/bin/bash", name], check=False)
        entry = pwd.getpwnam(name)
    if entry.pw_uid != uid:
        raise SystemExit(f"user {name} has uid {entry.pw_uid}, the recorded site needs {uid}")
    for folder in (Path(entry.pw_dir), Path(entry.pw_dir) / "work"):
        folder.mkdir(mode=0o755, exist_ok=True)
        os.chown(folder, entry.pw_uid, entry.pw_gid)


@contextmanager
def state_directory(*, keep: bool) -> Iterator[Path]:
    """A new state directory that users may pass through."""
    home = Path(tempfile.mkdtemp(prefix="spz-conformance."))
    home.chmod(0o711)
    yield home
    if keep:
        print(f"conformance: state directory {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def service(home: Path, config: Path | None = None) -> Iterator[dict[str, str]]:
    """The running service, stopped at the end; yields the environment that finds it."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("SKYPURZA_")}
    environ |= {"SKYPURZA_HOME": str(home), "SKYPURZA_CONFIG": str(home / "site.yaml")}
    with (home / "serve.out").open("wb") as out:
        process = subprocess.Popen([SPZ, "serve"], env=environ, stdout=out, stderr=out)
    try:
        wait_for(home / "gateway.sock", process)
        yield environ
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def wait_for(socket: Path, process: "subprocess.Popen[bytes]") -> None:
    """Returns when the service listens. Raises SystemExit with its last words if it does not."""
    end = time.monotonic() + START_SECONDS
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > end:
            raise SystemExit((socket.parent / "serve.out").read_text(errors="replace")[-4000:])
        time.sleep(0.1)


def spz(*words: str, environ: dict[str, str]) -> None:
    """Runs `spz`. Raises CalledProcessError if it fails."""
    subprocess.run([SPZ, *words], env=environ, check=True, stdout=subprocess.DEVNULL)


def may_differ(unstable: str) -> str:
    """Lines of `area/name`: what varies on Slurm itself, and what known.txt lists."""
    lines = (line.split() for line in KNOWN.read_text().splitlines())
    known = [words[0] for words in lines if words and not words[0].startswith("#")]
    return "\n".join([unstable.rstrip("\n"), *known, ""])


def replay(conformance: Path, commands: Path, words: Sequence[str], *, allowed: Path) -> int:
    """Runs the cases of the files among `words`."""
    usual = ["--fail-list", str(allowed), "--retry", "1"]
    program = [sys.executable, str(conformance / "replay.py"), "--bin", str(commands), *usual]
    environ = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([*program, *words], env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
