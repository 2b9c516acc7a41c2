"""YAML as people mean it: version 1.2's plain rules, and a key given twice is an error.

YAML 1.1, PyYAML's default, reads `10:00:00` as 36000 and `NO` as false; here both stay text.
"""

import re
from collections.abc import Hashable

import yaml

from gateway.config import scalars
from gateway.config.problems import ConfigError, Problem

PLAIN = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("tag:yaml.org,2002:float", r"-?(?:0|[1-9][0-9]*)?\.[0-9]+", "-.0123456789"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
)


class _Loader(yaml.SafeLoader):
    """Safe, without YAML 1.1's surprises."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(
        self, node: yaml.MappingNode, deep: bool = False
    ) -> dict[Hashable, object]:
        """As usual. Raises MarkedYAMLError for a key given twice."""
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="this is no name", problem_mark=key.start_mark)
            if key.value in keys:
                problem = f"{key.value!r} is given twice"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            keys.add(key.value)
        return super().construct_mapping(node, deep=deep)


for tag, pattern, first in PLAIN:
    _Loader.add_implicit_resolver(tag, re.compile(f"^(?:{pattern})$"), list(first))
scalars.plain(_Loader)


def parse(text: str) -> dict[str, object]:
    """The document; nothing at all is an empty one. Raises ConfigError."""
    try:
        document = yaml.load(text, _Loader)
    except yaml.YAMLError as error:
        raise ConfigError([_unreadable(error)]) from error
    except RecursionError:
        raise ConfigError([Problem("configuration", "", "nested too deeply")]) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError([Problem("configuration", "", "not a list of `name: value` lines")])
    return {str(key): value for key, value in document.items()}


def _unreadable(error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "configuration"
    return Problem(place, "", str(getattr(error, "problem", None) or error))
