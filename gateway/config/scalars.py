"""Scalars of YAML as JSON knows them, whatever tag they carry; others are no YAML."""

import math
from collections.abc import Callable
from typing import Any

import yaml

TAG = "tag:yaml.org,2002:"
MOST = 1 << 63
"""Whole numbers stay below: the database and JSON's readers hold no more."""
Make = Callable[[Any, yaml.Node], object]


def plain(loader: Any) -> None:
    """The safe loader's class without dates, sets and bytes, with errors where PyYAML crashes."""
    for kind in ("int", "float", "bool"):
        own = getattr(loader, f"construct_yaml_{kind}")
        loader.add_constructor(f"{TAG}{kind}", _checked(kind, own))
    loader.add_constructor(f"{TAG}timestamp", _as_written)
    loader.add_constructor(f"{TAG}set", _set)
    loader.add_constructor(f"{TAG}binary", _refused)


def _checked(kind: str, own: Make) -> Make:
    """PyYAML's own constructor of that kind, whose every error says where it was."""

    def make(loader: Any, node: yaml.Node) -> object:
        try:
            value = own(loader, node)
        except (ValueError, LookupError) as error:
            raise _error(f"this is no {kind}", node) from error
        if isinstance(value, int) and abs(value) >= MOST:
            raise _error("too large a number", node)
        return node.value if isinstance(value, float) and not math.isfinite(value) else value

    return make


def _as_written(_: Any, node: yaml.Node) -> object:
    """A date stays the text that it is: `2026-01-31`."""
    if not isinstance(node, yaml.ScalarNode):
        raise _error("this is no single value", node)
    return node.value


def _set(loader: Any, node: yaml.Node) -> object:
    """A map of which only the keys say something."""
    if not isinstance(node, yaml.MappingNode):
        raise _error("this is no set", node)
    return loader.construct_mapping(node, deep=True)


def _refused(_: Any, node: yaml.Node) -> object:
    raise _error("bytes are not taken, only text", node)


def _error(problem: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
