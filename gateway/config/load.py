"""Text to configuration, or a list of everything that is wrong with it."""

import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.checks import disagreements
from gateway.config.manual import group_in
from gateway.config.paths import Paths
from gateway.config.problems import UNFIT, ConfigError, Problem, near, shown
from gateway.config.settings import Config
from gateway.config.text import parse

Part = str | int
Tree = object
SECRET = {"token"}
MOST_BYTES = 4 << 20
"""Of a configuration."""
MESSAGES = UNFIT | {
    "extra_forbidden": "no such setting",
    "model_type": "not a group of settings",
    "dict_type": "not a group of settings",
}
HINTS = {
    "string_type": "write it in quotes",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "one `- ` line for each",
}


def read(paths: Paths) -> Config:
    """The site's configuration; the defaults where there is no file. Raises ConfigError."""
    for path in paths.configs:
        try:
            return load(_text(path))
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem(str(path), "", str(error))]) from error
    if paths.config_named:
        hint = "SKYPURZA_CONFIG names it; make it or unset the variable"
        raise ConfigError([Problem(str(paths.configs[0]), "", "no such file", hint)])
    return Config()


def _text(path: Path) -> str:
    """Without waiting for who might write it. Raises OSError, UnicodeDecodeError."""
    with open(path, "rb", opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("not a regular file")
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"more than {MOST_BYTES} bytes")
    return content.decode("utf-8")


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def reread(paths: Paths, running: Config) -> Config:
    """The same for a service that runs; every problem names the file. Raises ConfigError.

    A file that says nothing, or is gone, may be one that is being written: it is refused.
    """
    path = str(config_file(paths) or paths.configs[0])
    try:
        config = read(paths)
    except ConfigError as error:
        raise ConfigError([_in_file(path, problem) for problem in error.problems]) from error
    if not config.model_fields_set and running != Config():
        hint = "the running configuration stays; defaults alone take a new start"
        raise ConfigError([Problem(f"{path}: line 1", "", "nothing is said", hint)])
    return config


def _in_file(path: str, problem: Problem) -> Problem:
    known = problem.path.startswith(path)
    return problem if known else replace(problem, path=f"{path}: {problem.path}")


def load(text: str) -> Config:
    """The configuration that the YAML text says. Raises ConfigError with all that is wrong."""
    config, problems = _examine(text)
    if config is None or problems:
        raise ConfigError(problems)
    return config


def check(text: str) -> tuple[Problem, ...]:
    """Everything that is wrong with the text; empty if `load` takes it."""
    try:
        return tuple(_examine(text)[1])
    except ConfigError as error:
        return error.problems


def _examine(text: str) -> tuple[Config | None, list[Problem]]:
    tree = parse(text)
    problems: list[Problem] = []
    gone: set[tuple[Part, ...]] = set()
    while True:
        try:
            config = Config.model_validate(tree)
        except ValidationError as error:
            # What is missing because its bad value was taken out has been told.
            details = [one for one in error.errors(include_url=False) if one["loc"] not in gone]
            problems += [_problem(tree, detail) for detail in details]
            # The rest is looked at as if the bad values had not been given, to name all at once.
            dropped = [_drop(tree, detail["loc"]) for detail in details]
            gone |= {detail["loc"] for detail in details}
            if not any(dropped) or any(detail["type"] == "missing" for detail in details):
                return None, problems
        else:
            return config, problems + disagreements(config)


def _drop(tree: Tree, loc: Sequence[Part]) -> bool:
    """Takes the setting at `loc`, or the nearest around it, out of the tree."""
    for end in range(len(loc), 0, -1):
        parent, name = _at(tree, loc[: end - 1]), loc[end - 1]
        if isinstance(parent, dict) and name in parent:
            del parent[name]
            return True
    return False


def _at(tree: Tree, loc: Sequence[Part]) -> Tree:
    for part in loc:
        if isinstance(tree, dict):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree


def _problem(tree: Tree, detail: ErrorDetails) -> Problem:
    loc, kind = detail["loc"], detail["type"]
    cause = detail.get("ctx", {}).get("error")
    message = MESSAGES.get(kind) or detail["msg"].replace("Input should", "must")
    hint = HINTS.get(kind, "")
    if isinstance(cause, ValueError):
        message, hint = str(cause), str(getattr(cause, "hint", ""))
    if kind == "extra_forbidden":
        hint = near(str(loc[-1]), _known_settings(loc[:-1]))
    absent = kind in {"missing", "extra_forbidden"} or loc[-1] in SECRET
    return Problem(_path(tree, loc), "" if absent else shown(detail["input"]), message, hint)


def _path(tree: Tree, loc: Sequence[Part]) -> str:
    """`partitions[debug].max_time`: an item of a list goes by its name where it has one."""
    path = ""
    for place, part in enumerate(loc, 1):
        if isinstance(part, int):
            path += f"[{_label(_at(tree, loc[:place]), part)}]"
        else:
            path += f".{part}" if path else part
    return path


def _label(item: Tree, index: int) -> str:
    if isinstance(item, dict):
        for key in ("name", "names", "account"):
            if key in item:
                return str(item[key])
    return str(index)


def _known_settings(loc: Sequence[Part]) -> list[str]:
    group: type[BaseModel] | None = Config
    for part in loc:
        if group and isinstance(part, str):
            group = group_in(group.model_fields[part].annotation)
    return list(group.model_fields) if group else []


def config_file(paths: Paths) -> Path | None:
    """The file that `read` reads; None where there is none."""
    return next((path for path in paths.configs if path.exists()), None)
