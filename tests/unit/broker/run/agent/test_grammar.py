"""The agent runs on any Python from 3.6: nothing newer is in it, so far as that can be read."""

import ast
from pathlib import Path

import pytest

import broker.run.agent.version as anchor

AGENT = Path(anchor.__file__).parent
OLDEST = (3, 6)
NEWER = {
    "ThreadingHTTPServer",
    "as_integer_ratio",
    "batched",
    "cache",
    "cached_property",
    "clock_gettime_ns",
    "copy_file_range",
    "create_server",
    "dirs_exist_ok",
    "file_digest",
    "fromisoformat",
    "get_running_loop",
    "isascii",
    "memfd_create",
    "minimum_version",
    "missing_ok",
    "monotonic_ns",
    "nullcontext",
    "pidfd_open",
    "posix_spawn",
    "process_time_ns",
    "raise_signal",
    "register_at_fork",
    "removeprefix",
    "removesuffix",
    "strsignal",
    "thread_time",
    "time_ns",
    "valid_signals",
    "waitstatus_to_exitcode",
}
"""Attributes that came later."""
NEWER_WORDS = {
    "capture_output",
    "dirs_exist_ok",
    "extra_groups",
    "missing_ok",
    "process_group",
    "text",
    "umask",
    "warn_on_full_buffer",
}
"""Keyword arguments of the library that came later."""
NEWER_MODULES = {"contextvars", "dataclasses", "importlib.metadata", "importlib.resources"}


def sources() -> list[str]:
    return sorted(path.name for path in AGENT.glob("*.py"))


def names(node: ast.AST) -> set[str]:
    """What a part of a program is called by, or calls for, that may be newer."""
    match node:
        case ast.Attribute():
            return {node.attr} & NEWER
        case ast.Call():
            return {word.arg or "" for word in node.keywords} & NEWER_WORDS
        case ast.Import():
            return {name.name for name in node.names} & NEWER_MODULES
        case ast.ImportFrom():
            return {node.module or ""} & (NEWER_MODULES | {"__future__"})
    return set()


@pytest.mark.parametrize("name", sources())
def test_a_module_is_read_by_the_oldest_python(name: str) -> None:
    source = (AGENT / name).read_text()
    tree = ast.parse(source, feature_version=OLDEST)
    assert set().union(*map(names, ast.walk(tree))) == set()


@pytest.mark.parametrize(
    "source",
    ["(a := 1)", "def f(a, /): ...", "match a:\n case 1: ...", "with (a as b, c as d): ..."],
)
def test_what_came_later_is_noticed(source: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(source, feature_version=OLDEST)
