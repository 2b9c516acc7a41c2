"""What a login shell makes lies below what a job was given."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from broker.run.agent import login

Values = dict[bytes, bytes]
Below = Callable[[Path, Values], Values]
NAMES = ["HOME", "PATH", "SHELL"]


@pytest.fixture
def below(tmp_path: Path) -> Below:
    def found(shell: Path, values: Values) -> Values:
        ours = {b"HOME": bytes(tmp_path), b"PATH": b"/bin", b"SHELL": bytes(shell)}
        whole = {**ours, **values}
        login.below(whole, {"login": NAMES})
        return whole

    return found


def shell(folder: Path, text: str) -> Path:
    path = folder / "own shell"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_a_profile_gives_and_changes_and_what_the_job_was_given_wins(
    tmp_path: Path, below: Below
) -> None:
    (tmp_path / ".profile").write_text(
        'echo hello; echo noise >&2; export PATH="$HOME/bin:$PATH" LINES="a\nb" FOO=theirs\n'
    )
    found = below(Path("/bin/sh"), {b"FOO": b"given"})
    assert found[b"PATH"].startswith(bytes(tmp_path / "bin") + b":")
    assert (found[b"LINES"], found[b"FOO"]) == (b"a\nb", b"given")
    assert not login.NOT_TAKEN & found.keys()


def test_whatever_shell_it_is_is_asked_by_one_command(tmp_path: Path, below: Below) -> None:
    path = shell(tmp_path, 'printf "%s\\nTOLD=%s %s\\0" "=== environment ===" "$1" "$2"')
    assert below(path, {})[b"TOLD"] == f"-c {login.ASK}".encode()


SILENT: Mapping[str, str] = {
    "fails": "exit 1",
    "says nothing of it": "echo PATH=/else",
}


@pytest.mark.parametrize("case", SILENT)
def test_without_an_answer_it_is_as_it_was(tmp_path: Path, below: Below, case: str) -> None:
    path = shell(tmp_path, SILENT[case])
    expected = {b"HOME": bytes(tmp_path), b"PATH": b"/bin", b"SHELL": bytes(path)}
    assert below(path, {}) == expected


def test_a_shell_that_takes_too_long_is_not_waited_for(tmp_path: Path) -> None:
    values = {b"HOME": b"/", b"SHELL": bytes(shell(tmp_path, "exec sleep 60"))}
    kept = dict(values)
    login.below(values, {"login": list(NAMES)}, longest=0)
    assert values == kept


def test_no_shell_is_asked_where_none_is_there_or_nobody_wants_one(below: Below) -> None:
    assert below(Path("/no/such"), {})[b"PATH"] == b"/bin"
    values = {b"A": b"1"}
    login.below(values, {})
    assert values == {b"A": b"1"}
