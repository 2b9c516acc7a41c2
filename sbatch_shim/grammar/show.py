"""Options back to text: as `sbatch -v` lists them, one value each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sbatch_shim.grammar import table as t
from sbatch_shim.grammar import values
from sbatch_shim.grammar.parse import Given
from sbatch_shim.grammar.table import Opt

WIDTH = 20
RULE = f"{'-' * WIDTH} {'-' * WIDTH}"
Shower = Callable[[Opt, Given], str]


def _text(_opt: Opt, given: Given) -> str:
    return str(given.text or "")


def _number(_opt: Opt, given: Given) -> str:
    return str(given.value)


def _time(_opt: Opt, given: Given) -> str:
    return values.show_long(given.value)


def _mem(_opt: Opt, given: Given) -> str:
    return values.show_mebibytes(given.value)


def _nodes(_opt: Opt, given: Given) -> str:
    low, high, sizes = given.value
    if sizes:
        return str(given.text)
    return str(low) if high in (None, low) else f"{low}-{high}"


def _signal(_opt: Opt, given: Given) -> str:
    return values.show_signal(given.value)


def _mail(_opt: Opt, given: Given) -> str:
    return ",".join(given.value) or "NONE"


def _open_mode(_opt: Opt, given: Given) -> str:
    return str(given.value)[:1]


def _names(_opt: Opt, given: Given) -> str:
    return ",".join(given.value)


def _switches(_opt: Opt, given: Given) -> str:
    count, wait = given.value
    return str(count) if wait is None else f"{count}@{values.show_long(wait)}"


def _geometry(_opt: Opt, given: Given) -> str:
    return ":".join("" if piece is None else str(piece) for piece in given.value)


def _yes_no(_opt: Opt, given: Given) -> str:
    return "yes" if given.value else "no"


def _set(_opt: Opt, _given: Given) -> str:
    return "set"


SHOWERS: dict[str, Shower] = {
    t.FLAG: _set,
    t.COUNT: _number,
    t.ANY_COUNT: _number,
    t.SPECIALIZE: _number,
    t.PIECES: _number,
    t.GEOMETRY: _geometry,
    t.TIME: _time,
    t.MINUTES: _time,
    t.MEM: _mem,
    t.NODES: _nodes,
    t.SIGNAL: _signal,
    t.MAIL: _mail,
    t.DIST: _number,
    t.OPEN_MODE: _open_mode,
    t.EXCLUSIVE: _number,
    t.SWITCHES: _switches,
    t.RLIMITS: _names,
    t.YES_NO: _yes_no,
    t.NICE: _number,
    t.PRIORITY: _number,
    t.ZERO_ONE: _number,
    t.REPEAT: _number,
    t.REQUEUE: _number,
    t.HINT: _names,
}


def show_given(opt: Opt, given: Given) -> str:
    """The value of an option in one form, however it was typed: `64gb` is `64G`."""
    return SHOWERS.get(opt.kind, _text)(opt, given)


def listing(program: str, shown: Sequence[tuple[str, str]]) -> str:
    """What `-v` prints on standard error: the options given, by name."""
    rows = [f"{name:<{WIDTH}}: {text}" for name, text in sorted(shown)]
    lines = ["defined options", RULE, *rows, RULE, "end of defined options"]
    return "".join(f"{program}: {line}\n" for line in lines)
