"""Completion of `spz`: what shells offer where, and where it is put."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.config.paths import Paths
from gateway.sdk.verbs.completing import SHELLS, completion, script
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.table import VERBS

LINE = "\x15"
"""Ctrl-U: a line is begun anew."""
PROGRAM = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_spz
printf '%s\\n' "${COMPREPLY[@]}"
"""
CASES = [
    (("",), {"launch", "jobs", "api", "completion"}, {"pool", "--help"}),
    (("la",), {"launch"}, {"status"}),
    (("jobs", ""), {"launch", "queue", "pool"}, {"apply", "status"}),
    (("jobs", "pool", ""), {"apply", "down"}, {"queue"}),
    (("jobs", "pool", "apply", "--w"), {"--workers", "--workdir"}, {"--pool"}),
    (("launch", "--no-"), {"--no-use-spot", "--no-setup"}, {"--use-spot"}),
    (("launch", "--he"), {"--help"}, {"--no-setup"}),
    (("status", "-o", ""), {"table", "json"}, {"dev"}),
    (("launch", "--disk-tier", "h"), {"high"}, {"low"}),
    (("autostop", "dev", "--wait-for", "j"), {"jobs", "jobs_and_ssh"}, {"none"}),
    (("stop", "d"), {"dev"}, {"dev-worker1", "other"}),
    (("launch", "-c", ""), {"dev", "other"}, {"dev-worker1"}),
    (("exec", ""), {"dev", "other"}, {"dev-worker1"}),
]


@pytest.fixture
def home(short_tmp: Path) -> Path:
    """A user's, who has two clusters."""
    hosts = short_tmp / ".skypurza" / "ssh" / "hosts"
    hosts.parent.mkdir(parents=True)
    hosts.write_text("Host dev\n  User a\nHost dev-worker1\n\nHost other\n")
    return short_tmp


def there(shell: str) -> str:
    """Its program. The test is passed over where it is not installed."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    return found


def offered(shell: str, home: Path, *words: str) -> set[str]:
    """What the shell itself offers after these words."""
    file = home / f"spz.{shell}"
    file.write_text(script(shell))
    ways = {
        "bash": ["-c", PROGRAM, "bash", str(file), "spz", *words],
        "fish": [
            "-c",
            "source $argv[1]; complete -C $argv[2]",
            str(file),
            " ".join(["spz", *words]),
        ],
    }
    done = subprocess.run(
        [there(shell), *ways[shell]],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        cwd=home / ".skypurza",
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize(("words", "some", "never"), CASES)
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_is_offered_what_may_come_next(
    home: Path, shell: str, words: tuple[str, ...], some: set[str], never: set[str]
) -> None:
    found = offered(shell, home, *words)
    assert some <= found
    assert not found & never


def test_zsh_completes_where_somebody_types(home: Path) -> None:
    zsh = there("zsh")
    settings = "PROMPT='ready> '\nLISTMAX=1000\nunsetopt listambiguous\n"
    (home / ".zshrc").write_text(f"{settings}{script('zsh')}")
    shell, terminal = pty.fork()
    if shell == 0:
        os.execve(zsh, [zsh, "-i"], {"HOME": str(home), "TERM": "dumb", "PATH": "/usr/bin:/bin"})
    try:
        seen(terminal, {"ready>"})
        for words, some, never in CASES[1:]:
            os.write(terminal, f"{LINE}spz {' '.join(words)}\t".encode())
            told = seen(terminal, some)
            os.write(terminal, f"{LINE}: over ".encode())
            told += seen(terminal, {"over"})  # what was still to be shown is before that
            assert not set(told.split()) & never, words
    finally:
        os.kill(shell, signal.SIGKILL)
        os.waitpid(shell, 0)
        os.close(terminal)


def seen(terminal: int, words: set[str]) -> str:
    """What a terminal shows until each of these stands there; fails after some seconds."""
    text = ""
    while not words <= set(text.split()):
        assert select.select([terminal], [], [], 20)[0], f"{words - set(text.split())}: {text}"
        text += os.read(terminal, 65536).decode()
    return text


def test_bash_knows_every_option_of_every_verb(home: Path) -> None:
    for verb in VERBS:
        names = {name for opt in verb.options for name in opt.names.split() if name[1] == "-"}
        assert names <= offered("bash", home, *verb.name.split(), "--"), verb.name


def test_fish_is_given_each_verb_and_option() -> None:
    text = script("fish")
    for verb in VERBS:
        assert f"'__spz_said {verb.name}'" in text
        for opt in verb.options:
            assert f"-l {opt.names.split()[-1][2:]}" in text


@pytest.mark.parametrize("shell", SHELLS)
def test_it_is_put_where_the_shell_looks_and_taken_away(shell: str, short_tmp: Path) -> None:
    environ = {"HOME": str(short_tmp), "SHELL": f"/bin/{shell}"}
    counter = Counter(Paths.from_environ(environ, uid=1, user_home=short_tmp), environ)
    usual = {"words": [], "install": False, "uninstall": False}
    assert completion({**usual, "install": True}, counter) == 0
    (put,) = [one for one in short_tmp.rglob("*spz*") if one.is_file()]
    assert put.read_text() == script(shell)
    assert completion({**usual, "words": ["auto"], "uninstall": True}, counter) == 0
    assert not put.exists()
    with pytest.raises(Refused, match="'csh'"):
        completion({**usual, "words": ["csh"]}, counter)


def test_sky_pilots_spelling_does_the_same(short_tmp: Path) -> None:
    for option, there in (("install", True), ("uninstall", False)):
        done = subprocess.run(
            [sys.executable, "-m", "gateway.cli", f"--{option}-shell-completion", "bash"],
            env={"HOME": str(short_tmp), "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(list(short_tmp.rglob("completions/spz"))) is there
