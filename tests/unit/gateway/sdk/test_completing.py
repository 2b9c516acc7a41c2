"""Completion of `spz`: what bash offers where, what the other shells are given, where it is put."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broker.model.errors import Refused
from gateway.config.paths import Paths
from gateway.sdk.verbs.completing import SHELLS, completion, script
from gateway.sdk.verbs.counter import Counter
from gateway.sdk.verbs.table import VERBS

BASH = shutil.which("bash")
PROGRAM = """\
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_spz
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(home: Path, *words: str) -> set[str]:
    (home / "spz.bash").write_text(script("bash"))
    assert BASH is not None
    done = subprocess.run(
        [BASH, "-c", PROGRAM, "bash", str(home / "spz.bash"), "spz", *words],
        env={"HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return set(done.stdout.split())


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize(
    ("words", "some", "never"),
    [
        (("",), {"launch", "jobs", "api", "completion"}, {"pool", "--help"}),
        (("la",), {"launch"}, {"status"}),
        (("jobs", ""), {"launch", "queue", "pool"}, {"apply", "status"}),
        (("jobs", "pool", ""), {"apply", "down"}, {"queue"}),
        (("jobs", "pool", "apply", "--w"), {"--workers", "--workdir"}, {"--pool"}),
        (("launch", "--no-"), {"--no-use-spot", "--no-setup"}, {"--use-spot"}),
        (("status", "-o", ""), {"table", "json"}, {"dev"}),
        (("launch", "--disk-tier", "h"), {"high"}, {"low"}),
        (("autostop", "dev", "--wait-for", "j"), {"jobs", "jobs_and_ssh"}, {"none"}),
        (("stop", "d"), {"dev"}, {"dev-worker1", "other"}),
        (("launch", "-c", ""), {"dev", "other"}, {"dev-worker1"}),
        (("exec", ""), {"dev", "other"}, {"dev-worker1"}),
    ],
)
def test_bash_is_offered_what_may_come_next(
    short_tmp: Path, words: tuple[str, ...], some: set[str], never: set[str]
) -> None:
    hosts = short_tmp / ".skypurza" / "ssh" / "hosts"
    hosts.parent.mkdir(parents=True)
    hosts.write_text("Host dev\n  User a\nHost dev-worker1\n\nHost other\n")
    found = offered(short_tmp, *words)
    assert some <= found
    assert not found & never


@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_bash_knows_every_option_of_every_verb(short_tmp: Path) -> None:
    for verb in VERBS:
        names = {name for opt in verb.options for name in opt.names.split() if name[1] == "-"}
        assert names <= offered(short_tmp, *verb.name.split(), "--"), verb.name


def test_fish_is_given_each_verb_and_option() -> None:
    text = script("fish")
    for verb in VERBS:
        assert f"'__spz_said {verb.name}'" in text or not verb.options
        for opt in verb.options:
            assert f"-l {opt.names.split()[-1][2:]}" in text
    assert script("zsh").endswith(script("bash"))


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
