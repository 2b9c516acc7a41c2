"""A task as a batch script, and a batch script as a task; one is read back from the other.

What only a task file can say stands in `#TASK KEY: VALUE` lines, which sbatch takes for comments;
what only sbatch can say stands in `config.slurm.sbatch_options`. `#SPZ` lines at the head of `run`
stand at the head of the script as well, where they count for sbatch.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final

from broker.model.errors import BadSpec
from gateway.translate.skypilot_words import ALSO, KEPT, PAIRS
from sbatch_shim.grammar.check import Rules
from sbatch_shim.grammar.errors import GrammarError
from sbatch_shim.grammar.parse import Script, look, settle

Tree = dict[str, Any]
MARK: Final = "#TASK "
HEAD = "#!/bin/bash"
SHELLS = ("bash", "sh")
SECTIONS = ("setup", "run")
OPTIONS = "config.slurm.sbatch_options"
STAGING = "#SPZ"
SRUN = "srun --ntasks-per-node=1 "
_DIRECTIVE = re.compile(r"#SBATCH(\s|$)")
_PLAIN = re.compile(r"[\w@%+=:,./-]+")
_PROTECTED = re.compile(r"['\\]")
_MARKED = re.compile(rf"{MARK}([\w.]+): (.*)")
_SECTION = re.compile(
    rf"^(?:{SRUN}bash -s |bash /dev/fd/3 3)"  # on every node, or here
    r"<<'(SPZ_(SETUP|RUN)_*)'.*$"
)


def to_sbatch(tree: Tree) -> str:
    """A batch script that does the same on one cluster of nodes."""
    directives, rest = _parted(tree)
    lines = [HEAD, *(f"#SBATCH {_directive(*one)}" for one in directives.items())]
    lines += [f"{MARK}{key}: {json.dumps(value)}" for key, value in rest.items()]
    lines += [line for line in _head(str(tree.get("run") or "").split("\n")) if _travels(line)]
    return "\n".join([*lines, "", *_body(tree)]) + "\n"


def unsaid(tree: Tree) -> list[str]:
    """Keys of which that script says nothing to sbatch, or less: they stand in comments alone."""
    _, rest = _parted(tree)
    if any(tree.get(section) for section in SECTIONS):  # what lacks a value ends the script
        rest = {key: value for key, value in rest.items() if key not in {"envs", "secrets"}}
    inner = rest.pop("config", {})
    return [*rest, *(f"config.{key}" for key in inner)]


def _parted(tree: Tree) -> tuple[dict[str, str], Tree]:
    """What options say, and what they do not, or not as exactly."""
    directives, rest = dict(_options(tree)), _flat(tree)
    for pair in PAIRS:
        value = rest.get(pair.key)
        text = None if value is None else pair.to_option(value)
        if text is not None:
            directives[pair.option] = text
            if pair.to_key(text) == value:
                del rest[pair.key]
    return directives, rest


def _directive(long: str, text: str) -> str:
    """As sbatch reads words: a backslash protects whatever follows, in quotes too."""
    if not text:
        return f"--{long}"
    if _PLAIN.fullmatch(text):
        return f"--{long}={text}"
    return f"--{long}='{_PROTECTED.sub(lambda found: chr(92) + found[0], text)}'"


def _options(tree: Tree) -> Iterator[tuple[str, str]]:
    slurm = (tree.get("config") or {}).get("slurm") or {}
    for name, value in (slurm.get("sbatch_options") or {}).items():
        if value is not None and value is not False:
            yield str(name), "" if value is True else str(value)


def _flat(tree: Tree) -> Tree:
    """Keys by path, without what stands in directives and in the script itself."""
    found: Tree = {}
    for key, value in tree.items():
        if key == "resources" and isinstance(value, dict):
            found |= {f"resources.{name}": inner for name, inner in value.items()}
        elif key == "config":
            found |= _without_options(value)
        elif key == "secrets":
            found[key] = dict.fromkeys(_names(value))
        elif key not in {*SECTIONS, "envs"}:
            found[key] = value
    envs = tree.get("envs") or {}
    if not any(tree.get(section) for section in SECTIONS):
        return found | ({"envs": envs} if envs else {})
    wanting = [name for name, text in envs.items() if text is None]
    return found | ({"envs": dict.fromkeys(wanting)} if wanting else {})


def _without_options(config: Any) -> Tree:
    if not isinstance(config, dict):
        return {}
    slurm = dict(config.get("slurm") or {})
    slurm.pop("sbatch_options", None)
    left = {key: value for key, value in config.items() if key != "slurm"}
    left |= {"slurm": slurm} if slurm else {}
    return {"config": left} if left else {}


def _names(secrets: Any) -> list[str]:
    return [str(name).removeprefix("secrets:") for name in secrets or ()]


def _head(lines: Iterable[str]) -> Iterator[str]:
    """Up to the first command, as sbatch reads it."""
    return takewhile(lambda line: not line.strip() or line.startswith("#"), lines)


def _travels(line: str) -> bool:
    return bool(line.split()) and line.split(maxsplit=1)[0] == STAGING


def _body(tree: Tree) -> Iterator[str]:
    if not any(tree.get(section) for section in SECTIONS):
        return
    for name, text in (tree.get("envs") or {}).items():
        yield _export(name, None if text is None else str(text), option="--env")
    for name in _names(tree.get("secrets")):
        yield _export(name, None, option="--secret")
    each = SRUN if int(tree.get("num_nodes") or 1) > 1 else ""
    for section in SECTIONS:
        text = tree.get(section)
        if text:
            yield from _block(section, str(text), each=each)


def _export(name: str, text: str | None, *, option: str) -> str:
    if text is not None:
        return f"export {name}={shlex.quote(text)}"
    return f': "${{{name}:?needs a value: give it to sbatch with --export}}"  # {option} {name}'


def _block(section: str, text: str, *, each: str) -> Iterator[str]:
    """The text as it is, for a shell of its own; on every node where there are several."""
    word = f"SPZ_{section.upper()}"
    while word in text.splitlines():
        word += "_"
    shell = f"{each}bash -s <<'{word}'" if each else f"bash /dev/fd/3 3<<'{word}'"
    yield f"{shell} || exit" if section == "setup" else shell
    yield from (text if text.endswith("\n") else text + "\n").split("\n")[:-1]
    yield word


# --- and back


def from_sbatch(text: str, name: str) -> Tree:
    """The task that a batch script is. Raises BadSpec with sbatch's own words."""
    try:
        seen = look("sbatch", [name])
        rules = Rules("sbatch", 0, _utc, False)
        request = settle(seen, Script(name, text), environ={}, rules=rules)
    except GrammarError as error:
        raise BadSpec("", name, str(error.args[0]).strip()) from None
    if len(request.parts) > 1:
        raise BadSpec("", name, "a heterogeneous job has no counterpart in one task")
    given = {long: one.text or "" for long, one in request.parts[0].items()}
    tree = _tree(given)
    for key, value in _marks(text):
        _put(tree, key, value)
    return _ordered(tree | _scripts(text, tree))


def _utc(_: int) -> int:
    return 0


def _tree(given: Mapping[str, str]) -> Tree:
    tree: Tree = {}
    options: Tree = {}
    counted = any(long in given for long in KEPT)
    pairs = {pair.option: pair for pair in PAIRS} | ALSO
    for long, text in given.items():
        pair = pairs.get(long)
        value = None if pair is None or (counted and long == "cpus-per-task") else pair.to_key(text)
        if pair is None or value is None:
            options[long] = text or True
        else:
            _put(tree, pair.key, value)
    if options:
        _put(tree, OPTIONS, options)
    return tree


def _put(tree: Tree, path: str, value: Any) -> None:
    *groups, last = path.split(".")
    for group in groups:
        tree = tree.setdefault(group, {})
    tree[last] = _merged(tree.get(last), value)


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    return {**old, **{key: _merged(old.get(key), inner) for key, inner in new.items()}}


def _marks(text: str) -> Iterator[tuple[str, Any]]:
    return filter(None, map(_marked, _head(text.split("\n"))))


def _marked(line: str) -> tuple[str, Any] | None:
    """A key and its value; None of a comment that is somebody else's."""
    found = _MARKED.fullmatch(line)
    with suppress(ValueError):
        return (found[1], json.loads(found[2])) if found else None
    return None


def _scripts(text: str, tree: Tree) -> Tree:
    """`setup`, `run` and `envs` of a script that `to_sbatch` made; else all of it as `run`."""
    lines = text.split("\n")
    ours = _ours(lines)
    if ours:
        envs = {**_exports(lines), **(tree.get("envs") or {})}
        return {**ours, **({"envs": envs} if envs else {})}
    head = list(_head(lines))
    told = [line for line in head[1:] if not (_DIRECTIVE.match(line) or _marked(line))]
    body = [*told, *lines[len(head) :]]
    run = "\n".join(body).lstrip("\n")
    interpreter = lines[0].removeprefix("#!").strip()
    if not run.strip():
        return {}
    if interpreter.split("/")[-1].split(" ")[0] in SHELLS:
        return {"run": run}
    return {"run": f"{interpreter} /dev/fd/3 3<<'SPZ_SCRIPT'\n{run.rstrip()}\nSPZ_SCRIPT\n"}


def _ours(lines: list[str]) -> Tree:
    found: Tree = {}
    place = 0
    while place < len(lines):
        begun = _SECTION.match(lines[place])
        place += 1
        if begun and begun[1] in lines[place:]:
            end = lines.index(begun[1], place)
            found[begun[2].lower()] = "\n".join(lines[place:end]) + "\n"
            place = end + 1
    return found


def _exports(lines: list[str]) -> dict[str, str]:
    """Up to the first section, as `to_sbatch` wrote them; a value may be of several lines."""
    found: dict[str, str] = {}
    begun = ""
    for line in lines:
        if not begun and _SECTION.match(line):
            break
        begun = f"{begun}\n{line}" if begun else line if line.startswith("export ") else ""
        with suppress(ValueError):  # a quote that is not closed yet
            for word in shlex.split(begun)[1:]:
                name, _, found[name] = word.partition("=")
            begun = ""
    return found


ORDER = ("name", "num_nodes", "workdir", "resources", "envs", "secrets", "file_mounts", "config")


def _ordered(tree: Tree) -> Tree:
    """In the order in which people write them; scripts last."""
    keys = [key for key in ORDER if key in tree]
    others = [key for key in tree if key not in {*ORDER, *SECTIONS}]
    return {key: tree[key] for key in [*keys, *others, *(s for s in SECTIONS if s in tree)]}
