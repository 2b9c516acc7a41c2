"""Patterns of what stays at home: git's own words, and no pattern takes long."""

import subprocess
import time
from pathlib import Path

import pytest

from broker.run.agent.ignore import Ignored

PATHS = (
    *("a", "b.log", "x/b.log", "x/a", "x/y/a", "x/y/z/a", "build/", "build/o", "x/build/", "a b "),
    *("#", "!", "[", "]", "\\", "a-b", "a]b", "aXb", "y/a/", "a.b.c", "x/.a", "*", "**"),
    *("foo/", "foo/bar/", "foo/bar/baz", "foo/bar/q/", "foo/bar/q/baz", "dir/*x", "t\tb", "q?"),
)
PATTERNS = "|".join(
    [
        r"a|/a|a/|*.log|/*.log|x/|x/a|/x/a|**/a|x/**|x/**/a|**|*|**/y/**|**/|/|//|| |# a",
        r"\#|\!|a b|a b |a b\ |[|\[|]|[]]|[!a]|[^a]|[a-c]|[c-a]|[a\]]*|a[]-]b|a[!]-]b",
        r"[[:alpha:]]|[[:x:]]|a\|\a|\\|a?b|?|a*b|a*.*c|*a*|a**b|?*?|\*|\**|foo/*",
        r"foo/**/baz|/foo/bar/|foo/bar/**|**/bar/*|foo/*/baz|/**|/**/|dir/\*x|t	b|q\?",
        r"[[:digit:]-z]|x/*/a|**a|a/**|**/**/a|*/**/a|.*|x/.*",
    ]
).split("|")


def shown(pattern: str) -> set[str]:
    """Which of the paths stay, each asked for alone as git asks: with its folders first."""
    ignored = Ignored([pattern])
    return {path for path in PATHS if ignored.covers(path.rstrip("/"), path.endswith("/"))}


def test_git_says_the_same_of_each_pattern(tmp_path: Path) -> None:
    try:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no git here")
    for path in PATHS:
        made = tmp_path / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.mkdir(exist_ok=True) if path.endswith("/") else made.touch()
    asked = b"".join(path.rstrip("/").encode() + b"\0" for path in PATHS)
    wrong = {}
    for pattern in PATTERNS:
        (tmp_path / ".gitignore").write_text(pattern + "\n")
        argv = ["git", "check-ignore", "--no-index", "-z", "--stdin"]
        done = subprocess.run(argv, cwd=tmp_path, input=asked, capture_output=True, check=False)
        git = {path.decode() for path in done.stdout.split(b"\0") if path}
        ours = {path.rstrip("/") for path in shown(pattern)}
        if git != ours:
            wrong[pattern] = {"git alone": git - ours, "ours alone": ours - git}
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("lines", "path", "stays"),
    [
        (["*.log", "!keep.log"], "keep.log", False),
        (["!keep.log", "*.log"], "keep.log", True),
        (["a", "!a/"], "a", True),
        ([], "a", False),
    ],
)
def test_the_last_pattern_that_matches_counts(lines: list[str], path: str, stays: bool) -> None:
    assert Ignored(lines).has(path, False) is stays


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("a*" * 120 + "b", "a" * 250),
        ("*a*a*a*a*a*a*a*a*a*a*b*", "a" * 255),
        ("x/**/" * 20 + "y", "x/" * 900 + "x"),
        ("**/" * 40 + "y", "x/" * 900 + "x"),
        ("[a-z]*" * 60 + "[0-9]", "a" * 255),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    began = time.process_time()
    assert not Ignored([pattern]).has(path, False)
    assert time.process_time() - began < 1
