"""Files of variables, as `--env-file` takes them: what python-dotenv reads, which SkyPilot uses.

`NAME=value` lines, with `export` before or not; a value in quotes may go over lines, one without
ends at a blank before `#`; `${NAME}` and `${NAME:-else}` are of lines above, else of the shell.
"""

import re
from collections.abc import Iterator, Mapping

from broker.model.errors import Refused

_BLANK = r"[^\S\r\n]*"
_END = rf"{_BLANK}(?:\r\n|\n|\r|\Z)"
_NOTHING = re.compile(r"\s*(?:#[^\r\n]*(?:\r\n|\n|\r|\Z)|\Z)")
_ENTRY = re.compile(
    rf"\s*(?:export{_BLANK}(?<=\s))?(?:'(?P<quoted>[^']+)'|(?P<name>[^=#\s]+)){_BLANK}"
    rf"(?:(?P<given>=){_BLANK}(?:"
    rf"(?:'(?P<single>(?:\\.|[^'\\])*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"){_BLANK}(?:#[^\r\n]*)?{_END}"
    rf"|(?P<plain>[^\r\n]*?)(?:(?<=\s)#[^\r\n]*)?{_END})"
    rf"|(?:#[^\r\n]*)?{_END})",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\$\{(?P<name>[^}:]*)(?::-(?P<other>[^}]*))?\}")
_ESCAPED = re.compile(r"\\([\\'\"abfnrtv])")
_ESCAPES = {**dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True)), **{c: c for c in "\\'\""}}


def read(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Variables by name; a name alone is of the shell. Raises Refused for a line that is none."""
    found: dict[str, str] = {}
    for name, value in _entries(text):
        if value is None and name not in environ:
            raise Refused(f"{name}: not set in this shell", hint=f"{name}=VALUE in the file")
        found[name] = environ[name] if value is None else _filled(value, {**environ, **found})
    return found


def _entries(text: str) -> Iterator[tuple[str, str | None]]:
    """None for a name alone."""
    text, at = text.removeprefix("\ufeff"), 0
    while at < len(text):
        if passed := _NOTHING.match(text, at):
            at = passed.end()
            continue
        entry = _ENTRY.match(text, at)
        if entry is None:
            line = text.count("\n", 0, len(text) - len(text[at:].lstrip())) + 1
            raise Refused(f"line {line} is no variable", hint="NAME=value")
        yield entry["quoted"] or entry["name"], _value(entry)
        at = entry.end()


def _value(entry: re.Match[str]) -> str | None:
    if entry["single"] is not None:
        return re.sub(r"\\([\\'])", r"\1", entry["single"])
    if entry["double"] is not None:
        return _ESCAPED.sub(lambda found: _ESCAPES[found[1]], entry["double"])
    return (entry["plain"] or "").strip() if entry["given"] else None


def _filled(value: str, known: Mapping[str, str]) -> str:
    """What is set nowhere is empty."""
    return _REFERENCE.sub(lambda found: known.get(found["name"], found["other"] or ""), value)
