"""Text of task files to trees and back: YAML, read up to a bound, by the rules of JSON's values."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from broker.model.errors import BadSpec
from gateway.config import scalars
from gateway.config.problems import shown
from gateway.translate.skypilot_documents import Tree

Safe: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's fast one where it was built with it."""
LONGEST = 1 << 20
"""Characters of a task file."""
MOST_VALUES = 200_000
TEXT = f"{scalars.TAG}str"
NO_TEXTS = frozenset(f"{scalars.TAG}{kind}" for kind in ("int", "float", "bool", "timestamp"))
LONG_TEXT = 64
"""Characters of a text that count as one value more."""


class Loader(Safe):  # type: ignore[misc]
    """Of task files, where each key is a text, however it looks: `{1: a}`."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.MappingNode):
            self.flatten_mapping(node)
            for key, _ in node.value:
                key.tag = TEXT if key.tag in NO_TEXTS else key.tag
        return super().construct_mapping(node, deep=deep)


scalars.plain(Loader)


def documents(text: str) -> list[Tree]:
    """Each document; one that is empty where there is none. Raises BadSpec."""
    if len(text) > LONGEST:
        raise BadSpec("", "", f"a task file of {len(text)} characters; {LONGEST} are taken")
    try:
        found = [tree for tree in _bounded(text) if tree is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        if "nesting depth" in problem:
            raise BadSpec("", "", "the file is nested too deeply") from None
        raise BadSpec("", "", f"{where}{problem}", hint="this is no YAML") from error
    except RecursionError:
        raise BadSpec("", "", "the file is nested too deeply") from None
    for tree in found:
        if not isinstance(tree, dict):
            raise BadSpec("", shown(tree), "a task is a list of `key: value` lines")
    return found or [{}]


def _bounded(text: str) -> Iterator[Tree | None]:
    """Each document. Raises YAMLError, RecursionError, BadSpec where aliases make it too much."""
    loader = Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None and _values(node, {}) > MOST_VALUES:
                much = f"with its aliases written out the file has more than {MOST_VALUES} values"
                raise BadSpec("", "", much, hint="use fewer aliases (*name)")
            _must_be_there_once(node, set())
            yield loader.construct_document(node)
    finally:
        loader.dispose()


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many there are with each alias written out; what refers to itself counts once."""
    if isinstance(node, yaml.ScalarNode):
        return 1 + len(node.value) // LONG_TEXT
    if id(node) not in known:
        known[id(node)] = 1
        pairs = isinstance(node, yaml.MappingNode)
        inner = [one for pair in node.value for one in pair] if pairs else node.value
        known[id(node)] = 1 + sum(_values(one, known) for one in inner)
    return known[id(node)]


def _must_be_there_once(node: yaml.Node | None, seen: set[int]) -> None:
    """Raises BadSpec for a key that stands twice in a group: the first would be dropped."""
    if id(node) in seen or not isinstance(node, yaml.CollectionNode):
        return
    seen.add(id(node))
    if not isinstance(node, yaml.MappingNode):
        for one in node.value:
            _must_be_there_once(one, seen)
        return
    lines: dict[str, int] = {}
    for key, inner in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            told = f"line {line}: {shown(key.value)} is there already, in line {lines[name]}"
            raise BadSpec("", "", told, hint="leave one out")
        lines[name] = line
        _must_be_there_once(inner, seen)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks."""


def _text_node(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)


def written(trees: Sequence[Tree]) -> str:
    """Documents as YAML, keys in their order."""
    return yaml.dump_all(trees, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
